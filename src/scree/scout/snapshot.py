"""A snapshot: the one SQLite file of an index, opened for reading.

It is never written after it was moved into place (`building.py` makes it), so that it is read without locks and nothing
is put beside it. Little is read at once: a search takes a few numbers of each candidate, the postings of its own terms,
and the rows of what it returns.

What it holds is a hint, never proof: somebody may have edited it. Paths and lines are checked against the disk by
whoever uses them.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any

from scree.core.database import Schema, explained, open_frozen, unpack_embeddings
from scree.errors import DamagedIndexError, NoIndexError, StorageError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

INDEX_FOLDER = ".micro-scout"
INDEX_NAME = "index.sqlite"

# The first four bytes of "micro-scout" in ASCII, as the number that SQLite's header holds.
APPLICATION_ID = 0x6D696372

CREATE = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE files (file INTEGER PRIMARY KEY, path BLOB NOT NULL, language TEXT NOT NULL, sha256 BLOB NOT NULL);
CREATE TABLE candidates (
    position INTEGER PRIMARY KEY,
    id INTEGER NOT NULL UNIQUE,
    file INTEGER NOT NULL,
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    start_line INTEGER NOT NULL,
    end_line INTEGER NOT NULL,
    parent INTEGER
);
CREATE TABLE columns (name TEXT PRIMARY KEY, data BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE postings (term INTEGER PRIMARY KEY, candidates BLOB NOT NULL);
CREATE TABLE embeddings (position INTEGER PRIMARY KEY, content BLOB NOT NULL, vector BLOB NOT NULL);
CREATE INDEX embeddings_by_content ON embeddings (content);
CREATE TABLE edges (
    source INTEGER NOT NULL,
    kind TEXT NOT NULL,
    target INTEGER NOT NULL,
    PRIMARY KEY (source, kind, target)
) WITHOUT ROWID;
CREATE INDEX edges_by_target ON edges (target, kind, source);
"""

SCHEMA = Schema(APPLICATION_ID, 1, CREATE, {})

# One number a candidate, in the order of their positions.
COLUMNS: Mapping[str, str] = {"file": "<i4", "language": "<i2", "length": "<i4", "test": "<i1"}


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a snapshot as a whole; stored in it, as JSON.

    Attributes:
        snapshot: names its content: the same files, indexed the same way, have the same.
        root: absolute, where the tree was when the snapshot was built.
        built_at: ISO 8601, UTC, to the second.
        files: how many are indexed.
        symbols: how many candidates there are.
        edges: how many.
        languages: files of each language, in the order of the numbers in the column `language`.
        unparsed: files that were cut into chunks because they could not be parsed.
        unparsed_examples: some of them.
        skipped: what was left out: `reason`, `count`, `examples`.
        model: `builtin`, or the absolute folder of the encoder; None for a lexical index.
        model_fingerprint: of the encoder.
        dimension: of its vectors.
        embedded: embeddings made by this build.
        reused: embeddings taken from the snapshot before.
    """

    snapshot: str
    root: str
    built_at: str
    files: int
    symbols: int
    edges: int
    languages: dict[str, int]
    unparsed: int
    unparsed_examples: list[str]
    skipped: list[dict[str, Any]]
    model: str | None
    model_fingerprint: str | None
    dimension: int | None
    embedded: int
    reused: int


FACT_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "str": str,
    "str | None": (str, NoneType),
    "int": int,
    "int | None": (int, NoneType),
    "dict[str, int]": dict,
    "list[str]": list,
    "list[dict[str, Any]]": list,
}


@dataclass(frozen=True, slots=True)
class Entry:
    """A candidate as it is stored.

    Attributes:
        position: its number among all candidates.
        id: opaque to users.
        path: of its file, as it stands in the index.
        language: of its file.
        sha256: of its file's bytes.
        name: see `Candidate`.
        kind: see `Candidate`.
        start_line: first line, 1-based.
        end_line: last line, inclusive.
        parent: position of the candidate around it.
        parent_id: its id.
    """

    position: int
    id: str
    path: str
    language: str
    sha256: bytes
    name: str
    kind: str
    start_line: int
    end_line: int
    parent: int | None
    parent_id: str | None


@dataclass(frozen=True, slots=True)
class Relation:
    """An edge seen from one of its ends.

    Attributes:
        kind: see `Edge`.
        direction: `outgoing` if the edge begins here, else `incoming`.
        other: position of the other end.
    """

    kind: str
    direction: str
    other: int


ENTRY = """
SELECT own.position, own.id, path, language, sha256, own.name, own.kind, own.start_line, own.end_line, own.parent,
    outer.id
FROM candidates AS own JOIN files USING (file) LEFT JOIN candidates AS outer ON outer.position = own.parent
"""
ENTRY_TYPES: tuple[type | tuple[type, ...], ...] = (
    int, int, bytes, str, bytes, str, str, int, int, (int, NoneType), (int, NoneType),
)  # fmt: skip

RELATIONS = """
SELECT kind, 'outgoing', target FROM edges WHERE source = ? AND kind NOT IN ('contains')
UNION ALL
SELECT kind, 'incoming', source FROM edges WHERE target = ? AND kind NOT IN ('contains')
"""


class Snapshot:
    """An open snapshot. Use one instance from one thread at a time."""

    def __init__(self, path: Path) -> None:
        """Open the index file at `path` and read its facts.

        Raises:
            NoIndexError: there is none.
            StorageError: it cannot be used; the sentence says why and what to do.
        """
        self.path = path
        self.identity = file_identity(path)
        try:
            self._connection = open_frozen(path, SCHEMA)
        except NoIndexError:
            raise NoIndexError(f'There is no index at "{path}"; build it with: micro-scout index ROOT.') from None
        try:
            with self._trusted():
                self.facts = self._read_facts()
        except BaseException:
            self._connection.close()
            raise
        self.root = root_of(path) or Path(self.facts.root)
        self._columns: dict[str, NDArray[np.integer]] = {}

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def column(self, name: str) -> NDArray[np.integer]:
        """Return one number for each candidate, `(symbols,)`: `file`, `language` (its place in the facts' languages),
        `length` (in terms) or `test` (1 in a file of tests)."""
        import numpy as np

        if name not in self._columns:
            with self._trusted():
                (data,) = self._connection.execute("SELECT data FROM columns WHERE name = ?", (name,)).fetchone()
                column = np.frombuffer(data, COLUMNS[name])
                if len(column) != self.facts.symbols or (len(column) and column.min() < 0):
                    raise ValueError(f"column {name}")
                if name == "language" and len(column) and column.max() >= len(self.facts.languages):
                    raise ValueError(f"column {name}")
            self._columns[name] = column
        return self._columns[name]

    def postings(self, term: int) -> NDArray[np.uint32] | None:
        """Return the postings of one term; None if no candidate has it."""
        from scree.core.lexical_index import chunk_places
        from scree.scout.postings import read_postings

        with self._trusted():
            postings = read_postings(self._connection, term)
            if postings is not None and (not len(postings) or chunk_places(postings).max() >= self.facts.symbols):
                raise ValueError(f"postings of {term}")
            return postings

    def vectors(self, dimension: int) -> Iterator[tuple[int, NDArray[np.float32]]]:
        """Yield position and vector (dimension,) of each candidate that has an embedding, by position."""
        with self._trusted():
            rows = self._connection.execute("SELECT position, vector FROM embeddings ORDER BY position")
            for position, packed in rows:
                (vector,) = unpack_embeddings(packed, dimension)
                if not 0 <= position < self.facts.symbols:
                    raise ValueError("position of an embedding")
                yield position, vector

    def vector_of(self, content: bytes) -> bytes | None:
        """Return the packed vector of what has this content key."""
        with self._trusted():
            row = self._connection.execute("SELECT vector FROM embeddings WHERE content = ?", (content,)).fetchone()
            return None if row is None else bytes(row[0])

    def entry(self, position: int) -> Entry:
        """Return the candidate at a position below `facts.symbols`."""
        with self._trusted():
            return _entry(self._connection.execute(ENTRY + "WHERE own.position = ?", (position,)).fetchone())

    def find(self, symbol_id: str) -> Entry | None:
        """Return the candidate with this id; None if there is none."""
        number = id_number(symbol_id)
        if number is None:
            return None
        with self._trusted():
            row = self._connection.execute(ENTRY + "WHERE own.id = ?", (number,)).fetchone()
            return None if row is None else _entry(row)

    def relations(self, position: int) -> list[Relation]:
        """Return who a candidate calls and who calls it, in a fixed order: certain before approximate."""
        with self._trusted():
            rows = self._connection.execute(RELATIONS, (position, position)).fetchall()
            relations = [Relation(str(kind), direction, int(other)) for kind, direction, other in rows]
        known = (relation for relation in relations if 0 <= relation.other < self.facts.symbols)
        return sorted(known, key=lambda each: (each.kind, each.direction == "incoming", each.other))

    def _read_facts(self) -> Facts:
        rows = dict(self._connection.execute("SELECT name, value FROM facts"))
        facts = {field.name: json.loads(rows[field.name]) for field in fields(Facts)}
        for field in fields(Facts):
            if not isinstance(facts[field.name], FACT_TYPES[str(field.type)]):
                raise TypeError(f"fact {field.name}")
        return Facts(**facts)

    @contextmanager
    def _trusted(self) -> Iterator[None]:
        """Turn what goes wrong with a file that was damaged or edited by hand into one sentence."""
        try:
            with explained(self.path):
                yield
        except (LookupError, TypeError, ValueError, OverflowError) as error:
            raise DamagedIndexError(
                f'The index "{self.path}" is damaged ({type(error).__name__}); build it again with: micro-scout index '
                "ROOT."
            ) from error


def root_of(index: Path) -> Path | None:
    """Return the root that an index file belongs to by its place, `ROOT/.micro-scout`; None elsewhere.

    Where the place says it, what the file says does not count: it may have come with the repository.
    """
    folder = Path(os.path.abspath(index)).parent
    return folder.parent if folder.name == INDEX_FOLDER else None


def file_identity(path: Path) -> tuple[int, int, int] | None:
    """Return what changes when the file at `path` is replaced; None where there is none."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


def write_facts(connection: sqlite3.Connection, facts: Facts) -> None:
    """Store the facts in a snapshot that is being built."""
    rows = [(name, json.dumps(value, ensure_ascii=False)) for name, value in asdict(facts).items()]
    connection.executemany("INSERT INTO facts VALUES (?, ?)", rows)


def id_text(number: int) -> str:
    """Return a candidate's id as users see it, of its number, 0 to 2^63 - 1."""
    return f"{number:016x}"


def id_number(text: str) -> int | None:
    """Return the number of an id; None for what is no id."""
    if len(text) != 16 or text.strip("0123456789abcdef"):
        return None
    number = int(text, 16)
    return number if number < 2**63 else None


def _entry(row: tuple[Any, ...] | None) -> Entry:
    if row is None:
        raise LookupError("no such candidate")
    for value, kind in zip(row, ENTRY_TYPES, strict=True):
        if not isinstance(value, kind):
            raise TypeError("candidate")
    position, number, path, language, sha256, name, kind, start, end, parent, parent_number = row
    parent_id = None if parent_number is None else id_text(parent_number)
    return Entry(
        position, id_text(number), os.fsdecode(path), language, sha256, name, kind, start, end, parent, parent_id
    )


def open_earlier(path: Path) -> Snapshot | None:
    """Open the snapshot that a build is about to replace; None where there is none that can be used.

    Raises:
        StorageError: there is something at `path` that is not to be replaced.
    """
    try:
        return Snapshot(path)
    except NoIndexError:
        return None
    except DamagedIndexError:
        # Whatever lies at our own place was ours; elsewhere it may be anybody's file.
        if root_of(path) is None:
            raise StorageError(f'"{path}" exists and is no intact index; delete it, or name another file.') from None
        return None
