"""Tell that something in a tree changed, and which paths, without deciding what to do about it.

Only the folders that a scan walked are watched, each by itself, so that dependency and build folders cost no watches.
Where the system refuses (its watch limit is reached), `failure` says so, and the tree has to be polled.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

# An edit is to be found within a second: the events of one save are collected for one quiet step of this length, those
# of a long burst for at most the second figure. Both in milliseconds. The library also asks at every step whether to
# stop, which is all that an idle writer does: with half the step it would use twice the processor time.
STEP_MS = 100
BURST_MS = 400

POLL_SECONDS = 2.0


class TreeWatch:
    """Collects the paths that change in a set of folders. For one thread to use.

    `wake` is called, from another thread, whenever there is something to `take`, and when watching fails.
    """

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._lock = threading.Lock()
        self._changed: set[str] = set()
        self._watch: _Watch | None = None

    @property
    def failure(self) -> str | None:
        """Why the system does not watch all of these folders, so that they have to be polled; None while it does."""
        return self._watch.failure if self._watch else None

    def follow(self, folders: Iterable[Path]) -> bool:
        """Watch these folders from now on, without a gap; returns whether anything had to be changed for it.

        After a change the caller looks at the tree once more, for what happened before the watch stood.
        """
        wanted = frozenset(folders)
        previous = self._watch
        if previous is not None and previous.folders == wanted and not previous.outdated:
            return False
        self._watch = _Watch(wanted, self._add)
        if previous is not None:
            previous.stop()
        return True

    def take(self) -> set[str]:
        """Return the absolute paths that changed since the last call."""
        with self._lock:
            changed, self._changed = self._changed, set()
        return changed

    def close(self) -> None:
        """Stop watching."""
        if self._watch is not None:
            self._watch.stop()

    def _add(self, paths: Collection[str]) -> None:
        with self._lock:
            self._changed.update(paths)
        self._wake()


class _Watch:
    """One set of folders, watched from the moment this exists.

    Attributes:
        folders: what was asked for.
        failure: why not all of it is watched; None while it is.
        outdated: whether it has to be set up anew. The system watches what had a name when it was asked to, so a
            folder that went away and came back, or another by its name, is not watched.
    """

    def __init__(self, folders: frozenset[Path], report: Callable[[Collection[str]], None]) -> None:
        self.folders = folders
        self.failure: str | None = None
        self.outdated = False
        self._names = frozenset(map(str, folders))
        self._report = report
        self._pulse = _Pulse()
        self._thread = threading.Thread(target=self._run, name="scree-watch", daemon=True)
        self._thread.start()
        self._pulse.begun.wait()

    def stop(self) -> None:
        """Stop, and wait until it is done: a thread in foreign code may not outlive the interpreter."""
        self._pulse.stopped = True
        self._thread.join()

    def _run(self) -> None:
        try:
            names = {name for name in self._names if _encodable(name)}
            if len(names) < len(self._names):
                self.failure = "some of their names are not UTF-8"
            while not self._follow(names):
                self.outdated = True
                names = {name for name in names if _can_be_watched(name)}
        except (OSError, RuntimeError) as error:
            self.outdated = self._pulse.begun.is_set()
            if not self.outdated:
                # No watches left, or whatever else the system may say. The caller polls, so nothing is lost.
                self.failure = str(error)
            # Else it broke on an event, such as that of a file whose name is not UTF-8: anything may have changed.
            self._report(self._names if self.outdated else ())
        finally:
            self._pulse.begun.set()

    def _follow(self, names: set[str]) -> bool:
        """Watch until told to stop; False where one of the folders went away before the watch stood."""
        from watchfiles import watch

        if not names:
            raise FileNotFoundError("there is no folder to watch")
        try:
            for changes in watch(
                *names,
                watch_filter=None,
                recursive=False,
                debounce=BURST_MS,
                step=STEP_MS,
                # No timeout, at which the library drops an event that comes at the same moment, and no tolerance for
                # folders that it may not read, which would cover every other failure too.
                rust_timeout=0,
                ignore_permission_denied=False,
                stop_event=self._pulse,
                raise_interrupt=False,
            ):
                paths = {path for _, path in changes}
                self.outdated = self.outdated or not self._names.isdisjoint(paths)
                self._report(paths)
        except (FileNotFoundError, PermissionError):
            if all(map(_can_be_watched, names)):
                raise
            return False
        return True


class _Pulse:
    """What the library asks at every step whether to stop, which shows that the watch stands."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.stopped = False

    def is_set(self) -> bool:
        """Return whether to stop."""
        self.begun.set()
        return self.stopped


def _can_be_watched(name: str) -> bool:
    return os.path.isdir(name) and os.access(name, os.R_OK)


def _encodable(name: str) -> bool:
    """Whether the name of a folder can be handed to a library that takes UTF-8 only."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
