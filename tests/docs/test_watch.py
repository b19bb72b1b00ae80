from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import watchfiles

from scree.docs.watch import TreeWatch
from tests.ordinary_user import ordinary_user
from tests.waiting import eventually

Start = Callable[..., TreeWatch]


class Seen:
    """What a watch has told since the beginning."""

    def __init__(self, watch: TreeWatch, woken: threading.Event) -> None:
        self.watch = watch
        self.woken = woken
        self.paths: set[str] = set()

    def eventually(self, *paths: Path) -> None:
        def look() -> bool:
            self.paths |= self.watch.take()
            return self.paths.issuperset(map(str, paths))

        eventually(look, what=f"the watch to tell of {[path.name for path in paths]}")

    def forget(self) -> None:
        self.paths.clear()


@pytest.fixture
def seen() -> Iterator[Seen]:
    woken = threading.Event()
    watch = TreeWatch(woken.set)
    yield Seen(watch, woken)
    watch.close()
    assert [thread for thread in threading.enumerate() if thread.name == "scree-watch"] == []


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / "docs" / "inner").mkdir(parents=True)
    (root / "docs" / "a.md").write_text("# A")
    (root / "node_modules").mkdir()
    return root


def folders(root: Path) -> list[Path]:
    """The folders that a scan of the tree would walk."""
    return [Path(path) for path, _, _ in os.walk(root) if "node_modules" not in path]


@pytest.mark.requirement("watch-edit")
def test_edits_new_files_and_deletions_are_told(seen: Seen, tree: Path) -> None:
    assert seen.watch.follow(folders(tree))
    assert seen.watch.failure is None
    changes: list[Callable[[Path], object]] = [
        lambda path: path.write_text("one"),
        lambda path: path.write_text("two"),
        os.utime,
        os.unlink,
    ]
    for change in changes:
        for path in (tree / "top.md", tree / "docs" / "inner" / "b.md"):
            change(path)
            seen.eventually(path)
            assert seen.woken.is_set()
            seen.woken.clear()
        seen.forget()


@pytest.mark.requirement("watch-atomic-save")
def test_a_save_by_writing_aside_and_renaming_is_told(seen: Seen, tree: Path) -> None:
    seen.watch.follow(folders(tree))
    target = tree / "docs" / "a.md"
    for number in range(3):
        aside = tree / "docs" / f".a.md.{number}"
        aside.write_text(f"# A {number}")
        os.replace(aside, target)
        seen.eventually(target)
        seen.forget()
    outside = tree.parent / "outside.md"
    outside.write_text("# from elsewhere")
    os.replace(outside, target)
    seen.eventually(target)


def test_both_names_of_a_renamed_file_are_told(seen: Seen, tree: Path) -> None:
    seen.watch.follow(folders(tree))
    (tree / "docs" / "a.md").rename(tree / "docs" / "inner" / "b.md")
    seen.eventually(tree / "docs" / "a.md", tree / "docs" / "inner" / "b.md")


@pytest.mark.requirement("watch-folders")
def test_a_new_folder_is_told_and_then_what_is_in_it(seen: Seen, tree: Path) -> None:
    seen.watch.follow(folders(tree))
    new = tree / "docs" / "new"
    new.mkdir()
    seen.eventually(new)
    assert seen.watch.follow(folders(tree))
    (new / "c.md").write_text("# C")
    seen.eventually(new / "c.md")


@pytest.mark.requirement("watch-folders")
@pytest.mark.parametrize("leave", [shutil.rmtree, lambda path: path.rename(path.with_name("elsewhere"))])
def test_a_folder_that_leaves_is_told(seen: Seen, tree: Path, leave: Callable[[Path], object]) -> None:
    seen.watch.follow(folders(tree))
    leave(tree / "docs")
    seen.eventually(tree / "docs")
    assert seen.watch.follow(folders(tree))
    assert not seen.watch.follow(folders(tree))


def recreate(folder: Path) -> None:
    shutil.rmtree(folder)
    (folder / "inner").mkdir(parents=True)


def replace(folder: Path) -> None:
    shutil.copytree(folder, folder.with_name("copy"))
    shutil.rmtree(folder)
    folder.with_name("copy").rename(folder)


def rename_and_back(folder: Path) -> None:
    folder.rename(folder.with_name("away"))
    folder.with_name("away").rename(folder)


@pytest.mark.requirement("watch-folders")
@pytest.mark.requirement("watch-branch-switch")
@pytest.mark.parametrize("change", [recreate, replace, rename_and_back])
def test_a_folder_that_comes_back_under_its_name_is_watched_again(
    seen: Seen, tree: Path, change: Callable[[Path], None]
) -> None:
    """As in a branch switch there and back: the folders are called as before, and the system watches the old ones."""
    seen.watch.follow(folders(tree))
    change(tree / "docs")
    seen.eventually(tree / "docs")
    assert seen.watch.follow(folders(tree))
    assert not seen.watch.follow(folders(tree))
    seen.forget()
    for path in (tree / "docs" / "new.md", tree / "docs" / "inner" / "new.md"):
        path.write_text("# New")
        seen.eventually(path)


def test_a_link_is_told_by_its_own_name_and_not_followed(seen: Seen, tree: Path) -> None:
    elsewhere = tree.parent / "elsewhere"
    elsewhere.mkdir()
    seen.watch.follow(folders(tree))
    (tree / "docs" / "link").symlink_to(elsewhere)
    (tree / "docs" / "loop.md").symlink_to(tree / "docs" / "loop.md")
    seen.eventually(tree / "docs" / "link", tree / "docs" / "loop.md")
    (elsewhere / "x.md").write_text("x")
    (tree / "docs" / "a.md").write_text("# after it")
    seen.eventually(tree / "docs" / "a.md")
    assert not [path for path in seen.paths if path.endswith("x.md")]


def test_what_is_not_followed_is_not_told(seen: Seen, tree: Path) -> None:
    seen.watch.follow(folders(tree))
    (tree / "node_modules" / "x.md").write_text("x")
    (tree / "docs" / "a.md").write_text("# after it")
    seen.eventually(tree / "docs" / "a.md")
    assert not [path for path in seen.paths if path.endswith("x.md")]


def test_following_the_same_folders_changes_nothing(seen: Seen, tree: Path) -> None:
    assert seen.watch.follow(folders(tree))
    assert not seen.watch.follow(reversed(folders(tree)))
    assert seen.watch.follow([tree])
    assert not seen.watch.follow(iter([tree]))


def test_nothing_is_lost_between_two_sets_of_folders(seen: Seen, tree: Path) -> None:
    """Whatever is written while the watch moves on is told by the old one or the new one, or was there before it."""
    written: list[Path] = []
    stop = threading.Event()

    def write() -> None:
        while not stop.wait(0.002):
            path = tree / "docs" / f"{len(written)}.md"
            path.write_text("# x")
            written.append(path)

    seen.watch.follow([tree, tree / "docs"])

    def await_written(count: int) -> None:
        eventually(lambda: len(written) >= count, what="the writing of files")

    writing = threading.Thread(target=write)
    writing.start()
    there: set[Path] = set()
    try:
        for number in range(8):
            await_written(10 * number)
            inner = [tree / "docs" / "inner"] if number % 2 else []
            assert seen.watch.follow([tree, tree / "docs", *inner]) == (number > 0)
            there |= set((tree / "docs").iterdir())  # the look that follow() asks its caller for
    finally:
        stop.set()
        writing.join()
    seen.eventually(*(path for path in written if path not in there))


def test_a_folder_that_vanished_before_it_could_be_watched_costs_nothing_else(seen: Seen, tree: Path) -> None:
    gone = tree / "docs" / "gone"
    assert seen.watch.follow([*folders(tree), gone])
    assert seen.watch.failure is None
    (tree / "docs" / "a.md").write_text("# still watched")
    seen.eventually(tree / "docs" / "a.md")
    gone.mkdir()
    assert seen.watch.follow([*folders(tree)])
    (gone / "b.md").write_text("# B")
    seen.eventually(gone / "b.md")


@pytest.mark.requirement("watch-limit")
def test_at_the_systems_limit_it_says_so_and_tries_again_only_for_other_folders(
    seen: Seen, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[int] = []

    def refuse(*_: str, **__: Any) -> Iterator[set[Any]]:
        tries.append(1)
        raise OSError(28, "OS file watch limit reached.")

    with monkeypatch.context() as patch:
        patch.setattr(watchfiles, "watch", refuse)
        assert seen.watch.follow(folders(tree))
        assert "OS file watch limit reached." in str(seen.watch.failure)
        assert seen.woken.is_set()
        assert seen.watch.take() == set()
        assert not seen.watch.follow(folders(tree))
        assert tries == [1]
    assert seen.watch.follow([tree])
    assert seen.watch.failure is None
    (tree / "a.md").write_text("# A")
    seen.eventually(tree / "a.md")


LIMITED = """
import os, sys
from pathlib import Path
for name in ("watches", "instances"):
    Path(f"/proc/sys/user/max_inotify_{name}").write_text(os.environ.get(name, "100"))
from scree.docs.watch import TreeWatch
watch = TreeWatch(lambda: None)
watch.follow(map(Path, sys.argv[1:]))
print(watch.failure)
watch.close()
"""


@pytest.mark.requirement("watch-limit")
@pytest.mark.parametrize("resource", ["watches", "instances"])
def test_the_systems_real_limit_is_noticed(tree: Path, resource: str) -> None:
    apart = ["unshare", "--user", "--map-root-user"]
    if shutil.which("unshare") is None or subprocess.run([*apart, "true"], check=False, capture_output=True).returncode:
        pytest.skip("this system gives no user namespace, in which alone the limit can be lowered")
    command = [*apart, sys.executable, "-c", LIMITED, *map(str, folders(tree))]

    def failure(limit: str) -> str:
        environment = {**os.environ, resource: limit}
        return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout.strip()

    assert failure("50") == "None"
    assert failure("0") != "None"
    assert failure("2" if resource == "watches" else "0") != "None"


def test_an_event_that_the_library_chokes_on_counts_as_a_change_of_everything(seen: Seen, tree: Path) -> None:
    seen.watch.follow(folders(tree))
    Path(os.fsdecode(os.fsencode(tree) + b"/docs/odd\xff.md")).write_text("# Odd")
    seen.eventually(tree, tree / "docs")
    assert seen.watch.failure is None
    assert seen.watch.follow(folders(tree))
    (tree / "docs" / "a.md").write_text("# A")
    seen.eventually(tree / "docs" / "a.md")


def test_a_folder_that_may_no_longer_be_read_costs_nothing_else() -> None:
    with ordinary_user() as root:
        closed = root / "closed"
        closed.mkdir(mode=0o000)
        watch = TreeWatch(lambda: None)
        assert watch.follow([root, closed])
        assert watch.failure is None
        (root / "a.md").write_text("# A")
        eventually(lambda: str(root / "a.md") in watch.take())
        watch.close()


def test_no_folders_at_all_have_to_be_polled(seen: Seen, tree: Path) -> None:
    assert seen.watch.follow([])
    assert seen.watch.failure == "there is no folder to watch"
    assert seen.watch.follow([tree / "gone"])
    assert seen.watch.failure == "there is no folder to watch"
    assert seen.watch.follow([tree])
    assert seen.watch.failure is None


def test_a_folder_whose_name_is_not_utf8_is_to_be_polled_and_the_others_are_watched(seen: Seen, tree: Path) -> None:
    odd = Path(os.fsdecode(os.fsencode(tree) + b"/odd\xff"))
    odd.mkdir()
    assert seen.watch.follow(folders(tree))
    assert seen.watch.failure == "some of their names are not UTF-8"
    (tree / "docs" / "a.md").write_text("# watched")
    seen.eventually(tree / "docs" / "a.md")


def test_closing_ends_its_thread_and_can_be_repeated(tree: Path) -> None:
    TreeWatch(lambda: None).close()
    watch = TreeWatch(lambda: None)
    watch.follow([tree])
    watch.close()
    assert [thread for thread in threading.enumerate() if thread.name == "scree-watch"] == []
    watch.close()
    (tree / "a.md").write_text("# A")
    assert watch.take() == set()
