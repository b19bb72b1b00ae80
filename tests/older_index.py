"""An index as the first version of its schema had it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

VERSION_1 = """
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
    content_key BLOB NOT NULL
);
CREATE INDEX chunks_by_document ON chunks (document_id);
CREATE INDEX chunks_by_content ON chunks (content_key);
CREATE TABLE encoders (id INTEGER PRIMARY KEY, fingerprint TEXT NOT NULL UNIQUE, dimension INTEGER NOT NULL);
CREATE TABLE embeddings (
    id INTEGER PRIMARY KEY,
    encoder_id INTEGER NOT NULL REFERENCES encoders (id),
    content_key BLOB NOT NULL,
    vectors BLOB NOT NULL,
    UNIQUE (content_key, encoder_id)
);
CREATE TABLE lexical (chunk_id INTEGER PRIMARY KEY, document_id INTEGER NOT NULL, postings BLOB NOT NULL);
CREATE INDEX lexical_by_document ON lexical (document_id);
PRAGMA application_id = 1396920901;
PRAGMA user_version = 1;
"""


def make_version_1(path: Path, newer: Path | None = None) -> None:
    """Make an index of the first version, with what `newer`, one of the present version, holds."""
    path.parent.mkdir(exist_ok=True)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript(VERSION_1)
        if newer is not None:
            connection.execute("ATTACH ? AS newer", (str(newer),))
            connection.execute("INSERT INTO meta SELECT * FROM newer.meta WHERE key IN ('completed_for', 'last_sync')")
            for table in ("documents", "chunks", "encoders", "embeddings", "lexical"):
                columns = ", ".join(row[1] for row in connection.execute(f"PRAGMA main.table_info({table})"))
                connection.execute(f"INSERT INTO {table} ({columns}) SELECT {columns} FROM newer.{table}")
