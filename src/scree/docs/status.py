"""What `scree status` shows: one picture of the index, as text for people and as JSON."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from scree.core.printable import printable


@dataclass(frozen=True, slots=True)
class Status:
    """One picture of the index of one root.

    Attributes:
        root: the project folder.
        index_path: the index file, whether or not it exists.
        files: `(path, number of chunks)` of each indexed document.
        model: fingerprint of the encoder whose embeddings the index holds; None before the first.
        index_bytes: size of the index with SQLite's files beside it, in bytes.
        writer_pid: the process that keeps the index current; None if no one does.
        last_sync: when the index was last known complete, seconds since 1970.
        skipped: `(path, reason)` of what is not indexed.
        note: the status note a search would end with.
    """

    root: Path
    index_path: Path
    files: tuple[tuple[str, int], ...]
    model: str | None
    index_bytes: int
    writer_pid: int | None
    last_sync: int | None
    skipped: tuple[tuple[str, str], ...]
    note: str | None

    def as_json(self) -> dict[str, object]:
        """Return the picture under the keys of the contract."""
        return {
            "root": printable(str(self.root)),
            "index_path": printable(str(self.index_path)),
            "files": [{"path": printable(path), "chunks": chunks} for path, chunks in self.files],
            "chunks": self._chunks,
            "model": self.model,
            "index_bytes": self.index_bytes,
            "writer_pid": self.writer_pid,
            "last_sync": None if self.last_sync is None else _moment(self.last_sync),
            "skipped": [{"path": printable(path), "reason": reason} for path, reason in self.skipped],
            "note": self.note,
        }

    def as_text(self) -> str:
        """Return the picture for a terminal: the facts, then what is skipped and why."""
        writer = "nobody; the next search or session brings it up to date"
        if self.writer_pid is not None:
            writer = f"process {self.writer_pid}"
        lines = [
            f"root       {printable(str(self.root))}",
            f"index      {printable(str(self.index_path))} ({self.index_bytes / 1_000_000:.1f} MB)",
            f"files      {len(self.files)}",
            f"chunks     {self._chunks}",
            f"model      {self.model[:12] if self.model else 'none yet'}",
            f"written by {writer}",
            f"last sync  {'never' if self.last_sync is None else _moment(self.last_sync)}",
            f"skipped    {len(self.skipped)}",
            *(f"  {printable(path)}: {reason}" for path, reason in self.skipped),
        ]
        return "\n".join(lines if self.note is None else [*lines, self.note])

    @property
    def _chunks(self) -> int:
        return sum(chunks for _, chunks in self.files)


def size_on_disk(files: Iterable[Path]) -> int:
    """Return the bytes of those of `files` that are there to be looked at."""
    size = 0
    for file in files:
        # SQLite's own come and go, and the rest of the picture says what is wrong with a folder that is closed.
        with contextlib.suppress(OSError):
            size += os.stat(file).st_size
    return size


def _moment(seconds: int) -> str:
    """Return a time in the user's time zone, ISO 8601."""
    return time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime(seconds))
