"""Which files are indexed, and what is said of the rest."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from scree.errors import NotFoundError, RootError
from scree.scout.files import is_test, list_files
from tests.repositories import GitRepository
from tests.scout.indexed_tree import build_index, search, write

CODE = "def lantern():\n    return 1\n"


def listed(root: Path) -> list[str]:
    return [file.path for file in list_files(root).files]


def reasons(root: Path) -> dict[str, int]:
    return dict(list_files(root).skipped.counts)


@pytest.mark.requirement("scout-files-git")
def test_tracked_and_untracked_files_are_listed_and_ignored_ones_are_not(
    git_repository: Callable[..., GitRepository],
) -> None:
    repository = git_repository({"a.py": CODE, ".gitignore": "ignored.py\n"})
    repository.write({"new.py": CODE, "ignored.py": CODE})
    assert listed(repository.path) == ["a.py", "new.py"]
    assert reasons(repository.path)[".gitignore:1: ignored.py"] == 1


@pytest.mark.requirement("scout-files-git")
def test_a_tree_outside_git_is_walked(tmp_path: Path) -> None:
    write(tmp_path, {"a.py": CODE, "deep/b.rs": "fn lantern() {}\n"})
    assert listed(tmp_path) == ["a.py", "deep/b.rs"]


@pytest.mark.requirement("scout-files-skipped")
@pytest.mark.requirement("scout-skip-counts")
def test_what_is_left_out_is_counted_by_reason(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "a.py": CODE,
            ".hidden/b.py": CODE,
            "node_modules/c.js": "1",
            "build/d.py": CODE,
            "e.unknown": "x",
            "f.unknown": "x",
            "large.py": "#" * 1_000_001,
            "latin.py": "# caf\xe9\n".encode("latin-1"),
        },
    )
    (tmp_path / "link.py").symlink_to("a.py")
    (tmp_path / "loop").symlink_to(".")
    facts = build_index(tmp_path)
    assert facts.files == 1
    counted = {one["reason"]: one["count"] for one in facts.skipped}
    assert counted == {
        'hidden folder ".hidden"': 1,
        'dependency folder "node_modules"': 1,
        'build folder "build"': 1,
        "file type is not indexed": 2,
        "is larger than 1000000 bytes": 1,
        "is not UTF-8 text": 1,
        "is a symbolic link": 2,
    }
    examples = {one["reason"]: one["examples"] for one in facts.skipped}
    assert examples["is not UTF-8 text"] == ["latin.py"]


@pytest.mark.requirement("scout-files-tracked-folders")
def test_a_tracked_build_folder_is_in_and_a_tracked_vendor_folder_can_be_brought_back(
    git_repository: Callable[..., GitRepository],
) -> None:
    repository = git_repository({"src/build/a.py": CODE, "src/vendor/b.py": CODE, "c.py": CODE})
    assert listed(repository.path) == ["c.py", "src/build/a.py"]
    assert reasons(repository.path) == {'dependency folder "vendor"': 1}
    repository.write({".screeignore": "!src/vendor/\nsrc/build/\n"})
    assert listed(repository.path) == ["c.py", "src/vendor/b.py"]
    assert reasons(repository.path) == {".screeignore:2: src/build/": 1}


@pytest.mark.requirement("scout-files-submodules")
def test_a_repository_inside_the_repository_is_skipped_visibly(git_repository: Callable[..., GitRepository]) -> None:
    repository = git_repository({"a.py": CODE})
    GitRepository.create(repository.path / "inner", {"b.py": CODE})
    assert listed(repository.path) == ["a.py"]
    assert reasons(repository.path) == {"a repository of its own (worktree, submodule or nested clone)": 1}


@pytest.mark.requirement("scout-files-git")
def test_a_worktree_is_a_tree_like_any_other(git_repository: Callable[..., GitRepository], tmp_path: Path) -> None:
    repository = git_repository({"a.py": CODE, "build/b.py": CODE})
    repository.git("worktree", "add", "--quiet", tmp_path / "other")
    assert listed(tmp_path / "other") == ["a.py", "build/b.py"]


def test_a_home_under_git_that_ignores_everything_is_not_the_projects_own(
    git_repository: Callable[..., GitRepository],
) -> None:
    home = git_repository({".gitignore": "*\n"}, name="home")
    home.write({"project/a.py": CODE})
    assert listed(home.path / "project") == ["a.py"]


def test_a_project_below_a_hidden_folder_is_indexed(tmp_path: Path) -> None:
    root = tmp_path / ".work" / "build" / "project"
    write(root, {"a.py": CODE})
    assert listed(root) == ["a.py"]


@pytest.mark.requirement("scout-notebooks")
def test_a_notebook_is_left_out_visibly(tmp_path: Path) -> None:
    write(tmp_path, {"a.py": CODE, "study.ipynb": '{"cells": []}'})
    (skipped,) = list_files(tmp_path).skipped.as_json()
    assert skipped == {"reason": "file type is not indexed", "count": 1, "examples": ["study.ipynb"]}


@pytest.mark.parametrize(
    ("path", "test"),
    [
        ("tests/a.py", True),
        ("src/__tests__/a.js", True),
        ("pkg/args_test.go", True),
        ("src/a.spec.ts", True),
        ("src/test_a.py", True),
        ("src/GsonTest.java", True),
        ("src/contest.py", False),
        ("src/latest/a.py", False),
        ("src/attest.go", False),
        ("inspect/a.py", False),
    ],
)
def test_files_of_tests_are_known_by_their_path(path: str, test: bool) -> None:
    assert is_test(path) is test


@pytest.mark.requirement("scout-no-files")
@pytest.mark.parametrize(
    ("files", "cause"),
    [
        ({}, "no file"),
        ({"node_modules/a.js": "1"}, "dependency folder"),
        ({"notes.unknown": "x"}, "file type is not indexed"),
    ],
)
def test_nothing_to_index_is_an_error_that_names_the_cause(tmp_path: Path, files: dict[str, str], cause: str) -> None:
    write(tmp_path, files)
    with pytest.raises(NotFoundError, match=cause):
        list_files(tmp_path)


@pytest.mark.requirement("scout-no-files")
def test_files_that_all_turn_out_unreadable_are_an_error_too(tmp_path: Path) -> None:
    write(tmp_path, {"a.py": b"\xff\xfe\xff"})
    with pytest.raises(NotFoundError, match="is not UTF-8 text"):
        build_index(tmp_path)


def test_a_root_that_is_gone_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RootError, match="cannot be listed"):
        list_files(tmp_path / "gone")


def test_a_name_that_is_not_utf_8_is_indexed_and_found(tmp_path: Path) -> None:
    write(tmp_path, {"a.py": "x = 1\n"})
    strange = os.fsdecode(b"caf\xe9.py")
    write(tmp_path, {strange: CODE})
    build_index(tmp_path)
    (result,) = search(tmp_path, "lantern")["results"]
    assert (result["path"], result["content"]) == ("caf\ufffd.py", CODE.rstrip())
