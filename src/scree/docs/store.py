"""What the index holds: documents, their chunks, embeddings by content, and a few facts about the whole.

All of the docs half's SQL on these tables is here. A `Store` is one connection, for writing or for reading; it neither
looks at the disk nor embeds anything. Writing methods each commit one transaction, so that a process killed in between
leaves a document whole or absent.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from scree.core.database import (
    Schema,
    content_key,
    explained,
    open_frozen,
    open_reader,
    open_writer,
    pack_embeddings,
    transaction,
    unpack_embeddings,
)
from scree.core.lexical_index import LexicalIndex
from scree.docs.file_state import FileState
from scree.docs.lease import INDEX_FOLDER
from scree.errors import ModelMismatchError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from scree.docs.chunks import Chunk, Document

INDEX_NAME = "index.sqlite"

# Embeddings that no chunk uses are kept, so that a branch switched away from and back costs nothing. When more of them
# than this, and more than the chunks in use, have piled up, the oldest go.
MIN_KEPT_UNUSED = 20_000

CREATE = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE documents (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    path BLOB NOT NULL UNIQUE,
    title TEXT NOT NULL,
    skip_reason TEXT,
    sha256 BLOB NOT NULL,
    size INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    ctime_ns INTEGER NOT NULL,
    inode INTEGER NOT NULL,
    read_ns INTEGER NOT NULL
);
CREATE TABLE chunks (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    document_id INTEGER NOT NULL REFERENCES documents (id),
    trail TEXT NOT NULL,
    text TEXT NOT NULL,
    start_line INTEGER NOT NULL,
    end_line INTEGER,
    content_key BLOB NOT NULL
);
CREATE INDEX chunks_by_document ON chunks (document_id);
CREATE INDEX chunks_by_content ON chunks (content_key);
CREATE INDEX chunks_to_backfill ON chunks (document_id) WHERE end_line IS NULL;
CREATE TABLE encoders (id INTEGER PRIMARY KEY, fingerprint TEXT NOT NULL UNIQUE, dimension INTEGER NOT NULL);
CREATE TABLE embeddings (
    id INTEGER PRIMARY KEY,
    encoder_id INTEGER NOT NULL REFERENCES encoders (id),
    content_key BLOB NOT NULL,
    vectors BLOB NOT NULL,
    UNIQUE (content_key, encoder_id)
);
"""

# Version 1 did not record where a chunk ends; the next sync fills `end_line` in without embedding anything. Nor did it
# record that a first sync had begun, which the cap on first syncs goes by.
MIGRATIONS = {
    1: """
ALTER TABLE chunks ADD COLUMN end_line INTEGER;
CREATE INDEX chunks_to_backfill ON chunks (document_id) WHERE end_line IS NULL;
INSERT OR IGNORE INTO meta VALUES ('first_sync', 'begun');
"""
}

SCHEMA = Schema(application_id=0x53435245, version=2, create=CREATE + LexicalIndex.CREATE, migrations=MIGRATIONS)


@dataclass(frozen=True, slots=True)
class DocumentRow:
    """One document of the index; `skip_reason` is set for a file whose content keeps it out."""

    id: int
    path: str
    state: FileState
    sha256: bytes
    read_ns: int
    skip_reason: str | None


@dataclass(frozen=True, slots=True)
class ChunkRow:
    """One chunk of the index with the document it belongs to."""

    id: int
    path: str
    state: FileState
    read_ns: int
    trail: tuple[str, ...]
    text: str
    start_line: int
    end_line: int | None
    content_key: bytes


@dataclass(frozen=True, slots=True)
class Content:
    """What the encoder sees of a chunk: what stands in front of it, and the text."""

    key: bytes
    context: str
    text: str


def index_path(root: Path) -> Path:
    """Return where the index of `root` lives."""
    return root / INDEX_FOLDER / INDEX_NAME


def chunk_context(title: str, trail: Sequence[str]) -> str:
    """Return what the encoder sees in front of a chunk's text: the front matter's title, then the heading trail."""
    return " > ".join(part for part in (title, *trail) if part)


class Store:
    """The index of one root, through one SQLite connection.

    Use `Store.writer` in the process that holds the lease and `Store.reader` elsewhere. Methods raise `StorageError`.
    """

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self.path = path
        self._inode = os.stat(path).st_ino
        self._connection = connection
        self.lexical = LexicalIndex(connection)

    @classmethod
    def writer(cls, path: Path) -> Self:
        """Open or create the index for writing."""
        return cls(open_writer(path, SCHEMA), path)

    @classmethod
    def reader(cls, path: Path) -> Self:
        """Open the index for reading only."""
        return cls(open_reader(path, SCHEMA), path)

    @classmethod
    def frozen(cls, path: Path) -> Self:
        """Open the index of another root for reading, under the conditions of `open_frozen`."""
        return cls(open_frozen(path, SCHEMA), path)

    def intact(self) -> bool:
        """Whether the file that this connection has open is still the one at its path."""
        try:
            return os.stat(self.path).st_ino == self._inode
        except FileNotFoundError:
            return False

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """Make the writes inside one transaction; joins one that is already open."""
        with explained(self.path):
            if self._connection.in_transaction:
                yield
                return
            with transaction(self._connection):
                yield

    @contextlib.contextmanager
    def view(self) -> Iterator[None]:
        """Make the reads inside see one state of the index, whatever the writer commits meanwhile."""
        with explained(self.path), transaction(self._connection, "DEFERRED"):
            yield

    # Facts about the whole

    def fact(self, key: str) -> str | None:
        """Return a stored fact, or None."""
        with explained(self.path):
            row = self._connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return str(row[0]) if row else None

    def set_fact(self, key: str, value: str) -> None:
        """Store a fact."""
        with self.transaction():
            self._connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    def data_version(self) -> int:
        """Return a number that changes whenever another connection has changed the index."""
        with explained(self.path):
            return int(self._connection.execute("PRAGMA data_version").fetchone()[0])

    def count_chunks(self) -> int:
        """Return how many chunks the index holds."""
        return self._count("SELECT count(*) FROM chunks")

    def count_documents(self) -> int:
        """Return how many documents are indexed, those that content keeps out not counted."""
        return self._count("SELECT count(*) FROM documents WHERE skip_reason IS NULL")

    def count_embedded_documents(self, encoder_id: int) -> int:
        """Return how many documents have every chunk embedded by the encoder."""
        return self.count_documents() - self._count(
            "SELECT count(DISTINCT document_id) FROM chunks WHERE content_key NOT IN "
            "(SELECT content_key FROM embeddings WHERE encoder_id = ?)",
            encoder_id,
        )

    def chunk_counts(self) -> list[tuple[str, int]]:
        """Return `(path, number of chunks)` for each indexed document, by path."""
        with explained(self.path):
            rows = self._connection.execute(
                "SELECT path, (SELECT count(*) FROM chunks WHERE document_id = documents.id) FROM documents "
                "WHERE skip_reason IS NULL ORDER BY path"
            ).fetchall()
        return [(os.fsdecode(path), count) for path, count in rows]

    def skipped_by_content(self) -> dict[str, str]:
        """Return the files whose content keeps them out, with the reason."""
        with explained(self.path):
            rows = self._connection.execute(
                "SELECT path, skip_reason FROM documents WHERE skip_reason IS NOT NULL"
            ).fetchall()
        return {os.fsdecode(path): reason for path, reason in rows}

    def _count(self, query: str, *values: object) -> int:
        with explained(self.path):
            return int(self._connection.execute(query, values).fetchone()[0])

    # Documents

    def documents(self, paths: Iterable[str] | None = None) -> dict[str, DocumentRow]:
        """Return the documents of the index by path: all, or those of `paths` that it holds."""
        query = "SELECT id, path, size, mtime_ns, ctime_ns, inode, sha256, read_ns, skip_reason FROM documents"
        with explained(self.path):
            if paths is None:
                rows = self._connection.execute(query).fetchall()
            else:
                one = query + " WHERE path = ?"
                rows = [row for path in paths for row in self._connection.execute(one, (os.fsencode(path),))]
        return {
            (path := os.fsdecode(row[1])): DocumentRow(row[0], path, FileState(*row[2:6]), row[6], row[7], row[8])
            for row in rows
        }

    def documents_to_backfill(self) -> set[str]:
        """Return the paths of documents with a chunk whose end line an older schema did not record."""
        with explained(self.path):
            rows = self._connection.execute(
                "SELECT DISTINCT path FROM documents JOIN chunks ON document_id = documents.id WHERE end_line IS NULL"
            )
            return {os.fsdecode(row[0]) for row in rows}

    def put_document(self, path: str, state: FileState, sha256: bytes, read_ns: int, content: Document | str) -> None:
        """Store a document in place of what the index held for its path.

        Args:
            path: relative to the root.
            state: of the file when it was read.
            sha256: of the file's bytes.
            read_ns: when the file was read, nanoseconds since 1970.
            content: the parsed document, or the reason why its content keeps it out.
        """
        title, reason = ("", content) if isinstance(content, str) else (content.title, None)
        with self.transaction():
            self.remove_documents([path])
            document_id = self._connection.execute(
                "INSERT INTO documents (path, title, skip_reason, sha256, size, mtime_ns, ctime_ns, inode, read_ns) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    os.fsencode(path),
                    title,
                    reason,
                    sha256,
                    state.size,
                    state.mtime_ns,
                    state.ctime_ns,
                    state.inode,
                    read_ns,
                ),
            ).lastrowid
            assert document_id is not None
            if not isinstance(content, str):
                self._put_chunks(document_id, content.title, content.chunks)

    def _put_chunks(self, document_id: int, title: str, chunks: Sequence[Chunk]) -> None:
        for chunk in chunks:
            context = chunk_context(title, chunk.trail)
            chunk_id = self._connection.execute(
                "INSERT INTO chunks (document_id, trail, text, start_line, end_line, content_key) "
                "VALUES (?, ?, ?, ?, ?, ?)",
                (
                    document_id,
                    json.dumps(chunk.trail, ensure_ascii=False),
                    chunk.text,
                    chunk.start_line,
                    chunk.end_line,
                    content_key(context, chunk.text),
                ),
            ).lastrowid
            assert chunk_id is not None
            self.lexical.add(chunk_id, document_id, heading=context, body=chunk.text)

    def set_lines(self, lines: Iterable[tuple[int, int, int]]) -> None:
        """Record `(chunk id, first line, last line)` of chunks whose text and embedding stay as they are."""
        with self.transaction():
            self._connection.executemany(
                "UPDATE chunks SET start_line = ?, end_line = ? WHERE id = ?",
                [(start, end, chunk_id) for chunk_id, start, end in lines],
            )

    def touch_document(self, document_id: int, state: FileState, read_ns: int) -> None:
        """Record a new state of a file whose content is the same."""
        with self.transaction():
            self._connection.execute(
                "UPDATE documents SET size = ?, mtime_ns = ?, ctime_ns = ?, inode = ?, read_ns = ? WHERE id = ?",
                (state.size, state.mtime_ns, state.ctime_ns, state.inode, read_ns, document_id),
            )

    def remove_documents(self, paths: Iterable[str]) -> list[str]:
        """Remove documents with their chunks; embeddings stay. Returns the paths of those that were indexed."""
        removed = []
        with self.transaction():
            for path, row in self.documents(paths).items():
                self.lexical.remove(row.id)
                self._connection.execute("DELETE FROM chunks WHERE document_id = ?", (row.id,))
                self._connection.execute("DELETE FROM documents WHERE path = ?", (os.fsencode(path),))
                if row.skip_reason is None:
                    removed.append(path)
        return removed

    # Embeddings

    def register_encoder(self, fingerprint: str, dimension: int) -> int:
        """Return the number that an encoder has in this index, giving it one if it is new."""
        encoder_id = self.encoder_id(fingerprint)
        if encoder_id is not None:
            return encoder_id
        with self.transaction():
            self._connection.execute(
                "INSERT INTO encoders (fingerprint, dimension) VALUES (?, ?)", (fingerprint, dimension)
            )
        return self.register_encoder(fingerprint, dimension)

    def encoder_id(self, fingerprint: str) -> int | None:
        """Return the number that an encoder has in this index, or None."""
        with explained(self.path):
            row = self._connection.execute("SELECT id FROM encoders WHERE fingerprint = ?", (fingerprint,)).fetchone()
        return int(row[0]) if row else None

    def expect_encoder(self, fingerprint: str) -> None:
        """Raise where the index holds embeddings, and none of them by this encoder.

        Raises:
            ModelMismatchError: it was made with another model.
        """
        with explained(self.path):
            query = "SELECT fingerprint FROM encoders WHERE id IN (SELECT encoder_id FROM embeddings)"
            known = [str(row[0]) for row in self._connection.execute(query)]
        if known and fingerprint not in known:
            raise ModelMismatchError(
                f'The index "{self.path}" was made with another model ({known[-1][:12]}, not {fingerprint[:12]}); the '
                "process that writes to it embeds it anew."
            )

    def missing_embeddings(self, encoder_id: int) -> list[bytes]:
        """Return the content keys that the encoder has not embedded, in order of their first chunk."""
        with explained(self.path):
            rows = self._connection.execute(
                "SELECT content_key FROM chunks "
                "WHERE content_key NOT IN (SELECT content_key FROM embeddings WHERE encoder_id = ?) "
                "GROUP BY content_key ORDER BY min(id)",
                (encoder_id,),
            ).fetchall()
        return [key for (key,) in rows]

    def contents(self, keys: Iterable[bytes]) -> list[Content]:
        """Return what the encoder sees under each of `keys` that a chunk still has."""
        query = (
            "SELECT content_key, title, trail, text FROM chunks JOIN documents ON documents.id = document_id "
            "WHERE content_key = ? LIMIT 1"
        )
        with explained(self.path):
            rows = [row for key in keys for row in self._connection.execute(query, (key,))]
        return [Content(key, chunk_context(title, json.loads(trail)), text) for key, title, trail, text in rows]

    def packed_embeddings(self, encoder_id: int, keys: Iterable[bytes]) -> dict[bytes, object]:
        """Return the stored embeddings of those of `keys` that the encoder has embedded, packed and unchecked."""
        query = "SELECT vectors FROM embeddings WHERE content_key = ? AND encoder_id = ?"
        with explained(self.path):
            rows = ((key, self._connection.execute(query, (key, encoder_id)).fetchone()) for key in keys)
            return {key: row[0] for key, row in rows if row}

    def put_embeddings(self, encoder_id: int, rows: Iterable[tuple[bytes, NDArray[np.float32]]]) -> None:
        """Store `(content key, (windows, dim) float32 unit rows)` pairs in one transaction."""
        with self.transaction():
            self._connection.executemany(
                "INSERT OR REPLACE INTO embeddings (encoder_id, content_key, vectors) VALUES (?, ?, ?)",
                [(encoder_id, key, pack_embeddings(vectors)) for key, vectors in rows],
            )

    def prune_embeddings(self, encoder_id: int) -> None:
        """Drop other encoders' embeddings, and the oldest unused ones where they outnumber those in use."""
        with self.transaction():
            self._connection.execute("DELETE FROM embeddings WHERE encoder_id != ?", (encoder_id,))
            self._connection.execute("DELETE FROM encoders WHERE id != ?", (encoder_id,))
            unused = "content_key NOT IN (SELECT content_key FROM chunks)"
            excess = self._count(f"SELECT count(*) FROM embeddings WHERE {unused}") - max(
                MIN_KEPT_UNUSED, self.count_chunks()
            )
            if excess > 0:
                oldest = f"SELECT id FROM embeddings WHERE {unused} ORDER BY id LIMIT ?"
                self._connection.execute(f"DELETE FROM embeddings WHERE id IN ({oldest})", (excess,))

    # Reading for a search

    def embedded_chunks(self, encoder_id: int) -> list[tuple[int, int]]:
        """Return `(chunk id, document id)` of each chunk that the encoder has embedded, by chunk id."""
        with explained(self.path):
            return self._connection.execute(
                "SELECT chunks.id, document_id FROM chunks JOIN embeddings USING (content_key) WHERE encoder_id = ? "
                "ORDER BY chunks.id",
                (encoder_id,),
            ).fetchall()

    def embeddings(
        self, encoder_id: int, chunk_ids: Iterable[int], dimension: int
    ) -> Iterator[tuple[int, NDArray[np.float32]]]:
        """Yield `(chunk id, (windows, dimension) float32 rows)` for those of `chunk_ids` that have an embedding."""
        query = "SELECT vectors FROM chunks JOIN embeddings USING (content_key) WHERE chunks.id = ? AND encoder_id = ?"
        with explained(self.path):
            for chunk_id in chunk_ids:
                row = self._connection.execute(query, (chunk_id, encoder_id)).fetchone()
                if row:
                    yield chunk_id, unpack_embeddings(row[0], dimension)

    def chunks(self, chunk_ids: Sequence[int]) -> list[ChunkRow]:
        """Return the chunks with these ids, in this order; ids no longer in the index are left out."""
        return [row for chunk_id in chunk_ids for row in self._chunk_rows("chunks.id = ?", chunk_id)]

    def chunks_of(self, document_id: int) -> list[ChunkRow]:
        """Return the chunks of one document, in its order."""
        return self._chunk_rows("document_id = ? ORDER BY chunks.id", document_id)

    def identical_chunks(self, key: bytes) -> list[ChunkRow]:
        """Return every chunk with this content, by path and line."""
        return self._chunk_rows("content_key = ? ORDER BY path, start_line", key)

    def _chunk_rows(self, condition: str, value: object) -> list[ChunkRow]:
        with explained(self.path):
            rows = self._connection.execute(
                "SELECT chunks.id, path, size, mtime_ns, ctime_ns, inode, read_ns, trail, text, start_line, end_line, "
                f"content_key FROM chunks JOIN documents ON documents.id = document_id WHERE {condition}",
                (value,),
            ).fetchall()
        return [
            ChunkRow(row[0], os.fsdecode(row[1]), FileState(*row[2:6]), row[6], tuple(json.loads(row[7])), *row[8:])
            for row in rows
        ]
