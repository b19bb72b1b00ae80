"""The writer lease of one index: a lock that the kernel releases when its holder dies, however it dies.

The lock is what counts. What is inside the file only names the holder: its pid, and the socket where it listens for
others, if it does. A file left behind, or the pid of a process that is long gone, means nothing.

Imports nothing but small modules, for each session of a project has this one in memory.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time

from scree.errors import ReadOnlyIndexError, StorageError

INDEX_FOLDER = ".scree"
LOCK_NAME = "writer.lock"

# In place of an address: the holder is about to listen.
STARTING = "starting"

# More than the longest path of a socket, and a pid.
MAX_NAME_BYTES = 4_096

# Whoever asks who holds the lease holds a shared lock for some microseconds. Twenty of them asking without a pause make
# an attempt wait for a few turns; this many in a row mean something else.
ATTEMPTS = 200
PAUSE_SECONDS = 0.002

# A holder writes its pid some microseconds after it has locked; one that did not get so far has no name.
PID_ATTEMPTS = 5


class WriterLease:
    """The right to write the index in `folder`; at most one process holds it.

    Not for sharing between threads: one thread acquires and releases it. Programs that are started meanwhile do not
    inherit it.
    """

    def __init__(self, folder: str | os.PathLike[str], address: str = "") -> None:
        """Prepare.

        Args:
            folder: the folder of the index.
            address: what others find as the holder's socket, until `publish` says better; "" for none.
        """
        self._folder = os.fspath(folder)
        self._path = os.path.join(folder, LOCK_NAME)
        self._descriptor: int | None = None
        self._address = address

    def acquire(self) -> bool:
        """Take the lease if nobody holds it; returns whether this object holds it now.

        Makes the folder, but not the one around it, which is the project and may be unmounted.

        Raises:
            ReadOnlyIndexError: the folder cannot be written, or is a symbolic link.
            StorageError: its file system has no locks.
        """
        if self._descriptor is not None:
            return True
        while True:
            descriptor = self._open()
            try:
                locked = self._lock(descriptor)
                # The lock of a file that was deleted in between keeps nobody out.
                if locked and _is_at(descriptor, self._path):
                    self._descriptor = descriptor
                    self._sign(descriptor)
                    return True
            except OSError as error:
                self._descriptor = None
                raise self._unusable(error) from error
            finally:
                if self._descriptor is None:
                    os.close(descriptor)
            if not locked:
                return False

    def publish(self, address: str) -> None:
        """Name the socket where the holder listens, now and whenever this object takes the lease again.

        Raises:
            StorageError: it cannot be written down.
        """
        self._address = address
        if self._descriptor is not None:
            try:
                self._sign(self._descriptor)
            except OSError as error:
                raise self._unusable(error) from error

    def release(self) -> None:
        """Give the lease up; nothing happens when it is not held."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def intact(self) -> bool:
        """Whether this object holds the lease, and of the lock file that lies there now.

        Not once somebody has deleted the index's folder: then another process can become the writer of a new one.
        """
        return self._descriptor is not None and _is_at(self._descriptor, self._path)

    def holder(self) -> int | None:
        """Return the pid of the process that holds the lease, or None when nobody does, or none with a name.

        Raises:
            StorageError: the lock file cannot be looked at.
        """
        contact = self.contact()
        return contact[0] if contact else None

    def contact(self) -> tuple[int, str] | None:
        """Return the pid of the process that holds the lease and the path of its socket, "" if it has none.

        None when nobody holds it, or none with a name.

        Raises:
            StorageError: the lock file cannot be looked at.
        """
        if self._descriptor is not None:
            return os.getpid(), self._address
        try:
            descriptor = os.open(self._path, os.O_RDONLY | os.O_NOFOLLOW)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise self._unusable(error) from error
        try:
            for attempt in range(1, PID_ATTEMPTS + 1):
                if _try_lock(descriptor, fcntl.LOCK_SH):
                    return None
                pid, _, rest = os.pread(descriptor, MAX_NAME_BYTES, 0).partition(b"\n")
                # The number of a dead process is the holder's before, for a moment; or the holder's own, which lives
                # where this process does not see it, as in a container.
                if pid.isdigit() and (attempt == PID_ATTEMPTS or _lives(int(pid))):
                    return int(pid), os.fsdecode(rest.partition(b"\n")[0])
                time.sleep(PAUSE_SECONDS)
            return None
        except OSError as error:
            raise self._unusable(error) from error
        finally:
            os.close(descriptor)

    def _sign(self, descriptor: int) -> None:
        """Write down who holds the lease, and where."""
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, os.fsencode(f"{os.getpid()}\n" + (f"{self._address}\n" if self._address else "")), 0)

    def _open(self) -> int:
        """Open the lock file, made if need be, without following a link: a repository may carry one in its place."""
        try:
            try:  # noqa: SIM105 - contextlib is a large module for a session of 12 MB
                os.mkdir(self._folder)
            except FileExistsError:
                pass
            folder = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
                return os.open(LOCK_NAME, flags, 0o600, dir_fd=folder)
            finally:
                os.close(folder)
        except OSError as error:
            raise self._unusable(error) from error

    def _lock(self, descriptor: int) -> bool:
        for _ in range(ATTEMPTS):
            if _try_lock(descriptor, fcntl.LOCK_EX):
                return True
            if not _try_lock(descriptor, fcntl.LOCK_SH):
                return False
            # No one holds it: there are only others who ask, or try at this very moment.
            fcntl.flock(descriptor, fcntl.LOCK_UN)
            time.sleep(PAUSE_SECONDS)
        return False

    def _unusable(self, error: OSError) -> StorageError:
        if error.errno in (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS):
            return StorageError(f'The file system of "{self._folder}" has no locks ({error.strerror}); use another.')
        if error.errno == errno.ENOSPC:
            return StorageError(f'The disk that holds "{self._folder}" is full; free some room.')
        return ReadOnlyIndexError(
            f'"{self._folder}" cannot be written ({error.strerror}); make it a writable folder so that scree can keep '
            "its index there."
        )


def _try_lock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            return False
        raise
    return True


def _is_at(descriptor: int, path: str) -> bool:
    """Whether an open file is still the one at `path`."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except (FileNotFoundError, NotADirectoryError):
        return False


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True
