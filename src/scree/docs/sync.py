"""Make the store equal the disk: find what changed, read and chunk it, embed what is new.

A `Synchronizer` works for whoever holds the writer lease. It never watches anything and never waits: `scan` looks once,
`embed_missing` works until it is done or told to stop. Both commit as they go, so a process killed at any moment loses
at most the files of one open transaction, which the next scan finds again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from scree.core.encoder import Encoder, Passage
from scree.core.files import ChangedWhileRead, read_source
from scree.core.ignore_rules import IgnoreRules
from scree.docs.chunks import parse
from scree.docs.settings import Settings
from scree.docs.store import INDEX_FOLDER, DocumentRow, FileState, Store
from scree.errors import SkippedFile

OPT_OUT_REASON = 'opt-out marker "scree: ignore"'

# A search during the first sync sees whole transactions only, so they are kept short.
TRANSACTION_SECONDS = 0.25

# One commit of embeddings, and the longest that an edit waits for the embedding of others: about a quarter of a second
# on two cores at 60 passages a second.
EMBEDDING_SLICE = 16

# A file changed within one tick of the file system's clock after it was read looks as it did when it was read. Local
# file systems tick every 10 ms or faster; those that keep whole seconds are known by times without a fraction.
TICK_NS = 20_000_000
WHOLE_SECONDS_TICK_NS = 2_000_000_000

Stage = Literal["reading", "embedding"]
Progress = Callable[[Stage, int, int], None]  # stage, how many are done, how many there are


def silent(stage: Stage, done: int, total: int) -> None:
    """Report progress to nobody."""


@dataclass(slots=True)
class ScanReport:
    """What one scan did.

    Attributes:
        notes: how many markdown files were looked at.
        indexed: paths that were read and stored anew.
        removed: paths that left the index.
        failed: paths that could not be read, with the reason; what the index holds of them stays.
        deferred: paths that changed while they were looked at; the next look takes them up.
        folders: the folders of the tree, for a watcher; None when the scan did not walk the tree.
        refusal: set when nothing was done to protect the index or the user; says why.
        excess_mb: set when the first-sync cap applied: how much markdown there is, in MB.
    """

    notes: int = 0
    indexed: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    deferred: set[str] = field(default_factory=set)
    folders: frozenset[str] | None = None
    refusal: str | None = None
    excess_mb: float | None = None


class Synchronizer:
    """Brings one store up to date with one root."""

    def __init__(self, root: Path, rules: IgnoreRules, store: Store, settings: Settings) -> None:
        self._root = root
        self._rules = rules
        self._store = store
        self._settings = settings

    @property
    def completed_for(self) -> str | None:
        """Fingerprint of the encoder for which the index has once been complete; None for a new index."""
        return self._store.fact("completed_for")

    def scan(
        self,
        paths: Iterable[str] | None = None,
        *,
        capped: bool = True,
        progress: Progress = silent,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> ScanReport:
        """Look at the whole tree, or at `paths` only, and store what is new, changed or gone.

        Args:
            paths: relative paths of files that may have changed; None walks the tree.
            capped: whether a first sync over more than `first_sync_mb` of markdown is left undone.
            progress: called as files are read.
            should_stop: asked between files; a scan that was stopped is simply not complete.

        Raises:
            StorageError: the index cannot be written.
        """
        report = ScanReport()
        look = self._walk() if paths is None else self._look(paths)
        report.folders = look.folders
        report.notes = len(look.found)
        known = self._store.documents(paths)
        if paths is None and known and not look.found and _nothing_there(self._root):
            report.refusal = f'the folder "{self._root}" is empty or not mounted'
            return report
        if paths is None and not known and capped and self.completed_for is None:
            size_mb = sum(state.size for state in look.found.values()) / 1_000_000
            if size_mb > self._settings.first_sync_mb:
                report.excess_mb = size_mb
                return report
        gone = [path for path in known if path not in look.found and not look.may_hold(path)]
        report.removed = self._store.remove_documents(gone)
        backfill = self._store.documents_to_backfill()
        to_read = sorted(
            path for path, state in look.found.items() if path in backfill or not _unchanged(known.get(path), state)
        )
        self._read(to_read, look.found, known, backfill, report, progress, should_stop)
        return report

    def embed_missing(
        self,
        encoder: Encoder,
        *,
        progress: Progress = silent,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> bool:
        """Embed every content that `encoder` has not embedded; False when it was told to stop before the end.

        Raises:
            StorageError: the index cannot be written.
        """
        encoder_id = self._store.register_encoder(encoder.fingerprint, encoder.dimension)
        missing = self._store.missing_embeddings(encoder_id)
        for start in range(0, len(missing), EMBEDDING_SLICE):
            if should_stop():
                return False
            progress("embedding", start, len(missing))
            contents = self._store.contents(missing[start : start + EMBEDDING_SLICE])
            vectors = list(encoder.encode_documents([Passage(content.context, content.text) for content in contents]))
            self._store.put_embeddings(
                encoder_id, [(content.key, rows) for content, rows in zip(contents, vectors, strict=True)]
            )
        progress("embedding", len(missing), len(missing))
        return True

    def complete(self, encoder: Encoder) -> None:
        """Record that the index is complete, and drop embeddings that are no longer worth their room."""
        self._store.set_fact("completed_for", encoder.fingerprint)
        self._store.set_fact("last_sync", str(int(time.time())))
        self._store.prune_embeddings(self._store.register_encoder(encoder.fingerprint, encoder.dimension))

    def _walk(self) -> _Look:
        walk = self._rules.walk()
        found = {path: FileState.of(stat) for path, stat in walk.files.items()}
        return _Look(found, frozenset(walk.unreadable), frozenset(walk.folders))

    def _look(self, paths: Iterable[str]) -> _Look:
        found = {}
        unreadable = set()
        for path in paths:
            if self._rules.reason(path) is not None:
                continue
            try:
                found[path] = FileState.of(os.lstat(self._root / path))
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError:
                unreadable.add(path)
        return _Look(found, frozenset(unreadable), None)

    def _read(
        self,
        paths: Sequence[str],
        found: Mapping[str, FileState],
        known: Mapping[str, DocumentRow],
        backfill: Container[str],
        report: ScanReport,
        progress: Progress,
        should_stop: Callable[[], bool],
    ) -> None:
        position = 0
        while position < len(paths) and not should_stop():
            commit_at = time.monotonic() + TRANSACTION_SECONDS
            with self._store.transaction():
                while position < len(paths) and time.monotonic() < commit_at:
                    path = paths[position]
                    progress("reading", position, len(paths))
                    self._read_one(path, found[path], known.get(path), path in backfill, report)
                    position += 1
        progress("reading", position, len(paths))

    def _read_one(
        self, path: str, state: FileState, row: DocumentRow | None, backfill: bool, report: ScanReport
    ) -> None:
        read_ns = time.time_ns()
        try:
            source = read_source(self._root, path, self._settings.max_file_bytes)
        except ChangedWhileRead:
            report.deferred.add(path)
            return
        except SkippedFile as skipped:
            self._keep_out(path, state, b"", read_ns, skipped.reason, row, report)
            return
        except FileNotFoundError:
            report.removed += self._store.remove_documents([path])
            return
        except OSError as error:
            report.failed[path] = error.strerror or str(error)
            return
        if FileState.of(source.stat) != state:
            report.deferred.add(path)
            return
        if row is not None and row.sha256 == source.sha256 and not backfill:
            self._store.touch_document(row.id, state, read_ns)
            return
        try:
            document = parse(source.text)
        except Exception as error:  # one bad file never stops a sync; the status shows it
            report.failed[path] = f"cannot be split into chunks: {error!r}"
            return
        if document.opted_out:
            self._keep_out(path, state, source.sha256, read_ns, OPT_OUT_REASON, row, report)
            return
        self._store.put_document(path, state, source.sha256, read_ns, document)
        report.indexed.append(path)

    def _keep_out(
        self,
        path: str,
        state: FileState,
        sha256: bytes,
        read_ns: int,
        reason: str,
        row: DocumentRow | None,
        report: ScanReport,
    ) -> None:
        self._store.put_document(path, state, sha256, read_ns, reason)
        if row is not None and row.skip_reason is None:
            report.removed.append(path)


@dataclass(frozen=True, slots=True)
class _Look:
    """What a look at the disk found: files, what could not be looked at, and the folders of a walk."""

    found: Mapping[str, FileState]
    unreadable: frozenset[str]
    folders: frozenset[str] | None

    def may_hold(self, path: str) -> bool:
        """Whether `path` is, or lies in, something that could not be looked at."""
        parts = path.split("/")
        return any("/".join(parts[:length]) in self.unreadable for length in range(len(parts) + 1))


def _unchanged(row: DocumentRow | None, state: FileState) -> bool:
    """Whether equal states prove that the file is as it was when it was read."""
    if row is None or row.state != state:
        return False
    changed_ns = max(state.mtime_ns, state.ctime_ns)
    tick_ns = WHOLE_SECONDS_TICK_NS if changed_ns % 1_000_000_000 == 0 else TICK_NS
    return row.read_ns - changed_ns > tick_ns


def _nothing_there(root: Path) -> bool:
    """Whether a root holds nothing but what scree and git keep there: an unmounted or emptied folder."""
    try:
        with os.scandir(root) as entries:
            return all(entry.name in (INDEX_FOLDER, ".git") for entry in entries)
    except OSError:
        return True
