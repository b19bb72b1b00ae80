"""Single patterns, chosen for what they are easily got wrong; the real git confirms each expectation."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from scree.core.gitignore_patterns import PatternList
from tests.repositories import GIT_SECONDS, GitRepository

# An ignore file, what of these paths it ignores, and what not. No path needs to exist; `a` in `a/b` is a folder.
CASES: list[tuple[bytes, list[bytes], list[bytes]]] = [
    # Names and anchors
    (b"x", [b"x", b"a/x", b"x/a", b"a/x/b"], [b"xx", b"ax"]),
    (b"/x", [b"x", b"x/a"], [b"a/x"]),
    (b"a/x", [b"a/x", b"a/x/b"], [b"b/a/x", b"a/b/x"]),
    (b"x/", [b"x/a", b"a/x/b"], [b"x", b"a/x"]),
    (b"a/x/", [b"a/x/b"], [b"a/x", b"b/a/x/c"]),
    (b"/", [], [b"x", b"a/x"]),
    (b"//x", [], [b"x", b"a/x"]),
    (b"x//", [], [b"x", b"x/a"]),
    # One star, one byte
    (b"*.x", [b"a.x", b".x", b"b/a.x"], [b"a.xx"]),
    (b"a/*", [b"a/b", b"a/b/c"], [b"a", b"b/a/c"]),
    (b"*/x", [b"a/x"], [b"x", b"a/b/x"]),
    (b"a*b*c", [b"abc", b"axbxc", b"abbcc"], [b"ab", b"acb", b"a/bc"]),
    (b"?", [b"a", b"b/a"], [b"ab", "é".encode()]),
    (b"??", ["é".encode()], [b"a"]),
    # Two stars
    (b"**", [b"a", b"a/b"], []),
    (b"**/x", [b"x", b"a/x", b"a/b/x"], [b"ax"]),
    (b"a/**", [b"a/b", b"a/b/c"], [b"a", b"b/a/c"]),
    (b"a/**/x", [b"a/x", b"a/b/x", b"a/b/c/x"], [b"ax", b"a/bx", b"b/a/x"]),
    (b"a/**/b/**/x", [b"a/b/x", b"a/c/b/d/x", b"a/b/b/x"], [b"a/x", b"a/c/x"]),
    (b"a/**/**/x", [b"a/x", b"a/b/c/x"], [b"ax"]),
    (b"**/*/x", [b"a/x", b"a/b/x"], [b"x"]),
    (b"a**", [b"a", b"ab", b"b/ab"], [b"ba"]),
    (b"*a**/x", [b"ba/x", b"bab/x"], [b"ba/b/x", b"x"]),
    (b"a**/x", [b"a/x", b"ab/x", b"ab/c/x", b"ax"], [b"b/x"]),
    (b"a/b**", [b"a/b", b"a/bc", b"a/bc/d"], [b"a/c"]),
    (b"a/**\\/x", [b"a/b/x"], [b"a/x"]),
    (b"a/***/x", [b"a/x", b"a/b/c/x"], [b"ax"]),
    # Escapes, comments, spaces, line ends
    (b"#x", [], [b"#x", b"x"]),
    (b"\\#x", [b"#x"], [b"x", b"\\#x"]),
    (b"\\!x", [b"!x"], [b"x"]),
    (b"\\*", [b"*"], [b"a", b"\\*"]),
    (b"a\\b", [b"ab"], [b"a\\b"]),
    (b"a\\\\b", [b"a\\b"], [b"ab"]),
    (b"x\\", [], [b"x", b"x\\"]),
    (b"x  ", [b"x"], [b"x  "]),
    (b"x\\ ", [b"x "], [b"x", b"x\\"]),
    (b"x\\  ", [b"x "], [b"x", b"x  "]),
    (b"x\\\\ ", [b"x\\"], [b"x", b"x\\ "]),
    (b"x\t", [b"x\t"], [b"x"]),
    (b" x", [b" x"], [b"x"]),
    (b"x\r\ny\r\n", [b"x", b"y"], [b"x\r"]),
    (b"x\r", [b"x"], [b"x\r"]),
    (b"x\r\r\n", [b"x\r"], [b"x"]),
    (b"\xef\xbb\xbfx\n\xef\xbb\xbfy", [b"x", b"\xef\xbb\xbfy"], [b"y", b"\xef\xbb\xbfx"]),
    (b"x\0y", [b"x"], [b"y", b"xy"]),
    # Brackets
    (b"[ab]", [b"a", b"b"], [b"c", b"ab", b"[ab]"]),
    (b"[!ab]", [b"c", b"!"], [b"a", b"b"]),
    (b"[^ab]", [b"c", b"^"], [b"a"]),
    (b"[a-c]", [b"b"], [b"d", b"-"]),
    (b"[c-a]", [b"c"], [b"a", b"b", b"-"]),
    (b"[]a]", [b"]", b"a"], [b"b"]),
    (b"[!]a]", [b"b"], [b"]", b"a"]),
    (b"[a-]", [b"a", b"-"], [b"b"]),
    (b"[-a]", [b"a", b"-"], [b"b"]),
    (b"[--0]", [b"-", b"0"], [b"1"]),
    (b"[a-c-e]", [b"b", b"-", b"e"], [b"d"]),
    (b"[\\]a]", [b"]", b"a"], [b"\\"]),
    (b"[\\a-c]", [b"b"], [b"\\"]),
    (b"[a-\\c]", [b"b"], [b"\\"]),
    (b"[[:alpha:]]", [b"a", b"Z"], [b"1", b":", b"\xc3"]),
    (b"[[:alpha:]-z]", [b"-", b"a"], [b"1"]),
    (b"[[:space:]]", [b" ", b"\t"], [b"\x0b", b"\x0c"]),
    (b"[[:punct:][:digit:]]", [b"!", b"7"], [b"a"]),
    (b"[[:nothing:]]", [], [b"a", b":", b"n"]),
    (b"[[:]", [b"[", b":"], [b"a"]),
    (b"[[:a]", [b"[", b":", b"a"], [b"b"]),
    (b"[[::]]", [], [b"[", b":", b":]"]),
    (b"[a", [], [b"a", b"[a"]),
    (b"[", [], [b"["]),
    (b"[]", [], [b"]", b"[]"]),
    (b"a[/]b", [], [b"a/b"]),
    (b"a[!x]b", [b"acb"], [b"a/b"]),
    ("[é]".encode(), [b"\xc3", b"\xa9"], ["é".encode()]),
    (b"{a,b}", [b"{a,b}"], [b"a", b"b"]),
    # What comes last counts, except inside a folder that is ignored
    (b"*.x\n!a.x", [b"b.x"], [b"a.x", b"c/a.x"]),
    (b"!a.x\n*.x", [b"a.x"], []),
    (b"a\n!a/b", [b"a/b", b"a/c"], []),
    (b"a/*\n!a/b", [b"a/c"], [b"a/b", b"a/b/c"]),
    (b"/*\n!/a/\n/a/*\n!/a/b/", [b"x", b"a/x", b"a/x/y", b"a"], [b"a/b/c"]),
    (b"*\n!*/\n!*.x", [b"a", b"b/a"], [b"a.x", b"b/a.x"]),
]


def ignores(patterns: PatternList, path: bytes) -> bool:
    """Whether the path or a folder on its way is ignored."""
    ends = [*(end for end, byte in enumerate(path) if byte == ord("/")), len(path)]
    matches = [patterns.last_match(path[:end], folder=end < len(path)) for end in ends]
    return any(match and not match.negative for match in matches)


@pytest.mark.parametrize(("content", "ignored", "kept"), CASES)
def test_a_pattern_matches(content: bytes, ignored: list[bytes], kept: list[bytes]) -> None:
    patterns = PatternList(content)
    assert [path for path in ignored + kept if ignores(patterns, path)] == ignored


def ignored_by_git(repository: GitRepository, paths: list[bytes]) -> list[bytes]:
    """Those of `paths` that git ignores."""
    done = subprocess.run(
        ["git", "-C", repository.path, "check-ignore", "--no-index", "-z", "--stdin"],
        input=b"".join(path + b"\0" for path in paths),
        capture_output=True,
        timeout=GIT_SECONDS,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr  # 1: none
    return done.stdout.split(b"\0")[:-1]


@pytest.mark.requirement("ignore-git-agrees")
def test_git_has_the_same_expectations(tmp_path: Path) -> None:
    repository = GitRepository.create(tmp_path)
    asked: list[bytes] = []
    expected: list[bytes] = []
    for number, (content, ignored, kept) in enumerate(CASES):
        repository.write({f"{number}/.gitignore": content})
        asked += [b"%d/%s" % (number, path) for path in ignored + kept]
        expected += [b"%d/%s" % (number, path) for path in ignored]
    assert ignored_by_git(repository, asked) == expected


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        (b"Ab", [b"ab", b"AB"], ["Äb".encode()]),
        (b"*.Md", [b"x.MD"], []),
        (b"A/b", [b"a/B"], []),
        (b"[a-c]", [b"B"], [b"D"]),
        (b"[A-C]", [b"b", b"B"], []),
        # git lowers the case of the name, not that of an escaped letter or of one in brackets.
        (b"[A]", [], [b"a", b"A"]),
        (b"\\A", [], [b"a", b"A"]),
        (b"[[:upper:]]", [b"a", b"A"], [b"1"]),
        (b"[!a]", [b"b", b"B"], [b"a", b"A"]),
    ],
)
@pytest.mark.requirement("ignore-git-agrees")
def test_letter_case_may_not_count(tmp_path: Path, pattern: bytes, matching: list[bytes], other: list[bytes]) -> None:
    patterns = PatternList(pattern, ignore_case=True)
    assert [path for path in matching + other if ignores(patterns, path)] == matching
    repository = GitRepository.create(tmp_path, {".gitignore": pattern})
    repository.git("config", "core.ignoreCase", "true")
    assert ignored_by_git(repository, matching + other) == matching


@pytest.mark.parametrize(
    ("content", "folder", "expected"),
    [
        (b"!a/b/c.md", b"a", True),
        (b"!a/b/c.md", b"a/b", True),
        (b"!a/b/c.md", b"a/b/c.md", False),
        (b"!a/b/c.md", b"a/x", False),
        (b"!a/b/c.md", b"ab", False),
        (b"!/a/*/c.md", b"a/x", True),
        (b"!/a/*/c.md", b"a/x/y", False),
        (b"!a/v*/c.md", b"a/w", False),
        (b"!a/**", b"a/b/c/d", True),
        (b"!c.md", b"a", False),
        (b"!**/c.md", b"a", False),
        (b"!/**/c.md", b"a", False),
        (b"a/b/c.md", b"a", False),
    ],
)
def test_where_something_may_come_back(content: bytes, folder: bytes, expected: bool) -> None:
    assert PatternList(content).may_bring_back_below(folder) == expected
    assert PatternList(content.upper(), ignore_case=True).may_bring_back_below(folder) == expected
