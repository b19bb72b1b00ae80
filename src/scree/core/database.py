"""Open the SQLite files of both halves, and say in one sentence what is wrong with one that cannot be opened.

What this module knows is how to open, how to check, how to migrate and how to store embeddings as bytes; the tables
belong to the caller. It never deletes a file that it has not proven to be damaged.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from scree.errors import (
    DamagedIndexError,
    LockedIndexError,
    NoIndexError,
    ReadOnlyIndexError,
    SchemaError,
    StorageError,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# How long a statement waits for a lock. In WAL mode readers never wait for the writer and there is one writer, so
# waiting longer than a checkpoint takes means that a foreign program holds the file.
BUSY_SECONDS = 2.0

# SQLite's way to say that the file is not going to change: it is read without locks, and without a log.
FROZEN = "mode=ro&immutable=1"

SIDE_FILES = ("-wal", "-shm", "-journal")

NOT_WRITABLE = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM)


@dataclass(frozen=True, slots=True)
class Schema:
    """What a database of one kind looks like.

    Attributes:
        application_id: written to SQLite's header, so that a foreign database is recognised.
        version: the newest schema version, written to `user_version`.
        create: the script that makes an empty database of that version.
        migrations: for each older version that can be upgraded in place, the script that leads to the next one.
    """

    application_id: int
    version: int
    create: str
    migrations: Mapping[int, str]


def open_writer(path: Path, schema: Schema) -> sqlite3.Connection:
    """Open or create the database at `path` for writing, in WAL mode, upgraded to the newest schema.

    Raises:
        DamagedIndexError: the file is not an intact database.
        LockedIndexError: another program holds it.
        ReadOnlyIndexError: the file or its folder cannot be written.
        SchemaError: it was written by a newer version, or by another program.
        StorageError: it is a symbolic link, or cannot be used for another reason.
    """
    _refuse_link(path)
    if os.path.exists(path) and not os.access(path, os.W_OK):
        raise ReadOnlyIndexError(
            f'The index "{path}" cannot be written; make it writable, or delete it to build a new one.'
        )
    with explained(path):
        connection = connect(path, "mode=rwc")
        try:
            stored_version(connection, path, schema)  # before the first write: it may be somebody else's
            connection.execute("PRAGMA journal_mode = WAL")
            # A power failure may lose the last commits of an index that can be made again; a crash of the process
            # may not, and does not.
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("PRAGMA foreign_keys = ON")
            upgrade(connection, path, schema)
        except BaseException:
            connection.close()
            raise
        return connection


def open_reader(path: Path, schema: Schema) -> sqlite3.Connection:
    """Open the database at `path` without ever changing what it holds.

    Raises:
        NoIndexError: there is no such file, or nothing in it yet.
        StorageError: as one of its subclasses, as for `open_writer`. An older schema is a `SchemaError` too: only a
            writer may upgrade it.
    """
    _require_content(path)
    with explained(path):
        try:
            return _connect_checked(path, "mode=ro", schema)
        except sqlite3.OperationalError as error:
            # WAL mode needs its side files, and where nobody may write, SQLite cannot make them. Without a log there is
            # nothing but the file itself, and nothing that could change it.
            if _code(error) not in NOT_WRITABLE or _has_log(path):
                raise
            return _connect_checked(path, FROZEN, schema)


def open_frozen(path: Path, schema: Schema) -> sqlite3.Connection:
    """Open a database that is not `in_use`, so that nothing is written beside it and no lock is asked for.

    What is read is right only where the file is afterwards as it was before: the caller has to prove that.

    Raises:
        StorageError: as for `open_reader`; also where its last writer left a log behind, without which it is not whole.
    """
    _require_content(path)
    if _has_log(path):
        raise StorageError(f'The index "{path}" was not closed; the next process that writes to it repairs it.')
    with explained(path):
        return _connect_checked(path, FROZEN, schema)


def in_use(path: Path) -> bool:
    """Whether SQLite's files lie beside the database at `path`: it is open somewhere, or was when a process died."""
    return all(path.with_name(path.name + end).exists() for end in ("-wal", "-shm"))


def connect(path: Path, options: str) -> sqlite3.Connection:
    """Connect in autocommit mode, so that transactions are where the code says `BEGIN`, usable from any thread.

    Args:
        path: of the database.
        options: SQLite's URI parameters, such as `mode=ro`.
    """
    connection = sqlite3.connect(
        # as_uri() percent-encodes what a URI cannot hold; a path on disk may hold anything.
        f"{path.absolute().as_uri()}?{options}",
        uri=True,
        timeout=BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
    )
    # A repository may carry a crafted file at this place: its views and triggers get no powers of their own.
    connection.execute("PRAGMA trusted_schema = OFF")
    return connection


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection, kind: Literal["IMMEDIATE", "DEFERRED"] = "IMMEDIATE") -> Iterator[None]:
    """Make the statements inside one transaction: all of them count, or none does.

    Args:
        connection: in autocommit mode.
        kind: `IMMEDIATE` to write; `DEFERRED` to read one state of the database, whatever others commit meanwhile.
    """
    connection.execute(f"BEGIN {kind}")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # After some errors, such as a full disk, SQLite has rolled back by itself.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def upgrade(connection: sqlite3.Connection, path: Path, schema: Schema) -> None:
    """Create the tables of an empty database, or run the migrations that it lacks, in one transaction."""
    with transaction(connection):
        version = stored_version(connection, path, schema)
        if version == schema.version:
            return
        if version == 0:
            run_script(connection, schema.create)
        else:
            for older in range(version, schema.version):
                if older not in schema.migrations:
                    raise SchemaError(
                        f'The index "{path}" has schema version {version}, which is too old to upgrade; delete it and '
                        "it is built again."
                    )
                run_script(connection, schema.migrations[older])
        connection.execute(f"PRAGMA application_id = {schema.application_id}")
        connection.execute(f"PRAGMA user_version = {schema.version}")


def check_version(connection: sqlite3.Connection, path: Path, schema: Schema) -> None:
    """Raise `StorageError` unless the database has exactly the newest schema."""
    version = stored_version(connection, path, schema)
    if version == 0:
        raise _nothing_yet(path)
    if version < schema.version:
        raise SchemaError(
            f'The index "{path}" has schema version {version}, older than {schema.version}; the next process that '
            "writes to it upgrades it."
        )


def stored_version(connection: sqlite3.Connection, path: Path, schema: Schema) -> int:
    """Read the schema version; 0 means an empty database.

    Raises:
        SchemaError: the version is newer than this program, or the database belongs to another program.
    """
    # Asked first: where the tables are to be seen, so is the version that was committed with them.
    if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
        return 0
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    application = int(connection.execute("PRAGMA application_id").fetchone()[0])
    if application != schema.application_id or version < 1:
        raise SchemaError(f'"{path}" is a database of another program, which is left alone; move it away.')
    if version > schema.version:
        raise SchemaError(
            f'The index "{path}" has schema version {version}, newer than {schema.version}: it was written by a newer '
            "version of this program; upgrade, or delete it to build a new one."
        )
    return version


def run_script(connection: sqlite3.Connection, script: str) -> None:
    """Run several statements inside the open transaction (`executescript` would commit it first)."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            connection.execute(statement)
            statement = ""
    if statement.strip():
        raise ValueError(f"the script ends in the middle of a statement: {statement.strip()}")


@contextlib.contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn SQLite's errors on the database at `path` into the one sentence of a `StorageError`.

    What SQLite did not report itself, such as a closed connection, is a bug and passes as it is.
    """
    try:
        yield
    except sqlite3.DatabaseError as error:
        if _code(error) in (0, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISUSE):
            raise
        raise explain(path, error) from error


def explain(path: Path, error: sqlite3.DatabaseError) -> StorageError:
    """Choose the `StorageError` that says what an SQLite error on the database at `path` means for its owner."""
    code = _code(error)
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return DamagedIndexError(f'The index "{path}" is damaged ({error}); it is built again by the next writer.')
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL):
        return LockedIndexError(f'The index "{path}" is locked by another program; close that program and try again.')
    if code in NOT_WRITABLE:
        return ReadOnlyIndexError(f'The index "{path}" cannot be opened or written ({error}); check its permissions.')
    if code == sqlite3.SQLITE_FULL:
        return StorageError(f'The disk that holds the index "{path}" is full; free some room.')
    return StorageError(f'The index "{path}" cannot be used ({error}).')


def database_files(path: Path) -> tuple[Path, ...]:
    """Return the database's file and those that SQLite keeps beside it, whether or not they exist."""
    return (path, *(path.with_name(path.name + end) for end in SIDE_FILES))


def remove_database(path: Path) -> None:
    """Delete a database that can be made again, and SQLite's files beside it.

    The database itself goes last: SQLite would play a log that outlived it into the next one.
    """
    for file in reversed(database_files(path)):
        file.unlink(missing_ok=True)


def protect_folder(folder: Path) -> None:
    """Make the index folder, with a `.gitignore` of its own that keeps all of it out of git.

    Makes nothing around it, for that is the project, and may be unmounted.

    Raises:
        ReadOnlyIndexError: the folder cannot be made or written, or is a link, which a repository may carry to have
            files written elsewhere.
    """
    ignore = folder / ".gitignore"
    try:
        if folder.is_symlink():
            raise OSError(errno.ELOOP, "it is a symbolic link")
        folder.mkdir(exist_ok=True)
        if not os.path.lexists(ignore):
            ignore.write_text("*\n", encoding="ascii")
    except OSError as error:
        raise ReadOnlyIndexError(
            f'"{folder}" cannot be written ({error.strerror}); make it a writable folder so that scree can keep its '
            "index there."
        ) from error


def content_key(context: str, text: str) -> bytes:
    """Return the 16 bytes an embedding is kept under: a SHA-256 of what the encoder sees, cut to half its length."""
    return hashlib.sha256(f"{context}\0{text}".encode("utf-8", "surrogatepass")).digest()[:16]


def pack_embeddings(rows: NDArray[np.float32]) -> bytes:
    """Turn `(n, dim)` float32 rows into bytes: half precision, little-endian, row after row.

    Half precision moves a cosine similarity by less than .0005, below the three decimals that are shown.
    """
    return rows.astype("<f2").tobytes()


def unpack_embeddings(blob: bytes, dimension: int) -> NDArray[np.float32]:
    """Turn bytes of `pack_embeddings` back into `(n, dimension)` float32 rows.

    Raises:
        ValueError: they are not whole rows.
    """
    import numpy as np

    return np.frombuffer(blob, dtype="<f2").astype(np.float32).reshape(-1, dimension)


def _connect_checked(path: Path, options: str, schema: Schema) -> sqlite3.Connection:
    connection = connect(path, options)
    try:
        check_version(connection, path, schema)
    except BaseException:
        connection.close()
        raise
    return connection


def _require_content(path: Path) -> None:
    """Refuse a file that is a link, that is not there or cannot be looked at, or that is empty."""
    _refuse_link(path)
    try:
        empty = os.stat(path).st_size == 0
    except (FileNotFoundError, NotADirectoryError):
        empty = True
    except OSError as error:
        raise ReadOnlyIndexError(
            f'The index "{path}" cannot be opened ({error.strerror}); check its permissions.'
        ) from error
    if empty:
        raise _nothing_yet(path)


def _refuse_link(path: Path) -> None:
    """Refuse a file that leads elsewhere: a repository may carry a link in place of the index."""
    if os.path.islink(path):
        raise StorageError(f'The index "{path}" is a symbolic link, which is not followed; remove the link.')


def _nothing_yet(path: Path) -> NoIndexError:
    return NoIndexError(f'There is no index at "{path}" yet.')


def _has_log(path: Path) -> bool:
    log = path.with_name(path.name + "-wal")
    return log.exists() and log.stat().st_size > 0


def _code(error: sqlite3.Error) -> int:
    """Return SQLite's primary result code; 0 for what Python's module reports on its own."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF
