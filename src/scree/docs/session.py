"""One root as one process uses it: the reader, the writer if it holds the lease, and what to say about both."""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

from scree.core.database import database_files
from scree.core.encoder import Encoder, load_encoder
from scree.core.files import ChangedWhileRead, SourceText, contained, read_source
from scree.core.ignore_rules import IgnoreRules
from scree.core.printable import printable
from scree.docs import render
from scree.docs.arguments import ReadArguments, ReindexArguments, SearchArguments
from scree.docs.channel import ask
from scree.docs.chunks import normalise_newlines, opts_out
from scree.docs.lease import INDEX_FOLDER, STARTING, WriterLease
from scree.docs.reader import Reader
from scree.docs.render import unescape_path
from scree.docs.settings import MARKDOWN_SUFFIXES, Settings
from scree.docs.status import Status, size_on_disk
from scree.docs.store import Store, index_path
from scree.docs.sync import OPT_OUT_REASON, Progress
from scree.docs.writer import Phase, Writer, outcome
from scree.errors import (
    ArgumentError,
    EncoderError,
    NoIndexError,
    NotFoundError,
    RefusedError,
    SkippedFile,
    StorageError,
)

UNREADABLE = "cannot be read"


class Session:
    """What a client or a command does with one root.

    Methods raise `ScreeError` with the sentence for the user, and may be called from any thread.
    """

    def __init__(self, root: Path, settings: Settings, lease: WriterLease | None = None) -> None:
        """Prepare; nothing is opened before it is needed.

        Args:
            root: the project folder.
            settings: the user's.
            lease: the writer's, where it is held already.
        """
        self.root = root
        self._settings = settings
        self._encoder_lock = threading.Lock()
        self._encoder: Encoder | None = None
        self._lease = lease or WriterLease(root / INDEX_FOLDER)
        self.writer = Writer(root, settings, self.encoder, self._lease)
        self._thread: threading.Thread | None = None

    # Life

    def start(self, *, log_changes: bool = False) -> None:
        """Begin to keep the index current, in the background; `log_changes` puts a line in the log for each change."""
        self._thread = threading.Thread(target=self.writer.run, args=(log_changes,), name="scree-writer", daemon=True)
        self._thread.start()

    def stop(self, seconds: float) -> None:
        """Tell the writer to stop, and wait for it at most `seconds`."""
        self.writer.stop()
        if self._thread is not None:
            self._thread.join(seconds)

    def await_end(self) -> str | None:
        """Wait until the writer has been told to stop; returns why it stopped by itself, if it did."""
        assert self._thread is not None
        self._thread.join()
        return self.writer.state.trouble if self.writer.state.phase is Phase.STOPPED else None

    def stand_by(self, pid: int, trouble: str) -> None:
        """Only read, for process `pid` writes; `trouble` is why it does not answer, empty where it is only busy."""
        if trouble:
            self.writer.give_up(trouble)
        else:
            self.writer.wait_for(pid)

    def encoder(self) -> Encoder:
        """Return the encoder, loading it on the first call.

        Raises:
            EncoderError: it cannot be used.
        """
        with self._encoder_lock:
            if self._encoder is None:
                self._encoder = load_encoder(self._settings.encoder, threads=self._settings.threads)
            return self._encoder

    @cached_property
    def rules(self) -> IgnoreRules:
        """The ignore rules of the root."""
        return IgnoreRules(self.root, MARKDOWN_SUFFIXES)

    @cached_property
    def _reader(self) -> Reader:
        return Reader(self.root, self._settings, self.rules, self.encoder, self.writer.suspect)

    # The tools

    def call(self, tool: str, raw: Mapping[str, object], *, own: bool) -> str:
        """Run a tool by name and return its text.

        Args:
            tool: its name.
            raw: its arguments, unchecked.
            own: whether this process asks; else the words are those for another, in which the writer has a pid.
        """
        match tool:
            case "search_docs":
                return render.render_hits(*self.search(SearchArguments.checked(raw), own=own))
            case "read_doc":
                return self.read(ReadArguments.checked(raw))
            case "reindex":
                return self.reindex(ReindexArguments.checked(raw), own=own)
            case _:
                raise ArgumentError(f'There is no tool "{tool}"; there are search_docs, read_doc and reindex.')

    def search(self, arguments: SearchArguments, *, own: bool = True) -> tuple[list[render.Hit], str | None]:
        """Return the hits, best first, and the status note, if any."""
        try:
            hits = self._reader.search(arguments)
        except NoIndexError:
            self.writer.check()
            hits = []  # the note says why
        except StorageError:
            # A damaged file, for instance, that the writer is about to replace; the note says so.
            if self.writer.state.phase not in (Phase.STARTING, Phase.FIRST_SYNC, Phase.CAPPED):
                raise
            hits = []
        return hits, self.note(own=own)

    def read(self, arguments: ReadArguments) -> str:
        """Return the text of `read_doc`."""
        path, source = self._open(arguments.path)
        lines = normalise_newlines(source.text).removesuffix("\n").split("\n")
        start = arguments.start or 1
        end = min(arguments.end or len(lines), len(lines))
        if start > len(lines):
            raise ArgumentError(f'start is {start}, but "{printable(path)}" has {len(lines)} lines.')
        document = render.render_document(path, start, end, "\n".join(lines[start - 1 : end]))
        alike = len(self._printed_as(printable(path))) - 1
        return document if alike < 1 else f"{document}\n{render.note_printed_alike(alike)}"

    def reindex(self, arguments: ReindexArguments, *, own: bool) -> str:
        """Bring the index up to date as far as who asks may, and say what was done.

        Raises:
            StorageError: the writer has stopped, or does not answer.
        """
        path = None if arguments.path is None else self._open(arguments.path)[0]
        state = self.writer.state
        holder = self._elsewhere(own)
        if state.phase is Phase.STOPPED:
            raise StorageError(f"Nothing was changed: {(state.trouble or '').removesuffix('.')}.")
        if holder is not None:
            return render.reindex_elsewhere(holder)
        if state.phase in (Phase.STARTING, Phase.FIRST_SYNC):
            return render.reindex_first_sync(state.notes)
        return outcome(path, self.writer.submit(path).result())

    def note(self, *, own: bool = True) -> str | None:
        """Return the status note that a search ends with, if any."""
        state = self.writer.state
        if state.phase is Phase.WAITING and state.holder is not None:
            return self._note_on_model() if self._completed() else render.note_other_builds(state.holder)
        if state.trouble is not None:
            return render.note_not_updating(state.trouble)
        if state.phase is Phase.CAPPED:
            return render.note_over_cap(state.markdown_mb, self._settings.first_sync_mb)
        if state.phase is Phase.FIRST_SYNC or (state.phase is Phase.STARTING and not self._completed()):
            return render.note_first_sync(state.notes) if own else render.note_other_builds(os.getpid())
        return None

    def _elsewhere(self, own: bool) -> int | None:
        """Return the pid of the writer for whoever does not write."""
        state = self.writer.state
        if state.phase is Phase.WAITING:
            return state.holder
        return None if own else os.getpid()

    # What commands need besides

    def ignore_reason(self, path: str) -> str | None:
        """Return why `path`, relative to the root, is not indexed, its content included, or None."""
        path = contained(path)
        reason = self.rules.reason(path)
        if reason is not None:
            return reason
        try:
            self._source(path)
        except SkippedFile as skipped:
            return skipped.reason
        except (OSError, ChangedWhileRead):
            pass  # judged by its name alone
        return None

    def reindex_now(self, path: str | None, progress: Progress) -> str:
        """Look at the whole tree, or at `path`, whatever the first-sync cap says; returns what was done, in a line.

        Where another process writes, it does the work, and `progress` shows how far it is.
        """
        if path is not None:
            path = self._open(path)[0]
        report = self.writer.sync_once(path, progress, capped=False)
        if report is not None:
            return outcome(path, report)
        result = ""
        _, address = self._lease.contact() or (0, "")
        if address in ("", STARTING):
            raise StorageError("Another process is just bringing this index up to date; try again when it is done.")
        for message in ask(address, {"do": "reindex", "path": path}):
            match message:
                case {"stage": "reading" | "embedding" as stage, "done": int(done), "total": int(total)}:
                    progress(stage, done, total)
                case {"result": str(result)}:
                    pass
        return result

    def catch_up(self, progress: Progress) -> None:
        """Bring the index up to date before a search from a terminal, unless another process keeps it current."""
        try:
            self.writer.sync_once(None, progress, capped=True)
        except (StorageError, EncoderError) as error:
            self.writer.give_up(str(error))  # what is indexed can still be searched

    def status(self) -> Status:
        """Return a picture of the index."""
        walk = self.rules.walk()
        path = index_path(self.root)
        skipped = dict(walk.skipped) | dict.fromkeys(walk.unreadable, UNREADABLE)
        skipped |= {path: UNREADABLE for path in walk.files if not os.access(self.root / path, os.R_OK)}
        files: list[tuple[str, int]] = []
        model = last_sync = None
        holder = None
        note: str | None = None
        try:
            holder = self._lease.holder()
            store = Store.reader(path)
        except StorageError as error:
            note = render.note_not_updating(str(error)) if path.exists() else None
        else:
            with contextlib.closing(store), store.view():
                files = store.chunk_counts()
                skipped |= store.skipped_by_content()
                model = store.fact("completed_for")
                last_sync = store.fact("last_sync")
        if note is None and model is None and holder is not None:
            note = render.note_other_builds(holder)
        return Status(
            root=self.root,
            index_path=path,
            files=tuple(files),
            model=model,
            index_bytes=size_on_disk(database_files(path)),
            writer_pid=holder,
            last_sync=None if last_sync is None else int(last_sync),
            skipped=tuple(sorted(skipped.items())),
            note=note,
        )

    # Reading files

    def _open(self, raw: str) -> tuple[str, SourceText]:
        """Find and read the file that a client means, by its path on disk or as a hit printed it.

        Raises:
            RefusedError: it is ignored or outside the project, whether or not it exists.
            NotFoundError: there is no such file.
            ArgumentError: several files print alike.
        """
        path = contained(raw)
        if not os.path.lexists(self.root / path):
            meant = self._printed_as(unescape_path(raw))
            if len(meant) > 1:
                raise ArgumentError(
                    f'{len(meant)} files print as "{printable(raw)}"; name one as it is on disk: '
                    + ", ".join(json.dumps(name) for name in meant)
                )
            path = meant[0] if meant else contained(unescape_path(raw))
        reason = self.rules.reason(path)
        if reason is None:
            try:
                return path, self._source(path)
            except SkippedFile as skipped:
                reason = skipped.reason
            except (FileNotFoundError, NotADirectoryError):
                raise NotFoundError(f'no such file: "{printable(path)}"') from None
            except OSError as error:
                raise NotFoundError(f'"{printable(path)}" cannot be read: {error.strerror}.') from error
        raise RefusedError(f'refused: "{printable(path)}" is ignored by scree ({reason})')

    def _source(self, path: str) -> SourceText:
        """Read a file that the rules let in.

        Raises:
            SkippedFile: its content keeps it out.
        """
        source = read_source(self.root, path, self._settings.max_file_bytes)
        if opts_out(source.text):
            raise SkippedFile(OPT_OUT_REASON)
        return source

    def _printed_as(self, printed: str) -> list[str]:
        """Return the indexed paths that print as `printed`."""
        try:
            return self._reader.printed_as(printed)
        except StorageError:
            return []

    def _note_on_model(self) -> str | None:
        """Return the note for an index whose writer has another encoder than this session, or where this has none."""
        try:
            self._reader.expect_model()
        except (EncoderError, StorageError) as error:
            return render.note_not_updating(str(error))
        return None

    def _completed(self) -> bool:
        try:
            return self._reader.completed()
        except StorageError:
            return False
