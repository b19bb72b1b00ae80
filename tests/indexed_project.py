"""A project on disk with an index of its own, synced by hand and without a model."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from scree.core.database import protect_folder
from scree.core.ignore_rules import IgnoreRules
from scree.docs.file_state import TICK_NS
from scree.docs.settings import MARKDOWN_SUFFIXES, Settings
from scree.docs.store import Store, index_path
from scree.docs.sync import ScanReport, Synchronizer
from tests.fake_encoder import FakeEncoder
from tests.waiting import eventually


class IndexedProject:
    """Files, their index and what syncs the two. To be closed."""

    def __init__(self, root: Path, settings: Settings | None = None, index: Path | None = None) -> None:
        """Open the index of `root`, at `index` in place of its usual place if given."""
        self.root = root
        self.encoder = FakeEncoder()
        if index is None:
            protect_folder(index_path(root).parent)
        self.index = index or index_path(root)
        self.store = Store.writer(self.index)
        self.rules = IgnoreRules(root, MARKDOWN_SUFFIXES)
        self.sync = Synchronizer(root, self.rules, self.store, settings or Settings())

    def close(self) -> None:
        """Close the index."""
        self.store.close()

    def write(self, files: Mapping[str, str | bytes]) -> None:
        """Write files, given by relative path; folders are made as needed."""
        for name, content in files.items():
            target = self.root / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content.encode() if isinstance(content, str) else content)

    def update(self, paths: Iterable[str] | None = None, *, capped: bool = True) -> ScanReport:
        """Scan, embed what is missing, and record that the index is complete."""
        report = self.sync.scan(paths, capped=capped)
        if report.refusal is None and report.excess_mb is None:
            assert self.sync.embed_missing(self.encoder)
            if paths is None:
                self.sync.complete(self.encoder)
        return report

    def settle(self) -> None:
        """Let the clock of the file system move on, so that files read from now on are known to be unchanged."""
        newest = max(file.lstat().st_ctime_ns for file in self.root.rglob("*.md"))
        eventually(lambda: time.time_ns() > newest + 2 * TICK_NS, what="the clock to move on")

    def indexed(self) -> list[str]:
        """The paths of the indexed documents."""
        return [path for path, _ in self.store.chunk_counts()]

    def texts(self) -> list[str]:
        """The text of every chunk, document by document."""
        return [text for _, rows in self.rows() for _, text, _, _, _ in rows]

    def embedded(self) -> list[str]:
        """The texts embedded since the last call."""
        texts = [passage.text for passage in self.encoder.embedded]
        self.encoder.embedded.clear()
        return texts

    def rows(self) -> list[tuple[str, list[tuple[Any, ...]]]]:
        """Every indexed document with its chunks' trail, text, lines and content key."""
        found = []
        for path, document in sorted(self.store.documents().items()):
            if document.skip_reason is None:
                chunks = self.store.chunks_of(document.id)
                found.append(
                    (
                        path,
                        [(row.trail, row.text, row.start_line, row.end_line, row.content_key) for row in chunks],
                    )
                )
        return found

    def everything(self) -> dict[str, Any]:
        """All that the index says of the files: what two indexes of the same files have in common.

        Neither ids nor times, and of the embeddings only those in use.
        """
        self.store.lexical.update()
        documents = self.store.documents()
        encoder_id = self.store.register_encoder(self.encoder.fingerprint, self.encoder.dimension)
        ids = [chunk_id for chunk_id, _ in self.store.embedded_chunks(encoder_id)]
        vectors = {
            self.store.chunks([chunk_id])[0].content_key: rows.tobytes()
            for chunk_id, rows in self.store.embeddings(encoder_id, ids, self.encoder.dimension)
        }
        return {
            "documents": {
                path: (row.skip_reason, row.sha256, row.state.size, row.state.inode) for path, row in documents.items()
            },
            "chunks": self.rows(),
            "embeddings": vectors,
            "words": self.words(),
        }

    def words(self) -> dict[str, list[str]]:
        """For some words, the documents whose chunks have them, by the terms in the index."""
        self.store.lexical.update()
        paths = {row.id: path for path, row in self.store.documents().items()}
        found = {}
        for word in ("alpha", "beta", "gamma", "delta"):
            holding = self.store.lexical.document_ids[self.store.lexical.scores(word) > 0]
            found[word] = sorted(paths[int(document_id)] for document_id in holding)
        return found


def long_ago(path: Path) -> None:
    """Set a file's modification time back."""
    os.utime(path, ns=(10**18, 10**18))
