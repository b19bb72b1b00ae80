"""Build a snapshot: aside, in one pass over the tree, and into place when it is whole.

Files are parsed on every core and come back in the order of their paths, so that the same tree gives the same file,
byte for byte apart from the time. Memory is bounded by what is on its way, not by the tree.

The file it is built in is also the lock against a second build, and is cleared by the next build if this one is killed.
Nothing here parses, ranks or prints.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import sqlite3
import tempfile
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

import numpy as np

from scree.core.database import connect, content_key, explained, pack_embeddings, protect_folder, transaction, upgrade
from scree.core.encoder import Encoder, Passage
from scree.core.printable import printable
from scree.errors import ArgumentError, LockedIndexError, ReadOnlyIndexError, StorageError
from scree.scout.analysis import Analysed, unpack_outline
from scree.scout.files import EXAMPLES, is_test, list_files, require_some
from scree.scout.graph import edges
from scree.scout.outlines import Outline
from scree.scout.parallel import analyse_all
from scree.scout.postings import PostingsWriter
from scree.scout.snapshot import COLUMNS, SCHEMA, Facts, Snapshot, open_earlier, root_of, write_facts

# The contract's.
MAX_SYMBOLS = 500_000

# Goes into a snapshot's name and the ids; raise it when the same files would give other candidates.
ALGORITHM = 1

ASIDE = ".building"

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Model:
    """The encoder of a build, and the name it was asked for by: `builtin` or an absolute folder."""

    name: str
    encoder: Encoder


def build(root: Path, output: Path, model: Model | None, max_symbols: int, progress: Progress) -> Facts:
    """Index `root` and put the snapshot at `output`; returns its facts.

    Args:
        root: an existing folder.
        output: the index file; one that is there is replaced at the end and left alone on any failure.
        model: makes the embeddings; None for a lexical index.
        max_symbols: more candidates than this are an error.
        progress: told the stage, how far it is and how far it goes.

    Raises:
        RootError, NotFoundError: there is nothing to index.
        ArgumentError: there are more candidates than `max_symbols`.
        StorageError: the index cannot be written, or another build is at it.
    """
    listing = list_files(root)
    if root_of(output) is not None:
        protect_folder(output.parent)
    with _claimed(output) as aside, contextlib.ExitStack() as closing:
        earlier = open_earlier(output)
        if earlier is not None:
            closing.callback(earlier.close)
        with _written(output):
            connection = closing.enter_context(contextlib.closing(_empty(aside)))
            with transaction(connection):
                work = _Build(connection, output.parent, model, earlier, max_symbols)
                closing.callback(work.close)
                analysed = closing.enter_context(
                    contextlib.closing(analyse_all(root, listing.files, model is not None))
                )
                work.run(_reported(analysed, len(listing.files), progress))
                for path, reason in work.skipped:
                    listing.skipped.add(path, reason)
                require_some(root, work.files, listing.skipped)
                facts = work.finish(root, listing.skipped.as_json())
            connection.close()
        _into_place(aside, output)
    return facts


@contextlib.contextmanager
def _written(output: Path) -> Iterator[None]:
    """Turn what goes wrong with the disk into one sentence."""
    try:
        with explained(output):
            yield
    except OSError as error:
        raise StorageError(f'The index "{output}" cannot be written: {error.strerror}.') from error


class _Outlines(Mapping[str, Outline]):
    """The outlines of all files, kept in a file without a name and read one at a time."""

    def __init__(self, folder: Path) -> None:
        self._file: IO[bytes] = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - lives as long as the build
        self._places: dict[str, tuple[int, int]] = {}

    def add(self, path: str, packed: bytes) -> None:
        self._places[path] = (self._file.tell(), len(packed))
        self._file.write(packed)

    def close(self) -> None:
        self._file.close()

    def __getitem__(self, path: str) -> Outline:
        start, length = self._places[path]
        self._file.seek(start)
        return unpack_outline(self._file.read(length))

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


class _Build:
    """One pass over the analysed files, into a database that is empty at first."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        folder: Path,
        model: Model | None,
        earlier: Snapshot | None,
        max_symbols: int,
    ) -> None:
        self.files: list[str] = []
        self.skipped: list[tuple[str, str]] = []
        self._connection = connection
        self._model = model
        self._max_symbols = max_symbols
        # Vectors of another encoder are of no use.
        fits = model and earlier and earlier.facts.model_fingerprint == model.encoder.fingerprint
        self._earlier = earlier if fits else None
        self._outlines = _Outlines(folder)
        self._postings = PostingsWriter(folder)
        self._first: dict[str, int] = {}
        self._symbols = 0
        self._languages: Counter[str] = Counter()
        self._language_numbers: dict[str, int] = {}
        self._columns: dict[str, list[np.ndarray]] = {name: [] for name in COLUMNS}
        self._content = hashlib.sha256()
        self._unparsed: list[str] = []
        self._waiting: deque[tuple[int, bytes]] = deque()
        self._embedded = self._reused = 0

    def close(self) -> None:
        """Drop what was put aside."""
        self._postings.close()
        self._outlines.close()

    def run(self, analysed: Iterator[Analysed]) -> None:
        """Take all files; embed what has no vector yet while the next are being parsed."""
        if self._model is None:
            for _ in self._take(analysed):
                pass
            return
        with contextlib.closing(self._model.encoder.encode_documents(self._take(analysed))) as vectors:
            for rows in vectors:
                self._embedded += 1
                self._store_vector(*self._waiting.popleft(), pack_embeddings(rows[:1]))

    def finish(self, root: Path, skipped: list[dict[str, object]]) -> Facts:
        """Write what is known only at the end."""
        for name, kind in COLUMNS.items():
            data = np.concatenate([np.empty(0, kind), *self._columns[name]]).astype(kind).tobytes()
            self._connection.execute("INSERT INTO columns VALUES (?, ?)", (name, data))
        self._postings.write(self._connection)
        found = (
            (self._first[edge.source[0]] + edge.source[1], edge.kind, self._first[edge.target[0]] + edge.target[1])
            for edge in edges(self._outlines)
        )
        self._connection.executemany("INSERT OR IGNORE INTO edges VALUES (?, ?, ?)", found)
        (edge_count,) = self._connection.execute("SELECT count(*) FROM edges").fetchone()
        encoder = self._model.encoder if self._model else None
        self._content.update(repr((ALGORITHM, encoder and encoder.fingerprint)).encode())
        facts = Facts(
            snapshot=self._content.hexdigest()[:16],
            root=str(root),
            built_at=datetime.now(UTC).isoformat(timespec="seconds"),
            files=len(self.files),
            symbols=self._symbols,
            edges=edge_count,
            languages={name: self._languages[name] for name in self._language_numbers},
            unparsed=len(self._unparsed),
            unparsed_examples=[printable(path) for path in self._unparsed[:EXAMPLES]],
            skipped=skipped,
            model=self._model.name if self._model else None,
            model_fingerprint=encoder.fingerprint if encoder else None,
            dimension=encoder.dimension if encoder else None,
            embedded=self._embedded,
            reused=self._reused,
        )
        write_facts(self._connection, facts)
        return facts

    def _take(self, analysed: Iterator[Analysed]) -> Generator[Passage, None, None]:
        """Store each file, and yield what has to be embedded; `_waiting` says for whom."""
        for file in analysed:
            if file.skipped is not None:
                self.skipped.append((file.path, file.skipped))
                continue
            first = self._store(file)
            for place, (context, code) in enumerate(file.texts):
                key = content_key(context, code)
                known = self._earlier.vector_of(key) if self._earlier else None
                if known is None:
                    self._waiting.append((first + place, key))
                    yield Passage(context, code, windows=1)
                else:
                    self._reused += 1
                    self._store_vector(first + place, key, known)

    def _store(self, file: Analysed) -> int:
        """Store a file and its candidates; returns the position of the first."""
        assert file.lengths is not None
        assert file.postings is not None
        candidates = unpack_outline(file.outline).candidates
        first, count = self._symbols, len(candidates)
        if first + count > self._max_symbols:
            raise ArgumentError(
                f'There are more than {self._max_symbols:,} symbols: the limit is reached at "{printable(file.path)}", '
                f"after {len(self.files):,} files; raise --max-symbols, or leave folders out with .screeignore."
            )
        number = len(self.files)
        self.files.append(file.path)
        self._first[file.path] = first
        self._symbols += count
        self._languages[file.language] += 1
        language = self._language_numbers.setdefault(file.language, len(self._language_numbers))
        if not file.parsed:
            self._unparsed.append(file.path)
        self._content.update(repr((file.path, file.language, file.sha256)).encode("utf-8", "surrogateescape"))
        self._connection.execute(
            "INSERT INTO files VALUES (?, ?, ?, ?)", (number, os.fsencode(file.path), file.language, file.sha256)
        )
        self._connection.executemany(
            "INSERT INTO candidates VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                (
                    first + place,
                    _id_number(file, place),
                    number,
                    _storable(candidate.name),
                    candidate.kind,
                    candidate.start_line,
                    candidate.end_line,
                    None if candidate.parent is None else first + candidate.parent,
                )
                for place, candidate in enumerate(candidates)
            ),
        )
        self._columns["file"].append(np.full(count, number, np.int64))
        self._columns["language"].append(np.full(count, language, np.int64))
        self._columns["length"].append(file.lengths)
        self._columns["test"].append(np.full(count, is_test(file.path), np.int64))
        self._postings.add(first, file.postings)
        self._outlines.add(file.path, file.outline)
        return first

    def _store_vector(self, position: int, key: bytes, vector: bytes) -> None:
        self._connection.execute("INSERT INTO embeddings VALUES (?, ?, ?)", (position, key, vector))


def _reported(analysed: Iterator[Analysed], total: int, progress: Progress) -> Iterator[Analysed]:
    for done, file in enumerate(analysed):
        progress("indexing", done, total)
        yield file
    progress("indexing", total, total)


def _id_number(file: Analysed, place: int) -> int:
    """Return the number of a candidate's id: it stays as long as its file does, from one snapshot to the next."""
    facts = repr((ALGORITHM, file.path, file.sha256, place)).encode("utf-8", "surrogateescape")
    return int.from_bytes(hashlib.sha256(facts).digest()[:8]) >> 1


def _storable(text: str) -> str:
    """Return `text` as SQLite can hold it: half a surrogate pair, which stands for no UTF-8, becomes U+FFFD."""
    return text.encode("utf-8", "replace").decode() if not text.isascii() else text


@contextlib.contextmanager
def _claimed(output: Path) -> Iterator[Path]:
    """Yield the path of an empty file beside `output` that is this build's alone, and that is gone afterwards."""
    aside = output.with_name(output.name + ASIDE)
    try:
        lock = _lock(aside)
    except OSError as error:
        hint = "it is a symbolic link" if error.errno == errno.ELOOP else error.strerror
        raise ReadOnlyIndexError(f'"{aside}" cannot be written ({hint}); make its folder writable.') from error
    try:
        os.ftruncate(lock, 0)
        yield aside
    finally:
        if _is_at(lock, aside):
            aside.unlink()
        os.close(lock)


def _lock(aside: Path) -> int:
    while True:
        lock = os.open(aside, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            raise LockedIndexError(
                f'Another process is building "{aside.with_suffix("")}"; wait until it is done.'
            ) from None
        if _is_at(lock, aside):
            return lock
        # The build that held it has moved it into place.
        os.close(lock)


def _is_at(file: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file), os.stat(path, follow_symlinks=False))
    except FileNotFoundError:
        return False


def _empty(aside: Path) -> sqlite3.Connection:
    """Return a connection to the empty database at `aside`.

    There is no journal: a build that fails is thrown away as a whole.
    """
    connection = connect(aside, "mode=rw")
    try:
        connection.execute("PRAGMA journal_mode = OFF")
        connection.execute("PRAGMA synchronous = OFF")
        upgrade(connection, aside, SCHEMA)
    except BaseException:
        connection.close()
        raise
    return connection


def _into_place(aside: Path, output: Path) -> None:
    """Move the finished file into place: after a power failure, too, there is the old one or the new one."""
    try:
        with aside.open("rb") as stream:
            os.fsync(stream.fileno())
        os.replace(aside, output)
        folder = os.open(output.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise StorageError(f'The index cannot be moved to "{output}": {error.strerror}.') from error
