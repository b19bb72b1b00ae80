from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scree.core import database
from scree.core.database import (
    Schema,
    database_files,
    explained,
    open_reader,
    open_writer,
    pack_embeddings,
    remove_database,
    transaction,
    unpack_embeddings,
)
from scree.errors import (
    DamagedIndexError,
    LockedIndexError,
    ReadOnlyIndexError,
    SchemaError,
    StorageError,
)
from tests.ordinary_user import ordinary_user

OLD = Schema(0x7E57, 1, "CREATE TABLE notes (text TEXT);\nCREATE INDEX by_text ON notes (text);\n", {})
NEW = Schema(
    0x7E57,
    2,
    "CREATE TABLE notes (text TEXT, size INTEGER);\nCREATE INDEX by_text ON notes (text);\n",
    {1: "ALTER TABLE notes ADD COLUMN size INTEGER;\nUPDATE notes SET size = length(text);\n"},
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "index.sqlite"


@pytest.fixture(autouse=True)
def impatience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.05)


def fill(path: Path, schema: Schema = NEW, rows: int = 500) -> None:
    with closing(open_writer(path, schema)) as connection, transaction(connection):
        connection.executemany("INSERT INTO notes (text) VALUES (?)", [(f"note {n} " * 20,) for n in range(rows)])


def texts(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT count(*) FROM notes").fetchone()[0])


def contents(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in path.parent.iterdir()}


@pytest.fixture
def filled(path: Path) -> Path:
    fill(path)
    return path


# Opening


def test_a_writer_makes_what_is_not_there_and_a_reader_sees_it(path: Path) -> None:
    fill(path, rows=3)
    with closing(open_reader(path, NEW)) as reader:
        assert texts(reader) == 3


def test_a_reader_makes_nothing(path: Path) -> None:
    with pytest.raises(StorageError, match=r"no index at .* yet"):
        open_reader(path, NEW)
    with pytest.raises(StorageError, match="yet"):
        open_reader(path / "below" / "a file", NEW)
    assert not path.exists()


def test_what_a_writer_has_only_begun_is_not_there_yet(path: Path) -> None:
    path.touch()
    with pytest.raises(StorageError, match="yet") as caught:
        open_reader(path, NEW)
    assert not isinstance(caught.value, SchemaError | DamagedIndexError)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
    assert path.stat().st_size > 0
    with pytest.raises(StorageError, match="yet") as caught:
        open_reader(path, NEW)
    assert not isinstance(caught.value, SchemaError | DamagedIndexError)


def test_opening_for_writing_again_writes_nothing(filled: Path) -> None:
    before = filled.read_bytes()
    with closing(open_reader(filled, NEW)) as reader:
        version = reader.execute("PRAGMA data_version").fetchone()
        open_writer(filled, NEW).close()
        assert reader.execute("PRAGMA data_version").fetchone() == version
    assert filled.read_bytes() == before


@pytest.mark.requirement("writer-wal")
def test_readers_and_writer_do_not_wait_for_each_other(filled: Path) -> None:
    with closing(open_writer(filled, NEW)) as writer, closing(open_reader(filled, NEW)) as reader:
        with transaction(writer):
            writer.execute("DELETE FROM notes")
            assert texts(reader) == 500
            with transaction(reader, "DEFERRED"):
                assert texts(reader) == 500
        assert texts(reader) == 0


def test_a_reader_cannot_write(filled: Path) -> None:
    with closing(open_reader(filled, NEW)) as reader, pytest.raises(ReadOnlyIndexError), explained(filled):
        reader.execute("DELETE FROM notes")


@pytest.mark.parametrize("name", ["what?mode=ro", "50% #1.sqlite", "ä ☃.sqlite", os.fsdecode(b"odd\xff.sqlite")])
def test_any_file_name_will_do(tmp_path: Path, name: str) -> None:
    fill(tmp_path / name, rows=2)
    assert os.listdir(tmp_path) == [name]
    with closing(open_reader(tmp_path / name, NEW)) as reader:
        assert texts(reader) == 2


def test_a_reader_that_comes_while_the_tables_are_made_finds_all_of_them_or_none(tmp_path: Path) -> None:
    paths = [tmp_path / f"{number}.sqlite" for number in range(20)]
    current = [paths[0]]
    failures: list[BaseException] = []
    finished = threading.Event()

    def read() -> None:
        while not finished.is_set():
            try:
                with closing(open_reader(current[0], NEW)) as reader:
                    texts(reader)
            except StorageError as error:
                if "yet" not in str(error):
                    failures.append(error)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for thread in readers:
        thread.start()
    for path in paths:
        current[0] = path
        open_writer(path, NEW).close()
    finished.set()
    for thread in readers:
        thread.join()
    assert failures == []


# What can be wrong with a file


@pytest.mark.requirement("index-truncated")
@pytest.mark.parametrize("size", [2, 50, 99, 100, 512, 4_095, 4_096, 5_000, 20_000])
def test_a_truncated_file_is_damaged(filled: Path, size: int) -> None:
    os.truncate(filled, size)
    for opener in (open_writer, open_reader):
        with pytest.raises(DamagedIndexError, match="damaged"):
            opener(filled, NEW)
    assert filled.stat().st_size == size


def test_a_file_that_is_no_database_is_damaged(path: Path) -> None:
    path.write_bytes(b"this is not a database " * 1_000)
    for opener in (open_writer, open_reader):
        with pytest.raises(DamagedIndexError, match="damaged"):
            opener(path, NEW)


def test_damage_that_is_met_later_has_the_same_sentence(filled: Path) -> None:
    with filled.open("r+b") as file:
        file.seek(4_096)
        file.write(b"\xff" * 4_096)
    with (
        closing(open_reader(filled, NEW)) as reader,
        pytest.raises(DamagedIndexError, match="damaged"),
        explained(filled),
    ):
        reader.execute("SELECT * FROM notes").fetchall()


@pytest.mark.requirement("index-locked")
def test_a_file_that_another_program_locks_stays(filled: Path) -> None:
    with closing(sqlite3.connect(filled, isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        other.execute("DELETE FROM notes WHERE 0")
        for opener in (open_writer, open_reader):
            with pytest.raises(LockedIndexError, match="locked by another program"):
                opener(filled, NEW)
        other.execute("ROLLBACK")
    with closing(open_reader(filled, NEW)) as reader:
        assert texts(reader) == 500


@pytest.mark.requirement("index-read-only")
def test_a_read_only_file_can_be_read() -> None:
    with ordinary_user() as folder:
        path = folder / "index.sqlite"
        fill(path)
        path.chmod(0o400)
        with pytest.raises(ReadOnlyIndexError, match="cannot be written"):
            open_writer(path, NEW)
        with closing(open_reader(path, NEW)) as reader:
            assert texts(reader) == 500


@pytest.mark.requirement("index-read-only")
@pytest.mark.parametrize("mode", [0o600, 0o400])
def test_a_file_in_a_read_only_folder_can_be_read(mode: int) -> None:
    with ordinary_user() as folder:
        path = folder / "index.sqlite"
        fill(path)
        path.chmod(mode)
        folder.chmod(0o500)
        try:
            with pytest.raises(ReadOnlyIndexError):
                open_writer(path, NEW)
            with closing(open_reader(path, NEW)) as reader:
                assert texts(reader) == 500
        finally:
            folder.chmod(0o700)


def test_a_log_that_nobody_may_join_is_not_ignored() -> None:
    with ordinary_user() as folder:
        path = folder / "index.sqlite"
        fill(path)
        with closing(open_writer(path, NEW)) as writer:
            writer.execute("DELETE FROM notes")
            copies = {file: file.read_bytes() for file in database_files(path) if file.exists()}
        for file, data in copies.items():
            file.write_bytes(data)
        (folder / "index.sqlite-shm").unlink()
        path.chmod(0o400)
        folder.chmod(0o500)
        try:
            with pytest.raises(ReadOnlyIndexError):
                open_reader(path, NEW).close()
        finally:
            folder.chmod(0o700)


def test_a_new_index_in_a_read_only_folder_is_refused() -> None:
    with ordinary_user() as folder:
        folder.chmod(0o500)
        try:
            with pytest.raises(ReadOnlyIndexError, match="permissions"):
                open_writer(folder / "index.sqlite", NEW)
        finally:
            folder.chmod(0o700)


def test_a_file_in_a_folder_that_nobody_may_enter_has_a_sentence_too() -> None:
    with ordinary_user() as folder:
        inner = folder / "inner"
        inner.mkdir(mode=0o000)
        try:
            for opener in (open_writer, open_reader):
                with pytest.raises(ReadOnlyIndexError, match="cannot be opened"):
                    opener(inner / "index.sqlite", NEW)
        finally:
            inner.chmod(0o700)


@pytest.mark.requirement("index-older-schema")
def test_an_older_schema_is_upgraded_by_the_writer_only(path: Path) -> None:
    fill(path, OLD, rows=4)
    with pytest.raises(SchemaError, match="version 1, older than 2; the next process that writes to it upgrades it"):
        open_reader(path, NEW)
    with closing(open_writer(path, NEW)) as writer:
        assert writer.execute("SELECT count(*) FROM notes WHERE size = length(text)").fetchone() == (4,)
    open_reader(path, NEW).close()


def test_an_upgrade_that_fails_changes_nothing(path: Path) -> None:
    fill(path, OLD, rows=4)
    broken = Schema(NEW.application_id, 2, NEW.create, {1: "DELETE FROM notes;\nDROP TABLE absent;\n"})
    with pytest.raises(StorageError, match="no such table"):
        open_writer(path, broken)
    with closing(open_reader(path, OLD)) as reader:
        assert texts(reader) == 4


def test_a_schema_without_a_way_up_is_left_alone(path: Path) -> None:
    fill(path, OLD, rows=4)
    before = path.read_bytes()
    with pytest.raises(SchemaError, match="too old to upgrade"):
        open_writer(path, Schema(NEW.application_id, 3, NEW.create, {2: ""}))
    assert path.read_bytes() == before


@pytest.mark.requirement("index-older-schema")
def test_a_newer_schema_is_left_alone(path: Path) -> None:
    fill(path, NEW, rows=4)
    before = path.read_bytes()
    for opener in (open_writer, open_reader):
        with pytest.raises(SchemaError, match="version 2, newer than 1"):
            opener(path, OLD)
    assert path.read_bytes() == before


def test_a_database_of_another_program_is_left_alone(path: Path) -> None:
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE theirs (text)")
        other.execute("PRAGMA user_version = 2")
        other.commit()
    before = path.read_bytes()
    for opener in (open_writer, open_reader):
        with pytest.raises(SchemaError, match="database of another program"):
            opener(path, NEW)
    assert contents(path) == {path.name: before}


def test_a_link_is_not_followed(tmp_path: Path, path: Path) -> None:
    target = tmp_path / "elsewhere.sqlite"
    fill(target)
    path.symlink_to(target)
    for opener in (open_writer, open_reader):
        with pytest.raises(StorageError, match="symbolic link"):
            opener(path, NEW)


# Transactions


def test_a_transaction_that_fails_leaves_nothing_open(filled: Path) -> None:
    with closing(open_writer(filled, NEW)) as writer:

        def fail_after_a_change() -> None:
            with transaction(writer):
                writer.execute("DELETE FROM notes")
                raise KeyError

        with pytest.raises(KeyError):
            fail_after_a_change()
        assert not writer.in_transaction
        assert texts(writer) == 500


def test_a_full_disk_has_a_sentence_and_leaves_nothing_open(filled: Path) -> None:
    with closing(open_writer(filled, NEW)) as writer:
        pages = writer.execute("PRAGMA page_count").fetchone()[0]
        writer.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(StorageError, match=r"disk .* is full"), explained(filled), transaction(writer):
            writer.executemany("INSERT INTO notes (text) VALUES (?)", [("x" * 4_000,)] * 100)
        assert not writer.in_transaction
        assert texts(writer) == 500


def test_bugs_are_not_dressed_up_as_trouble_with_the_file(filled: Path) -> None:
    writer = open_writer(filled, NEW)
    with pytest.raises(sqlite3.ProgrammingError), explained(filled):
        writer.execute("SELECT ?", ())
    writer.close()
    with pytest.raises(sqlite3.ProgrammingError), explained(filled):
        writer.execute("SELECT 1")


def test_a_script_may_hold_semicolons_in_strings_and_ends_where_it_says(path: Path) -> None:
    script = "CREATE TABLE a (x TEXT DEFAULT 'one;\ntwo');\n-- a comment; with a semicolon\nCREATE TABLE b (y);\n"
    with closing(open_writer(path, Schema(1, 1, script, {}))) as writer:
        assert writer.execute("SELECT count(*) FROM sqlite_master").fetchone() == (2,)
    with pytest.raises(ValueError, match="middle of a statement"):
        open_writer(path.with_name("other"), Schema(1, 1, "CREATE TABLE a (x);\nCREATE TABLE b (y)", {}))


# Removing


@pytest.fixture
def with_log(filled: Path) -> Iterator[Path]:
    writer = open_writer(filled, NEW)
    writer.execute("DELETE FROM notes")
    yield filled
    writer.close()


def test_removing_takes_sqlites_files_along(with_log: Path) -> None:
    (with_log.parent / "writer.lock").touch()
    assert len(contents(with_log)) == 4
    remove_database(with_log)
    assert contents(with_log).keys() == {"writer.lock"}
    remove_database(with_log)


def test_a_log_never_outlives_its_database(with_log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unlink = Path.unlink
    for allowed in range(4):
        calls = 0

        def killed(self: Path, missing_ok: bool = False, allowed: int = allowed) -> None:
            nonlocal calls
            calls += 1
            if calls > allowed:
                raise KeyboardInterrupt
            unlink(self, missing_ok)

        monkeypatch.setattr(Path, "unlink", killed)
        with pytest.raises(KeyboardInterrupt):
            remove_database(with_log)
        monkeypatch.undo()
        assert with_log.exists()


# Embeddings


@given(st.integers(0, 5), st.integers(1, 400), st.integers(0, 2**32 - 1))
def test_embeddings_survive_their_bytes_to_three_decimals(count: int, dimension: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    rows = generator.standard_normal((count, dimension)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    query = generator.standard_normal(dimension).astype(np.float32)
    query /= np.linalg.norm(query)
    back = unpack_embeddings(pack_embeddings(rows), dimension)
    assert back.dtype == np.float32
    assert back.shape == rows.shape
    np.testing.assert_allclose(back @ query, rows @ query, atol=5e-4)


def test_embeddings_in_any_memory_order_are_stored_row_by_row() -> None:
    rows = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert pack_embeddings(np.asfortranarray(rows)) == pack_embeddings(rows)
    assert np.array_equal(unpack_embeddings(pack_embeddings(rows), 3), rows)
