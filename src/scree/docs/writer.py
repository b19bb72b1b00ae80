"""The writer: hold the lease, sync, then watch, until told to stop.

One thread does all the writing. Others ask it for work with `submit` and read what it is doing from `state`; searching
happens elsewhere, on connections of its own.
"""

from __future__ import annotations

import contextlib
import queue
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any

from scree.core.database import protect_folder, remove_database
from scree.core.encoder import Encoder
from scree.core.ignore_rules import IgnoreRules
from scree.core.printable import printable
from scree.docs import render
from scree.docs.channel import Message, Send
from scree.docs.contact import ChannelError
from scree.docs.lease import INDEX_FOLDER, WriterLease
from scree.docs.settings import MARKDOWN_SUFFIXES, Settings
from scree.docs.store import Store, index_path
from scree.docs.sync import Progress, ScanReport, Stage, Synchronizer, silent
from scree.docs.watch import POLL_SECONDS, TreeWatch
from scree.errors import DamagedIndexError, EncoderError, ScreeError, StorageError

# How often a session that does not write tries to.
LEASE_SECONDS = 5.0

# Files seen in the middle of being written are looked at again after this long.
DEFERRED_SECONDS = 0.2

# A burst of more events than this may have overflowed the system's queue, so the whole tree is looked at: once now, and
# once more after a second of quiet.
BURST_PATHS = 500
SETTLE_SECONDS = 1.0

# Counting the completely indexed documents takes a moment, so a first sync does it once in this many seconds.
NOTES_SECONDS = 1.0

# Files whose change may change what is indexed anywhere below them.
RULE_FILES = frozenset({".gitignore", ".screeignore", ".git"})

ENDED = ScreeError("The writer of this index has stopped; start it again.")

Log = Callable[[str], None]
EncoderSource = Callable[[], Encoder]


class Phase(Enum):
    """What the writer of this process is doing."""

    STARTING = "starting"
    WAITING = "waiting"  # another process holds the lease
    FIRST_SYNC = "first sync"
    READY = "ready"
    CAPPED = "capped"  # the first-sync cap applied
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class WriterState:
    """A consistent picture of the writer, replaced as a whole.

    Attributes:
        phase: see `Phase`.
        notes: how many documents are completely indexed, while the first sync goes on.
        holder: pid of the process that writes, when that is another one.
        trouble: why the index is not being updated, in words for a status note.
        markdown_mb: how much markdown there is, when the first-sync cap applied.
    """

    phase: Phase = Phase.STARTING
    notes: int = 0
    holder: int | None = None
    trouble: str | None = None
    markdown_mb: float = 0.0


@dataclass(frozen=True, slots=True)
class _Job:
    path: str | None
    progress: Progress
    done: Future[ScanReport]


class Writer:
    """Keeps the index of one root current for as long as `run` runs."""

    def __init__(
        self,
        root: Path,
        settings: Settings,
        encoder: EncoderSource,
        lease: WriterLease | None = None,
        *,
        log: Log = lambda line: print(line, file=sys.stderr, flush=True),
    ) -> None:
        self.root = root
        self.state = WriterState()
        self._settings = settings
        self._encoder_source = encoder
        self._encoder: Encoder | None = None
        self._log = log
        self._log_changes = False
        self._lease = lease or WriterLease(root / INDEX_FOLDER)
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._ended = threading.Event()
        self._jobs: queue.SimpleQueue[_Job] = queue.SimpleQueue()
        self._begun_jobs: list[_Job] = []
        self._suspects: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._watch = TreeWatch(self._wake.set)
        self._watch_failed = False
        self._folders: frozenset[str] = frozenset()
        self._outer_files: frozenset[str] = frozenset()
        self._look_again_at: float | None = None  # monotonic seconds, for the whole tree
        self._changed = False  # whether the index has changed since it was last known complete

    def run(self, log_changes: bool = False) -> None:
        """Write until `stop` is called; waits for the lease while another process holds it.

        Never raises: what stops the writer is in `state.trouble` and in the log, which also has a line for each change
        where `log_changes` is set.
        """
        self._log_changes = log_changes
        try:
            while not self._stopping.is_set():
                try:
                    if self._lease.acquire():
                        self._write()
                        self._lease.release()
                        continue
                    self._set(phase=Phase.WAITING, holder=self._lease.holder())
                except StorageError as error:
                    if self.state.trouble != str(error):
                        self._log(f"scree: {error}")
                    self.give_up(str(error))
                    self._fail_jobs(error)
                    if isinstance(error, DamagedIndexError):
                        # Found while it was in use; all of it can be made again from the files.
                        remove_database(index_path(self.root))
                if not self._stopping.is_set():
                    self._wake.wait(LEASE_SECONDS)
                    self._wake.clear()
        except Exception as error:  # noqa: BLE001 - a bug here must not end a session that can still search
            # The log has what a bug report needs.
            self._log(traceback.format_exc())
            self.give_up(f"{type(error).__name__}: {error}")
        finally:
            self._watch.close()
            self._lease.release()
            self._ended.set()
            self._fail_jobs(ENDED)

    def stop(self) -> None:
        """Make `run` return soon; returns at once."""
        self._stopping.set()
        self._wake.set()

    def check(self) -> None:
        """Make the writer look whether its index is still there."""
        self._wake.set()

    def submit(self, path: str | None, progress: Progress = silent) -> Future[ScanReport]:
        """Ask for a look at one file, or at the whole tree whatever its size; done when all of it is embedded."""
        job = _Job(path, progress, Future())
        self._jobs.put(job)
        self._wake.set()
        if self._ended.is_set():
            self._fail_jobs(ENDED)
        return job.done

    def suspect(self, path: str) -> None:
        """Tell the writer that a search found the index out of date about `path`."""
        self._suspects.put(path)
        self._wake.set()

    def sync_once(self, path: str | None, progress: Progress, *, capped: bool) -> ScanReport | None:
        """Look once, embed what is missing, and be done: for a command, in place of `run`.

        Returns None, with nothing done, where another process holds the lease.

        Raises:
            StorageError: the index cannot be written.
            EncoderError: the encoder cannot be used; what could be done without it is done.
        """
        if not self._lease.acquire():
            self._set(phase=Phase.WAITING, holder=self._lease.holder())
            return None
        try:
            store = self._open_store()
            with contextlib.closing(store):
                sync = Synchronizer(self.root, IgnoreRules(self.root, MARKDOWN_SUFFIXES), store, self._settings)
                report = sync.scan({path} if path else None, capped=capped, progress=progress)
                self._take_up(report, whole_tree=path is None)
                if self.state.phase is not Phase.CAPPED:
                    encoder = self._encoder_source()
                    sync.embed_missing(encoder, progress=progress)
                    if path is None and report.refusal is None:
                        sync.complete(encoder)
                    self._set(phase=Phase.READY)
                return report
        finally:
            self._lease.release()

    def wait_for(self, pid: int) -> None:
        """Record that process `pid` writes, and not this one."""
        self._set(phase=Phase.WAITING, holder=pid)

    def give_up(self, reason: str) -> None:
        """Record why the index is not being updated, for the status note."""
        self._set(phase=Phase.STOPPED, trouble=reason)

    def _fail_jobs(self, error: ScreeError) -> None:
        """Tell everyone who waits for a job that it is not going to be done."""
        while not self._jobs.empty():
            self._begun_jobs.append(self._jobs.get())
        while self._begun_jobs:
            self._begun_jobs.pop().done.set_exception(error)

    def _set(self, **changes: Any) -> None:
        self.state = replace(self.state, **changes)

    def _write(self) -> None:
        """Write until told to stop, or until somebody deletes the index or the lock file."""
        with contextlib.ExitStack() as resources:
            store = resources.enter_context(contextlib.closing(self._open_store()))
            rules = IgnoreRules(self.root, MARKDOWN_SUFFIXES)
            sync = Synchronizer(self.root, rules, store, self._settings)
            self._set(phase=Phase.FIRST_SYNC if sync.completed_for is None else Phase.READY, trouble=None, holder=None)
            changes: set[str] | None = None
            job_reports: list[ScanReport] = []
            while not self._stopping.is_set() and self._lease.intact() and store.intact():
                report = self._scan(sync, changes)
                while not self._jobs.empty():
                    job = self._jobs.get()
                    self._begun_jobs.append(job)
                    job_reports.append(self._scan(sync, {job.path} if job.path else None, job))
                self._follow(rules)
                finished = self._embed(sync, store, self._begun_jobs)
                if finished:
                    for job, job_report in zip(self._begun_jobs, job_reports, strict=True):
                        job.done.set_result(job_report)
                    self._begun_jobs.clear()
                    job_reports.clear()
                changes = self._next_changes(report.deferred, finished)

    def answer(self, request: Message, send: Send) -> None:
        """Do what another process asks for, sending it the progress and then the outcome.

        Raises:
            ChannelError: this process does not know what that is.
            ScreeError: it cannot be done.
        """
        path = request.get("path")
        if request.get("do") != "reindex" or not isinstance(path, str | None):
            raise ChannelError("The process that writes this index is of another version; restart it.")
        updates: queue.SimpleQueue[tuple[Stage, int, int] | None] = queue.SimpleQueue()
        done = self.submit(path, lambda *update: updates.put(update))
        done.add_done_callback(lambda _: updates.put(None))
        while (update := updates.get()) is not None:
            send(dict(zip(("stage", "done", "total"), update, strict=True)))
        send({"result": outcome(path, done.result())})

    def _open_store(self) -> Store:
        path = index_path(self.root)
        protect_folder(path.parent)
        try:
            return Store.writer(path)
        except DamagedIndexError as error:
            # All of it can be made again from the files, and nothing else is in it.
            self._log(f"scree: {error}")
            remove_database(path)
            return Store.writer(path)

    def _scan(self, sync: Synchronizer, changes: set[str] | None, job: _Job | None = None) -> ScanReport:
        if changes is not None and not changes:
            return ScanReport()
        report = sync.scan(
            changes,
            capped=job is None,
            progress=job.progress if job else silent,
            should_stop=self._stopping.is_set,
        )
        self._take_up(report, whole_tree=changes is None)
        if self._log_changes:
            for verb, paths in (("indexed", report.indexed), ("removed", report.removed), ("failed", report.failed)):
                for path in paths:
                    self._log(f"{verb} {printable(path)}")
        if report.folders is not None:
            self._folders = report.folders
        return report

    def _follow(self, rules: IgnoreRules) -> None:
        """Watch the folders of the last walk, and those of the files outside of them that the rules depend on."""
        self._outer_files = frozenset(str(file) for file in rules.outer_files())
        outer_folders = {Path(file).parent for file in self._outer_files}
        folders = {self.root / folder for folder in self._folders} | {
            folder for folder in outer_folders if folder.is_dir()
        }
        if self._watch.follow(folders):
            self._look_again_at = time.monotonic()  # for what happened before the watch stood
            failed_before, self._watch_failed = self._watch_failed, self._watch.failure is not None
            if self._watch_failed and not failed_before:
                self._log(
                    f"scree: the system does not watch these folders ({self._watch.failure}); "
                    f"looking at them every {POLL_SECONDS:g} seconds instead."
                )

    def _take_up(self, report: ScanReport, *, whole_tree: bool) -> None:
        self._changed = self._changed or bool(report.indexed or report.removed)
        if report.refusal is not None:
            self._set(trouble=report.refusal)
            self._look_again_at = time.monotonic() + POLL_SECONDS
        elif report.excess_mb is not None:
            self._set(phase=Phase.CAPPED, markdown_mb=report.excess_mb)
        elif whole_tree:
            self._set(trouble=None)
            if self.state.phase is Phase.CAPPED:
                self._set(phase=Phase.FIRST_SYNC)

    def _embed(self, sync: Synchronizer, store: Store, jobs: Sequence[_Job]) -> bool:
        """Embed what is missing; False when something more urgent came in between."""
        capped = self.state.phase is Phase.CAPPED
        if capped and not jobs:
            return True
        if self._encoder is None:
            try:
                self._encoder = self._encoder_source()
            except EncoderError as error:
                self._set(phase=Phase.READY, trouble=f"{error} Until then only keyword search works.")
                return True
        encoder = self._encoder
        if sync.completed_for != encoder.fingerprint and not capped:
            self._set(phase=Phase.FIRST_SYNC)
        encoder_id = store.register_encoder(encoder.fingerprint, encoder.dimension)
        counted_at = 0.0

        def report(stage: Stage, done: int, total: int) -> None:
            nonlocal counted_at
            if self.state.phase is Phase.FIRST_SYNC and time.monotonic() - counted_at > NOTES_SECONDS:
                counted_at = time.monotonic()
                self._set(notes=store.count_embedded_documents(encoder_id))
            for job in jobs:
                job.progress(stage, done, total)

        if not sync.embed_missing(encoder, progress=report, should_stop=self._wake.is_set):
            return False
        if (
            self.state.trouble is None
            and not capped
            and (sync.completed_for != encoder.fingerprint or jobs or self._changed)
        ):
            sync.complete(encoder)
            self._changed = False
        if self.state.phase is Phase.FIRST_SYNC:
            self._set(phase=Phase.READY)
        return True

    def _next_changes(self, deferred: set[str], finished: bool) -> set[str] | None:
        """Wait for something to do; returns paths to look at, perhaps none, or None for the whole tree."""
        self._wake.wait(self._patience(deferred, finished))
        # Cleared before anything is taken up: what comes later wakes the next wait.
        self._wake.clear()
        if self._look_again_at is not None and time.monotonic() >= self._look_again_at:
            self._look_again_at = None
            self._watch.take()
            return None
        paths = set(deferred)
        while not self._suspects.empty():
            paths.add(self._suspects.get())
        changed = self._watch.take()
        if len(changed) > BURST_PATHS:
            self._look_again_at = time.monotonic() + SETTLE_SECONDS
            return None
        for name in changed:
            path = self._relative(name)
            if path is None:
                return None
            if path:
                paths.add(path)
        return paths

    def _patience(self, deferred: set[str], finished: bool) -> float | None:
        if not finished:
            return 0.0
        waits = [DEFERRED_SECONDS] if deferred else []
        if self._watch.failure is not None and self._look_again_at is None:
            self._look_again_at = time.monotonic() + POLL_SECONDS
        if self._look_again_at is not None:
            waits.append(max(0.0, self._look_again_at - time.monotonic()))
        return min(waits, default=None)

    def _relative(self, name: str) -> str | None:
        """Judge a changed path: a markdown file's relative path, "" if it is nothing to us, None for the whole tree."""
        path = Path(name)
        if name in self._outer_files:
            # Git writes its index for many reasons, so several changes share one look.
            self._look_again_at = self._look_again_at or time.monotonic() + SETTLE_SECONDS
            return ""
        if not path.is_relative_to(self.root):
            return ""
        if "\ufffd" in name or path.name in RULE_FILES:
            return None
        relative = path.relative_to(self.root).as_posix()
        if relative in self._folders or (path.is_dir() and not path.is_symlink()):
            return None
        return relative if path.suffix.lower() in MARKDOWN_SUFFIXES else ""


def outcome(path: str | None, report: ScanReport) -> str:
    """Say in one line what a reindex of one file, or of the whole tree, did.

    Raises:
        StorageError: it was refused.
    """
    if report.refusal is not None:
        raise StorageError(f"Nothing was changed: {report.refusal}.")
    if path is not None:
        return render.reindex_file(path, changed=bool(report.indexed or report.removed))
    return render.reindex_scan(
        report.notes, len(report.indexed), len(report.removed), len(report.failed), len(report.deferred)
    )
