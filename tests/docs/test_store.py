from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from scree.core import database
from scree.core.database import content_key, protect_folder
from scree.docs import store as store_module
from scree.docs.chunks import Chunk, Document
from scree.docs.file_state import FileState
from scree.docs.store import (
    SCHEMA,
    Store,
    chunk_context,
    index_path,
)
from scree.errors import (
    DamagedIndexError,
    LockedIndexError,
    ModelMismatchError,
    ReadOnlyIndexError,
    SchemaError,
    StorageError,
)
from tests.older_index import make_version_1
from tests.ordinary_user import ordinary_user

STATE = FileState(size=10, mtime_ns=2_000_000_001, ctime_ns=3_000_000_001, inode=4)
READ_NS = 9_000_000_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / ".scree").mkdir()
    return index_path(tmp_path)


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    with closing(Store.writer(path)) as opened:
        yield opened


def document(*texts: str, title: str = "") -> Document:
    chunks = [Chunk(("H",), text, 2 * number + 1, 2 * number + 1) for number, text in enumerate(texts)]
    return Document(title, tuple(chunks), opted_out=False)


def put(store: Store, path: str, *texts: str, title: str = "") -> None:
    store.put_document(path, STATE, path.encode(errors="replace"), READ_NS, document(*texts, title=title))


def key(text: str, title: str = "") -> bytes:
    return content_key(chunk_context(title, ("H",)), text)


def rows(*values: float) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    return np.array([[value, 0.5] for value in values], np.float32)


# The folder


@pytest.mark.requirement("index-location")
def test_the_index_lies_in_a_folder_of_its_own(tmp_path: Path) -> None:
    assert index_path(tmp_path) == tmp_path / ".scree" / "index.sqlite"


@pytest.mark.requirement("command-init-folder")
def test_the_folder_keeps_itself_out_of_git(tmp_path: Path) -> None:
    folder = tmp_path / ".scree"
    protect_folder(folder)
    assert (folder / ".gitignore").read_text() == "*\n"
    (folder / ".gitignore").write_text("mine\n")
    protect_folder(folder)
    assert (folder / ".gitignore").read_text() == "mine\n"


def test_the_project_itself_is_never_made(tmp_path: Path) -> None:
    with pytest.raises(ReadOnlyIndexError, match="cannot be written"):
        protect_folder(tmp_path / "unmounted" / ".scree")
    assert os.listdir(tmp_path) == []


@pytest.mark.requirement("index-sources-kept")
@pytest.mark.parametrize("target", [".", "docs", "../elsewhere"])
def test_a_link_that_a_repository_carries_is_not_followed(tmp_path: Path, target: str) -> None:
    root = tmp_path / "project"
    for folder in (root / "docs", tmp_path / "elsewhere"):
        folder.mkdir(parents=True)
    (root / ".scree").symlink_to(target)
    with pytest.raises(ReadOnlyIndexError, match="symbolic link"):
        protect_folder(root / ".scree")
    assert list(tmp_path.rglob(".gitignore")) == []
    (root / ".scree").unlink()
    (root / ".scree").mkdir()
    (root / ".scree" / ".gitignore").symlink_to("../victim")
    protect_folder(root / ".scree")
    assert not (root / "victim").exists()


@pytest.mark.requirement("index-read-only")
def test_a_folder_that_cannot_be_made_has_a_sentence() -> None:
    with ordinary_user() as root:
        root.chmod(0o500)
        try:
            with pytest.raises(ReadOnlyIndexError, match=r"cannot be written \(Permission denied\)"):
                protect_folder(root / ".scree")
        finally:
            root.chmod(0o700)


# The state of a file


@pytest.mark.parametrize(
    "values", [(0, 0, 0, 0), (1, 2**63 - 1, 2**63 - 1, 2**64 - 1), (5, 2**63, 2**64, 2**63), (1, -1, -(2**40), 1)]
)
def test_any_state_that_a_file_system_tells_can_be_stored(store: Store, values: tuple[int, int, int, int]) -> None:
    size, mtime_ns, ctime_ns, inode = values

    class Stat:
        st_size, st_mtime_ns, st_ctime_ns, st_ino = size, mtime_ns, ctime_ns, inode

    state = FileState.of(Stat())  # type: ignore[arg-type]
    store.put_document("a.md", state, b"", READ_NS, document("text"))
    assert store.documents()["a.md"].state == state


def test_a_real_state_is_taken_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "a.md"
    file.write_text("text")
    stat = file.stat()
    assert FileState.of(stat) == FileState(4, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino)


@pytest.mark.parametrize(
    ("changed_ns", "read_ns", "proven"),
    [
        (10**18 + 1, 10**18 + 1 + 20_000_001, True),
        (10**18 + 1, 10**18 + 1 + 20_000_000, False),
        (10**18 + 1, 10**18, False),
        (10**18, 10**18 + 1_999_999_999, False),
        (10**18, 10**18 + 2_000_000_001, True),
    ],
)
def test_equal_states_prove_nothing_within_a_tick_of_the_clock(changed_ns: int, read_ns: int, proven: bool) -> None:
    state = FileState(size=1, mtime_ns=2**62, ctime_ns=changed_ns, inode=1)
    assert state.holds(read_ns, FileState(1, 2**62, changed_ns, 1)) is proven
    for other in (
        FileState(2, 2**62, changed_ns, 1),
        FileState(1, 5, changed_ns, 1),
        FileState(1, 2**62, changed_ns + 1, 1),
        FileState(1, 2**62, changed_ns, 2),
    ):
        assert not state.holds(read_ns, other)


# Documents and chunks


def test_a_document_comes_back_as_it_was_put(store: Store) -> None:
    put(store, "docs/a.md", "one alpha", "two\nlines", title="Title")
    assert store.count_documents() == 1
    assert store.count_chunks() == 2
    assert store.chunk_counts() == [("docs/a.md", 2)]
    row = store.documents()["docs/a.md"]
    assert (row.path, row.state, row.sha256, row.read_ns, row.skip_reason) == (
        "docs/a.md",
        STATE,
        b"docs/a.md",
        READ_NS,
        None,
    )
    first, second = store.chunks_of(row.id)
    assert (first.path, first.state, first.read_ns) == ("docs/a.md", STATE, READ_NS)
    assert (first.trail, first.text, first.start_line, first.end_line) == (("H",), "one alpha", 1, 1)
    assert first.content_key == key("one alpha", "Title")
    assert store.chunks([second.id, 999, first.id]) == [second, first]


@pytest.mark.requirement("path-round-trip")
@pytest.mark.parametrize(
    "name",
    ["a space.md", 'a quote".md', "a new\nline.md", "%_.md", "é.md", "e\u0301.md", "😀.md", os.fsdecode(b"\xff.md")],
)
def test_any_path_comes_back_as_it_is(store: Store, name: str) -> None:
    put(store, name, "text")
    put(store, "other.md", "text")
    assert store.documents([name]).keys() == {name}
    assert set(store.documents()) == {name, "other.md"}
    assert {row.path for row in store.identical_chunks(key("text"))} == {name, "other.md"}
    assert store.remove_documents([name]) == [name]
    assert set(store.documents()) == {"other.md"}


def test_putting_a_document_again_replaces_it(store: Store) -> None:
    put(store, "a.md", "alpha", "beta")
    old = {row.id for row in store.chunks_of(store.documents()["a.md"].id)}
    put(store, "a.md", "beta", "gamma")
    new = store.chunks_of(store.documents()["a.md"].id)
    assert [row.text for row in new] == ["beta", "gamma"]
    assert old.isdisjoint(row.id for row in new)
    store.lexical.update()
    assert store.lexical.chunk_ids.tolist() == [row.id for row in new]
    assert not store.lexical.scores("alpha").any()
    store.put_document("a.md", STATE, b"", READ_NS, "is not text")
    assert store.count_chunks() == store.count_documents() == 0
    assert store.skipped_by_content() == {"a.md": "is not text"}
    assert store.chunk_counts() == []
    assert store.remove_documents(["a.md", "absent.md"]) == []
    assert store.documents() == {}


def test_identical_chunks_come_by_path_and_line(store: Store) -> None:
    put(store, "b.md", "same", "other", "same")
    put(store, "a.md", "same")
    assert [(row.path, row.start_line) for row in store.identical_chunks(key("same"))] == [
        ("a.md", 1),
        ("b.md", 1),
        ("b.md", 5),
    ]


def test_touching_a_document_keeps_its_chunks(store: Store) -> None:
    put(store, "a.md", "alpha")
    before = store.documents()["a.md"]
    other = FileState(11, 12, 13, 14)
    store.touch_document(before.id, other, 15)
    after = store.documents()["a.md"]
    assert (after.id, after.state, after.read_ns, after.sha256) == (before.id, other, 15, before.sha256)
    (chunk,) = store.chunks_of(after.id)
    assert (chunk.state, chunk.read_ns) == (other, 15)


def test_a_transaction_counts_as_a_whole(store: Store) -> None:
    put(store, "a.md", "alpha")

    def fail_after_three_changes() -> None:
        with store.transaction():
            put(store, "b.md", "beta")
            store.remove_documents(["a.md"])
            store.set_fact("x", "1")
            raise KeyError

    with pytest.raises(KeyError):
        fail_after_three_changes()
    assert set(store.documents()) == {"a.md"}
    assert store.fact("x") is None
    put(store, "c.md", "gamma")
    assert set(store.documents()) == {"a.md", "c.md"}


@pytest.mark.requirement("writer-wal")
def test_a_view_stays_the_same_while_the_writer_goes_on(store: Store, path: Path) -> None:
    put(store, "a.md", "alpha")
    with closing(Store.reader(path)) as reader:
        version = reader.data_version()
        with reader.view():
            assert reader.count_documents() == 1
            put(store, "b.md", "beta")
            assert reader.count_documents() == 1
        assert reader.count_documents() == 2
        assert reader.data_version() != version


def test_facts_can_be_stored_and_replaced(store: Store) -> None:
    assert store.fact("x") is None
    store.set_fact("x", "1")
    store.set_fact("x", "2")
    assert store.fact("x") == "2"


def test_looking_for_lines_to_fill_in_reads_no_texts(store: Store, path: Path) -> None:
    put(store, "a.md", *(f"text {number}" for number in range(100)))
    with closing(sqlite3.connect(path)) as connection:
        plan = connection.execute(
            "EXPLAIN QUERY PLAN SELECT DISTINCT path FROM documents JOIN chunks ON document_id = documents.id "
            "WHERE end_line IS NULL"
        ).fetchall()
    assert "chunks_to_backfill" in str(plan)


# Embeddings


def test_contents_are_embedded_once_and_found_by_every_chunk(store: Store) -> None:
    put(store, "a.md", "one", "same", title="T")
    put(store, "b.md", "same", "two", title="T")
    encoder = store.register_encoder("f", 2)
    assert store.register_encoder("f", 2) == encoder == store.encoder_id("f")
    assert store.encoder_id("g") is None
    missing = store.missing_embeddings(encoder)
    assert missing == [key("one", "T"), key("same", "T"), key("two", "T")]
    assert [(content.context, content.text) for content in store.contents(missing)] == [
        ("T > H", "one"),
        ("T > H", "same"),
        ("T > H", "two"),
    ]
    assert store.contents([b"absent"]) == []
    store.put_embeddings(encoder, [(missing[0], rows(1, 2)), (missing[1], rows(3))])
    assert store.missing_embeddings(encoder) == missing[2:]
    assert store.count_embedded_documents(encoder) == 1
    chunk_ids = [chunk_id for chunk_id, _ in store.embedded_chunks(encoder)]
    found = dict(store.embeddings(encoder, [*chunk_ids, 999], 2))
    assert [found[chunk_id].tolist() for chunk_id in chunk_ids] == [rows(1, 2).tolist()] + [rows(3).tolist()] * 2
    assert found.keys() == set(chunk_ids)
    store.put_embeddings(encoder, [(missing[2], rows(4))])
    assert store.count_embedded_documents(encoder) == 2


@pytest.mark.requirement("embeddings-by-content")
def test_embeddings_outlive_their_chunks(store: Store) -> None:
    put(store, "a.md", "one")
    encoder = store.register_encoder("f", 2)
    store.put_embeddings(encoder, [(key("one"), rows(1))])
    store.remove_documents(["a.md"])
    assert store.embedded_chunks(encoder) == []
    put(store, "b.md", "two", "one")
    assert store.missing_embeddings(encoder) == [key("two")]


def test_of_too_many_unused_embeddings_the_oldest_go(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "MIN_KEPT_UNUSED", 3)
    encoder, other = store.register_encoder("f", 2), store.register_encoder("g", 2)
    texts = [f"text {number}" for number in range(8)]
    put(store, "a.md", *texts)
    store.put_embeddings(encoder, [(key(text), rows(1)) for text in texts])
    store.put_embeddings(other, [(key(texts[0]), rows(1))])
    put(store, "a.md", texts[0], texts[7])
    store.prune_embeddings(encoder)
    assert store.encoder_id("g") is None
    put(store, "a.md", *texts)
    assert store.missing_embeddings(encoder) == [key(text) for text in texts[1:4]]
    store.prune_embeddings(encoder)
    assert len(store.missing_embeddings(encoder)) == 3


@pytest.mark.requirement("index-other-model")
def test_an_index_of_another_model_is_told_from_a_new_one(store: Store) -> None:
    put(store, "a.md", "one")
    store.expect_encoder("f")
    encoder = store.register_encoder("f", 2)
    store.expect_encoder("g")  # nothing is embedded yet
    store.put_embeddings(encoder, [(key("one"), rows(1))])
    store.expect_encoder("f")
    with pytest.raises(ModelMismatchError, match=r"made with another model \(f, not g\).*embeds it anew"):
        store.expect_encoder("g")


# What can be wrong with an index


@pytest.fixture
def impatience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.05)


def truncated(path: Path) -> StorageError:
    Store.writer(path).close()
    os.truncate(path, 5_000)
    return opening(DamagedIndexError, lambda: Store.writer(path))


def locked(path: Path) -> StorageError:
    Store.writer(path).close()
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        other.execute("DELETE FROM meta")
        return opening(LockedIndexError, lambda: Store.writer(path))


def read_only(path: Path) -> StorageError:
    with ordinary_user() as root:
        mine = root / path.name
        Store.writer(mine).close()
        mine.chmod(0o400)
        return opening(ReadOnlyIndexError, lambda: Store.writer(mine))


def older(path: Path) -> StorageError:
    make_version_1(path)
    return opening(SchemaError, lambda: Store.reader(path))


def newer(path: Path) -> StorageError:
    Store.writer(path).close()
    with closing(sqlite3.connect(path)) as other:
        other.execute(f"PRAGMA user_version = {SCHEMA.version + 1}")
    return opening(SchemaError, lambda: Store.writer(path))


def other_model(path: Path) -> StorageError:
    with closing(Store.writer(path)) as store:
        store.put_embeddings(store.register_encoder("f", 2), [(b"key", rows(1))])
        return opening(ModelMismatchError, lambda: store.expect_encoder("g"))


def opening(expected: type[StorageError], use: Callable[[], object]) -> StorageError:
    with pytest.raises(expected) as caught:
        use()
    return caught.value


CONDITIONS = [truncated, locked, read_only, older, newer, other_model]


@pytest.mark.requirement("index-truncated")
@pytest.mark.requirement("index-locked")
@pytest.mark.requirement("index-read-only")
@pytest.mark.requirement("index-older-schema")
@pytest.mark.requirement("index-other-model")
@pytest.mark.usefixtures("impatience")
def test_everything_that_can_be_wrong_has_a_sentence_of_its_own(path: Path) -> None:
    sentences = []
    for number, condition in enumerate(CONDITIONS):
        place = path.with_name(f"{number}.sqlite")
        sentence = str(condition(place))
        assert sentence.endswith(".")
        assert "\n" not in sentence
        assert place.name in sentence
        sentences.append(sentence.replace(place.name, ""))
    assert len({sentence.split('"')[-1] for sentence in sentences}) == len(CONDITIONS)


@pytest.mark.requirement("index-sources-kept")
@pytest.mark.usefixtures("impatience")
@pytest.mark.parametrize("condition", CONDITIONS)
def test_nothing_is_deleted_whatever_is_wrong(path: Path, condition: Callable[[Path], StorageError]) -> None:
    source = path.parent.parent / "a.md"
    source.write_text("# A")
    condition(path)
    assert source.read_text() == "# A"
    assert condition is read_only or path.stat().st_size > 0


@pytest.mark.requirement("index-older-schema")
@pytest.mark.requirement("hit-lines-older-schema")
def test_an_older_index_is_upgraded_with_what_it_holds(path: Path, tmp_path: Path) -> None:
    newer = tmp_path / "newer.sqlite"
    with closing(Store.writer(newer)) as store:
        put(store, "a.md", "alpha", "beta")
        store.put_embeddings(store.register_encoder("f", 2), [(key("alpha"), rows(1))])
        store.set_fact("completed_for", "f")
        expected = store.chunks_of(1)
    make_version_1(path, newer)
    with closing(Store.writer(path)) as store:
        found = store.chunks_of(1)
        assert [(row.id, row.text, row.start_line, row.content_key) for row in found] == [
            (row.id, row.text, row.start_line, row.content_key) for row in expected
        ]
        assert [row.end_line for row in found] == [None, None]
        assert store.documents_to_backfill() == {"a.md"}
        encoder = store.register_encoder("f", 2)
        assert store.missing_embeddings(encoder) == [key("beta")]
        assert store.fact("completed_for") == "f"
        store.lexical.update()
        assert np.count_nonzero(store.lexical.scores("alpha")) == 1
        store.set_lines([(row.id, row.start_line, row.start_line + 1) for row in found])
        assert store.documents_to_backfill() == set()
        assert [row.end_line for row in store.chunks_of(1)] == [2, 4]
    with closing(Store.reader(path)) as reader:
        assert reader.count_chunks() == 2


def test_an_upgraded_index_has_the_schema_of_a_new_one(path: Path, tmp_path: Path) -> None:
    make_version_1(path)
    Store.writer(path).close()
    new = tmp_path / "new.sqlite"
    Store.writer(new).close()

    def shape(file: Path) -> dict[str, set[object]]:
        with closing(sqlite3.connect(file)) as connection:
            tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            return {
                table: {tuple(row[1:]) for row in connection.execute(f"PRAGMA table_info({table})")}
                | {tuple(row[1:]) for row in connection.execute(f"PRAGMA index_list({table})")}
                for table in tables
            }

    # The order of columns does not matter: every statement names what it means.
    assert shape(path) == shape(new)


CRASHING = """
import sys
from pathlib import Path
from scree.docs.chunks import Chunk, Document
from scree.docs.file_state import FileState
from scree.docs.store import Store

def document(text):
    return Document("", (Chunk((), text, 1, 1), Chunk((), text + " more", 2, 2)), opted_out=False)

store = Store.writer(Path(sys.argv[1]))
state = FileState(1, 2, 3, 4)
store.put_document("whole.md", state, b"", 5, document("whole"))
with store.transaction():
    store.put_document("half.md", state, b"", 5, document("half"))
    store.remove_documents(["whole.md"])
    print("now", flush=True)
    sys.stdin.read()
"""


@pytest.mark.requirement("writer-killed")
def test_a_writer_killed_in_a_transaction_loses_nothing_that_was_committed(path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", CRASHING, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "now\n"
        process.send_signal(signal.SIGKILL)
        assert process.wait(10) == -signal.SIGKILL
    with closing(Store.writer(path)) as store:
        assert store.chunk_counts() == [("whole.md", 2)]
        put(store, "next.md", "goes on")
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
