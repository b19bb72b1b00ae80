"""What is known of one source file: its candidates for search, the calls and imports it shows; and how lines are cut.

Pure. Parsers find definitions; this module turns them into an `Outline`: the code between them, fragments of long
functions, chunks where there is nothing better. Refuses to parse, and to know any language.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

# The contract's: a function of more lines than this also gets fragments of so many lines, so many of them shared
# with the one before; what has no symbols is cut into chunks of so many lines.
LONG_FUNCTION_LINES = 48
FRAGMENT_LINES = 32
FRAGMENT_OVERLAP = 8
CHUNK_LINES = 60

# What gets fragments when it is long; of a longer class the methods are what one looks for.
FRAGMENTED_KINDS = frozenset({"function", "method"})

# Kinds whose functions are methods.
TYPES = frozenset({
    "class", "enum", "extension", "impl", "interface", "object", "protocol", "record", "struct", "trait", "union",
})  # fmt: skip

# A range cannot point at one definition of many in such a line: minified code. About ten times what style guides
# allow (80 to 120 characters).
MAX_LINE_CHARS = 1_000

BYTE_ORDER_MARK = "\ufeff"


@dataclass(frozen=True, slots=True)
class Candidate:
    """One searchable range of lines.

    Attributes:
        name: qualified, joined with dots whatever the language does: `Parser.parse`; empty for module-level code and
            chunks; for a fragment the function's.
        kind: `function`, `method`, `class` and so on for symbols, `module` for code between them, `chunk` for a piece
            of a file without symbols, `fragment` for a window of a long function.
        start_line: first line, 1-based; decorators, annotations and, outside Python, comments directly above belong
            to the symbol.
        end_line: last line, inclusive.
        parent: index of the enclosing symbol among the outline's candidates, for a fragment of its function; None at
            the top of the file.
    """

    name: str
    kind: str
    start_line: int
    end_line: int
    parent: int | None


@dataclass(frozen=True, slots=True)
class Call:
    """A place that calls something.

    Attributes:
        source: index of the innermost candidate (no fragment) around it.
        target: what is called, as written, joined with dots: `parse`, `self.parse`, `json.loads`.
    """

    source: int
    target: str


@dataclass(frozen=True, slots=True)
class Import:
    """A name that another module gives to this file.

    Attributes:
        name: by which this file knows it; `*` for every name of the module.
        module: the module as written: `json`, `..core.files`, `./parser`.
        member: the name it has there; empty where `name` is the module itself.
    """

    name: str
    module: str
    member: str


@dataclass(frozen=True, slots=True)
class Outline:
    """One source file.

    Attributes:
        candidates: in the order of their first line, a parent before what it holds, fragments behind their function.
        calls: each pair of source and target once, in order.
        imports: in the order of the file.
        parsed: False where the file should have had symbols, but could not be parsed and was cut into chunks.
    """

    candidates: tuple[Candidate, ...]
    calls: tuple[Call, ...]
    imports: tuple[Import, ...]
    parsed: bool


@dataclass(frozen=True, slots=True)
class Definition:
    """A symbol as a parser found it.

    Attributes:
        name: qualified.
        kind: see `Candidate`.
        start_line: first line, 1-based.
        end_line: last line, inclusive.
        parent: index of the enclosing definition among the file's, which is a smaller one; None at the top.
    """

    name: str
    kind: str
    start_line: int
    end_line: int
    parent: int | None


@dataclass(frozen=True, slots=True)
class CallSite:
    """A call as a parser found it.

    Attributes:
        definition: index of the innermost definition around it; None for module-level code.
        line: where it stands, 1-based.
        target: see `Call`.
    """

    definition: int | None
    line: int
    target: str


def unix_line_ends(source: str) -> str:
    """Return `source` with LF at the end of each line."""
    return source.replace("\r\n", "\n").replace("\r", "\n")


def split_lines(source: str) -> list[str]:
    """Return the lines of `source` without their ends, the way an editor counts: LF, CRLF or CR ends a line.

    No other character does, neither form feed nor U+2028. What follows the last end counts only if there is something.
    """
    lines = unix_line_ends(source).split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


def chunks(source: str, *, parsed: bool) -> Outline:
    """Return the outline of a file without symbols: chunks of 60 lines, none for blank ones.

    Args:
        source: the decoded file.
        parsed: False if it was expected to have symbols.
    """
    lines = split_lines(source)
    pieces = _pieces(lines, 1, len(lines), CHUNK_LINES)
    return Outline(tuple(Candidate("", "chunk", start, end, None) for start, end in pieces), (), (), parsed)


def assemble(
    source: str, definitions: Sequence[Definition], calls: Iterable[CallSite], imports: Iterable[Import]
) -> Outline:
    """Return the outline of a parsed file.

    Args:
        source: the decoded file.
        definitions: each behind its parent.
        calls: in any order.
        imports: in the order of the file.
    """
    lines = split_lines(source)
    # None: the module-level code, which is sorted in between.
    entries: list[tuple[int, int, int | None]] = [
        (definition.start_line, -definition.end_line, number) for number, definition in enumerate(definitions)
    ]
    entries += [(start, -end, None) for start, end in _gaps(lines, definitions)]
    entries.sort(key=lambda entry: (entry[0], entry[1], -1 if entry[2] is None else entry[2]))

    candidates: list[Candidate] = []
    places: dict[int, int] = {}
    module_lines: dict[int, int] = {}
    for start, negative_end, number in entries:
        place = len(candidates)
        if number is None:
            candidates.append(Candidate("", "module", start, -negative_end, None))
            module_lines.update(dict.fromkeys(range(start, -negative_end + 1), place))
            continue
        places[number] = place
        definition = definitions[number]
        parent = None if definition.parent is None else places[definition.parent]
        candidates.append(Candidate(definition.name, definition.kind, start, definition.end_line, parent))
        if definition.kind in FRAGMENTED_KINDS:
            candidates += (
                Candidate(definition.name, "fragment", first, last, place)
                for first, last in _windows(start, definition.end_line)
            )
    found: dict[Call, None] = {}
    for call in calls:
        source_place = module_lines.get(call.line) if call.definition is None else places[call.definition]
        if source_place is not None:
            found[Call(source_place, call.target)] = None
    return Outline(tuple(candidates), tuple(found), tuple(imports), parsed=True)


def _windows(start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the fragments of a function; none for a short one."""
    if end - start + 1 <= LONG_FUNCTION_LINES:
        return
    first = start
    while True:
        yield first, min(end, first + FRAGMENT_LINES - 1)
        if first + FRAGMENT_LINES > end:
            return
        first += FRAGMENT_LINES - FRAGMENT_OVERLAP


def _gaps(lines: Sequence[str], definitions: Iterable[Definition]) -> Iterator[tuple[int, int]]:
    """Yield the pieces of module-level code: runs of lines in no definition."""
    tops = sorted((top.start_line, top.end_line) for top in definitions if top.parent is None)
    next_line = 1
    for start, end in [*tops, (len(lines) + 1, len(lines) + 1)]:
        yield from _pieces(lines, next_line, start - 1, CHUNK_LINES)
        next_line = max(next_line, end + 1)


def _pieces(lines: Sequence[str], start: int, end: int, size: int) -> Iterator[tuple[int, int]]:
    """Yield lines `start` to `end` in pieces of `size` lines, without the blank lines around each."""
    for first in range(start, end + 1, size):
        filled = [line for line in range(first, min(end, first + size - 1) + 1) if not lines[line - 1].isspace()]
        filled = [line for line in filled if lines[line - 1]]
        if filled:
            yield filled[0], filled[-1]
