"""Check a chunk of the index against the disk, a moment before it is returned."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from scree.core.files import ChangedWhileRead, read_source
from scree.core.ignore_rules import IgnoreRules
from scree.docs.chunks import normalise_newlines, opts_out
from scree.docs.store import ChunkRow, FileState
from scree.errors import SkippedFile


@dataclass(frozen=True, slots=True)
class Place:
    """Where a chunk is now.

    Attributes:
        start: first line, 1-based; None when the file has changed and the text is gone.
        end: last line, inclusive; None when it is not known.
        current: whether the file is as it was when it was indexed.
    """

    start: int | None
    end: int | None
    current: bool


class Verifier:
    """Looks at files of one root under its rules as they are now; reads only those that changed."""

    def __init__(self, root: Path, rules: IgnoreRules, max_file_bytes: int) -> None:
        self._root = root
        self._rules = rules
        self._max_file_bytes = max_file_bytes

    def place(self, chunk: ChunkRow) -> Place | None:
        """Return where `chunk` is now, or None when its file is gone, ignored, opted out or too large."""
        if self._rules.reason(chunk.path) is not None:
            return None
        try:
            state = FileState.of(os.lstat(self._root / chunk.path))
            if state.size > self._max_file_bytes:
                return None  # indexed under a higher limit
            if chunk.state.holds(chunk.read_ns, state):
                return Place(chunk.start_line, chunk.end_line, current=True)
            source = read_source(self._root, chunk.path, self._max_file_bytes)
        except (FileNotFoundError, NotADirectoryError, SkippedFile):
            return None
        except (OSError, ChangedWhileRead):
            return Place(None, None, current=False)
        if opts_out(source.text):
            return None
        return find(chunk, source.text)


def find(chunk: ChunkRow, source: str) -> Place:
    """Find the chunk's text in the file's text as it is now: the occurrence nearest to where it was."""
    text = normalise_newlines(source)
    best: int | None = None
    line, counted = 1, 0
    position = text.find(chunk.text)
    while position >= 0:
        line += text.count("\n", counted, position)
        counted = position
        if best is None or abs(line - chunk.start_line) < abs(best - chunk.start_line):
            best = line
        position = text.find(chunk.text, position + 1)
    if best is None:
        return Place(None, None, current=False)
    return Place(best, best + chunk.text.count("\n"), current=False)
