"""What an index should hold: what a fresh one of the same tree holds."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

from scree.core.encoder import Encoder, load_encoder
from scree.docs.lease import INDEX_FOLDER
from scree.docs.settings import BUILTIN_ENCODER, Settings
from scree.docs.store import index_path
from scree.docs.sync import silent
from scree.docs.writer import Writer
from tests.waiting import eventually

# Long enough for a burst of events to settle, and for a machine that does other things as well.
PATIENCE_SECONDS = 30.0

Content = dict[str, Any]


@cache
def encoder() -> Encoder:
    """The encoder that comes with the package, loaded once."""
    return load_encoder(BUILTIN_ENCODER)


def content(root: Path) -> Content:
    """Return everything the index of `root` holds, apart from ids, times and embeddings that are only kept in stock.

    Reads the file with nothing but SQLite; raises `sqlite3.Error` where that cannot.
    """
    if not index_path(root).exists():
        return {"documents": {}}
    with closing(sqlite3.connect(f"{index_path(root).as_uri()}?mode=ro", uri=True, timeout=10.0)) as index:
        index.execute("BEGIN")
        if index.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,):
            return {"documents": {}}
        documents: Content = {}
        for path, title, reason, sha256, size, number, *chunk in index.execute(
            "SELECT path, title, skip_reason, sha256, size, chunks.id, trail, text, start_line, end_line, "
            "chunks.content_key, postings, fingerprint, vectors "
            "FROM documents "
            "LEFT JOIN chunks ON chunks.document_id = documents.id "
            "LEFT JOIN lexical ON lexical.chunk_id = chunks.id AND lexical.document_id = chunks.document_id "
            "LEFT JOIN embeddings ON embeddings.content_key = chunks.content_key "
            "LEFT JOIN encoders ON encoders.id = encoder_id "
            "ORDER BY chunks.id"
        ):
            document = documents.setdefault(os.fsdecode(path), (title, reason, sha256, size, []))
            if number is not None:
                document[-1].append(tuple(chunk))
        strays = index.execute(
            "SELECT (SELECT count(*) FROM chunks WHERE document_id NOT IN (SELECT id FROM documents)) "
            "+ (SELECT count(*) FROM lexical WHERE chunk_id NOT IN (SELECT id FROM chunks))"
        ).fetchone()[0]
        facts = dict(index.execute("SELECT key, value FROM meta WHERE key != 'last_sync'"))
        return {"documents": documents, "strays": strays, "facts": facts}


def fresh_content(root: Path, folder: Path) -> Content:
    """Return what a new index of the tree at `root` holds; made of a copy, in `folder`, that is gone afterwards."""
    copy = folder / f"fresh copy of {root.name}"
    # Python's own copying stops at a FIFO.
    subprocess.run(["cp", "-a", "--", root, copy], check=True, timeout=PATIENCE_SECONDS)
    shutil.rmtree(copy / INDEX_FOLDER, ignore_errors=True)
    Writer(copy, Settings(), encoder).sync_once(None, silent, capped=False)
    found = content(copy)
    shutil.rmtree(copy)
    return found


def await_equal_to_fresh(root: Path, folder: Path) -> Content:
    """Wait until the index of `root`, which others keep current, equals a fresh one; returns what it holds."""
    expected = fresh_content(root, folder)
    try:
        eventually(lambda: content(root) == expected, PATIENCE_SECONDS)
    except AssertionError:
        assert content(root) == expected  # says what differs
    return expected
