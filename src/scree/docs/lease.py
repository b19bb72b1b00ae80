"""The writer lease of one index: a lock that the kernel releases when its holder dies, however it dies.

The lock is what counts. The pid inside the file only names the holder for people; a file left behind, or the pid of a
process that is long gone, means nothing.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

from scree.errors import ReadOnlyIndexError

LOCK_NAME = "writer.lock"

# Whoever asks who holds the lease holds a shared lock for some microseconds, and must not make another's attempt fail.
PROBE_ATTEMPTS = 5
PROBE_SECONDS = 0.002


class WriterLease:
    """The right to write the index in `folder`; at most one process holds it.

    Not for sharing between threads: one thread acquires and releases it.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / LOCK_NAME
        self._descriptor: int | None = None

    def acquire(self) -> bool:
        """Take the lease if nobody holds it; returns whether this object holds it now.

        Raises:
            ReadOnlyIndexError: the folder cannot be written.
        """
        if self._descriptor is not None:
            return True
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise ReadOnlyIndexError(
                f'"{self._path.parent}" cannot be written ({error.strerror}); make it writable so that scree can keep '
                "its index there."
            ) from error
        for attempt in range(PROBE_ATTEMPTS):
            if _lock(descriptor, fcntl.LOCK_EX):
                break
            if attempt == PROBE_ATTEMPTS - 1:
                os.close(descriptor)
                return False
            time.sleep(PROBE_SECONDS)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        self._descriptor = descriptor
        return True

    def release(self) -> None:
        """Give the lease up; nothing happens when it is not held."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def holder(self) -> int | None:
        """Return the pid of the process that holds the lease, or None when nobody does."""
        if self._descriptor is not None:
            return os.getpid()
        with self._opened() as descriptor:
            for _ in range(PROBE_ATTEMPTS):
                if descriptor is None or _lock(descriptor, fcntl.LOCK_SH):
                    return None
                text = os.pread(descriptor, 32, 0).strip()
                if text.isdigit():
                    return int(text)
                time.sleep(PROBE_SECONDS)  # The holder writes its pid right after it has locked.
            return None

    @contextlib.contextmanager
    def _opened(self) -> Iterator[int | None]:
        try:
            descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            yield None
            return
        try:
            yield descriptor
        finally:
            os.close(descriptor)


def _lock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            return False
        raise
    return True
