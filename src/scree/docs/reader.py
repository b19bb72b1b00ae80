"""Search the index of one root: rank, check every hit against the disk, leave out what is no longer true.

A `Reader` only reads. It keeps postings and embeddings in memory and takes up what the writer, in this process or
another, has committed since the last search.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from scree.core.database import explained
from scree.core.encoder import Encoder, Passage
from scree.core.ignore_rules import IgnoreRules
from scree.core.lexical_index import LexicalIndex
from scree.core.printable import printable
from scree.core.ranking import hybrid_order, keyword_order, semantic_order
from scree.docs.arguments import SearchArguments
from scree.docs.render import Hit, Location
from scree.docs.settings import Settings
from scree.docs.store import ChunkRow, Store, index_path
from scree.docs.vectors import EmbeddingMatrix
from scree.docs.verification import Place, Verifier
from scree.errors import EncoderError

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Chunks are fetched and checked in slices of this many until there are enough hits.
SLICE = 16

# A text that stands in a thousand files is still one hit; this many of the other places are named.
MAX_ALSO = 20


class Reader:
    """Searches one root. May be used from several threads; searches take turns."""

    def __init__(
        self,
        root: Path,
        settings: Settings,
        rules: IgnoreRules,
        encoder: Callable[[], Encoder],
        suspect: Callable[[str], None],
    ) -> None:
        """Prepare; nothing is opened before the first search.

        Args:
            root: the project folder.
            settings: the size limit is taken from here.
            rules: of the root.
            encoder: returns the encoder, or raises `EncoderError`.
            suspect: told the path of each file about which the index proved wrong.
        """
        self._path = index_path(root)
        self._encoder = encoder
        self._suspect = suspect
        self._verifier = Verifier(root, rules, settings.max_file_bytes)
        self._lock = threading.Lock()
        self._store: Store | None = None
        self._inode = 0
        self._seen: tuple[int, int | None] | None = None  # data version, encoder number
        self._matrix = EmbeddingMatrix(0)

    def search(self, arguments: SearchArguments) -> list[Hit]:
        """Return up to `k` hits, best first, each true of the disk a moment ago.

        Raises:
            StorageError: the index cannot be read.
        """
        encoder, query = self._encode(arguments.query)
        with self._lock:
            store = self._current()
            with store.view():
                self._refresh(store, encoder)
                similarity = self._similarity(store, query)
                order = _order(arguments, store.lexical, similarity)
                ranked = _ranked(store, store.lexical.chunk_ids[order], similarity[order])
                return self._hits(store, ranked, arguments.k, encoder, query)

    def printed_as(self, printed: str) -> list[str]:
        """Return the paths of the index that print as `printed`."""
        with self._lock:
            return [path for path, _ in self._current().chunk_counts() if printable(path) == printed]

    def completed(self) -> bool:
        """Return whether the index has once been complete."""
        with self._lock:
            return self._current().fact("completed_for") is not None

    def expect_model(self) -> None:
        """Raise where the index has nothing that can be compared with a query.

        Raises:
            EncoderError: there is no encoder to embed queries with.
            ModelMismatchError: the index was made with another one.
        """
        encoder = self._encoder()
        with self._lock:
            if not len(self._matrix.chunk_ids):
                self._current().expect_encoder(encoder.fingerprint)

    def _encode(self, query: str) -> tuple[Encoder | None, NDArray[np.float32] | None]:
        try:
            encoder = self._encoder()
        except EncoderError:
            return None, None  # keyword search goes on; the writer's note says why there is no more
        return encoder, encoder.encode_query(query)

    def _current(self) -> Store:
        """Return the open store, opened again if the file was replaced."""
        try:
            inode = os.stat(self._path).st_ino
        except FileNotFoundError:
            inode = 0
        if self._store is None or inode != self._inode:
            if self._store is not None:
                self._store.close()
                self._store = None
            self._store, self._inode, self._seen = Store.reader(self._path), inode, None
        return self._store

    def _refresh(self, store: Store, encoder: Encoder | None) -> None:
        """Take up what was committed since the last search."""
        encoder_id = store.encoder_id(encoder.fingerprint) if encoder else None
        seen = (store.data_version(), encoder_id)
        if seen == self._seen:
            return
        if self._seen is None or self._seen[1] != encoder_id:
            self._matrix = EmbeddingMatrix(encoder.dimension if encoder else 0)
        with explained(store.path):
            store.lexical.update()
        if encoder_id is not None:
            self._matrix.update(store, encoder_id)
        self._seen = seen

    def _similarity(self, store: Store, query: NDArray[np.float32] | None) -> NDArray[np.float32]:
        """Return each chunk's best cosine similarity, NaN without an embedding; in the lexical index's order."""
        similarity = np.full(len(store.lexical.chunk_ids), np.nan, np.float32)
        if query is not None and len(self._matrix.chunk_ids):
            similarity[np.searchsorted(store.lexical.chunk_ids, self._matrix.chunk_ids)] = self._matrix.best_windows(
                query
            )
        return similarity

    def _hits(
        self,
        store: Store,
        ranked: Iterator[tuple[ChunkRow, float]],
        k: int,
        encoder: Encoder | None,
        query: NDArray[np.float32] | None,
    ) -> list[Hit]:
        hits: list[Hit] = []
        shown: set[bytes] = set()
        for chunk, similarity in ranked:
            if len(hits) == k:
                break
            if chunk.content_key in shown:
                continue
            place = self._place(chunk)
            if place is None:
                continue
            shown.add(chunk.content_key)
            unknown = np.isnan(similarity)
            hits.append(
                Hit(
                    n=len(hits) + 1,
                    location=Location(chunk.path, place.start, place.end),
                    trail=chunk.trail,
                    score=self._embed_now(store, chunk, encoder, query) if unknown else similarity,
                    text=chunk.text,
                    also=tuple(self._also(store, chunk, place)),
                )
            )
        return hits

    def _place(self, chunk: ChunkRow) -> Place | None:
        place = self._verifier.place(chunk)
        if place is None or not place.current:
            self._suspect(chunk.path)
        return place

    def _also(self, store: Store, chunk: ChunkRow, place: Place) -> Iterator[Location]:
        """Yield where a chunk's text stands besides; parts of one long line share its place."""
        named = {Location(chunk.path, place.start, place.end)}
        for other in store.identical_chunks(chunk.content_key):
            if len(named) > MAX_ALSO:
                return
            if other.id != chunk.id and (there := self._place(other)) is not None and there.start is not None:
                location = Location(other.path, there.start, there.end)
                if location not in named:
                    named.add(location)
                    yield location

    def _embed_now(
        self, store: Store, chunk: ChunkRow, encoder: Encoder | None, query: NDArray[np.float32] | None
    ) -> float | None:
        """Score a chunk that the writer has not come to yet."""
        if encoder is None or query is None:
            return None
        (content,) = store.contents([chunk.content_key])
        (windows,) = encoder.encode_documents([Passage(content.context, content.text)])
        return float((windows @ query).max())


def _ranked(
    store: Store, chunk_ids: NDArray[np.int64], similarity: NDArray[np.float32]
) -> Iterator[tuple[ChunkRow, float]]:
    """Yield the chunks in this order with their similarity, fetched only as far as somebody asks."""
    for start in range(0, len(chunk_ids), SLICE):
        part = slice(start, start + SLICE)
        scores = dict(zip(chunk_ids[part].tolist(), similarity[part].tolist(), strict=True))
        for chunk in store.chunks(list(scores)):
            yield chunk, scores[chunk.id]


def _order(arguments: SearchArguments, index: LexicalIndex, similarity: NDArray[np.float32]) -> NDArray[np.intp]:
    match arguments.mode:
        case "semantic":
            return semantic_order(index.document_ids, similarity)
        case "keyword":
            return keyword_order(index.document_ids, index.scores(arguments.query))
        case "hybrid":
            return hybrid_order(index.document_ids, index.scores(arguments.query), similarity)
