"""On random trees: ignore decisions are those of the real git, and scans and single questions agree."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from scree.core.gitignore_patterns import PatternList
from scree.core.ignore_rules import IgnoreRules
from scree.core.printable import printable
from tests.repositories import GIT_SECONDS, GitRepository

# Names that rules 1 and 2 have nothing against: what they are made of is what patterns treat specially.
FOLDER_NAMES = [
    b"a",
    b"b",
    b"ab",
    b"foo",
    b"Foo",
    b"a.md",
    b"s ",
    b"\xc3\xa9",
    b"[x]",
    b"x\\y",
    b"#x",
    b"!n",
    b"-",
]
FILE_NAMES = [
    b"a.md", b"b.md", b"ab.md", b"B.MD", b"README.md", b"foo.md", b"#x.md", b"!n.md", b" s.md", b"s .md",
    b"a b.md", b"e\xcc\x81.md", b"\xc3\xa9.md", b"\xff.md", b"[x].md", b"x\\y.md", b"*.md", b"?.md",
    b"n\nl.md", b"c\rr.md", b"t\tb.md", b"\x0b.md", b"a-c.md", b"1.md", b"a+(b)$^.md", b"{a,b}.md", b"'\".md",
]  # fmt: skip
OUT_BY_NAME = [b"node_modules", b"vendor", b"dist", b"build", b".notes", b".github", b".git-not", b".scree"]

PIECES = [
    b"*", b"**", b"***", b"?", b"/", b"**/", b"/**", b"/**/", b"*/", b"/*", b"\\", b"\\*", b"\\#", b"\\!",
    b"\\ ", b"\\/", b"\\a", b"\\A", b" ", b"\t", b"#", b"!", b"-", b".md", b"*.md", b"[a-c]", b"[!a]",
    b"[^a-c]", b"[]a]", b"[a-]", b"[-a]", b"[[:alpha:]]", b"[[:space:]]", b"[[:upper:]]",
    b"[[:punct:][:digit:]]", b"[[:nothing:]]", b"[[:alpha:]", b"[a", b"[\\]a]", b"[\\a-c]", b"[a-c-z]",
    b"[A-C]", b"[A]", b"[\xc3\xa9]", b"[!]", b"[z-a]", b"[a/b]", b"[[:a]", b"[--0]", b"[!-/]",
]  # fmt: skip

ALL_NAMES = FOLDER_NAMES + FILE_NAMES
pieces = st.sampled_from(PIECES)
scraps = st.lists(st.sampled_from(ALL_NAMES + PIECES), min_size=1, max_size=4).map(b"".join)


@st.composite
def names_like(draw: st.DrawFn, name: bytes) -> bytes:
    """A name of a pattern: `name`, or `name` with a part exchanged for a piece, or something else."""
    start = draw(st.integers(0, len(name)))
    end = draw(st.integers(start, len(name)))
    wild = st.sampled_from([b"*", b"**", b"?", b"*.md"])
    return draw(st.one_of(st.just(name), wild, pieces.map(lambda piece: name[:start] + piece + name[end:]), scraps))


@st.composite
def patterns(draw: st.DrawFn, paths: Sequence[bytes]) -> bytes:
    """A line of an ignore file that has some chance to match one of `paths`, or a folder on its way."""
    names = draw(st.sampled_from(paths)).split(b"/")
    start = draw(st.integers(0, len(names) - 1))
    end = draw(st.integers(start + 1, len(names)))
    sign = draw(st.sampled_from([b"", b"", b"", b"!", b"#", b"\xef\xbb\xbf"]))
    slash = draw(st.sampled_from([b"", b"", b"/", b"**/"]))
    path = draw(st.sampled_from([b"/", b"/", b"\\/", b"/**/"])).join(
        draw(names_like(name)) for name in names[start:end]
    )
    close = draw(st.sampled_from([b"", b"", b"", b"/", b"/", b" ", b"  ", b"\\ ", b"\r", b"\0", b"//", b"/**"]))
    return sign + slash + path + close


def ignore_files(paths: Sequence[bytes]) -> st.SearchStrategy[bytes]:
    """The content of an ignore file."""
    return st.builds(
        lambda lines, ending, last: ending.join(lines) + last,
        st.lists(patterns(paths), min_size=1, max_size=4),
        st.sampled_from([b"\n", b"\n", b"\r\n", b"\n\n"]),
        st.sampled_from([b"", b"\n", b"\r\n"]),
    )


def paths_of(folders: Sequence[bytes], files: Sequence[bytes]) -> st.SearchStrategy[bytes]:
    """Paths up to four names deep."""
    return st.builds(
        lambda way, name: b"/".join([*way, name]),
        st.lists(st.sampled_from(folders), max_size=3),
        st.sampled_from(files),
    )


@dataclass(frozen=True)
class Tree:
    """What is written to disk: files, ignore files by folder, and what git is told to track."""

    files: Sequence[bytes]
    ignore_files: Mapping[bytes, bytes] = field(default_factory=dict)
    scree_files: Mapping[bytes, bytes] = field(default_factory=dict)
    above: bytes = b""
    exclude: bytes = b""
    excludes_file: bytes = b""
    tracked: Sequence[bytes] = ()


@st.composite
def trees(draw: st.DrawFn, folders: Sequence[bytes] = FOLDER_NAMES, *, scree: bool = False) -> Tree:
    """A tree without contradictions: no path is both a file and a folder."""
    files: list[bytes] = []
    seen: set[bytes] = set()
    for path in draw(st.lists(paths_of(folders, FILE_NAMES), min_size=1, max_size=12, unique=True)):
        above = {path[:end] for end, byte in enumerate(path) if byte == ord("/")}
        if path not in seen and above.isdisjoint(files):
            files.append(path)
            seen |= above | {path}
    places = st.sampled_from(sorted({os.path.dirname(path) for path in files} | {b""}))
    content = ignore_files(files)
    some_files = st.dictionaries(places, content, max_size=3)
    maybe = st.one_of(st.just(b""), content)
    return Tree(
        files,
        ignore_files=draw(some_files),
        scree_files=draw(some_files) if scree else {},
        above=draw(maybe),
        exclude=draw(maybe),
        excludes_file=draw(maybe),
        tracked=draw(st.lists(st.sampled_from(files), max_size=3, unique=True)),
    )


class Ground:
    """A git work tree that is emptied and written anew for each example."""

    def __init__(self, top: Path, exclude_file: Path, excludes_file: Path, inner: str = "") -> None:
        self.top = top
        self.root = top / inner
        self.root.mkdir(exist_ok=True)
        self._exclude_file = exclude_file
        self._excludes_file = excludes_file

    def git(self, *arguments: str, given: Sequence[bytes] = ()) -> list[bytes]:
        """Run git at the top level; both its input and its output are lists that end in NUL."""
        done = subprocess.run(
            ["git", "-C", self.top, *arguments],
            input=b"".join(item + b"\0" for item in given),
            capture_output=True,
            timeout=GIT_SECONDS,
            check=False,
        )
        # check-ignore exits with 1 where nothing is ignored.
        assert done.returncode in (0, 1), done.stderr
        return done.stdout.split(b"\0")[:-1]

    def write(self, tree: Tree) -> None:
        """Make the tree all there is."""
        for entry in self.top.iterdir():
            if entry.is_dir():
                if entry.name != ".git":
                    shutil.rmtree(entry)
            elif entry.name != ".git":
                entry.unlink()
        if (self.top / ".git").exists():
            self.git("read-tree", "--empty")
        self.root.mkdir(exist_ok=True)
        for path in tree.files:
            self._put(path, b"text\n")
        for folder, content in tree.ignore_files.items():
            self._put(os.path.join(folder, b".gitignore"), content)
        for folder, content in tree.scree_files.items():
            self._put(os.path.join(folder, b".screeignore"), content)
        if self.root != self.top:
            (self.top / ".gitignore").write_bytes(tree.above)
        self._exclude_file.write_bytes(tree.exclude)
        self._excludes_file.write_bytes(tree.excludes_file)
        if tree.tracked:
            tracked = [os.fsencode(self.root.relative_to(self.top)) + b"/" + path for path in tree.tracked]
            self.git("update-index", "--add", "-z", "--stdin", given=[os.path.normpath(path) for path in tracked])

    def _put(self, path: bytes, content: bytes) -> None:
        target = os.path.join(os.fsencode(self.root), path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "wb") as stream:
            stream.write(content)


def prepare(kind: str, folder: Path, home: Path) -> Ground:
    """Make a work tree of one kind."""
    excludes_file = home / "excludes"
    excludes_file.touch()
    main = GitRepository.create(folder / "main", {"a": "a"})
    main.git("config", "core.excludesFile", str(excludes_file))
    shared_exclude = main.path / ".git" / "info" / "exclude"
    if kind == "worktree":
        main.git("worktree", "add", "--quiet", str(folder / "other"))
        return Ground(folder / "other", shared_exclude, excludes_file)
    if kind == "submodule":
        outer = GitRepository.create(folder / "outer", {"b": "b"})
        outer.git("submodule", "--quiet", "add", str(main.path), "inner")
        inner = GitRepository(outer.path / "inner")
        inner.git("config", "core.excludesFile", str(excludes_file))
        return Ground(inner.path, outer.path / ".git" / "modules" / "inner" / "info" / "exclude", excludes_file)
    if kind == "any letter case":
        main.git("config", "core.ignoreCase", "true")
    return Ground(main.path, shared_exclude, excludes_file, "in ner" if kind == "folder inside" else "")


@dataclass(frozen=True)
class Match:
    """What `git check-ignore --verbose` says of a path."""

    source: bytes
    line: bytes
    pattern: bytes

    @property
    def ignored(self) -> bool:
        return bool(self.source) and not self.pattern.startswith(b"!")


def check_ignore(ground: Ground, paths: Sequence[bytes]) -> list[Match]:
    """Ask git which pattern decides on each path, relative to the top level, whether or not git tracks it.

    With the index, check-ignore would take `*.md`, the name of a file, for all that end so.
    """
    fields = ground.git("check-ignore", "--no-index", "--verbose", "--non-matching", "-z", "--stdin", given=paths)
    return [Match(*fields[start : start + 3]) for start in range(0, len(fields), 4)]


@st.composite
def cases(draw: st.DrawFn) -> tuple[bytes, list[bytes]]:
    """An ignore file, and paths that need not exist to be judged."""
    paths = draw(st.lists(paths_of(ALL_NAMES, ALL_NAMES), min_size=1, max_size=8))
    return draw(ignore_files(paths)), paths


@pytest.mark.parametrize("ignore_case", [False, True])
@pytest.mark.requirement("ignore-git-agrees")
def test_the_deciding_pattern_is_the_one_git_names(tmp_path: Path, ignore_case: bool) -> None:
    ground = prepare("any letter case" if ignore_case else "plain", tmp_path, tmp_path)

    @given(st.lists(cases(), min_size=1, max_size=10))
    def check(drawn: list[tuple[bytes, list[bytes]]]) -> None:
        ground.write(Tree([], {b"case%d" % number: content for number, (content, _) in enumerate(drawn)}))
        asked = [b"case%d/%s" % (number, path) for number, (_, paths) in enumerate(drawn) for path in paths]
        answers = iter(check_ignore(ground, asked))
        for content, paths in drawn:
            pattern_list = PatternList(content, ignore_case=ignore_case)
            for path in paths:
                match = next(answers)
                assert deciding(pattern_list, path) == (match.line, match.pattern), (content, path)

    check()


def deciding(pattern_list: PatternList, path: bytes) -> tuple[bytes, bytes]:
    """Line and text of the pattern that decides: that of the outermost ignored folder, else the last."""
    match = None
    for end in [*(end for end, byte in enumerate(path) if byte == ord("/")), len(path)]:
        match = pattern_list.last_match(path[:end], folder=end < len(path))
        if match and not match.negative:
            break
    return (b"%d" % match.line, match.text) if match else (b"", b"")


@pytest.mark.parametrize("kind", ["plain", "folder inside", "worktree", "submodule", "any letter case"])
@pytest.mark.requirement("ignore-git-agrees")
@pytest.mark.requirement("ignore-git-sources")
@pytest.mark.requirement("ignore-git-tracked")
def test_decisions_and_scans_agree_with_git(tmp_path: Path, kind: str) -> None:
    ground = prepare(kind, tmp_path, tmp_path)
    inner = ground.root.relative_to(ground.top)

    @settings(max_examples=settings().max_examples // 2)
    @given(trees())
    def check(tree: Tree) -> None:
        ground.write(tree)
        # A repository that ignores the root itself is left out of account, unlike in git.
        assume(not check_ignore(ground, [os.fsencode(inner)])[0].ignored if inner.name else True)
        rules = IgnoreRules(ground.root, {".md"})
        full = [os.path.normpath(os.path.join(os.fsencode(inner), path)) for path in tree.files]
        for path, match in zip(tree.files, check_ignore(ground, full), strict=True):
            reason = rules.reason(os.fsdecode(path))
            if path in tree.tracked or not match.ignored:
                assert reason is None
                continue
            assert reason is not None
            assert reason.endswith(printable(f":{match.line.decode()}: {os.fsdecode(match.pattern)}"))
            if match.source.endswith(b".gitignore"):
                source = os.path.relpath(ground.top / os.fsdecode(match.source), ground.root)
                assert reason.startswith(printable(source))
        listed = ground.git(
            "ls-files",
            "--cached",
            "--others",
            "--exclude-standard",
            "-z",
            "--",
            f"{inner}/" if inner.name else ".",
        )
        walk = rules.walk()
        prefix = os.fsencode(inner) + b"/" if inner.name else b""
        assert {prefix + os.fsencode(path) for path in walk.files} == {
            path for path in listed if path.lower().endswith(b".md")
        }

    check()


@pytest.mark.parametrize("kind", ["plain", "any letter case"])
@pytest.mark.requirement("ignore-reason")
@pytest.mark.requirement("ignore-screeignore-back")
def test_a_scan_finds_what_is_not_ignored(tmp_path: Path, kind: str) -> None:
    ground = prepare(kind, tmp_path, tmp_path)

    @settings(max_examples=settings().max_examples // 2)
    @given(trees(FOLDER_NAMES[:6] + OUT_BY_NAME, scree=True))
    def check(tree: Tree) -> None:
        ground.write(tree)
        rules = IgnoreRules(ground.root, {".md"})
        reasons = {os.fsdecode(path): rules.reason(os.fsdecode(path)) for path in tree.files}
        walk = rules.walk()
        assert walk.files.keys() == {path for path, reason in reasons.items() if reason is None}
        assert walk.skipped.items() >= {(path, reason) for path, reason in reasons.items() if path in walk.skipped}
        for reason in [*reasons.values(), *walk.skipped.values()]:
            assert reason is None or (reason and printable(reason) == reason)
        for path in walk.skipped:
            asked = path + "/" if (ground.root / path).is_dir() else path
            assert walk.skipped[path] == rules.reason(asked)

    check()


@pytest.mark.requirement("ignore-screeignore")
def test_screeignore_has_the_semantics_of_gitignore(tmp_path: Path) -> None:
    ground = prepare("plain", tmp_path, tmp_path)
    outside = Ground(tmp_path / "outside", tmp_path / "unused", tmp_path / "unused too")

    @settings(max_examples=settings().max_examples // 2)
    @given(trees())
    def check(tree: Tree) -> None:
        ground.write(Tree(tree.files, tree.ignore_files))
        outside.write(Tree(tree.files, scree_files=tree.ignore_files))
        rules = IgnoreRules(outside.top, {".md"})
        for path, match in zip(tree.files, check_ignore(ground, tree.files), strict=True):
            reason = rules.reason(os.fsdecode(path))
            assert (reason is not None) == match.ignored
            if reason:
                source = os.fsdecode(match.source).replace(".gitignore", ".screeignore")
                assert reason == printable(f"{source}:{match.line.decode()}: {os.fsdecode(match.pattern)}")

    check()
