"""Embeddings taken from the indexes of a repository's other work trees, and all that can be wrong with those."""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from scree.core import database
from scree.core.database import database_files, remove_database
from scree.docs import borrowing
from scree.docs import sync as sync_module
from scree.docs.borrowing import borrowed, lenders
from scree.docs.file_state import TICK_NS
from scree.docs.store import SCHEMA, index_path
from tests.fake_encoder import FakeEncoder
from tests.indexed_project import IndexedProject
from tests.older_index import make_version_1
from tests.ordinary_user import NOBODY, ordinary_user
from tests.repositories import GitRepository
from tests.waiting import eventually

FILES: dict[str, str | bytes] = {
    "a.md": "# A\n\nalpha\n\n## Deep\n\nalpha beta",
    "docs/b.md": "# B\n\nbeta gamma",
    "docs/c.md": "---\ntitle: C\n---\n" + "delta epsilon " * 40 + "zeta",
}
TEXTS = ["alpha", "alpha beta", "beta gamma", "delta epsilon " * 40 + "zeta"]

Open = Callable[[Path], IndexedProject]


@pytest.fixture
def opened() -> Iterator[Open]:
    """Opens the index of a root; closes all at the end."""
    projects: list[IndexedProject] = []

    def open_project(root: Path) -> IndexedProject:
        projects.append(IndexedProject(root))
        return projects[-1]

    yield open_project
    for project in projects:
        project.close()


@pytest.fixture
def main(git_repository: Callable[..., GitRepository]) -> GitRepository:
    return git_repository(FILES, name="main")


@pytest.fixture
def linked(main: GitRepository) -> GitRepository:
    return add(main, "linked")


def add(repository: GitRepository, name: str) -> GitRepository:
    """Make a work tree beside the repository, on a new branch of that name."""
    path = repository.path.parent / name
    repository.git("worktree", "add", "--quiet", "-b", name, path)
    return GitRepository(path)


def settle(path: Path) -> None:
    """Let the clock move on, so that a file is known to be as it is."""
    changed_ns = path.lstat().st_ctime_ns
    eventually(lambda: time.time_ns() > changed_ns + 2 * TICK_NS, what="the clock to move on")


def index(root: Path) -> Path:
    """Index a root and close the index."""
    with closing(IndexedProject(root)) as project:
        project.update()
    settle(index_path(root))
    return index_path(root)


def fresh(project: IndexedProject, tmp_path: Path) -> dict[str, object]:
    """What an index says for which nothing was borrowed."""
    with pytest.MonkeyPatch.context() as patch, closing(IndexedProject(project.root, index=tmp_path / "new")) as other:
        patch.setattr(sync_module, "lenders", lambda *_: [])
        other.update()
        found = other.everything()
    remove_database(tmp_path / "new")
    return found


def traces(folder: Path) -> dict[str, tuple[int, ...]]:
    """The files of a folder and their state. Not read: to close a file is to give up SQLite's locks on it."""
    states = {entry.name: entry.stat(follow_symlinks=False) for entry in os.scandir(folder)} if folder.exists() else {}
    return {name: (s.st_mode, s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns) for name, s in states.items()}


def keys_in(path: Path) -> set[bytes]:
    with closing(sqlite3.connect(path)) as connection:
        return {key for (key,) in connection.execute("SELECT content_key FROM embeddings")}


# What is borrowed


@pytest.mark.requirement("worktree-embeddings")
@pytest.mark.parametrize("live", [False, True])
@pytest.mark.parametrize("there", ["main", "linked"])
def test_a_new_work_tree_embeds_nothing(
    main: GitRepository, linked: GitRepository, opened: Open, tmp_path: Path, there: str, live: bool
) -> None:
    first, second = (main, linked) if there == "main" else (linked, main)
    third = add(main, "third")
    if live:
        opened(first.path).update()
    else:
        index(first.path)
    for repository in (second, third):
        project = opened(repository.path)
        project.update()
        assert project.embedded() == []
        assert sorted(project.texts()) == sorted(TEXTS)
        assert project.sync.completed_for == "fake"
        assert project.everything() == fresh(project, tmp_path)


@pytest.mark.requirement("worktree-embeddings")
def test_that_needs_neither_git_nor_a_main_work_tree(
    main: GitRepository, tmp_path: Path, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    main.git("clone", "--quiet", "--bare", ".", tmp_path / "bare.git")
    bare = GitRepository(tmp_path / "bare.git")
    one, two = add(bare, "one"), add(bare, "two")
    index(one.path)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    project = opened(two.path)
    project.update()
    assert project.embedded() == []
    assert sorted(project.texts()) == sorted(TEXTS)


@pytest.mark.requirement("worktree-embeddings")
@pytest.mark.parametrize(
    ("lender", "borrower"),
    [("main/docs", "linked/docs"), ("main", "linked/docs"), ("main", "main/docs"), ("linked", "main/docs")],
)
def test_a_folder_of_a_work_tree_finds_its_like_and_the_top(
    main: GitRepository, linked: GitRepository, opened: Open, lender: str, borrower: str
) -> None:
    assert linked.path.is_dir()
    index(main.path.parent / lender)
    project = opened(main.path.parent / borrower)
    project.update()
    assert project.embedded() == []
    assert sorted(project.texts()) == sorted(TEXTS[2:])


@pytest.mark.requirement("worktree-embeddings")
def test_what_one_work_tree_lacks_the_next_may_have(main: GitRepository, linked: GitRepository, opened: Open) -> None:
    third = add(main, "third")
    (linked.path / "a.md").write_text("# A\n\nanother alpha")
    index(main.path)
    index(linked.path)
    project = opened(third.path)
    project.write({"new.md": "# A\n\nanother alpha\n\n# Own\n\nnobody has this"})
    project.update()
    assert project.embedded() == ["nobody has this"]
    # Later edits, too: here a text is taken over from another branch.
    (main.path / "later.md").write_text("written in main")
    index(main.path)
    project.write({"later.md": "written in main"})
    project.update(["later.md"])
    assert project.embedded() == []


@pytest.mark.requirement("worktree-own-text")
def test_nothing_of_another_branch_gets_in(
    main: GitRepository, linked: GitRepository, opened: Open, tmp_path: Path
) -> None:
    (main.path / "secret.md").write_text("# Secret\n\nonly in main")
    index(main.path)
    (linked.path / "a.md").write_text("# A\n\nalpha, otherwise")
    (linked.path / "docs" / "b.md").unlink()
    project = opened(linked.path)
    project.update()
    assert project.embedded() == ["alpha, otherwise"]
    assert sorted(project.texts()) == ["alpha, otherwise", TEXTS[3]]
    assert keys_in(project.index) == {chunk[-1] for _, chunks in project.rows() for chunk in chunks}
    assert project.everything() == fresh(project, tmp_path)


@pytest.mark.requirement("worktree-own-text")
def test_an_index_outlives_the_one_it_borrowed_from(main: GitRepository, linked: GitRepository, opened: Open) -> None:
    index(main.path)
    project = opened(linked.path)
    project.update()
    before = project.everything()
    shutil.rmtree(main.path)
    project.update()
    assert project.embedded() == []
    assert project.everything() == before
    project.write({"new.md": "and goes on"})
    project.update(["new.md"])
    assert project.embedded() == ["and goes on"]


def test_another_encoder_borrows_nothing(main: GitRepository, linked: GitRepository, opened: Open) -> None:
    index(main.path)
    project = opened(linked.path)
    project.encoder = FakeEncoder("other", 16)
    project.update()
    assert sorted(project.embedded()) == sorted(TEXTS)


def test_outside_git_nobody_lends(tmp_path: Path, opened: Open) -> None:
    project = opened(tmp_path)
    assert lenders(project.root, project.rules.work_tree) == []


# How it is borrowed


@pytest.mark.requirement("worktree-embeddings")
def test_borrowed_counts_as_embedded_and_comes_in_batches(
    main: GitRepository, linked: GitRepository, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(borrowing, "BATCH", 2)
    index(main.path)
    project = opened(linked.path)
    project.write({"new.md": "# New\n\none\n\n## More\n\ntwo"})
    project.sync.scan()
    seen: list[tuple[str, int, int]] = []
    assert project.sync.embed_missing(project.encoder, progress=lambda *update: seen.append(update))
    assert seen == [("embedding", done, 6) for done in (2, 4, 6)]
    assert sorted(project.embedded()) == ["one", "two"]


def test_what_is_embedded_is_counted_from_what_was_borrowed(
    main: GitRepository, linked: GitRepository, opened: Open
) -> None:
    index(main.path)
    project = opened(linked.path)
    own = sync_module.EMBEDDING_SLICE + 1
    project.write({f"{number}.md": f"text {number}" for number in range(own)})
    project.sync.scan()
    seen: list[int] = []
    project.sync.embed_missing(project.encoder, progress=lambda _, done, __: seen.append(done))
    assert seen == [len(TEXTS), len(TEXTS) + sync_module.EMBEDDING_SLICE, len(TEXTS) + own]


def test_borrowing_goes_on_where_it_was_stopped(
    main: GitRepository, linked: GitRepository, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(borrowing, "BATCH", 1)
    index(main.path)
    project = opened(linked.path)
    project.sync.scan()
    for stored in range(1, len(TEXTS) + 1):
        assert not project.sync.embed_missing(project.encoder, should_stop=lambda: True)
        assert len(keys_in(project.index)) == stored
    assert project.sync.embed_missing(project.encoder, should_stop=lambda: True)
    assert project.embedded() == []


def test_whoever_has_nothing_to_lend_never_keeps_embedding_from_going_on(
    main: GitRepository, linked: GitRepository, opened: Open
) -> None:
    index(main.path)
    project = opened(linked.path)
    project.write({"a.md": "\n".join(f"# {number}\n\ntext {number}\n" for number in range(40))})
    project.sync.scan(["a.md"], capped=False)
    project.sync.embed_missing(project.encoder, should_stop=lambda: True)
    assert len(keys_in(project.index)) >= sync_module.EMBEDDING_SLICE


# What may be wrong with the other index


def gone(path: Path) -> None:
    remove_database(path)


def folder_gone(path: Path) -> None:
    shutil.rmtree(path.parent)


def work_tree_gone(path: Path) -> None:
    shutil.rmtree(path.parent.parent)


def empty(path: Path) -> None:
    os.truncate(path, 0)


def truncated(path: Path) -> None:
    os.truncate(path, 5_000)


def overwritten(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:4_096] + b"\xa5" * path.stat().st_size)


def no_database(path: Path) -> None:
    path.write_text("# A note")


def older(path: Path) -> None:
    path.rename(path.with_name("newer"))
    make_version_1(path, path.with_name("newer"))


def newer(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {SCHEMA.version + 1}")


def foreign(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA application_id = 1")


def without_its_tables(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TABLE embeddings")


def a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def a_fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def a_link(path: Path) -> None:
    path.rename(path.parents[2] / "elsewhere.sqlite")
    path.symlink_to(path.parents[2] / "elsewhere.sqlite")


def a_loop(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.name)


def behind_a_link(path: Path) -> None:
    path.parent.rename(path.parents[2] / "elsewhere")
    path.parent.symlink_to("../elsewhere")


def with_a_linked_log(path: Path) -> None:
    (path.parent / "elsewhere").write_bytes(b"")
    path.with_name(path.name + "-wal").symlink_to("elsewhere")


def another_users(path: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can give a file away")
    os.chown(path, NOBODY, -1)


def with_a_log_left_behind(path: Path) -> None:
    log = database_files(path)[1]
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("INSERT INTO meta VALUES ('x', '1')")
        connection.commit()
        shutil.copy(log, path.with_name("log"))
    path.with_name("log").rename(log)
    assert log.stat().st_size > 0


@pytest.mark.requirement("worktree-index-of-others")
@pytest.mark.parametrize(
    "spoil",
    [
        gone,
        folder_gone,
        work_tree_gone,
        empty,
        truncated,
        overwritten,
        no_database,
        older,
        newer,
        foreign,
        without_its_tables,
        a_folder,
        a_fifo,
        a_link,
        a_loop,
        behind_a_link,
        with_a_linked_log,
        another_users,
        with_a_log_left_behind,
    ],
)
def test_an_index_that_cannot_be_used_is_left_alone_and_everything_embedded(
    main: GitRepository,
    linked: GitRepository,
    opened: Open,
    tmp_path: Path,
    spoil: Callable[[Path], None],
) -> None:
    path = index(linked.path)
    spoil(path)
    if path.is_file():
        settle(path)
    before = traces(path.parent)
    project = opened(main.path)
    project.update()
    assert sorted(project.embedded()) == sorted(TEXTS)
    assert project.everything() == fresh(project, tmp_path)
    assert traces(path.parent) == before


@pytest.mark.requirement("worktree-index-of-others")
def test_nor_is_a_locked_one_waited_for_long(
    main: GitRepository, linked: GitRepository, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.05)
    path = index(linked.path)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("INSERT INTO meta VALUES ('x', '1')")
        path.with_name(path.name + "-shm").touch()  # as if others had it open, too
        before = traces(path.parent)
        project = opened(main.path)
        project.update()
        assert sorted(project.embedded()) == sorted(TEXTS)
        assert traces(path.parent) == before


@pytest.mark.requirement("worktree-index-of-others")
def test_an_index_that_cannot_be_read_lends_nothing() -> None:
    FakeEncoder().encode_query("import what the block needs")
    with ordinary_user() as root:
        (root / "a.md").write_text("alpha")
        path = index(root)
        keys = keys_in(path)
        assert [key for batch in borrowed([path], FakeEncoder(), keys) for key, _ in batch] == list(keys)
        for place, mode in ((path, 0o600), (path.parent, 0o700)):
            place.chmod(0)
            try:
                assert list(borrowed([path], FakeEncoder(), keys)) == []
            finally:
                place.chmod(mode)


@pytest.mark.requirement("worktree-index-of-others")
def test_a_closed_index_shows_no_trace_of_it_and_an_open_one_no_file_more(
    main: GitRepository, linked: GitRepository, opened: Open
) -> None:
    path = index(main.path)
    before = traces(path.parent)
    opened(linked.path).update()
    assert traces(path.parent) == before
    owner = opened(main.path)
    owner.write({"new.md": "a new text"})
    owner.update()
    before = traces(path.parent)
    third = opened(add(main, "third").path)
    third.write({"new.md": "a new text"})
    third.update()
    assert third.embedded() == []
    assert traces(path.parent).keys() == before.keys()


@pytest.mark.requirement("worktree-index-of-others")
def test_of_an_index_being_written_what_is_committed_is_borrowed(
    main: GitRepository, linked: GitRepository, opened: Open
) -> None:
    owner, project = opened(main.path), opened(linked.path)
    owner.update()
    for one in (owner, project):
        one.write({"new.md": "not committed yet"})
    owner.sync.scan()
    with owner.store.transaction():
        owner.sync.embed_missing(owner.encoder)
        project.update()
        assert project.embedded() == ["not committed yet"]
    owner.write({"more.md": "the owner goes on"})
    owner.update()
    assert owner.embedded()[-1] == "the owner goes on"


@pytest.mark.requirement("worktree-index-of-others")
def test_an_open_index_goes_on_lending_while_it_is_written(
    main: GitRepository, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(borrowing, "BATCH", 1)
    owner = opened(main.path)
    owner.update()
    keys = sorted(keys_in(owner.index))
    lent = borrowed([owner.index], FakeEncoder(), keys)
    first = next(lent)
    owner.write({"new.md": "a new text"})
    owner.update()
    with closing(sqlite3.connect(owner.index)) as connection:
        assert connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone() == (0, 0, 0)
    assert [key for batch in (first, *lent) for key, _ in batch] == keys


@pytest.mark.requirement("worktree-index-of-others")
def test_a_closed_index_that_is_written_meanwhile_is_not_believed(
    main: GitRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(borrowing, "BATCH", 1)
    path = index(main.path)
    keys = sorted(keys_in(path))
    lent = borrowed([path], FakeEncoder(), keys)
    assert [key for key, _ in next(lent)] == keys[:1]
    (main.path / "new.md").write_text("a new text")
    index(main.path)
    assert list(lent) == []


@pytest.mark.requirement("worktree-index-of-others")
@pytest.mark.parametrize(("after_ns", "believed"), [(TICK_NS, False), (TICK_NS + 1, True)])
def test_nor_is_one_that_was_written_within_the_last_tick_of_the_clock(
    main: GitRepository, monkeypatch: pytest.MonkeyPatch, after_ns: int, believed: bool
) -> None:
    path = index(main.path)
    keys = keys_in(path)
    now_ns = path.stat().st_ctime_ns + after_ns
    monkeypatch.setattr(time, "time_ns", lambda: now_ns)
    assert bool(list(borrowed([path], FakeEncoder(), keys))) is believed


def packed(*rows: list[float]) -> bytes:
    return np.array(rows, "<f2").tobytes()


@pytest.mark.requirement("worktree-index-of-others")
@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"\0",
        packed([1.0] + [0.0] * 7),
        packed([1.0] + [0.0] * 15) + b"\0\0",
        packed([0.0] * 15 + [1.0], [0.0] * 16),
        packed([0.5] * 16),
        packed([float("nan")] + [0.0] * 15),
        packed([float("inf")] + [0.0] * 15),
        packed([65_504.0] * 16),
        "\u3042" * 32,
        7,
        1.5,
    ],
)
def test_a_row_that_no_encoder_makes_is_not_borrowed(
    main: GitRepository, linked: GitRepository, opened: Open, tmp_path: Path, value: object
) -> None:
    path = index(main.path)
    with closing(sqlite3.connect(path)) as connection:
        (key,) = connection.execute("SELECT content_key FROM chunks WHERE text = 'alpha'").fetchone()
        connection.execute("UPDATE embeddings SET vectors = ? WHERE content_key = ?", (value, key))
        connection.execute("UPDATE encoders SET dimension = 8")
        connection.commit()
    settle(path)
    project = opened(linked.path)
    project.update()
    assert project.embedded() == ["alpha"]
    assert project.everything() == fresh(project, tmp_path)


@pytest.mark.requirement("worktree-index-of-others")
def test_rows_of_a_crafted_table_come_under_the_keys_that_were_asked_for(
    main: GitRepository, linked: GitRepository, opened: Open, tmp_path: Path
) -> None:
    path = index(main.path)
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            "CREATE TABLE twice AS SELECT * FROM embeddings UNION ALL SELECT * FROM embeddings;"
            "DROP TABLE embeddings; ALTER TABLE twice RENAME TO embeddings;"
        )
    settle(path)
    project = opened(linked.path)
    project.update()
    assert project.embedded() == []
    assert project.everything() == fresh(project, tmp_path)
