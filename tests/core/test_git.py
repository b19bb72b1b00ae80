"""The work trees of a repository, with the real git as the judge of what they are."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from scree.core.git import WorkTree, find_work_tree
from tests.repositories import GitRepository

Create = Callable[..., GitRepository]

ODD_NAMES = [
    "a space ",
    "line\nend\n",
    os.fsdecode(b"\xff\xfe"),
    "'quotes\"",
    "-dash",
    "gitdir: ",
    "\u65e5\u672c",
    ".git.d",
]


@pytest.fixture
def repository(git_repository: Create) -> GitRepository:
    return git_repository({"docs/a.md": "# A", "b.md": "# B"}, name="main")


def add(repository: GitRepository, name: str, *options: str) -> GitRepository:
    """Make a linked work tree beside the repository."""
    path = repository.path.parent / name
    repository.git("worktree", "add", "--quiet", "--detach", *options, "--", path)
    return GitRepository(path)


def tree_at(folder: Path) -> WorkTree:
    tree = find_work_tree(folder)
    assert tree is not None
    return tree


def tops(folder: Path) -> set[Path]:
    found = tree_at(folder).all_tops()
    assert len(set(found)) == len(found)
    return set(found)


def listed_by_git(repository: GitRepository) -> set[Path]:
    """What git itself lists, repositories without a work tree left out."""
    blocks = repository.git("worktree", "list", "--porcelain", "-z").split("\0\0")
    entries = [block.strip("\0").split("\0") for block in blocks if block.strip("\0")]
    return {Path(lines[0].removeprefix("worktree ")).resolve() for lines in entries if "bare" not in lines}


def test_a_work_tree_alone_is_its_own_only_one(repository: GitRepository) -> None:
    assert tree_at(repository.path / "docs").all_tops() == (repository.path,)


@pytest.mark.requirement("worktree-embeddings")
def test_all_work_trees_are_known_from_each_of_them(repository: GitRepository) -> None:
    linked = [add(repository, name) for name in ("one", "two/deep", "main/inside")]
    linked.append(add(repository, "locked", "--lock"))
    for here in (repository, *linked):
        found = tree_at(here.path).all_tops()
        assert found[0] == here.path
        assert set(found) == listed_by_git(here) == {repository.path, *(other.path for other in linked)}
        assert tree_at(here.path / "docs").all_tops() == found


@pytest.mark.parametrize("name", ODD_NAMES)
def test_any_name_is_taken_as_it_is(repository: GitRepository, name: str) -> None:
    linked = add(repository, name)
    assert tops(repository.path) == tops(linked.path) == {repository.path, linked.path}


def test_a_repository_without_a_work_tree_has_linked_ones_only(repository: GitRepository, tmp_path: Path) -> None:
    repository.git("clone", "--quiet", "--bare", ".", tmp_path / "bare.git")
    bare = GitRepository(tmp_path / "bare.git")
    linked = [add(bare, "one"), add(bare, "two")]
    for here in linked:
        assert tops(here.path) == listed_by_git(here) == {other.path for other in linked}


def test_a_main_work_tree_whose_git_folder_lies_elsewhere_knows_the_linked_ones(
    repository: GitRepository, tmp_path: Path
) -> None:
    repository.git("clone", "--quiet", "--separate-git-dir", tmp_path / "elsewhere", ".", tmp_path / "apart")
    apart = GitRepository(tmp_path / "apart")
    linked = add(apart, "one")
    assert tops(apart.path) == {apart.path, linked.path}
    assert tops(linked.path) >= {linked.path}


def test_a_submodule_is_no_work_tree_of_the_repository_around_it(repository: GitRepository, tmp_path: Path) -> None:
    outer = GitRepository.create(tmp_path / "outer", {"a.md": "# A"})
    outer.git("submodule", "--quiet", "add", repository.path, "inner")
    outer.commit()
    linked = add(outer, "linked")
    linked.git("submodule", "--quiet", "update", "--init")
    assert tops(outer.path) == {outer.path, linked.path}
    for inner in (outer.path / "inner", linked.path / "inner"):
        assert tops(inner) == {inner}


def test_a_moved_work_tree_is_found_and_a_removed_one_is_gone(repository: GitRepository, tmp_path: Path) -> None:
    moved, removed, deleted = (add(repository, name) for name in ("one", "two", "three"))
    repository.git("worktree", "move", moved.path, tmp_path / "new place")
    repository.git("worktree", "remove", removed.path)
    shutil.rmtree(deleted.path)
    noted = {repository.path, tmp_path / "new place", deleted.path}
    assert tops(repository.path) == tops(tmp_path / "new place") == listed_by_git(repository) == noted
    repository.git("worktree", "prune")
    assert tops(repository.path) == noted - {deleted.path}


def test_links_on_the_way_and_relative_notes_lead_to_the_same_place(repository: GitRepository, tmp_path: Path) -> None:
    linked = add(repository, "linked")
    (tmp_path / "alias").symlink_to(tmp_path)
    (note,) = repository.path.glob(".git/worktrees/*/gitdir")
    for noted in (tmp_path / "alias" / "linked" / ".git", Path("../../../../linked/.git")):
        note.write_text(f"{noted}\n")
        assert tops(repository.path) == {repository.path, linked.path}


def test_a_note_that_cannot_be_used_says_nothing_about_the_others(repository: GitRepository) -> None:
    linked = add(repository, "linked")
    notes = repository.path / ".git" / "worktrees"
    for name, content in {"empty": b"", "nul": b"/a\0b/.git\n", "long": b"/" + b"x" * 10_000 + b"/.git"}.items():
        (notes / name).mkdir()
        (notes / name / "gitdir").write_bytes(content)
    for name in ("fifo", "folder", "loop", "absent"):
        (notes / name).mkdir()
    os.mkfifo(notes / "fifo" / "gitdir")
    (notes / "folder" / "gitdir").mkdir()
    (notes / "loop" / "gitdir").symlink_to("gitdir")
    (notes / "a file").write_text("")
    found = tree_at(repository.path).all_tops()
    assert {repository.path, linked.path} <= set(found)
    assert [top for top in found if os.path.exists(top)] == [repository.path, linked.path]


@pytest.mark.requirement("worktree-embeddings")
def test_all_work_trees_are_known_without_git_too(
    repository: GitRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    linked = add(repository, "linked")
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    for here in (repository, linked):
        assert not tree_at(here.path).answers
        assert tops(here.path) == {repository.path, linked.path}


def test_a_caller_run_by_git_does_not_lead_elsewhere(
    repository: GitRepository, git_repository: Create, monkeypatch: pytest.MonkeyPatch
) -> None:
    linked = add(repository, "linked")
    other = git_repository({"a.md": "# A"}, name="other")
    add(other, "another")
    monkeypatch.setenv("GIT_DIR", str(other.path / ".git"))
    monkeypatch.setenv("GIT_COMMON_DIR", str(other.path / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other.path))
    assert tops(linked.path) == {repository.path, linked.path}
