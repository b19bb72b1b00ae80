"""Check candidates against the disk, a moment before they are returned.

The disk is right: of a file that is not, byte for byte, the one that was indexed, nothing is returned. No link is
followed and nothing outside the root is opened, whatever the index says.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from dataclasses import dataclass, replace
from pathlib import Path

from scree.core.files import ChangedWhileRead, contained, decode_utf8, read_data
from scree.core.printable import printable
from scree.errors import ChangedFileError, ScreeError
from scree.scout.analysis import MAX_FILE_BYTES
from scree.scout.outlines import split_lines
from scree.scout.snapshot import Entry

# Lines kept in memory from one request to the next, in characters: about 20 MB.
MAX_KNOWN_CHARS = 8_000_000

REBUILD = "build the index again to find it"


@dataclass(frozen=True, slots=True)
class Snippet:
    """A candidate that was checked, with its lines as they are on the disk."""

    entry: Entry
    lines: tuple[str, ...]
    truncated: bool = False


class KnownLines:
    """The lines of files by the hash of their bytes: a file that is read and hashed again need not be cut again."""

    def __init__(self) -> None:
        self._lines: OrderedDict[bytes, list[str]] = OrderedDict()
        self._chars = 0

    def of(self, sha256: bytes, data: bytes) -> list[str]:
        """Return the lines of a file.

        Args:
            sha256: of its bytes.
            data: its bytes.

        Raises:
            SkippedFile: they are not UTF-8.
        """
        lines = self._lines.get(sha256)
        if lines is None:
            lines = split_lines(decode_utf8(data))
            self._lines[sha256] = lines
            self._chars += sum(map(len, lines))
            while self._chars > MAX_KNOWN_CHARS:
                _, oldest = self._lines.popitem(last=False)
                self._chars -= sum(map(len, oldest))
        else:
            self._lines.move_to_end(sha256)
        return lines


class Disk:
    """The files of a root, as they are during one request; each is read once.

    Attributes:
        warnings: one for each file that is not as it was indexed.
    """

    def __init__(self, root: Path, known: KnownLines) -> None:
        self.warnings: list[str] = []
        self._root = root
        self._known = known
        self._lines: dict[str, list[str] | ChangedFileError] = {}

    def snippet(self, entry: Entry) -> Snippet:
        """Return a candidate with its lines.

        Raises:
            ChangedFileError: its file is not as it was indexed, gone, or not to be read.
        """
        known = self._lines.get(entry.path)
        if isinstance(known, ChangedFileError):
            raise known
        try:
            lines = self._read(entry) if known is None else known
            if not 1 <= entry.start_line <= entry.end_line <= len(lines):
                shown = printable(entry.path)
                raise ChangedFileError(f'"{shown}" has no such lines: the index is damaged; build it again.')
        except ChangedFileError as error:
            self.warnings.append(str(error))
            self._lines[entry.path] = error
            raise
        self._lines[entry.path] = lines
        return Snippet(entry, tuple(lines[entry.start_line - 1 : entry.end_line]))

    def _read(self, entry: Entry) -> list[str]:
        shown = printable(entry.path)
        try:
            data, _ = read_data(self._root, contained(entry.path), MAX_FILE_BYTES)
            if hashlib.sha256(data).digest() == entry.sha256:
                return self._known.of(entry.sha256, data)
        except (FileNotFoundError, NotADirectoryError):
            raise ChangedFileError(f'"{shown}" is gone since it was indexed; {REBUILD}.') from None
        except (ScreeError, OSError, ChangedWhileRead) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise ChangedFileError(f'"{shown}" cannot be checked ({reason}); {REBUILD}.') from error
        raise ChangedFileError(f'"{shown}" changed since it was indexed; {REBUILD}.')


def cut(snippet: Snippet, count: int) -> Snippet:
    """Return the first `count` lines of a snippet, which then says so."""
    if count == len(snippet.lines):
        return snippet
    entry = replace(snippet.entry, end_line=snippet.entry.start_line + count - 1)
    return Snippet(entry, snippet.lines[:count], truncated=True)
