"""May this path be indexed? Every rule, what overrides what, and what is on the disk."""

from __future__ import annotations

import os
import socket
import stat
import tempfile
import threading
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from scree.core.ignore_rules import IgnoreRules
from tests.repositories import GitRepository

Repositories = Callable[..., GitRepository]

SUFFIXES = {".md", ".markdown", ".mdx"}
OWN_REPOSITORY = "a repository of its own (worktree, submodule or nested clone)"


def write(root: Path, files: Mapping[str, str | bytes]) -> None:
    GitRepository(root).write(files)


def rules_of(root: Path) -> IgnoreRules:
    return IgnoreRules(root, SUFFIXES)


def indexed(root: Path) -> set[str]:
    """What a scan finds, after making sure that asking for each file gives the same answer."""
    rules = rules_of(root)
    walk = rules.walk()
    for folder, _, names in os.walk(root):
        for name in names:
            path = os.path.relpath(os.path.join(folder, name), root)
            assert (rules.reason(path) is None) == (path in walk.files), path
    return set(walk.files)


# ---------------------------------------------------------------------------------------------- file types


@pytest.mark.requirement("indexed-suffixes")
def test_the_suffix_decides_in_any_letter_case(tmp_path: Path) -> None:
    names = {"a.md": "", "b.MD": "", "c.Markdown": "", "d.mdx": "", "e.txt": "", "f.mdown": "", "md": ""}
    write(tmp_path, names)
    assert indexed(tmp_path) == {"a.md", "b.MD", "c.Markdown", "d.mdx"}
    assert rules_of(tmp_path).reason("e.txt") == "file type is not indexed"


def test_files_of_other_types_are_not_listed_as_skipped(tmp_path: Path) -> None:
    write(tmp_path, {"a.py": "", "b.md": "", ".hidden.py": ""})
    assert rules_of(tmp_path).walk().skipped == {}


# ------------------------------------------------------------------------------------------ rules 1 and 2


@pytest.mark.requirement("ignore-hidden")
@pytest.mark.parametrize(
    ("path", "reason"),
    [
        (".notes/plan.md", 'hidden folder ".notes"'),
        ("docs/.draft.md", 'hidden file ".draft.md"'),
        ("docs/.drafts/sub/a.md", 'hidden folder ".drafts"'),
        (".github/.cache/a.md", 'hidden folder ".cache"'),
        (".github/.a.md", 'hidden file ".a.md"'),
        (".notes/.github/a.md", 'hidden folder ".notes"'),
        (".GitHub/a.md", 'hidden folder ".GitHub"'),
        (".github", 'hidden file ".github"'),
    ],
)
def test_hidden_is_out(tmp_path: Path, path: str, reason: str) -> None:
    assert rules_of(tmp_path).reason(path) == reason
    write(tmp_path, {path: ""})
    assert rules_of(tmp_path).reason(path) == reason
    assert indexed(tmp_path) == set()


@pytest.mark.requirement("ignore-github-in")
def test_github_folders_are_in(tmp_path: Path) -> None:
    files = {".github/CONTRIBUTING.md": "", ".github/workflows/notes.md": "", "packages/a/.github/x.md": ""}
    write(tmp_path, files)
    assert indexed(tmp_path) == set(files)


@pytest.mark.requirement("ignore-dependencies")
@pytest.mark.parametrize(
    "folder", ["node_modules", "vendor", ".venv", "venv", "lib/python3.11/site-packages", "a/b/bower_components"]
)
def test_dependency_folders_are_out_even_if_tracked(git_repository: Repositories, folder: str) -> None:
    repository = git_repository({f"{folder}/pkg/README.md": "", "README.md": ""})
    assert indexed(repository.path) == {"README.md"}
    reason = rules_of(repository.path).reason(f"{folder}/pkg/README.md")
    assert reason == f'dependency folder "{folder.rpartition("/")[2]}"'


def test_the_names_of_folders_say_nothing_of_files(tmp_path: Path) -> None:
    write(tmp_path, {"vendor.md": "", "build.md": "", "docs/node_modules.md": ""})
    assert indexed(tmp_path) == {"vendor.md", "build.md", "docs/node_modules.md"}


@pytest.mark.requirement("ignore-build")
@pytest.mark.parametrize("folder", ["dist", "build", "target", "out", "__pycache__", "docs/_build"])
def test_build_folders_are_out_unless_git_tracks_the_file(git_repository: Repositories, folder: str) -> None:
    repository = git_repository({f"{folder}/guide/tracked.md": "", "README.md": ""})
    repository.write({f"{folder}/guide/made.md": ""})
    reason = f'build folder "{folder.rpartition("/")[2]}"'
    assert rules_of(repository.path).reason(f"{folder}/guide/made.md") == reason
    assert indexed(repository.path) == {f"{folder}/guide/tracked.md", "README.md"}


@pytest.mark.requirement("ignore-build")
def test_outside_git_build_folders_are_out(tmp_path: Path) -> None:
    write(tmp_path, {"dist/a.md": ""})
    assert rules_of(tmp_path).walk().skipped == {"dist": 'build folder "dist"'}


# ------------------------------------------------------------------------------------------------- rule 3


@pytest.mark.requirement("ignore-git-sources")
def test_every_source_of_git_patterns_counts(git_repository: Repositories, isolated_environment: Path) -> None:
    repository = git_repository({"README.md": ""})
    repository.write({
        ".gitignore": "/anchored.md\n*.tmp.md\n!kept.tmp.md\n",
        "docs/.gitignore": "# a comment\n\nnested.md\n!back.tmp.md\n",
        ".git/info/exclude": "excluded.md\n",
    })  # fmt: skip
    default = isolated_environment / ".config" / "git" / "ignore"
    default.parent.mkdir(parents=True)
    default.write_text("mine.md\n")
    rules = rules_of(repository.path)
    assert rules.reason("anchored.md") == ".gitignore:1: /anchored.md"
    assert rules.reason("docs/anchored.md") is None
    assert rules.reason("docs/a.tmp.md") == ".gitignore:2: *.tmp.md"
    assert rules.reason("docs/kept.tmp.md") is None
    assert rules.reason("docs/back.tmp.md") is None
    assert rules.reason("docs/deep/nested.md") == "docs/.gitignore:3: nested.md"
    assert rules.reason("nested.md") is None
    assert rules.reason("docs/excluded.md") == ".git/info/exclude:1: excluded.md"
    assert rules.reason("mine.md") == "~/.config/git/ignore:1: mine.md"


@pytest.mark.requirement("ignore-git-sources")
def test_the_excludes_file_that_is_set_replaces_the_default(
    git_repository: Repositories, isolated_environment: Path
) -> None:
    repository = git_repository({"README.md": ""})
    default = isolated_environment / ".config" / "git" / "ignore"
    default.parent.mkdir(parents=True)
    default.write_text("mine.md\n")
    (isolated_environment / "excludes").write_text("other.md\n")
    repository.git("config", "core.excludesFile", "~/excludes")
    rules = rules_of(repository.path)
    assert rules.reason("mine.md") is None
    assert rules.reason("other.md") == "~/excludes:1: other.md"


@pytest.mark.requirement("ignore-git-sources")
def test_the_sources_of_git_have_an_order(git_repository: Repositories, isolated_environment: Path) -> None:
    repository = git_repository({"README.md": ""})
    (isolated_environment / "excludes").write_text("a.md\nb.md\nc.md\n!d.md\n")
    repository.git("config", "core.excludesFile", "~/excludes")
    repository.write({
        ".git/info/exclude": "!a.md\nb.md\nc.md\nd.md\n",
        ".gitignore": "!b.md\nc.md\n",
        "docs/.gitignore": "!c.md\n",
    })  # fmt: skip
    rules = rules_of(repository.path)
    assert rules.reason("a.md") is None
    assert rules.reason("b.md") is None
    assert rules.reason("c.md") == ".gitignore:2: c.md"
    assert rules.reason("docs/c.md") is None
    assert rules.reason("d.md") == ".git/info/exclude:4: d.md"


@pytest.mark.requirement("ignore-git-sources")
def test_a_changed_setting_counts_from_the_next_scan(git_repository: Repositories, isolated_environment: Path) -> None:
    repository = git_repository({"README.md": "", "a.md": ""})
    rules = rules_of(repository.path)
    (isolated_environment / "excludes").write_text("a.md\n")
    repository.git("rm", "--cached", "--quiet", "a.md")
    repository.git("config", "core.excludesFile", "~/excludes")
    assert set(rules.walk().files) == {"README.md"}
    assert rules.reason("a.md") == "~/excludes:1: a.md"


@pytest.mark.requirement("ignore-git-sources")
def test_a_worktree_shares_the_exclude_file(git_repository: Repositories, tmp_path: Path) -> None:
    repository = git_repository({"README.md": ""})
    repository.git("worktree", "add", "--quiet", str(tmp_path / "worktree"))
    repository.write({".git/info/exclude": "secret.md\n"})
    assert rules_of(tmp_path / "worktree").reason("secret.md") == ".git/info/exclude:1: secret.md"


@pytest.mark.requirement("ignore-git-sources")
def test_a_root_within_the_work_tree_obeys_what_lies_above(git_repository: Repositories) -> None:
    repository = git_repository({"docs/guide/a.md": ""})
    repository.write({".gitignore": "/docs/guide/draft.md\n", "docs/.gitignore": "*.tmp.md\n"})
    rules = rules_of(repository.path / "docs" / "guide")
    assert rules.reason("draft.md") == "../../.gitignore:1: /docs/guide/draft.md"
    assert rules.reason("sub/a.tmp.md") == "../.gitignore:1: *.tmp.md"
    assert rules.reason("a.md") is None


@pytest.mark.requirement("ignore-git-agrees")
def test_ignore_files_are_read_as_git_reads_them(git_repository: Repositories, tmp_path: Path) -> None:
    repository = git_repository({"a.md": ""})
    (tmp_path / "elsewhere").write_text("linked.md\n")
    repository.write({
        ".gitignore": b"\xef\xbb\xbfbom.md\r\nspaces.md  \r\nkept\\ \\\\ \n",
        "empty/.gitignore": "",
        "folder/.gitignore/x": "",
    })  # fmt: skip
    (repository.path / "link").mkdir()
    (repository.path / "link" / ".gitignore").symlink_to(tmp_path / "elsewhere")
    rules = rules_of(repository.path)
    assert rules.reason("bom.md") == ".gitignore:1: bom.md"
    assert rules.reason("spaces.md") == ".gitignore:2: spaces.md"
    assert rules.reason("link/linked.md") is None
    assert rules.reason("folder/x.md") is None
    for path in ("a.md", "bom.md", "spaces.md", "link/linked.md", "folder/x.md"):
        repository.write({path: ""})
    untracked = repository.git("ls-files", "--others", "--exclude-standard").splitlines()
    assert {path for path in untracked if path.endswith(".md")} == {"link/linked.md", "folder/x.md"}


def test_an_ignore_file_that_is_a_fifo_blocks_nothing(git_repository: Repositories) -> None:
    repository = git_repository({"docs/a.md": ""})
    os.mkfifo(repository.path / "docs" / ".gitignore")
    os.mkfifo(repository.path / "docs" / ".screeignore")
    assert indexed(repository.path) == {"docs/a.md"}


@pytest.mark.requirement("ignore-git-tracked")
def test_a_tracked_file_is_not_ignored(git_repository: Repositories) -> None:
    repository = git_repository({"drafts/tracked.md": "", "README.md": ""})
    repository.write({".gitignore": "drafts/\nREADME.md\nnew.md\n", "drafts/new.md": ""})
    assert indexed(repository.path) == {"drafts/tracked.md", "README.md"}
    assert rules_of(repository.path).reason("drafts/new.md") == ".gitignore:1: drafts/"


@pytest.mark.requirement("ignore-git-tracked")
def test_what_is_tracked_may_change_at_any_time(git_repository: Repositories) -> None:
    repository = git_repository({".gitignore": "*.md\n"})
    repository.write({"a.md": ""})
    rules = rules_of(repository.path)
    assert rules.reason("a.md") == ".gitignore:1: *.md"
    repository.git("add", "--force", "a.md")
    assert rules.reason("a.md") is None
    repository.git("rm", "--cached", "--quiet", "a.md")
    assert rules.reason("a.md") == ".gitignore:1: *.md"


def test_tracked_names_may_be_anything(git_repository: Repositories) -> None:
    names = ["A.MD", "a\nb.md", "c\rd.md", 'e"f.md', "g\tü.md", os.fsdecode(b"\xff.md")]
    repository = git_repository({f"dist/{name}": "" for name in names})
    assert indexed(repository.path) == {f"dist/{name}" for name in names}


def test_outside_git_its_rules_do_not_apply(tmp_path: Path) -> None:
    write(tmp_path, {".gitignore": "*\n", "a.md": ""})
    assert indexed(tmp_path) == {"a.md"}


def test_a_bare_repository_is_outside_git(tmp_path: Path) -> None:
    GitRepository(tmp_path).git("init", "--quiet", "--bare")
    write(tmp_path, {".gitignore": "*\n", "a.md": ""})
    assert indexed(tmp_path) == {"a.md"}


def test_a_home_under_git_that_ignores_everything_does_not_reach_into_projects(
    isolated_environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GIT_CEILING_DIRECTORIES")
    home = GitRepository.create(isolated_environment)
    home.write({".gitignore": "*\n", "project/docs/a.md": "", "project/.gitignore": "b.md\n"})
    project = home.path / "project"
    assert rules_of(project).reason("docs/a.md") is None
    assert indexed(project) == {"docs/a.md"}
    GitRepository.create(project)
    assert rules_of(project).reason("docs/a.md") is None
    assert rules_of(project).reason("b.md") == ".gitignore:1: b.md"


# --------------------------------------------------------------------------------------- git and its absence


@contextmanager
def in_place_of_git(folder: Path, script: str) -> Iterator[None]:
    """Let `git` be a shell script."""
    (folder / "bin").mkdir()
    git = folder / "bin" / "git"
    git.write_text(f"#!/bin/sh\n{script}\n")
    git.chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", str(folder / "bin"))
        yield


@pytest.mark.parametrize(
    "script", ["", "echo 'fatal: detected dubious ownership in repository' >&2; exit 128", "exit 1"]
)
def test_where_git_does_not_answer_patterns_still_count(
    git_repository: Repositories, tmp_path: Path, script: str
) -> None:
    repository = git_repository({"drafts/tracked.md": "", "docs/a.md": ""})
    repository.write({".gitignore": "drafts/\n", ".git/info/exclude": "secret.md\n"})
    repository.git("worktree", "add", "--quiet", str(tmp_path / "worktree"))
    with in_place_of_git(tmp_path, script):
        if not script:
            (tmp_path / "bin" / "git").unlink()
        rules = rules_of(repository.path)
        assert rules.reason("drafts/tracked.md") == ".gitignore:1: drafts/"
        assert rules.reason("secret.md") == ".git/info/exclude:1: secret.md"
        assert set(rules.walk().files) == {"docs/a.md"}
        assert rules_of(repository.path / "docs").reason("secret.md") == ".git/info/exclude:1: secret.md"
        assert rules_of(tmp_path / "worktree").reason("secret.md") == ".git/info/exclude:1: secret.md"


def test_a_broken_configuration_leaves_the_patterns(git_repository: Repositories) -> None:
    repository = git_repository({"a.md": ""})
    repository.write({".gitignore": "b.md\n", ".git/config": "[[[\n"})
    assert rules_of(repository.path).reason("b.md") == ".gitignore:1: b.md"


def test_git_runs_nothing_that_a_repository_asks_for(git_repository: Repositories, tmp_path: Path) -> None:
    repository = git_repository({"dist/a.md": ""})
    hook = tmp_path / "hook"
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    hook.chmod(0o755)
    repository.git("config", "core.fsmonitor", str(hook))
    assert indexed(repository.path) == {"dist/a.md"}
    assert not (tmp_path / "ran").exists()


def test_a_caller_that_git_runs_does_not_redirect_us(
    git_repository: Repositories, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = git_repository({"dist/a.md": ""}, name="one")
    other = git_repository({"b.md": ""}, name="two")
    monkeypatch.setenv("GIT_DIR", str(other.path / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other.path / ".git" / "index"))
    monkeypatch.setenv("GIT_LITERAL_PATHSPECS", "1")
    assert set(rules_of(repository.path).walk().files) == {"dist/a.md"}


# ------------------------------------------------------------------------------------------------- rule 4


@pytest.mark.requirement("ignore-screeignore")
def test_screeignore_leaves_out(tmp_path: Path) -> None:
    write(tmp_path, {
        ".screeignore": "# mine\nsecret.md\n/private/\n",
        "docs/.screeignore": "!secret.md\n*.draft.md\n",
        "private/.screeignore": "!*.md\n",
        "secret.md": "", "a.md": "", "docs/secret.md": "", "docs/b.draft.md": "", "b.draft.md": "", "private/c.md": "",
    })  # fmt: skip
    rules = rules_of(tmp_path)
    assert rules.reason("secret.md") == ".screeignore:2: secret.md"
    assert rules.reason("docs/b.draft.md") == "docs/.screeignore:2: *.draft.md"
    assert rules.reason("private/c.md") == ".screeignore:3: /private/"
    assert indexed(tmp_path) == {"a.md", "docs/secret.md", "b.draft.md"}


@pytest.mark.requirement("ignore-later-rule")
@pytest.mark.requirement("ignore-reason")
def test_the_reason_is_that_of_the_last_rule(git_repository: Repositories) -> None:
    repository = git_repository({"README.md": ""})
    rules = rules_of(repository.path)
    path = ".notes/node_modules/a.md"
    assert rules.reason(path) == 'dependency folder "node_modules"'
    repository.write({".gitignore": ".notes/\n"})
    assert rules.reason(path) == ".gitignore:1: .notes/"
    repository.write({".screeignore": "a.md\n"})
    assert rules.reason(path) == ".screeignore:1: a.md"
    repository.write({".screeignore": "!/.notes/node_modules/a.md\n"})
    assert rules.reason(path) is None


@pytest.mark.requirement("ignore-screeignore-back")
@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("!.notes/", ".notes/plan.md"),
        ("!.notes/plan.md", ".notes/plan.md"),
        ("!.draft.md", "docs/.draft.md"),
        ("!node_modules/", "a/node_modules/b/README.md"),
        ("!node_modules/ours/README.md", "node_modules/ours/README.md"),
        ("!/node_modules/*/README.md", "node_modules/any/README.md"),
        ("!node_modules/**/README.md", "node_modules/a/b/c/README.md"),
        ("!node_modules/ours/", "node_modules/ours/docs/a.md"),
        ("!dist/", "dist/a.md"),
        ("!drafts/", "drafts/a.md"),
        ("!drafts/a.md", "drafts/a.md"),
        ("!a.tmp.md", "docs/a.tmp.md"),
    ],
)
def test_an_exclamation_mark_brings_back(git_repository: Repositories, pattern: str, path: str) -> None:
    repository = git_repository({".gitignore": "drafts/\n*.tmp.md\n"})
    repository.write({path: "", "drafts/other.md": "", "node_modules/x/y/z.md": ""})
    assert path not in indexed(repository.path)
    repository.write({".screeignore": pattern + "\n"})
    assert path in indexed(repository.path)


@pytest.mark.requirement("ignore-screeignore-back")
@pytest.mark.parametrize("pattern", ["!README.md", "!**/README.md", "!*.md"])
def test_a_name_alone_does_not_reach_into_folders_that_are_out(tmp_path: Path, pattern: str) -> None:
    write(tmp_path, {".screeignore": pattern + "\n", "README.md": "", "node_modules/a/README.md": ""})
    assert indexed(tmp_path) == {"README.md"}
    write(tmp_path, {".screeignore": f"!node_modules/a/README.md\n{pattern}\n"})
    assert indexed(tmp_path) == {"README.md", "node_modules/a/README.md"}


@pytest.mark.requirement("ignore-screeignore-back")
def test_the_other_rules_apply_again_below_what_was_brought_back(git_repository: Repositories) -> None:
    repository = git_repository({".gitignore": "*.tmp.md\n", ".screeignore": "!node_modules/ours/\n"})
    repository.write({
        "node_modules/ours/a.md": "", "node_modules/ours/.hidden.md": "", "node_modules/ours/b.tmp.md": "",
        "node_modules/ours/node_modules/c.md": "", "node_modules/theirs/d.md": "",
    })  # fmt: skip
    assert indexed(repository.path) == {"node_modules/ours/a.md"}
    rules = rules_of(repository.path)
    assert rules.reason("node_modules/ours/b.tmp.md") == ".gitignore:1: *.tmp.md"
    assert rules.reason("node_modules/ours/node_modules/c.md") == 'dependency folder "node_modules"'


def test_a_dependency_does_not_bring_itself_back(tmp_path: Path) -> None:
    write(tmp_path, {"node_modules/a/.screeignore": "!/README.md\n", "node_modules/a/README.md": ""})
    assert indexed(tmp_path) == set()
    # Not even where the scan passes by on its way to something else.
    write(tmp_path, {".screeignore": "!node_modules/a/docs/b.md\n", "node_modules/a/docs/b.md": ""})
    assert indexed(tmp_path) == {"node_modules/a/docs/b.md"}


@pytest.mark.parametrize("folder", [".git", ".scree", ".micro-scout", ".Git", "docs/.scree"])
def test_the_folders_of_git_and_scree_never_come_back(git_repository: Repositories, folder: str) -> None:
    repository = git_repository({"a.md": ""})
    repository.write({f"{folder}/x.md": "", ".screeignore": f"!{folder}/\n!{folder}/x.md\n"})
    rules = rules_of(repository.path)
    assert rules.reason(f"{folder}/x.md") == f'hidden folder "{folder.rpartition("/")[2]}"'
    assert set(rules.walk().files) == {"a.md"}


def test_a_screeignore_that_cannot_be_read_leaves_out_what_it_governs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, {"docs/.screeignore": "x.md\n", "docs/a.md": "", "b.md": ""})
    opened = os.open

    def refuse(path: str, *arguments: int, **options: int) -> int:
        if os.fspath(path).endswith(".screeignore"):
            raise PermissionError(13, "Permission denied", path)
        return opened(path, *arguments, **options)

    monkeypatch.setattr(os, "open", refuse)
    assert indexed(tmp_path) == {"b.md"}
    assert rules_of(tmp_path).reason("docs/a.md") == "docs/.screeignore (cannot be read):1: *"


# ------------------------------------------------------------------------------------- links and special files


@pytest.mark.requirement("indexed-no-links")
@pytest.mark.requirement("read-symlink")
def test_links_are_never_followed(tmp_path: Path) -> None:
    root = tmp_path / "root"
    write(root, {"docs/a.md": "", ".screeignore": "!a.md\n!etc/\n"})
    for link, target in {
        "etc": "/etc", "up": "..", "self.md": "self.md", "loop": ".", "inside": "docs", "alias.md": "docs/a.md",
        "nowhere.md": "missing.md", "docs/again": "../docs",
    }.items():  # fmt: skip
        (root / link).symlink_to(target)
    assert rules_of(root).walk().files.keys() == {"docs/a.md"}
    rules = rules_of(root)
    assert set(rules.walk().skipped.values()) == {"is a symbolic link"}
    assert rules.walk().skipped.keys() == {
        "etc", "up", "self.md", "loop", "inside", "alias.md", "nowhere.md", "docs/again",
    }  # fmt: skip
    for path in ("etc/passwd", "etc/x.md", "up/x.md", "self.md", "loop/docs/a.md", "inside/a.md", "inside/no.md"):
        assert rules.reason(path) == "is a symbolic link"


@pytest.mark.requirement("indexed-regular-files")
def test_only_regular_files_are_in(runtime_folder: Path) -> None:
    root = runtime_folder / "special"
    write(root, {"a.md": ""})
    os.mkfifo(root / "fifo.md")
    (root / "folder.md").mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(root / "socket.md"))
        rules = rules_of(root)
        walk = rules.walk()
        assert set(walk.files) == {"a.md"}
        assert walk.skipped == dict.fromkeys(["fifo.md", "socket.md"], "is not a regular file")
        for name in ("fifo.md", "socket.md", "folder.md"):
            assert rules.reason(name) == "is not a regular file"


# ------------------------------------------------------------------------------- repositories in the repository


@pytest.mark.requirement("root-worktree")
@pytest.mark.requirement("root-submodule")
def test_repositories_inside_are_left_to_themselves(git_repository: Repositories) -> None:
    library = git_repository({"README.md": ""}, name="library")
    repository = git_repository({"README.md": "", ".screeignore": "!worktree/README.md\n"}, name="outer")
    repository.git("submodule", "--quiet", "add", str(library.path), "parts/module")
    repository.git("worktree", "add", "--quiet", "worktree")
    GitRepository.create(repository.path / "clone", {"README.md": ""})
    rules = rules_of(repository.path)
    walk = rules.walk()
    assert set(walk.files) == {"README.md"}
    assert walk.skipped == dict.fromkeys(["parts/module", "worktree", "clone"], OWN_REPOSITORY)
    for path in ("parts/module/README.md", "worktree/missing.md", "clone/docs/a.md"):
        assert rules.reason(path) == OWN_REPOSITORY
    assert indexed(repository.path / "parts" / "module") == {"README.md"}
    assert indexed(repository.path / "worktree") == {"README.md"}


@pytest.mark.requirement("ignore-worktree-copies")
def test_worktrees_of_an_agent_do_not_flood(git_repository: Repositories) -> None:
    repository = git_repository({"README.md": "", "docs/a.md": ""})
    repository.git("worktree", "add", "--quiet", ".claude/worktrees/one")
    assert indexed(repository.path) == {"README.md", "docs/a.md"}
    repository.write({".screeignore": "!.claude/\n"})
    assert indexed(repository.path) == {"README.md", "docs/a.md"}
    assert rules_of(repository.path).walk().skipped == {".claude/worktrees/one": OWN_REPOSITORY}


# ----------------------------------------------------------------------------------------- odd names and paths


def test_names_may_be_anything(tmp_path: Path) -> None:
    names = {
        "a b.md", 'q"uote.md', "new\nline.md", '"><.md', "%41.md", "_.md", "back\\slash.md", "🪨.md", "-.md", "*.md",
        unicodedata.normalize("NFC", "café.md"), unicodedata.normalize("NFD", "café.md"), os.fsdecode(b"\xff\xfe.md"),
    }  # fmt: skip
    write(tmp_path, {f"fol\nder/{name}": "" for name in names})
    assert indexed(tmp_path) == {f"fol\nder/{name}" for name in names}


@pytest.mark.requirement("ignore-reason")
def test_a_reason_is_one_printable_line(git_repository: Repositories) -> None:
    repository = git_repository({".gitignore": b"a\x1b*\xff.md\n"})
    rules = rules_of(repository.path)
    assert rules.reason("a\x1bx\udcff.md") == ".gitignore:1: a*\ufffd.md"
    assert rules.reason(".no\nte\u202es/a.md") == 'hidden folder ".notes"'


@pytest.mark.parametrize("path", ["./docs/a.md", "docs//a.md", "docs/./a.md", ".//docs/a.md"])
def test_a_path_may_be_written_in_several_ways(tmp_path: Path, path: str) -> None:
    write(tmp_path, {"docs/a.md": "", "docs/.screeignore": "b.md\n"})
    assert rules_of(tmp_path).reason(path) is None
    assert rules_of(tmp_path).reason(path.replace("a.md", "b.md")) == "docs/.screeignore:1: b.md"


@pytest.mark.parametrize("path", ["a\0.md", "\ud800.md", "x/" * 5000 + "a.md"])
def test_an_impossible_path_is_refused(tmp_path: Path, path: str) -> None:
    assert rules_of(tmp_path).reason(path) == "is not a possible file name"


def test_a_slash_at_the_end_asks_for_a_folder(git_repository: Repositories) -> None:
    repository = git_repository({"docs/a.md": "", "dist/b.md": "", ".gitignore": "drafts/\n"})
    rules = rules_of(repository.path)
    assert rules.reason("docs/") is None
    assert rules.reason("dist/") is None
    assert rules.reason("drafts/") == ".gitignore:1: drafts/"
    assert rules.reason("node_modules/") == 'dependency folder "node_modules"'
    assert rules.reason("drafts") == "file type is not indexed"


@pytest.mark.requirement("read-ignored")
@pytest.mark.parametrize("path", [".notes/a.md", "node_modules/a.md", "dist/a.md", "drafts/a.md", "docs/secret.md"])
def test_a_reason_does_not_tell_what_exists(git_repository: Repositories, path: str) -> None:
    repository = git_repository({".gitignore": "drafts/\n", ".screeignore": "secret.md\n"})
    rules = rules_of(repository.path)
    before = rules.reason(path)
    assert before is not None
    repository.write({path: ""})
    assert rules.reason(path) == before
    (repository.path / path).unlink()
    (repository.path / path).symlink_to("/etc/passwd")
    assert rules.reason(path) == before


def test_hostile_patterns_take_no_exponential_time(git_repository: Repositories) -> None:
    repository = git_repository({".gitignore": "*a" * 30 + "b\n" + "**/a/" * 20 + "b\n" + "/" + "*a*/**/" * 20 + "b\n"})
    rules = rules_of(repository.path)
    assert rules.reason("a" * 250 + ".md") is None
    assert rules.reason("a/" * 1000 + "c.md") is None
    assert rules.reason("a" * 100 + "/a" * 200 + ".md") is None


# -------------------------------------------------------------------------------------------------- scanning


def test_a_scan_lists_a_folder_that_is_out_once(tmp_path: Path) -> None:
    write(tmp_path, {
        "docs/a.md": "", "docs/.draft.md": "", "node_modules/a/b/c.md": "", "node_modules/d.md": "", "dist/e.md": "",
        "empty/x.py": "",
    })  # fmt: skip
    walk = rules_of(tmp_path).walk()
    assert walk.skipped == {
        "docs/.draft.md": 'hidden file ".draft.md"',
        "node_modules": 'dependency folder "node_modules"',
        "dist": 'build folder "dist"',
    }
    assert set(walk.folders) == {"", "docs", "empty"}
    assert walk.unreadable == ()


def test_a_folder_that_is_out_is_entered_only_where_something_may_be_in(tmp_path: Path) -> None:
    write(tmp_path, {
        ".screeignore": "!node_modules/a/README.md\n",
        "node_modules/a/README.md": "", "node_modules/a/b/c.md": "", "node_modules/d/README.md": "",
    })  # fmt: skip
    walk = rules_of(tmp_path).walk()
    assert set(walk.files) == {"node_modules/a/README.md"}
    assert set(walk.folders) == {"", "node_modules", "node_modules/a"}
    assert walk.skipped == {"node_modules": 'dependency folder "node_modules"'}


def test_a_scan_returns_the_state_of_each_file(tmp_path: Path) -> None:
    write(tmp_path, {"a.md": "four"})
    found = rules_of(tmp_path).walk().files["a.md"]
    assert stat.S_ISREG(found.st_mode)
    assert found == os.lstat(tmp_path / "a.md")


@contextmanager
def without_privileges() -> Iterator[Path]:
    """A new folder, and for root the rights of nobody (65534 on Linux and macOS), whom permissions hold back."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        privileged = os.geteuid() == 0
        if privileged:
            os.seteuid(65534)
        try:
            yield Path(folder)
        finally:
            if privileged:
                os.seteuid(0)


def test_what_cannot_be_listed_is_reported() -> None:
    with without_privileges() as root:
        write(root, {"a.md": "", "locked/b.md": "", "blind/c.md": "", "blind/d/e.md": ""})
        (root / "locked").chmod(0)
        (root / "blind").chmod(0o444)
        try:
            rules = rules_of(root)
            walk = rules.walk()
            assert set(walk.files) == {"a.md"}
            assert set(walk.unreadable) == {"locked", "blind/c.md", "blind/d"}
            assert rules.reason("locked/b.md") is None
        finally:
            (root / "locked").chmod(0o755)
            (root / "blind").chmod(0o755)


def test_a_root_that_is_gone_is_unreadable(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    rules = rules_of(root)
    root.rmdir()
    walk = rules.walk()
    assert walk.unreadable == ("",)
    assert walk.folders == ()
    assert rules.reason("a.md") is None


# -------------------------------------------------------------------------------------------------- always now


@pytest.mark.parametrize("name", [".gitignore", ".screeignore"])
@pytest.mark.parametrize("folder", ["", "docs/"])
def test_ignore_files_count_at_once(git_repository: Repositories, folder: str, name: str) -> None:
    repository = git_repository({"README.md": "", "docs/README.md": ""})
    repository.write({"docs/a.md": "", "docs/b.md": ""})
    rules = rules_of(repository.path)
    for _ in range(20):
        assert rules.reason("docs/a.md") is None
        repository.write({folder + name: "a.md\n"})
        assert rules.reason("docs/a.md") == f"{folder}{name}:1: a.md"
        repository.write({folder + name: "b.md\n"})
        assert rules.reason("docs/a.md") is None
        assert rules.reason("docs/b.md") == f"{folder}{name}:1: b.md"
        (repository.path / folder / name).unlink()


def test_a_change_that_leaves_no_trace_is_seen_while_the_file_is_new(
    git_repository: Repositories, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = git_repository({"README.md": ""})
    repository.write({".gitignore": "a.md\n"})
    rules = rules_of(repository.path)
    look = os.stat
    unchanged = look(repository.path / ".gitignore")

    def look_with_a_slow_clock(path: str, **options: bool) -> os.stat_result:
        return unchanged if os.fspath(path).endswith(".gitignore") else look(path, **options)

    monkeypatch.setattr(os, "stat", look_with_a_slow_clock)
    assert rules.reason("a.md") == ".gitignore:1: a.md"
    repository.write({".gitignore": "b.md\n"})
    assert rules.reason("a.md") is None


def test_an_old_ignore_file_that_changes_is_read_again(
    git_repository: Repositories, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = git_repository({"README.md": ""})
    repository.write({".gitignore": "a.md\n"})
    now = os.stat(repository.path / ".gitignore").st_ctime_ns
    monkeypatch.setattr("scree.core.ignore_files.time.time_ns", lambda: now + 60_000_000_000)
    rules = rules_of(repository.path)
    assert rules.reason("a.md") == ".gitignore:1: a.md"
    assert rules.reason("a.md") == ".gitignore:1: a.md"
    repository.write({".gitignore": "b.md  # longer\n", "docs/.screeignore": "a.md\n"})
    assert rules.reason("a.md") is None
    assert rules.reason("docs/a.md") == "docs/.screeignore:1: a.md"


def test_several_threads_may_ask(git_repository: Repositories) -> None:
    repository = git_repository({"dist/tracked.md": ""})
    repository.write({".gitignore": "drafts/\n", "docs/.screeignore": "a.md\n"})
    rules = rules_of(repository.path)
    expected = {
        "drafts/x.md": ".gitignore:1: drafts/",
        "docs/a.md": "docs/.screeignore:1: a.md",
        "dist/tracked.md": None,
    }
    wrong: list[str] = []

    def ask() -> None:
        for _ in range(20):
            wrong.extend(path for path, reason in expected.items() if rules.reason(path) != reason)
            if set(rules.walk().files) != {"dist/tracked.md"}:
                wrong.append("walk")
                return

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
        assert not thread.is_alive()
    assert wrong == []
