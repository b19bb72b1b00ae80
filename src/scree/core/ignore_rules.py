"""May this path be indexed? The answer, and the one reason if not.

The rules, a later one overriding an earlier one:

1. hidden files and folders are out, except `.github/`;
2. dependency folders are out by name, and build folders unless git tracks the file;
3. what git ignores is out;
4. `.screeignore` files: what they match is out for good, and `!` brings back what 1-3 left out.

A path is judged name by name from the root down. What rules 1-3 say of a folder holds below it, until a
`.screeignore` brings something back; to the names after that they apply again. Below a folder that is out,
only a `!` pattern that names a place (`!node_modules/ours/README.md`, not `!README.md`) brings back, and no
`.screeignore` is read. Whatever the rules say, symbolic links, repositories inside the repository, and git's
and our own folders are never indexed.

Nothing here opens a file to be indexed, knows what its content means, or follows a link.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from scree.core.files import LINK, file_obstacle
from scree.core.git import WorkTree, find_work_tree
from scree.core.gitignore_patterns import PatternList
from scree.core.ignore_files import GIT_FOLDER, GIT_IGNORE_FILE, MARKERS, SCREE_IGNORE_FILE, IgnoreFiles
from scree.core.ignore_verdicts import IN, NEVER_INDEXED, Source, Surroundings, Verdict

OWN_REPOSITORY = "a repository of its own (worktree, submodule or nested clone)"
OTHER_TYPE = "file type is not indexed"
IMPOSSIBLE_NAME = "is not a possible file name"

# A `.screeignore` that is there and cannot be read might leave out anything.
EVERYTHING = PatternList(b"*")

NO_MARKERS: frozenset[str] = frozenset()

# What a scan meets everywhere and nobody asks about.
UNLISTED = NEVER_INDEXED | MARKERS
# Linux opens no longer path, in bytes; and a question must not cost more than its answer is worth.
PATH_MAX = 4096

VANISHED = (FileNotFoundError, NotADirectoryError)


@dataclass(frozen=True, slots=True)
class Walk:
    """What one scan of the tree found, in no particular order. Paths are relative to the root, with `/`.

    Attributes:
        files: every file that may be indexed, with its state as `os.lstat` gives it.
        skipped: files that may not, and folders that are out, with the printable reason. What lies in a
            folder that is out is not listed, nor are files of other types.
        unreadable: folders that could not be listed, and files that could not be looked at; nothing is known
            of them, nor of what such a folder holds.
        folders: the folders that were listed, `""` for the root.
    """

    files: dict[str, os.stat_result]
    skipped: dict[str, str]
    unreadable: tuple[str, ...]
    folders: tuple[str, ...]


class _OuterFile(NamedTuple):
    """An ignore file of git outside the root; offset and label as in `Source`."""

    path: str
    offset: int
    label: str
    follow_link: bool = False


@dataclass(frozen=True, slots=True)
class _Facts:
    """What holds for the whole tree from one scan to the next.

    Attributes:
        files: the ignore files, read as git's settings want it.
        tree: the git work tree that the root lies in, if any.
        prefix: the root relative to the top level, with a `/` at the end; judged paths begin with it.
        outer: the ignore files outside the root, weakest first; None where rule 3 does not apply.
    """

    files: IgnoreFiles
    tree: WorkTree | None = None
    prefix: bytes = b""
    outer: tuple[_OuterFile, ...] | None = None


class _Tracked(NamedTuple):
    """What git tracks, and the folders that lies in, at one state of git's index."""

    state: tuple[int, ...] = ()
    files: frozenset[str] = frozenset()
    folders: frozenset[str] = frozenset()


class _Pending(NamedTuple):
    """A folder to be scanned.

    Attributes:
        path: with a `/` at the end, empty for the root.
        around: what is in force there, without its own ignore files.
        reason: why it is out, if it is.
    """

    path: str
    around: Surroundings
    reason: str | None


class IgnoreRules:
    """The ignore rules of one root, always as they are now; only git's settings are those of the last scan.

    One instance may be used from several threads.
    """

    def __init__(self, root: Path, suffixes: Collection[str]) -> None:
        """Ask git about `root`.

        Args:
            root: the folder to be indexed.
            suffixes: the ends of the file names that may be indexed, like `.md`; letter case does not matter.
        """
        self._root = os.path.realpath(root)
        self._suffixes = tuple(suffix.lower() for suffix in suffixes)
        self._ignore_files = {ignore_case: IgnoreFiles(ignore_case=ignore_case) for ignore_case in (False, True)}
        self._last_tracked = _Tracked()
        self._facts = self._learn()

    @property
    def work_tree(self) -> WorkTree | None:
        """The git work tree that the root lies in, if any, as of the last scan."""
        return self._facts.tree

    def outer_files(self) -> tuple[Path, ...]:
        """Return the files outside the walked folders on which the rules depend, as of the last scan.

        They are git's index and its ignore files that are not in the tree below the root; some may not exist.
        """
        facts = self._facts
        if facts.tree is None:
            return ()
        return (facts.tree.index_file, *(Path(file.path) for file in facts.outer or ()))

    def reason(self, path: str) -> str | None:
        """Return why `path` may not be indexed, as one printable line, or None.

        What does not exist is judged by its name, so that the reason never tells whether it does.

        Args:
            path: relative to the root, with `/`; one that ends with `/` is judged as a folder.
        """
        try:
            pairs = zip(path.split("/"), os.fsencode(path).split(b"/"), strict=True)
        except UnicodeEncodeError:
            return IMPOSSIBLE_NAME
        if "\0" in path or len(path) > PATH_MAX:
            return IMPOSSIBLE_NAME
        names = [(name, encoded) for name, encoded in pairs if name not in ("", ".")]
        facts = self._facts
        around = self._inside(facts, self._around_root(facts), "", self._root_markers(facts))
        full, so_far = facts.prefix, ""
        reason = obstacle = None
        for position, (name, encoded) in enumerate(names, start=1):
            folder = position < len(names) or path.endswith("/")
            full += encoded
            so_far += name
            verdict = around.judge(full, name, folder=folder)
            reason = self._reason(facts, verdict, so_far, folder)
            if verdict.for_good:
                break
            if not folder:
                return reason or obstacle or self._obstacle_at(so_far)
            markers = NO_MARKERS
            if obstacle is None:
                obstacle, markers = self._look(facts, so_far)
            full += b"/"
            so_far += "/"
            around = self._inside(facts, around.of(verdict), so_far, markers, out=reason is not None)
        return reason or obstacle

    def walk(self) -> Walk:
        """Look at the whole tree once, without following links.

        A folder that is out is entered only where something in it may be in. What vanishes meanwhile is not
        reported.
        """
        facts = self._facts = self._learn()
        walk = Walk({}, {}, (), ())
        unreadable: list[str] = []
        folders: list[str] = []
        pending = [_Pending("", self._around_root(facts), None)]
        while pending:
            here = pending.pop()
            try:
                with os.scandir(f"{self._root}/{here.path}") as listing:
                    entries = [entry for entry in listing if self._matters(entry)]
            except OSError as error:
                if not here.path or not isinstance(error, VANISHED):
                    unreadable.append(here.path[:-1])
                continue
            markers = MARKERS.intersection([entry.name for entry in entries])
            if here.path and GIT_FOLDER in markers:
                if not here.reason:
                    walk.skipped[here.path[:-1]] = OWN_REPOSITORY
                continue
            folders.append(here.path[:-1])
            around = self._inside(facts, here.around, here.path, markers, out=here.reason is not None)
            for entry in entries:
                if entry.name in UNLISTED:
                    continue
                path = here.path + entry.name
                try:
                    is_folder = entry.is_dir(follow_symlinks=False)
                    full = facts.prefix + os.fsencode(path)
                    verdict = around.judge(full, entry.name, folder=is_folder)
                    reason = self._reason(facts, verdict, path, is_folder)
                    if is_folder:
                        if not reason or (not verdict.for_good and around.may_bring_back_below(full)):
                            pending.append(_Pending(path + "/", around.of(verdict), reason))
                    elif not reason:
                        status = entry.stat(follow_symlinks=False)
                        reason = file_obstacle(status)
                        if not reason:
                            walk.files[path] = status
                except VANISHED:
                    continue
                except OSError:
                    unreadable.append(path)
                    continue
                if reason and not here.reason:
                    walk.skipped[path] = reason
        return replace(walk, unreadable=tuple(unreadable), folders=tuple(folders))

    def _learn(self) -> _Facts:
        tree = find_work_tree(Path(self._root))
        if tree is None:
            return _Facts(self._ignore_files[False])
        outer = [_OuterFile(str(tree.exclude_file), 0, ".git/info/exclude", follow_link=True)]
        excludes_file = tree.excludes_file()
        if excludes_file:
            outer.insert(0, _OuterFile(str(excludes_file), 0, _from_home(excludes_file), follow_link=True))
        names = tree.prefix.split("/")[:-1]
        for depth in range(len(names)):
            above = "".join(name + "/" for name in names[:depth])
            label = "../" * (len(names) - depth) + GIT_IGNORE_FILE
            outer.append(_OuterFile(str(tree.top / above / GIT_IGNORE_FILE), len(os.fsencode(above)), label))
        files = self._ignore_files[tree.ignores_case()]
        facts = _Facts(files, tree, os.fsencode(tree.prefix), tuple(outer))
        # A repository that ignores the root itself (a home folder under git that ignores `*`) is not the
        # root's own.
        return replace(facts, outer=None) if self._ignores_root(facts) else facts

    def _ignores_root(self, facts: _Facts) -> bool:
        around = self._around_root(facts)
        folder = facts.prefix
        while folder := folder.rpartition(b"/")[0]:
            outside = Surroundings(IN, tuple(source for source in around.git if source.offset < len(folder)))
            if outside.judge(folder, os.fsdecode(os.path.basename(folder)), folder=True).git:
                return True
        return False

    def _around_root(self, facts: _Facts) -> Surroundings:
        git: tuple[Source, ...] = ()
        for file in facts.outer or ():
            git += _git_source(facts, *file)
        return Surroundings(IN, git)

    def _root_markers(self, facts: _Facts) -> frozenset[str]:
        try:
            return facts.files.markers(self._root, os.stat(self._root))
        except OSError:
            return NO_MARKERS

    def _look(self, facts: _Facts, folder: str) -> tuple[str | None, frozenset[str]]:
        """Return what bars the way into a folder, and its markers; neither for one that is not there."""
        path = f"{self._root}/{folder}"
        try:
            status = os.lstat(path)
        except OSError:
            return None, NO_MARKERS
        if stat.S_ISLNK(status.st_mode):
            return LINK, NO_MARKERS
        if not stat.S_ISDIR(status.st_mode):
            return None, NO_MARKERS
        markers = facts.files.markers(path, status)
        return (OWN_REPOSITORY, NO_MARKERS) if GIT_FOLDER in markers else (None, markers)

    def _obstacle_at(self, path: str) -> str | None:
        try:
            obstacle = file_obstacle(os.lstat(f"{self._root}/{path}"))
        except OSError:
            obstacle = None
        # A wrong type comes before what only the disk knows, for that must not tell what exists.
        return OTHER_TYPE if obstacle != LINK and not path.lower().endswith(self._suffixes) else obstacle

    def _inside(
        self, facts: _Facts, around: Surroundings, folder: str, markers: frozenset[str], *, out: bool = False
    ) -> Surroundings:
        """Add the ignore files of a folder, given with a `/` at the end, to what is in force around it."""
        if not markers:
            return around
        git, scree = around.git, around.scree
        offset = len(facts.prefix) + len(os.fsencode(folder))
        if GIT_IGNORE_FILE in markers and facts.outer is not None:
            label = folder + GIT_IGNORE_FILE
            git += _git_source(facts, f"{self._root}/{label}", offset, label)
        if SCREE_IGNORE_FILE in markers and not out:
            label = folder + SCREE_IGNORE_FILE
            scree += _scree_source(facts, f"{self._root}/{label}", offset, label)
        return Surroundings(around.verdict, git, scree)

    def _reason(self, facts: _Facts, verdict: Verdict, path: str, folder: bool) -> str | None:
        """Return the reason in a verdict; a folder counts as tracked where git tracks a file in it."""
        if verdict is IN:
            return None
        if not verdict.depends_on_git:
            return verdict.reason(tracked=False)
        tracked = self._tracked(facts)
        return verdict.reason(tracked=path in (tracked.folders if folder else tracked.files))

    def _tracked(self, facts: _Facts) -> _Tracked:
        if facts.tree is None:
            return _Tracked()
        try:
            status = os.stat(facts.tree.index_file)
        except OSError:
            return _Tracked()
        state = (status.st_ctime_ns, status.st_size, status.st_ino)
        if self._last_tracked.state != state:
            files = facts.tree.tracked_files(self._suffixes)
            if files is None:
                return _Tracked()
            self._last_tracked = _Tracked(state, files, _folders_of(files))
        return self._last_tracked

    def _matters(self, entry: os.DirEntry[str]) -> bool:
        """Whether a scan has anything to do with what it meets.

        That is a folder, a file of the right type, a link that by its name may lead to a folder, and what governs
        the rest.
        """
        return (
            entry.name.lower().endswith(self._suffixes)
            or entry.is_dir(follow_symlinks=False)
            or entry.name in MARKERS
            or ("." not in entry.name and entry.is_symlink())
        )


def _git_source(facts: _Facts, path: str, offset: int, label: str, follow_link: bool = False) -> tuple[Source, ...]:
    try:
        patterns = facts.files.patterns(path, follow_link=follow_link)
    except OSError:
        return ()  # as git does, after a warning
    return (Source(patterns, offset, label),) if patterns else ()


def _scree_source(facts: _Facts, path: str, offset: int, label: str) -> tuple[Source, ...]:
    try:
        patterns = facts.files.patterns(path)
    except OSError:
        return (Source(EVERYTHING, offset, f"{label} (cannot be read)"),)
    return (Source(patterns, offset, label),) if patterns else ()


def _folders_of(files: Iterable[str]) -> frozenset[str]:
    folders: set[str] = set()
    for path in files:
        folder = path.rpartition("/")[0]
        while folder and folder not in folders:
            folders.add(folder)
            folder = folder.rpartition("/")[0]
    return frozenset(folders)


def _from_home(path: Path) -> str:
    home = os.environ.get("HOME")
    return f"~/{path.relative_to(home)}" if home and path.is_relative_to(home) else str(path)
