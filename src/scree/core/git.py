"""What git knows about a folder: its work tree and the repository's others, the settings for ignoring, tracked files.

Almost everything is asked of the installed git, which is never allowed to run a hook or a file system monitor, to
use the network, to prompt or to write. Where there is no git, or it refuses (a folder of another owner, a
broken configuration), the work tree is found by its `.git` alone, and nothing counts as tracked.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

# The variables by which a caller that is itself run by git (a hook) would point us at another repository or
# change what our arguments mean: those of `git rev-parse --local-env-vars` that are not configuration, and
# the pathspec modes.
REDIRECTING = frozenset({
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_DIR",
    "GIT_GLOB_PATHSPECS",
    "GIT_ICASE_PATHSPECS",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_LITERAL_PATHSPECS",
    "GIT_NOGLOB_PATHSPECS",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_WORK_TREE",
})  # fmt: skip

# Listing the index of a repository with a million files takes about a second; longer than this, something
# hangs.
GIT_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class WorkTree:
    """The git work tree a folder lies in.

    Attributes:
        top: its top level.
        folder: the folder that was asked about.
        git_folder: where git keeps what belongs to this work tree alone.
        answers: whether git itself can be asked; else only what lies on the disk is known.
    """

    top: Path
    folder: Path
    git_folder: Path
    answers: bool

    @property
    def prefix(self) -> str:
        """The folder relative to the top level, with a `/` at the end; empty at the top level itself."""
        relative = self.folder.relative_to(self.top).as_posix()
        return "" if relative == "." else relative + "/"

    @property
    def index_file(self) -> Path:
        """The file that changes whenever what is tracked changes."""
        return self.git_folder / "index"

    @property
    def exclude_file(self) -> Path:
        """The repository's own ignore file, `info/exclude`, which all its work trees share."""
        return _common_folder(self.git_folder) / "info" / "exclude"

    def excludes_file(self) -> Path | None:
        """The user's own ignore file, `core.excludesFile` or its default; None where there can be none."""
        configured = self._setting("core.excludesFile", "path")
        if configured is not None:
            return self.top / configured if configured else None
        home = os.environ.get("HOME")
        config_home = os.environ.get("XDG_CONFIG_HOME") or (os.path.join(home, ".config") if home else None)
        return Path(config_home, "git", "ignore") if config_home else None

    def ignores_case(self) -> bool:
        """`core.ignoreCase`."""
        return self._setting("core.ignoreCase", "bool") == "true"

    def tracked_files(self, suffixes: Collection[str]) -> frozenset[str] | None:
        """The tracked files below the folder whose names end in one of `suffixes`, in any letter case.

        Returns:
            Paths relative to the folder; None where git does not answer.
        """
        pathspecs = [f":(icase)*{suffix}" for suffix in suffixes]
        answer = _git(self.folder, "ls-files", "--cached", "-z", "--", *pathspecs) if self.answers else None
        return frozenset(filter(None, answer.output.split("\0"))) if answer and not answer.status else None

    def all_tops(self) -> tuple[Path, ...]:
        """The top levels of this and the repository's other work trees, this one's first, absolute and without links.

        They are where git last knew them to be, and may be gone. Read from git's own notes (gitrepository-layout(5)),
        which costs no process and works without git, too. Git does not note the main work tree of a repository whose
        git folder lies elsewhere.
        """
        common = os.path.realpath(_common_folder(self.git_folder))
        main = [os.path.dirname(common)] if os.path.basename(common) == ".git" else []
        linked = filter(None, map(_noted_top, sorted(Path(common, "worktrees").glob("*/gitdir"))))
        return tuple(map(Path, dict.fromkeys([str(self.top), *main, *linked])))

    def _setting(self, name: str, kind: str) -> str | None:
        answer = _git(self.folder, "config", "--null", f"--type={kind}", "--get", name) if self.answers else None
        return answer.output.removesuffix("\0") if answer and not answer.status else None


def find_work_tree(folder: Path) -> WorkTree | None:
    """Return the work tree that `folder`, an absolute path without links, lies in; None outside git."""
    answer = _git(folder, "rev-parse", "--is-inside-work-tree", "--show-cdup", "--absolute-git-dir")
    if answer is None or (answer.status and "not a git repository" not in answer.complaint):
        return _find_without_git(folder)
    if not answer.output.startswith("true\n"):
        return None
    # The git folder is asked for last, for its name may hold a line end.
    _, way_up, git_folder = answer.output.split("\n", 2)
    return WorkTree((folder / way_up).resolve(), folder, Path(git_folder.removesuffix("\n")), answers=True)


def _find_without_git(folder: Path) -> WorkTree | None:
    for top in (folder, *folder.parents):
        git_folder = top / ".git"
        if git_folder.is_file():
            # A worktree or a submodule: one line, `gitdir: <path>` (gitrepository-layout(5)).
            git_folder = top / _first_line(git_folder).removeprefix("gitdir: ")
        if (git_folder / "HEAD").exists():
            return WorkTree(top, folder, git_folder, answers=False)
    return None


def _common_folder(git_folder: Path) -> Path:
    """Return what the work trees of one repository share; a worktree names it in `commondir`."""
    pointer = git_folder / "commondir"
    return git_folder / _first_line(pointer) if pointer.is_file() else git_folder


def _noted_top(pointer: Path) -> str | None:
    """Return the top level of the linked work tree whose `.git` is named in the file `pointer`; None if none is."""
    try:
        noted = _first_line(pointer) if pointer.is_file() else ""
        # Git writes it relative to the folder of that file where it is told to (git-worktree(1)).
        return os.path.realpath((pointer.parent / noted).parent) if noted else None
    except (OSError, ValueError):
        # Not ours to read, or with a NUL byte in it: one bad note says nothing about the others.
        return None


def _first_line(file: Path) -> str:
    return os.fsdecode(file.read_bytes()).removesuffix("\n")


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    output: str
    complaint: str


def _git(folder: Path, *arguments: str) -> _Answer | None:
    """Run git in `folder`; None where it cannot be run or does not end."""
    environment = {name: value for name, value in os.environ.items() if name not in REDIRECTING}
    environment |= {
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C",
    }
    try:
        done = subprocess.run(
            ["git", "-c", "core.fsmonitor=false", *arguments],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=GIT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    # Decoded here, not by subprocess, which would take a carriage return in a name for a line end.
    return _Answer(done.returncode, os.fsdecode(done.stdout), os.fsdecode(done.stderr))
