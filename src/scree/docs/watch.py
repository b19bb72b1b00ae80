"""Tell that something in a tree changed, and which paths, without deciding what to do about it.

Only the folders that a scan walked are watched, each by itself, so that dependency and build folders cost no watches.
Where the system refuses (its watch limit is reached), the tree counts as changed every few seconds instead.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from pathlib import Path

# An edit is to be found within a second: the events of one save are collected for one quiet step of this length, those
# of a long burst for at most the second figure. Both in milliseconds.
STEP_MS = 50
BURST_MS = 400

# How often a thread that watches looks whether it is still wanted, in milliseconds.
TURN_MS = 250

POLL_SECONDS = 2.0


class TreeWatch:
    """Collects the paths that change in a set of folders.

    `wake` is called, from another thread, whenever there is something to `take`.
    """

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._lock = threading.Lock()
        self._changed: set[str] = set()
        self._stop: threading.Event | None = None
        self._folders: frozenset[Path] = frozenset()
        self._failure: str | None = None

    @property
    def failure(self) -> str | None:
        """Why the system does not watch these folders, so that they have to be polled; None while it does."""
        return self._failure

    def follow(self, folders: Iterable[Path]) -> bool:
        """Watch these folders from now on, without a gap; returns whether anything had to be changed for it.

        After a change the caller looks at the tree once more, for what happened before the watch stood.
        """
        wanted = frozenset(folders)
        if wanted == self._folders:
            return False
        previous = self._stop
        ready = threading.Event()
        self._stop = threading.Event()
        self._failure = None
        self._folders = wanted
        threading.Thread(
            target=self._run, args=(wanted, self._stop, ready), name="scree-watch", daemon=True
        ).start()
        ready.wait()
        if previous is not None:
            previous.set()
        return True

    def take(self) -> set[str]:
        """Return the absolute paths that changed since the last call."""
        with self._lock:
            changed, self._changed = self._changed, set()
        return changed

    @property
    def pending(self) -> bool:
        """Whether `take` would return something."""
        return bool(self._changed)

    def close(self) -> None:
        """Stop watching."""
        if self._stop is not None:
            self._stop.set()

    def _run(self, folders: frozenset[Path], stop: threading.Event, ready: threading.Event) -> None:
        from watchfiles import watch

        try:
            # A turn without changes yields an empty set; the first turn of any kind proves that the watch stands.
            for changes in watch(
                *folders,
                watch_filter=None,
                recursive=False,
                debounce=BURST_MS,
                step=STEP_MS,
                rust_timeout=TURN_MS,
                yield_on_timeout=True,
                stop_event=stop,
                raise_interrupt=False,
                ignore_permission_denied=True,
            ):
                ready.set()
                if changes:
                    with self._lock:
                        self._changed.update(path for _, path in changes)
                    self._wake()
        except OSError as error:
            # A folder that vanished between the scan and now, or no watches left. The caller polls, and may follow again.
            self._failure = str(error)
            self._wake()
        finally:
            ready.set()
