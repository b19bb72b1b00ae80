"""Whatever happens to a tree, its index comes to equal a fresh one, and nothing that happens to a writer harms it."""

from __future__ import annotations

import random
import shutil
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from scree.docs.lease import INDEX_FOLDER, WriterLease
from scree.docs.store import Store, index_path
from tests.oracle import PATIENCE_SECONDS, Content, await_equal_to_fresh, content, fresh_content
from tests.processes.mcp_client import connected
from tests.processes.programs import UNPRIVILEGED, Program, printed, running, scree, stand_in
from tests.repositories import GitRepository
from tests.waiting import eventually


def page(subject: str) -> str:
    return f"# {subject}\n\nAll there is to know of {subject}.\n\n## More\n\nAnd some more of {subject}.\n"


BEFORE: dict[str, str | bytes] = {
    "README.md": page("readme"),
    ".gitignore": "/build.md\n",
    "build.md": page("build"),
    "edited.md": page("edited"),
    "saved.md": page("saved"),
    "backed-up.md": page("backed up"),
    "removed.md": page("removed"),
    "renamed.md": page("renamed"),
    "binary.md": page("binary"),
    "linked.md": page("linked"),
    "folded.md": page("folded"),
    "opted.md": page("opted"),
    "empty.md": page("empty"),
    "moved/one.md": page("moved one"),
    "moved/deep/two.md": page("moved two"),
    "deleted/one.md": page("deleted one"),
    "deleted/deep/two.md": page("deleted two"),
    "swapped/one.md": page("swapped one"),
    "linked-folder/one.md": page("linked folder"),
    "nested/.gitignore": "",
    "nested/one.md": page("nested one"),
    "nested/two.md": page("nested two"),
    "later-out/one.md": page("later out"),
}


@pytest.fixture(scope="module")
def repository(module_environment: Path, tmp_path_factory: pytest.TempPathFactory) -> GitRepository:
    assert module_environment.is_dir()
    repository = GitRepository.create(tmp_path_factory.mktemp("live") / "project")
    repository.write(BEFORE)
    repository.git("add", "README.md")
    repository.git("commit", "--quiet", "--message", "begin")
    return repository


@pytest.fixture(scope="module")
def writer(repository: GitRepository, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    """A writer that all changes happen to, one after the other."""
    with running("watch", cwd=repository.path, log=tmp_path_factory.mktemp("log") / "stderr.txt") as program:
        await_equal_to_fresh(repository.path, tmp_path_factory.mktemp("fresh"))
        yield program


def edit(root: Path) -> None:
    with (root / "edited.md").open("a") as file:
        file.write("\n## Added\n\nA paragraph at the end.\n")


def save_by_renaming(root: Path) -> None:
    (root / ".saved.md.swp").write_text(page("saved anew"))
    (root / ".saved.md.swp").replace(root / "saved.md")


def save_with_backup(root: Path) -> None:
    (root / "backed-up.md").rename(root / "backed-up.md~")
    (root / "backed-up.md").write_text(page("written in place of its backup"))


def save_fifty_times(root: Path) -> None:
    for number in range(50):
        (root / "saved.md").write_text(page(f"version {number}"))
        time.sleep(0.02)


def save_from_outside(root: Path) -> None:
    aside = root.parent / "aside.md"
    aside.write_text(page("written elsewhere"))
    aside.replace(root / "saved.md")


def remove(root: Path) -> None:
    (root / "removed.md").unlink()


def rename(root: Path) -> None:
    (root / "renamed.md").rename(root / "moved" / "under another name.md")


def become_binary(root: Path) -> None:
    (root / "binary.md").write_bytes(b"a\0b")


def become_link(root: Path) -> None:
    (root / "linked.md").unlink()
    (root / "linked.md").symlink_to("README.md")


def become_folder(root: Path) -> None:
    (root / "folded.md").unlink()
    (root / "folded.md").mkdir()
    (root / "folded.md" / "inside.md").write_text(page("inside"))


def opt_out(root: Path) -> None:
    (root / "opted.md").write_text("---\nscree: ignore\n---\n" + page("opted"))


def become_empty(root: Path) -> None:
    (root / "empty.md").write_bytes(b"")


def add_folders(root: Path) -> None:
    deep = root / "new" / "deeper" / "deepest"
    deep.mkdir(parents=True)
    for folder in (deep, deep.parent, deep.parent.parent):
        (folder / "page.md").write_text(page(folder.name))


def add_folder_from_outside(root: Path) -> None:
    aside = root.parent / "aside"
    (aside / "deep").mkdir(parents=True)
    (aside / "deep" / "page.md").write_text(page("from outside"))
    aside.rename(root / "arrived")


def rename_folder(root: Path) -> None:
    (root / "moved").rename(root / "elsewhere")


def edit_in_renamed_folder(root: Path) -> None:
    (root / "elsewhere" / "deep" / "two.md").write_text(page("edited after the move"))


def delete_folder(root: Path) -> None:
    shutil.rmtree(root / "deleted")


def delete_and_make_again(root: Path) -> None:
    shutil.rmtree(root / "swapped")
    (root / "swapped").mkdir()
    (root / "swapped" / "other.md").write_text(page("another"))


def edit_in_folder_made_again(root: Path) -> None:
    (root / "swapped" / "other.md").write_text(page("another, edited"))


def folder_becomes_link(root: Path) -> None:
    (root / "linked-folder").rename(root.parent / "linked-target")
    (root / "linked-folder").symlink_to("../linked-target")


def change_gitignore(root: Path) -> None:
    (root / ".gitignore").write_text("/later-out/\n")


def change_nested_gitignore(root: Path) -> None:
    (root / "nested" / ".gitignore").write_text("*\n!two.md\n")


def change_screeignore(root: Path) -> None:
    (root / ".screeignore").write_text("nested/two.md\n!later-out/\n")


def drop_screeignore(root: Path) -> None:
    (root / ".screeignore").unlink()


def change_exclude_file(root: Path) -> None:
    (root / ".git" / "info").mkdir(exist_ok=True)
    (root / ".git" / "info" / "exclude").write_text("/edited.md\n")


def track(root: Path) -> None:
    GitRepository(root).git("add", "--force", "later-out/one.md")


def become_repository(root: Path) -> None:
    GitRepository(root / "arrived").git("init", "--quiet")


@pytest.mark.requirement("watch-edit")
@pytest.mark.requirement("watch-atomic-save")
@pytest.mark.requirement("watch-folders")
@pytest.mark.requirement("watch-gitignore")
@pytest.mark.requirement("ignore-git-sources")
@pytest.mark.requirement("ignore-screeignore")
@pytest.mark.parametrize(
    "change",
    [
        edit,
        save_by_renaming,
        save_with_backup,
        save_fifty_times,
        save_from_outside,
        remove,
        rename,
        become_binary,
        become_link,
        become_folder,
        opt_out,
        become_empty,
        add_folders,
        add_folder_from_outside,
        rename_folder,
        edit_in_renamed_folder,
        delete_folder,
        delete_and_make_again,
        edit_in_folder_made_again,
        folder_becomes_link,
        change_gitignore,
        change_nested_gitignore,
        change_screeignore,
        drop_screeignore,
        change_exclude_file,
        track,
        become_repository,
    ],
)
def test_a_change_is_picked_up(
    repository: GitRepository, writer: Program, tmp_path: Path, change: Callable[[Path], None]
) -> None:
    before = content(repository.path)
    change(repository.path)
    assert await_equal_to_fresh(repository.path, tmp_path) != before
    assert writer.process.poll() is None


@pytest.mark.requirement("command-watch")
@pytest.mark.requirement("command-watch-log")
@pytest.mark.requirement("writer-order")
def test_the_watch_logs_one_line_for_each_change(git_repository: Callable[..., GitRepository], log: Path) -> None:
    repository = git_repository({"one.md": page("one"), "two.md": page("two")})
    with running("watch", cwd=repository.path, log=log) as program:
        eventually(lambda: sorted(program.log()) == ["indexed one.md", "indexed two.md"], what="the first sync")
        repository.write({"one.md": page("one, edited")})
        eventually(lambda: program.log()[2:] == ["indexed one.md"], what="a line for the edit")
        (repository.path / "two.md").unlink()
        eventually(lambda: program.log()[3:] == ["removed two.md"], what="a line for the removal")
        repository.write({"three\n.md": page("three")})
        eventually(lambda: program.log()[4:] == ["indexed three.md"], what="one line for an odd name")
        program.process.terminate()
        assert program.process.wait(4) == 0
        assert program.process.stdout is not None
        assert program.process.stdout.read() == b""
    assert WriterLease(repository.path / INDEX_FOLDER).holder() is None


@pytest.mark.requirement("watch-branch-switch")
@pytest.mark.requirement("embeddings-by-content")
def test_a_branch_switch_over_thousands_of_files_is_picked_up(
    git_repository: Callable[..., GitRepository], log: Path, tmp_path: Path
) -> None:
    # The same text all over, so that the files are many and the embeddings few.
    repository = git_repository({f"docs/{n % 40}/{n}.md": page("main") for n in range(1_500)})
    root = repository.path
    repository.git("checkout", "--quiet", "-b", "other")
    shutil.rmtree(root / "docs" / "7")
    repository.write({f"docs/{n % 40}/{n}.md": page("other") for n in range(0, 1_500, 2) if n % 40 != 7})
    repository.write({f"docs/new {n % 10}/{n}.md": page("new") for n in range(700)})
    repository.commit()
    repository.git("checkout", "--quiet", "main")
    with running("watch", cwd=root, log=log):
        before = await_equal_to_fresh(root, tmp_path)
        repository.git("checkout", "--quiet", "other")
        await_equal_to_fresh(root, tmp_path)
        embedded = embeddings(root)
        repository.git("checkout", "--quiet", "main")
        eventually(lambda: content(root) == before, PATIENCE_SECONDS, "the first branch's index")
        # Nothing was embedded twice.
        assert embeddings(root) == embedded


def embeddings(root: Path) -> list[int]:
    """The ids of all embeddings in stock."""
    if not documents(root):
        return []
    with closing(sqlite3.connect(f"{index_path(root).as_uri()}?mode=ro", uri=True)) as index:
        return [number for (number,) in index.execute("SELECT id FROM embeddings ORDER BY id")]


@pytest.mark.requirement("embeddings-by-content")
@pytest.mark.requirement("sync-unchanged")
def test_a_second_sync_and_moved_text_embed_nothing(
    git_repository: Callable[..., GitRepository], tmp_path: Path
) -> None:
    repository = git_repository(BEFORE)
    root = repository.path
    printed("reindex", cwd=root)
    embedded = embeddings(root)
    (root / "moved").rename(root / "elsewhere")
    shutil.copy(root / "edited.md", root / "copy.md")
    said = printed("reindex", cwd=root)
    assert said.startswith("Scanned 21 notes: 3 indexed, 2 removed")
    assert embeddings(root) == embedded
    assert content(root) == fresh_content(root, tmp_path)


# Kills

KILLS = 15
PAGES = 40


@pytest.mark.requirement("writer-killed")
@pytest.mark.requirement("index-sources-kept")
def test_a_writer_killed_at_any_moment_loses_nothing_and_leaves_no_lock(
    git_repository: Callable[..., GitRepository], tmp_path: Path, log: Path
) -> None:
    dice = random.Random(20)
    repository = git_repository({f"docs/{n}.md": page(f"subject {n}") for n in range(PAGES)})
    root = repository.path
    for kill in range(KILLS):
        repository.write({f"docs/{n}.md": page(f"subject {n}, round {kill}") for n in dice.sample(range(PAGES), 12)})
        written = {path.name: path.read_bytes() for path in (root / "docs").iterdir()}
        before = documents(root)
        # So much of this round is let through; sometimes nothing, sometimes all.
        let_documents, let_embeddings = dice.choice([(0, 0), (1, 0), (dice.randrange(13), dice.randrange(25))])
        kill_after(root, log, let_documents, len(embeddings(root)) + let_embeddings)
        assert WriterLease(root / INDEX_FOLDER).holder() is None
        if index_path(root).exists():
            Store.writer(index_path(root)).close()
            with closing(sqlite3.connect(index_path(root))) as index:
                assert index.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
                assert index.execute("PRAGMA foreign_key_check").fetchall() == []
        # No document is missing that was there, and each is whole, as it is now or as it was.
        assert documents(root).keys() >= before.keys()
        assert content(root).get("strays", 0) == 0
        assert {len(chunks) for *_, chunks in documents(root).values()} <= {2}
        assert {path.name: path.read_bytes() for path in (root / "docs").iterdir()} == written
    printed("reindex", cwd=root)
    assert content(root) == fresh_content(root, tmp_path)


def documents(root: Path) -> Content:
    found: Content = content(root)["documents"]
    return found


def kill_after(root: Path, log: Path, changed_documents: int, stored_embeddings: int) -> None:
    """Start a writer and kill it once it has the lease and has changed and stored this much, or a little more."""
    before = documents(root)

    def changed() -> int:
        return sum(before.get(path, (None,))[:4] != row[:4] for path, row in documents(root).items())

    with running("watch", cwd=root, log=log) as writer:
        eventually(lambda: WriterLease(root / INDEX_FOLDER).holder() == writer.pid, PATIENCE_SECONDS, "the lease")
        eventually(lambda: changed() >= changed_documents, PATIENCE_SECONDS, "the documents")
        eventually(lambda: len(embeddings(root)) >= stored_embeddings, PATIENCE_SECONDS, "the embeddings")
        writer.kill()


# Folders and systems that refuse


@pytest.mark.requirement("sync-unreadable-folder")
def test_the_rows_below_a_folder_that_nobody_may_read_survive(
    git_repository: Callable[..., GitRepository], tmp_path: Path
) -> None:
    repository = git_repository({"closed/deep/one.md": page("closed"), "open.md": page("open")})
    root = repository.path
    printed("reindex", cwd=root)
    before = content(root)
    (root / "closed").chmod(0)
    try:
        done = scree("reindex", cwd=root, prefix=UNPRIVILEGED)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout == "Scanned 1 notes: 0 indexed, 0 removed, 0 failed, 0 deferred.\n"
        assert content(root) == before
    finally:
        (root / "closed").chmod(0o755)
    assert content(root) == fresh_content(root, tmp_path)


@pytest.mark.requirement("sync-bad-file")
def test_a_file_that_nobody_may_read_is_counted_as_failed(git_repository: Callable[..., GitRepository]) -> None:
    root = git_repository({"closed.md": page("closed"), "open.md": page("open")}).path
    (root / "closed.md").chmod(0)
    done = scree("reindex", cwd=root, prefix=UNPRIVILEGED)
    assert done.stdout == "Scanned 2 notes: 1 indexed, 0 removed, 1 failed, 0 deferred.\n"
    assert "open.md" in documents(root)


@pytest.mark.requirement("sync-empty-root")
@pytest.mark.requirement("index-sources-kept")
def test_a_root_that_is_empty_for_a_while_wipes_nothing(
    git_repository: Callable[..., GitRepository], tmp_path: Path
) -> None:
    repository = git_repository({"docs/one.md": page("one")})
    root = repository.path
    printed("reindex", cwd=root)
    before = content(root)
    (root / "docs").rename(tmp_path / "away")
    done = scree("reindex", cwd=root)
    assert done.returncode == 2
    assert done.stderr == f'scree: Nothing was changed: the folder "{root}" is empty or not mounted.\n'
    assert content(root)["documents"] == before["documents"]
    (tmp_path / "away").rename(root / "docs")
    printed("reindex", cwd=root)
    assert content(root) == before


REFUSING = """
def watch(*_, **__):
    raise OSError("OS file watch limit reached.")
    yield
"""


@pytest.mark.requirement("watch-limit")
@pytest.mark.parametrize("limit", ["in the kernel", "in the library"])
def test_at_the_watch_limit_the_writer_says_so_once_and_polls(
    git_repository: Callable[..., GitRepository], tmp_path: Path, log: Path, limit: str
) -> None:
    repository = git_repository({f"{n}/page.md": page(f"page {n}") for n in range(6)})
    prefix: tuple[str, ...] = ()
    environment: dict[str, str] = {}
    if limit == "in the library":
        environment = stand_in(tmp_path / "hook", "watchfiles", REFUSING)
    else:
        # A user namespace has a limit of its own.
        script = 'echo 3 > /proc/sys/user/max_inotify_watches && exec "$@"'
        prefix = ("unshare", "--user", "--map-root-user", "sh", "-c", script, "sh")
        if (
            not shutil.which("unshare")
            or subprocess.run([*prefix, "true"], check=False, capture_output=True).returncode
        ):
            pytest.skip("this system lets nobody set a limit of his own")
    with running("watch", cwd=repository.path, log=log, prefix=prefix, environment=environment) as writer:
        await_equal_to_fresh(repository.path, tmp_path)
        for change in (page("edited"), page("edited again")):
            repository.write({"3/page.md": change, "new/page.md": change})
            await_equal_to_fresh(repository.path, tmp_path)
        told = [line for line in writer.log() if "does not watch" in line]
        assert len(told) == 1
        assert "looking at them every 2 seconds" in told[0]


@pytest.mark.requirement("index-location")
@pytest.mark.requirement("index-sources-kept")
@pytest.mark.parametrize("deleted", ["folder", "index", "lock"])
def test_what_is_deleted_under_a_running_server_comes_back(
    git_repository: Callable[..., GitRepository], tmp_path: Path, deleted: str
) -> None:
    repository = git_repository({"one.md": page("one")})
    root = repository.path
    folder = root / INDEX_FOLDER
    with connected(cwd=root) as client:
        client.await_complete()
        if deleted == "folder":
            shutil.rmtree(folder)
        elif deleted == "index":
            for file in folder.glob("index.sqlite*"):
                file.unlink()
        else:
            (folder / "writer.lock").unlink()
        repository.write({"two.md": page("quinquereme")})
        eventually(lambda: client.hits("quinquereme", mode="keyword"), PATIENCE_SECONDS, "the index to come back")
        await_equal_to_fresh(root, tmp_path)
        assert (folder / ".gitignore").read_text() == "*\n"
        assert WriterLease(folder).holder() is not None
