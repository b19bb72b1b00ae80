"""Ignore files as git reads them: the bytes of one file in, the last pattern that matches a path out. Pure.

Only matching lives here. Which files apply, in which order, and what a match means for what lies below a
folder is decided by the caller. Patterns and paths are bytes, as in git: `?` is one byte of a name, not one
character.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

UTF8_BOM = b"\xef\xbb\xbf"
WILDCARD = re.compile(rb"[*?[\\]")

# git's own character classes: ASCII, and `space` without vertical tab and form feed (git's ctype.c).
LOWER = frozenset(b"abcdefghijklmnopqrstuvwxyz")
UPPER = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ")
DIGIT = frozenset(b"0123456789")
GRAPHIC = frozenset(range(0x21, 0x7F))
CLASSES = {
    b"alnum": LOWER | UPPER | DIGIT,
    b"alpha": LOWER | UPPER,
    b"blank": frozenset(b" \t"),
    b"cntrl": frozenset(range(0x20)) | {0x7F},
    b"digit": DIGIT,
    b"graph": GRAPHIC,
    b"lower": LOWER,
    b"print": GRAPHIC | {0x20},
    b"punct": GRAPHIC - LOWER - UPPER - DIGIT,
    b"space": frozenset(b" \t\n\r"),
    b"upper": UPPER,
    b"xdigit": DIGIT | frozenset(b"abcdefABCDEF"),
}

# In brackets: a class, a range, or a single byte; a backslash takes what follows literally.
BRACKET_ITEM = re.compile(rb"\[:(?P<named>[^]]*):\]|(?P<low>\\?.)(?:-(?P<high>\\.|[^]\\]))?", re.DOTALL)

# A name of a pattern as the regular expressions between its stars: `a*b?` is [a, b[^/]].
_Name = list[bytes]


@dataclass(frozen=True, slots=True)
class Pattern:
    """One line of an ignore file.

    Attributes:
        line: its number, from 1.
        text: the line without its line end and without the trailing spaces that do not count.
        negative: whether it brings back (`!`).
        folder_only: whether it matches folders only (it ends with `/`).
        anchored: whether it matches the path from the ignore file's folder; else the name alone, at any
            depth.
        regex: what that path, or that name, must match as a whole.
        start: what stands before the first wildcard, without `!` and a leading `/`.
        depth: how many names a matching path has at most; None where `**` sets no limit.
    """

    line: int
    text: bytes
    negative: bool
    folder_only: bool
    anchored: bool
    regex: bytes
    start: bytes
    depth: int | None

    @property
    def plain(self) -> bool:
        """Whether it is without wildcards."""
        return self.regex == re.escape(self.start)

    @property
    def names_a_place(self) -> bool:
        """Whether it says where to look; `name` and `**/name` do not, they match in every folder."""
        return self.anchored and (bool(self.start) or self.depth is not None)


class PatternList:
    """The patterns of one ignore file, compiled as they are needed."""

    def __init__(self, data: bytes, *, ignore_case: bool = False) -> None:
        """Read the content of an ignore file.

        Args:
            data: the content.
            ignore_case: git's `core.ignoreCase`: ASCII letters match in either case.
        """
        self._ignore_case = ignore_case
        self._patterns = tuple(_parse(data, ignore_case))
        self._returning = [one for one in self._patterns if one.negative and one.names_a_place]
        self._compiled: dict[tuple[bool, bool], tuple[_Matcher, _Matcher]] = {}

    def __bool__(self) -> bool:
        return bool(self._patterns)

    def last_match(self, path: bytes, *, folder: bool, places_only: bool = False) -> Pattern | None:
        """Return the last pattern that matches `path`, or None.

        Args:
            path: relative to the ignore file's folder, with `/` between names and none at the end.
            folder: whether it is a folder.
            places_only: leave out negative patterns that do not name a place.
        """
        compiled = self._compiled.get((folder, places_only))
        if compiled is None:
            compiled = self._compiled[folder, places_only] = self._compile(folder, places_only)
        by_path, by_name = compiled
        return _later(by_path.last(path), by_name.last(path[path.rfind(b"/") + 1 :]))

    def may_bring_back_below(self, folder: bytes) -> bool:
        """Whether a negative pattern that names a place can match inside `folder`.

        Sometimes true where nothing there can match, never false where something can.
        """
        inside = _fold(folder + b"/", self._ignore_case)
        for pattern in self._returning:
            start = _fold(pattern.start, self._ignore_case)
            deep_enough = pattern.depth is None or inside.count(b"/") < pattern.depth
            if deep_enough and (inside.startswith(start) or start.startswith(inside)):
                return True
        return False

    def _compile(self, folder: bool, places_only: bool) -> tuple[_Matcher, _Matcher]:
        eligible = [
            pattern
            for pattern in self._patterns
            if (folder or not pattern.folder_only)
            and not (places_only and pattern.negative and not pattern.names_a_place)
        ]
        return (
            _Matcher([pattern for pattern in eligible if pattern.anchored], self._ignore_case),
            _Matcher([pattern for pattern in eligible if not pattern.anchored], self._ignore_case),
        )


class _Matcher:
    """Finds the last of some patterns that matches a subject, all of them by path or all by name."""

    def __init__(self, patterns: Sequence[Pattern], ignore_case: bool) -> None:
        self._ignore_case = ignore_case
        # Most patterns of most files are plain names, and there a dictionary is several times faster.
        self._plain = {_fold(pattern.start, ignore_case): pattern for pattern in patterns if pattern.plain}
        self._latest_first = [pattern for pattern in reversed(patterns) if not pattern.plain]
        regex = b"(?:%s)\\Z" % b"|".join(b"(%s)" % pattern.regex for pattern in self._latest_first)
        self._match = re.compile(regex, re.DOTALL | (re.IGNORECASE if ignore_case else 0)).match

    def last(self, subject: bytes) -> Pattern | None:
        plain = self._plain.get(_fold(subject, self._ignore_case))
        found = self._match(subject) if self._latest_first else None
        return _later(plain, self._latest_first[found.lastindex - 1]) if found and found.lastindex else plain


def _fold(path: bytes, ignore_case: bool) -> bytes:
    return path.lower() if ignore_case else path


def _later(one: Pattern | None, other: Pattern | None) -> Pattern | None:
    if one is None or other is None:
        return one or other
    return one if one.line > other.line else other


def _parse(data: bytes, ignore_case: bool) -> Iterator[Pattern]:
    for number, line in enumerate(data.removeprefix(UTF8_BOM).split(b"\n"), start=1):
        if line.startswith(b"#"):
            continue
        text = _without_trailing_spaces(line.removesuffix(b"\r").partition(b"\0")[0])
        negative = text.startswith(b"!")
        pattern = text[negative:]
        folder_only = pattern.endswith(b"/")
        pattern = pattern[:-1] if folder_only else pattern
        anchored = b"/" in pattern
        pattern = pattern.removeprefix(b"/")
        wildcard = WILDCARD.search(pattern)
        start = pattern[: wildcard.start()] if wildcard else pattern
        names = _names(pattern[len(start) :], ignore_case)
        if not pattern or names is None:
            continue
        regex = re.escape(start) + (_path_regex(names) if anchored else _name_regex(names[0]))
        depth = None if b"**" in pattern else pattern.count(b"/") + 1
        yield Pattern(number, text, negative, folder_only, anchored, regex, start, depth)


def _without_trailing_spaces(line: bytes) -> bytes:
    kept = line.rstrip(b" ")
    backslashes = len(kept) - len(kept.rstrip(b"\\"))
    return line[: len(kept) + 1] if backslashes % 2 else kept


def _names(pattern: bytes, ignore_case: bool) -> list[_Name] | None:
    """Split a pattern at its slashes and stars; None for one that is malformed and in git matches nothing."""
    names: list[_Name] = [[b""]]
    position = 0
    while position < len(pattern):
        byte = pattern[position : position + 1]
        position += 1
        if byte == b"/":
            names.append([b""])
        elif byte == b"*":
            names[-1].append(b"")
        elif byte == b"?":
            names[-1][-1] += b"[^/]"
        elif byte == b"[":
            bracket = _bracket(pattern, position, ignore_case)
            if bracket is None:
                return None
            names[-1][-1] += bracket[0]
            position = bracket[1]
        elif byte == b"\\":
            escaped = pattern[position : position + 1]
            position += 1
            # git lowers the case of what it looks at, but not of an escaped letter.
            if not escaped or (ignore_case and escaped.isupper()):
                return None
            if escaped == b"/":
                # Unlike `**/`, `**\/` wants at least one folder.
                names += [[b"", b""], [b""]] if _any_folders(names[-1]) else [[b""]]
            else:
                names[-1][-1] += re.escape(escaped)
        else:
            names[-1][-1] += re.escape(byte)
    return names


def _any_folders(name: _Name) -> bool:
    """Whether a name of a pattern is `**`."""
    return len(name) > 2 and not any(name)


def _name_regex(name: _Name) -> bytes:
    """Match one name.

    What stands between two stars is matched as early as possible and never tried again: it has a fixed
    length, so an early match leaves the most room, and no pattern can make the search take exponential time.
    """
    first, *rest = name
    if not rest:
        return first
    return first + b"".join(b"(?>[^/]*?%s)" % between for between in rest[:-1]) + b"[^/]*" + rest[-1]


def _path_regex(names: Sequence[_Name]) -> bytes:
    """Match a whole path; what stands between two `**` is treated like what stands between two stars."""
    groups: list[list[bytes]] = [[]]
    for name in names:
        if _any_folders(name):
            groups.append([])
        else:
            groups[-1].append(_name_regex(name))
    first, *rest = (b"/".join(group) + b"/" if group else b"" for group in groups)
    if not rest:
        return first[:-1]
    between = b"".join(b"(?>(?:[^/]*/)*?%s)" % group for group in rest[:-1] if group)
    return first + between + (b"(?:[^/]*/)*" + rest[-1][:-1] if rest[-1] else b".*")


def _bracket(pattern: bytes, position: int, ignore_case: bool) -> tuple[bytes, int] | None:
    """Read a bracket expression whose `[` stands just before `position`.

    Returns:
        A regular expression for one byte and the position after the `]`; None where git finds it malformed.
    """
    negated = pattern.startswith((b"!", b"^"), position)
    position += negated
    members: set[int] = set()
    first = True
    while first or not pattern.startswith(b"]", position):
        first = False
        item = BRACKET_ITEM.match(pattern, position)
        if item is None or (item["named"] is not None and item["named"] not in CLASSES):
            return None
        position = item.end()
        if item["named"]:
            members |= CLASSES[item["named"]]
            if ignore_case and item["named"] == b"upper":
                members |= LOWER
            continue
        low = item["low"][-1]
        members.add(low)
        if item["high"]:
            span = bytes(range(low, item["high"][-1] + 1))
            members.update(span + span.lower() if ignore_case else span)
    if ignore_case:
        # git lowers the case of the byte it looks at, and that of ranges, but not that of single members.
        members = {byte for byte in range(256) if bytes([byte]).lower()[0] in members}
    members = (set(range(256)) - members if negated else members) - {ord("/")}
    one_of = b"".join(b"\\x%02x" % byte for byte in sorted(members))
    return b"[%s]" % one_of if one_of else b"(?!)", position + 1
