"""The project's root, the paths allowed in it, and the one way to read a file: contained, capped, decoded.

Nothing here decides whether a file is ignored, walks the tree, or follows a symbolic link below the root.
"""

from __future__ import annotations

import codecs
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from scree.core.git import find_work_tree
from scree.core.printable import printable
from scree.errors import ArgumentError, RefusedError, RootError, ScreeError, SkippedFile

LINK = "is a symbolic link"
NOT_REGULAR = "is not a regular file"
NOT_TEXT = "is not text (it has a NUL byte)"
NOT_UTF8 = "is not UTF-8 text"

FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# Not blocking, for the file may have become a FIFO since it was looked at.
FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class ChangedWhileRead(ScreeError):
    """A file was written to while it was read; the next look finds it whole."""


@dataclass(frozen=True, slots=True)
class SourceText:
    """A file as it was read.

    Attributes:
        text: the content without its byte order mark; line ends are those of the file.
        sha256: of the content's bytes.
        stat: the file's state, the same before and after it was read.
    """

    text: str
    sha256: bytes
    stat: os.stat_result


def find_root(explicit: str | None, environment: Mapping[str, str], working_folder: Path) -> Path:
    """Return the folder to be indexed, absolute and without links.

    That is the folder named by `--root`; else the git top level of `CLAUDE_PROJECT_DIR`, if that is set, or
    of the working folder; outside git the folder itself.

    Args:
        explicit: the value of `--root`.
        environment: where `CLAUDE_PROJECT_DIR` and `HOME` stand.
        working_folder: an absolute path.

    Raises:
        RootError: the folder does not exist, or is a home folder or a file-system root that `--root` does not
            name.
    """
    if explicit is not None:
        return _existing(explicit, working_folder, "--root")
    named = environment.get("CLAUDE_PROJECT_DIR")
    folder = _existing(named, working_folder, "CLAUDE_PROJECT_DIR") if named else working_folder.resolve()
    work_tree = find_work_tree(folder)
    root = work_tree.top if work_tree else folder
    home = Path(environment.get("HOME") or os.path.expanduser("~")).resolve()
    if root in {home, Path(root.anchor)}:
        kind = "your home folder" if root == home else "the root of the file system"
        raise RootError(
            f'The project would be {kind}, which is not indexed unless you name it: pass --root "{root}", '
            "or the folder you mean."
        )
    return root


def contained(path: str) -> str:
    """Return `path` in its one form, names joined with `/`.

    Whether it exists plays no part. Absolute paths are refused although they may lead into the project, and
    `..` although it may stay there. A backslash is a character like any other.

    Raises:
        RefusedError: it does not lie in the project, or no file could have this name.
        ArgumentError: it names no file.
    """
    names = [name for name in path.split("/") if name not in ("", ".")]
    if path.startswith("/") or ".." in names or "\0" in path or not _encodable(path):
        raise RefusedError(f'refused: "{printable(path)}" is outside the project')
    if not names:
        raise ArgumentError("path must name a file, relative to the project's root.")
    return "/".join(names)


def file_obstacle(status: os.stat_result) -> str | None:
    """Return why what has this state, taken without following links, is no file to be read; else None."""
    if stat.S_ISLNK(status.st_mode):
        return LINK
    return None if stat.S_ISREG(status.st_mode) else NOT_REGULAR


def read_source(root: Path, path: str, max_bytes: int, decoder: Callable[[bytes], str] | None = None) -> SourceText:
    """Read and decode one file.

    No link is followed below the root, also if one is put there meanwhile, and nothing but a regular file is
    opened.

    Args:
        root: the project's root.
        path: relative to it, as `contained` returns it.
        max_bytes: the largest size that is read.
        decoder: turns its bytes into text, or raises `SkippedFile`; `decode` unless told otherwise.

    Raises:
        SkippedFile: it is a link or lies behind one, is not a regular file, too large, or not text.
        ChangedWhileRead: it was written to meanwhile.
        OSError: it is missing or cannot be read.
    """
    # Not at the top: it brings in OpenSSL, and a session that only relays needs this module for its root alone.
    from hashlib import sha256

    data, status = read_data(root, path, max_bytes)
    return SourceText((decoder or decode)(data), sha256(data).digest(), status)


def read_data(root: Path, path: str, max_bytes: int) -> tuple[bytes, os.stat_result]:
    """Read the bytes of one file, as `read_source` does; returns them and the file's state.

    Raises:
        SkippedFile: it is a link or lies behind one, is not a regular file, or too large.
        ChangedWhileRead: it was written to meanwhile.
        OSError: it is missing or cannot be read.
    """
    with _opened(root, path) as file:
        before = os.fstat(file)
        _require_file(before)
        if before.st_size > max_bytes:
            raise SkippedFile(_too_large(max_bytes))
        with open(file, "rb", closefd=False) as stream:
            data = stream.read(max_bytes + 1)
        after = os.fstat(file)
    if len(data) > max_bytes:
        raise SkippedFile(_too_large(max_bytes))
    if (after.st_mtime_ns, after.st_size) != (before.st_mtime_ns, len(data)):
        raise ChangedWhileRead(f'"{printable(path)}" changed while it was read; try again.')
    return data, after


def decode(data: bytes) -> str:
    """Return a file's text: by its byte order mark, else UTF-8; what does not decode becomes U+FFFD.

    Raises:
        SkippedFile: it is not text.
    """
    if data.startswith(codecs.BOM_UTF16_LE):
        text = data[2:].decode("utf-16-le", "replace")
    elif data.startswith(codecs.BOM_UTF16_BE):
        text = data[2:].decode("utf-16-be", "replace")
    else:
        text = data.removeprefix(codecs.BOM_UTF8).decode("utf-8", "replace")
    if "\0" in text:
        raise SkippedFile(NOT_TEXT)
    return text


def decode_utf8(data: bytes) -> str:
    """Return a file's text where it is UTF-8, with or without a byte order mark, and nothing else.

    Raises:
        SkippedFile: it is not.
    """
    try:
        text = data.removeprefix(codecs.BOM_UTF8).decode("utf-8")
    except UnicodeDecodeError:
        raise SkippedFile(NOT_UTF8) from None
    if "\0" in text:
        raise SkippedFile(NOT_TEXT)
    return text


def _existing(folder: str, working_folder: Path, named_by: str) -> Path:
    path = working_folder / os.path.expanduser(folder)
    if not folder or not path.is_dir():
        raise RootError(f'{named_by} names "{printable(folder)}", which is not a folder; name an existing one.')
    return path.resolve()


def _encodable(path: str) -> bool:
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        return False
    return True


@contextmanager
def _opened(root: Path, path: str) -> Iterator[int]:
    """Open a file name by name from the root, so that nothing on the way can be exchanged for a link."""
    *parents, name = path.split("/")
    folder = os.open(root, FOLDER_FLAGS)
    try:
        for parent in parents:
            if stat.S_ISLNK(_state(parent, folder).st_mode):
                raise SkippedFile(LINK)
            outer, folder = folder, os.open(parent, FOLDER_FLAGS | os.O_NOFOLLOW, dir_fd=folder)
            os.close(outer)
        _require_file(_state(name, folder))
        file = os.open(name, FILE_FLAGS, dir_fd=folder)
    finally:
        os.close(folder)
    try:
        yield file
    finally:
        os.close(file)


def _state(name: str, folder: int) -> os.stat_result:
    return os.stat(name, dir_fd=folder, follow_symlinks=False)


def _require_file(status: os.stat_result) -> None:
    obstacle = file_obstacle(status)
    if obstacle:
        raise SkippedFile(obstacle)


def _too_large(max_bytes: int) -> str:
    return f"is larger than {max_bytes} bytes"
