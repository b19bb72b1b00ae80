"""Ignore files as they are now, read again only when they changed.

Asking the disk is what an ignore decision costs, so two things are remembered: the patterns of each ignore
file, and which folders hold one. Both are asked for again whenever the inode's change time moves, and as long
as that time is so recent that a second change could share it. One instance may be used from several threads.
"""

from __future__ import annotations

import os
import stat
import time
from dataclasses import dataclass

from scree.core.gitignore_patterns import PatternList

GIT_IGNORE_FILE = ".gitignore"
SCREE_IGNORE_FILE = ".screeignore"
GIT_FOLDER = ".git"
MARKERS = frozenset({GIT_FOLDER, GIT_IGNORE_FILE, SCREE_IGNORE_FILE})

# The coarsest clock of a file system in use: FAT keeps times in steps of two seconds.
TICK_NS = 2_000_000_000

_State = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class _ReadFile:
    state: _State | None  # None where a second change could look the same
    data: bytes
    patterns: PatternList


class IgnoreFiles:
    """The patterns of ignore files, and which folders hold ignore files, as they are now."""

    def __init__(self, *, ignore_case: bool = False) -> None:
        self._ignore_case = ignore_case
        self._none = PatternList(b"")
        self._files: dict[str, _ReadFile] = {}
        self._folders: dict[str, tuple[_State | None, frozenset[str]]] = {}

    def patterns(self, file: str, *, follow_link: bool = False) -> PatternList:
        """Return the patterns of an ignore file; none where it is missing, or not a regular file.

        Args:
            file: its absolute path.
            follow_link: whether it may be a symbolic link. In a work tree git follows none.

        Raises:
            OSError: it is there and cannot be read.
        """
        try:
            status = os.stat(file, follow_symlinks=follow_link)
        except (FileNotFoundError, NotADirectoryError):
            return self._none
        if not stat.S_ISREG(status.st_mode):
            return self._none
        state = _state(status)
        known = self._files.get(file)
        if known and known.state == state:
            return known.patterns
        data = _read(file, follow_link)
        patterns = known.patterns if known and known.data == data else PatternList(data, ignore_case=self._ignore_case)
        self._files[file] = _ReadFile(_lasting(state), data, patterns)
        return patterns

    def markers(self, folder: str, status: os.stat_result) -> frozenset[str]:
        """Return which of `MARKERS` a folder holds.

        Args:
            folder: its absolute path.
            status: its state, taken just now.
        """
        state = _state(status)
        known = self._folders.get(folder)
        if known and known[0] == state:
            return known[1]
        found = frozenset(name for name in MARKERS if os.path.lexists(f"{folder}/{name}"))
        self._folders[folder] = (_lasting(state), found)
        return found


def _state(status: os.stat_result) -> _State:
    return status.st_ctime_ns, status.st_size, status.st_ino


def _lasting(state: _State) -> _State | None:
    """Return `state` if whatever is read now belongs to it for good."""
    return state if time.time_ns() - state[0] > TICK_NS else None


def _read(file: str, follow_link: bool) -> bytes:
    # Not blocking, for it may have become a FIFO since it was looked at.
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | (0 if follow_link else os.O_NOFOLLOW)
    with open(os.open(file, flags), "rb") as stream:
        return stream.read()
