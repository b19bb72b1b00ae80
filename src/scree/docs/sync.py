"""Make the store equal the disk: find what changed, read and chunk it, embed what is new.

A `Synchronizer` works for whoever holds the writer lease. It never watches anything and never waits: `scan` looks once,
`embed_missing` works until it is done or told to stop. Both commit as they go, so a process killed at any moment loses
at most the files of one open transaction, which the next scan finds again.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from scree.core.encoder import Encoder, Passage
from scree.core.files import ChangedWhileRead, read_source
from scree.core.ignore_rules import IgnoreRules
from scree.docs.borrowing import borrowed, lenders
from scree.docs.chunks import parse
from scree.docs.file_state import FileState
from scree.docs.lease import INDEX_FOLDER
from scree.docs.settings import Settings
from scree.docs.store import DocumentRow, Store
from scree.docs.verification import find
from scree.errors import SkippedFile

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

OPT_OUT_REASON = 'opt-out marker "scree: ignore"'

# A search during the first sync sees whole transactions only, so they are kept short.
TRANSACTION_SECONDS = 0.25

# One commit of embeddings, and what an edit waits for while others are embedded: about a quarter of a second on two
# cores at 60 passages a second.
EMBEDDING_SLICE = 16

# Facts the index keeps about itself.
COMPLETED_FOR = "completed_for"  # fingerprint of the encoder for which it has once been complete
LAST_SYNC = "last_sync"  # when that was, seconds since 1970
FIRST_SYNC = "first_sync"  # set once a scan of everything has been allowed to begin
SIZE_LIMIT = "max_file_bytes"  # the size limit that the last scan of everything went by

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
        failed: paths with the reason. What the index holds of a file that cannot be read stays; one that cannot be
            split into chunks is kept out.
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
        return self._store.fact(COMPLETED_FOR)

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
        whole = paths is None
        report = ScanReport()
        if not whole and capped and not self._begun:
            return report  # the cap may apply: a scan of everything decides
        asked = None if paths is None else set(paths)
        look = self._walk() if asked is None else self._look(asked)
        report.folders = look.folders
        report.notes = len(look.found)
        known = self._store.documents(asked)
        gone = [path for path in known if path not in look.found and not look.may_hold(path)]
        if gone and not look.found and _nothing_there(self._root):
            report.refusal = f'the folder "{self._root}" is empty or not mounted'
            return report
        if whole and not self._begun:
            if capped and (size_mb := self._indexable_mb(look)) > self._settings.first_sync_mb:
                report.excess_mb = size_mb
                return report
            self._store.set_fact(FIRST_SYNC, "begun")
        report.removed = self._store.remove_documents(gone)
        backfill = self._store.documents_to_backfill()
        judged_anew = self._judged_anew()
        to_read = sorted(
            path
            for path, state in look.found.items()
            if path in backfill or judged_anew(state) or not _unchanged(known.get(path), state)
        )
        self._read(to_read, look.found, known, backfill, report, progress, should_stop)
        if whole and not should_stop():
            self._remember_limit()
        return report

    def embed_missing(
        self,
        encoder: Encoder,
        *,
        progress: Progress = silent,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> bool:
        """Embed every content that `encoder` has not embedded; False when it was told to stop before the end.

        What an index of another work tree of the repository holds is taken from there, and counts as embedded.

        Raises:
            StorageError: the index cannot be written.
        """
        encoder_id = self._store.register_encoder(encoder.fingerprint, encoder.dimension)
        wanted = dict.fromkeys(self._store.missing_embeddings(encoder_id))
        total = len(wanted)
        elsewhere = lenders(self._root, self._rules.work_tree)
        with contextlib.closing(borrowed(elsewhere, encoder, tuple(wanted))) as batches:
            for batch in batches:
                self._store.put_embeddings(encoder_id, batch)
                for key, _ in batch:
                    del wanted[key]
                progress("embedding", total - len(wanted), total)
                if should_stop():
                    return False
        missing = list(wanted)
        begun: deque[bytes] = deque()
        made: list[tuple[bytes, NDArray[np.float32]]] = []

        def passages() -> Iterator[Passage]:
            for start in range(0, len(missing), EMBEDDING_SLICE):
                for content in self._store.contents(missing[start : start + EMBEDDING_SLICE]):
                    begun.append(content.key)
                    yield Passage(content.context, content.text)

        # One iteration for all, so that the encoder's threads never run dry while a slice is written.
        with contextlib.closing(encoder.encode_documents(passages())) as embeddings:
            for done, rows in enumerate(embeddings, start=total - len(missing) + 1):
                made.append((begun.popleft(), rows))
                if len(made) == EMBEDDING_SLICE:
                    self._store.put_embeddings(encoder_id, made)
                    made.clear()
                    progress("embedding", done, total)
                    if should_stop():
                        return False
        self._store.put_embeddings(encoder_id, made)
        progress("embedding", total, total)
        return True

    def complete(self, encoder: Encoder) -> None:
        """Record that the index is complete, and drop embeddings that are no longer worth their room."""
        with self._store.transaction():
            self._store.set_fact(COMPLETED_FOR, encoder.fingerprint)
            self._store.set_fact(LAST_SYNC, str(int(time.time())))
            self._store.prune_embeddings(self._store.register_encoder(encoder.fingerprint, encoder.dimension))

    @property
    def _begun(self) -> bool:
        return self._store.fact(FIRST_SYNC) is not None

    def _indexable_mb(self, look: _Look) -> float:
        limit = self._settings.max_file_bytes
        return sum(state.size for state in look.found.values() if state.size <= limit) / 1_000_000

    def _judged_anew(self) -> Callable[[FileState], bool]:
        """Return what tells files that an earlier size limit judged otherwise than the present one."""
        before, now = self._store.fact(SIZE_LIMIT), self._settings.max_file_bytes
        if before is None or int(before) == now:
            return lambda _: False
        lower = min(int(before), now)
        return lambda state: state.size > lower

    def _remember_limit(self) -> None:
        limit = str(self._settings.max_file_bytes)
        if self._store.fact(SIZE_LIMIT) != limit:
            self._store.set_fact(SIZE_LIMIT, limit)

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
        except (FileNotFoundError, NotADirectoryError):
            report.removed += self._store.remove_documents([path])
            return
        except OSError as error:
            report.failed[path] = error.strerror or str(error)
            return
        if FileState.of(source.stat) != state:
            report.deferred.add(path)
            return
        if row is not None and row.sha256 == source.sha256 and (not backfill or self._backfill(row, source.text)):
            self._store.touch_document(row.id, state, read_ns)
            return
        try:
            document = parse(source.text)
        except Exception as error:  # noqa: BLE001 - one bad file never stops a sync; the status names it
            reason = f"cannot be split into chunks: {error!r}"
            self._keep_out(path, state, source.sha256, read_ns, reason, row, report)
            report.failed[path] = reason
            return
        if document.opted_out:
            self._keep_out(path, state, source.sha256, read_ns, OPT_OUT_REASON, row, report)
            return
        self._store.put_document(path, state, source.sha256, read_ns, document)
        report.indexed.append(path)

    def _backfill(self, row: DocumentRow, text: str) -> bool:
        """Fill in the lines of a file's chunks; False where one is not in its text as it stands in the index."""
        lines = []
        for chunk in self._store.chunks_of(row.id):
            place = find(chunk, text)
            if place.start is None or place.end is None:
                return False
            lines.append((chunk.id, place.start, place.end))
        self._store.set_lines(lines)
        return True

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
    return row is not None and row.state.holds(row.read_ns, state)


def _nothing_there(root: Path) -> bool:
    """Whether a root holds nothing but what scree and git keep there: an unmounted or emptied folder."""
    try:
        with os.scandir(root) as entries:
            return all(entry.name in (INDEX_FOLDER, ".git") for entry in entries)
    except OSError:
        return True
