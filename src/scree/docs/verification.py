"""Check a chunk of the index against the disk, a moment before it is returned."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from scree.core.files import ChangedWhileRead, read_source
from scree.core.ignore_rules import IgnoreRules
from scree.docs.chunks import normalise_newlines, opts_out
from scree.docs.file_state import FileState
from scree.docs.store import ChunkRow
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
    *before, rest = text.split("\n", chunk.start_line - 1)
    old = len(text) - len(rest) if len(before) == chunk.start_line - 1 else len(text)
    positions = (text.rfind(chunk.text, 0, old + len(chunk.text) - 1), text.find(chunk.text, old))
    lines = [text.count("\n", 0, position) + 1 for position in positions if position >= 0]
    if not lines:
        return Place(None, None, current=False)
    start = min(lines, key=lambda line: abs(line - chunk.start_line))
    return Place(start, start + chunk.text.count("\n"), current=False)
