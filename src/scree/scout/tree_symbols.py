"""Source → outline in any language that has a tree-sitter grammar and a query file, `queries/<language>.scm`.

Pure but for the grammars and queries, which are part of the package, and for a clock that ends a parse that gets lost.
It knows captures, not languages:

- `@definition.<kind>` is a symbol, `@name` its name as it stands, `@path` a name of several parts (`A::b`),
  `@qualifier` what comes before the name although it stands elsewhere (Go's receiver); a pattern without a name in
  the source sets one: `(#set! name "default")`.
- `@scope` gives its name to what is inside it, `@scope.rest` to the rest of the file; neither is a symbol.
- `@wider` around `@inner` is the range of a symbol that is `@inner`: `export`, `template <…>`.
- `@lead` directly above a symbol belongs to it: comments, attributes, decorators.
- `@call` is what a call calls; `@import.module`, `@import.name`, `@import.member` are an import's parts.

Several `@name`s are one name with what is between them. Of several definitions that share one the widest counts, then
the one whose pattern comes first. `(#set! merge "true")` joins neighbours of one name, for languages that write a
function as several equations. A function directly in a type is a method.
"""

from __future__ import annotations

import math
import re
import time
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from importlib.resources import files
from typing import TYPE_CHECKING

from scree.scout.languages import TABLE_BY_NAME, Language
from scree.scout.outlines import (
    MAX_LINE_CHARS,
    TYPES,
    CallSite,
    Definition,
    Import,
    Outline,
    assemble,
    chunks,
    split_lines,
    unix_line_ends,
)

if TYPE_CHECKING:
    import tree_sitter

DEFINITION = "definition."
SCOPE = "scope"
SCOPE_REST = "scope.rest"

# What joins the parts of a path in some language: A::b, a.b, a:b, a\b, a->b, a?.b.
SEPARATOR = re.compile(r"\s*(?:::|->|\?\.|[.:\\])\s*")
# `name with spaces`, 'key'
QUOTED = re.compile(r"^([\"'`])(.+)\1$")
TYPE_ARGUMENTS = re.compile(r"<[^<>]*>")
OPERATOR = re.compile(r"\boperator\b.*", re.DOTALL)
CALLEE = re.compile(r"[\w$@]+(?:(?:::|->|\?\.|[.:\\])[\w$]+[?!]?)*[?!]?")

# A file without symbols of which more than half is an error is not in the language that its name says; our choice.
MAX_ERROR_SHARE = 0.5
# CPU time. A file of the largest size takes half a second; with some nonsense time grows with the square of the size.
MAX_PARSE_SECONDS = 5.0
# How much the parser is handed at once; it asks again for where it goes back to.
READ_BYTES = 4_096
# A query looks at each pair of an error's children: 0.1 s for so many, a minute for all that a file may have.
MAX_ERROR_CHILDREN = 10_000
# Deeper than 65,535 levels, which only machines write, a query takes minutes; no symbol is anywhere near.
MAX_DEPTH = 10_000
# A longer chain of calls is not a name.
MAX_CALLEE_BYTES = 200
# Type arguments in type arguments that nothing closes: what the parser then remembers grows with the square of their
# number, 50 MB for so many and 4 GB for twenty times as many (Java, C#, TypeScript, C++).
MAX_OPEN_ANGLES = 1_000
CLOSES_ANGLES = re.compile(rb"[>;(){}]")

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class _Grammar:
    parser: tree_sitter.Parser
    query: tree_sitter.Query
    settings: tuple[Mapping[str, str | None], ...]


@cache
def _grammar(name: str) -> _Grammar:
    # Imported here, for a search that reads an index needs no grammar.
    from tree_sitter import Language as Loaded
    from tree_sitter import Parser, Query

    module, function = TABLE_BY_NAME[name].grammar.split(":")
    loaded = Loaded(getattr(import_module(module), function)())
    query = Query(loaded, files(__package__).joinpath("queries", f"{name}.scm").read_text(encoding="utf-8"))
    return _Grammar(Parser(loaded), query, tuple(map(query.pattern_settings, range(query.pattern_count))))


@dataclass(slots=True)
class _Symbol:
    """A definition or scope on its way; `span` in bytes, rows 0-based."""

    span: Span
    rows: Span
    name: str
    kind: str
    merge: bool
    rank: tuple[int, int]


@dataclass(slots=True)
class _Found:
    """What the query found in one file."""

    text: bytes
    symbols: dict[Span, _Symbol] = field(default_factory=dict)
    wider: dict[Span, tuple[Span, Span]] = field(default_factory=dict)
    leads: list[tree_sitter.Node] = field(default_factory=list)
    calls: list[tuple[int, int, str]] = field(default_factory=list)
    imports: list[Import] = field(default_factory=list)


def tree_outline(source: str, language: Language) -> Outline:
    """Return the symbols that the language's query finds, and the code between them.

    Not for two threads at once: a language has one parser.

    Args:
        source: the decoded file.
        language: one with a grammar.
    """
    # The parser ends lines at LF alone, and reads bytes: a lone surrogate has none. Kotlin's looks for the end of an
    # annotation's line for ever where the last line has none.
    text = unix_line_ends(source).encode("utf-8", "replace") + b"\n"
    grammar, root, errors = _best_parse(text, _grammars(source, language))
    found = _Found(text) if root is None or errors == math.inf else _search(root, text, grammar)
    # Macros can hide a namespace's end, and most of a good file is an error; its functions are found all the same.
    if errors > MAX_ERROR_SHARE * len(text) and not found.symbols:
        return chunks(source, parsed=False)
    lines = split_lines(source)
    definitions, spans = _nest(_ranges(found, lines), lines)
    return assemble(source, definitions, _calls(found, definitions, spans), found.imports)


def _grammars(source: str, language: Language) -> list[str]:
    """Return the names of the grammars to try, the likelier first."""
    if not language.second_grammar:
        return [language.name]
    if re.search(f"^(?:{language.second_sign})", source, re.MULTILINE):
        return [language.second_grammar]
    return [language.name, language.second_grammar]


def _best_parse(text: bytes, names: Sequence[str]) -> tuple[_Grammar, tree_sitter.Node | None, float]:
    """Parse with one grammar after the other until there is no error; return the best, its root and bytes in error."""
    parses = []
    for name in names:
        grammar = _grammar(name)
        root = _parse(text, grammar)
        errors = _error_bytes(root)
        parses.append((grammar, root, errors))
        if not errors:
            break
    return min(parses, key=lambda parse: parse[2])


def _parse(text: bytes, grammar: _Grammar) -> tree_sitter.Node | None:
    """Return the root of the tree; None where there is none to be had in time and space."""
    if _open_angles(text) > MAX_OPEN_ANGLES:
        return None
    latest = time.thread_time() + MAX_PARSE_SECONDS
    try:
        return grammar.parser.parse(
            lambda offset, _: text[offset : offset + READ_BYTES],
            progress_callback=lambda _, __: time.thread_time() > latest,
        ).root_node
    except ValueError:
        grammar.parser.reset()
        return None


def _open_angles(text: bytes) -> int:
    """Return how many `<` stand at most in a row without anything that ends type arguments; 0 for few in all."""
    if text.count(b"<") <= MAX_OPEN_ANGLES:
        return 0
    return max(piece.count(b"<") for piece in CLOSES_ANGLES.split(text))


def _error_bytes(root: tree_sitter.Node | None) -> float:
    """Return how much of a tree could not be parsed; infinity without one, and where a query would take minutes."""
    if root is None:
        return math.inf
    total = 0
    nodes = [root]
    while nodes:
        node = nodes.pop()
        if node.is_error:
            if node.child_count > MAX_ERROR_CHILDREN:
                return math.inf
            total += node.end_byte - node.start_byte
        else:
            nodes += (child for child in node.children if child.has_error)
    return total


def _search(root: tree_sitter.Node, text: bytes, grammar: _Grammar) -> _Found:
    from tree_sitter import QueryCursor

    found = _Found(text)
    cursor = QueryCursor(grammar.query)
    cursor.set_max_start_depth(MAX_DEPTH)
    for pattern, captures in cursor.matches(root):
        _note(found, captures, pattern, grammar.settings[pattern])
    return found


def _note(
    found: _Found,
    captures: Mapping[str, list[tree_sitter.Node]],
    pattern: int,
    settings: Mapping[str, str | None],
) -> None:
    """Sort one match into `found`."""
    for capture, nodes in captures.items():
        node = nodes[0]
        if capture == "lead":
            found.leads.append(node)
        elif capture == "call" and node.end_byte - node.start_byte <= MAX_CALLEE_BYTES:
            callee = TYPE_ARGUMENTS.sub("", ".".join(map(_text, [*captures.get("call.object", ()), node])))
            if CALLEE.fullmatch(callee):
                found.calls.append((node.start_byte, node.start_point.row, SEPARATOR.sub(".", callee)))
        elif capture == "wider":
            inner = captures["inner"][0]
            found.wider[inner.start_byte, inner.end_byte] = (node.start_byte, node.end_byte), _rows(node)
        elif capture == "import.module":
            found.imports.append(_import(captures, settings))
        elif capture.startswith((SCOPE, DEFINITION)):
            _define(found, node, capture, captures, pattern, settings)


def _define(
    found: _Found,
    node: tree_sitter.Node,
    capture: str,
    captures: Mapping[str, list[tree_sitter.Node]],
    pattern: int,
    settings: Mapping[str, str | None],
) -> None:
    names = captures.get("name") or captures.get("path") or [node]
    key = (names[0].start_byte, names[-1].end_byte)
    span = (node.start_byte, len(found.text) if capture == SCOPE_REST else node.end_byte)
    rank = (span[0] - span[1], pattern)
    known = found.symbols.get(key)
    if known is not None and known.rank <= rank:
        return
    if names[0] is node:
        name = settings.get("name") or ""
    else:
        name = " ".join(found.text[slice(*key)].decode("utf-8", "replace").split())
        name = QUOTED.sub(r"\2", name) if "name" in captures else _dotted(name)
    qualifier = ".".join(_dotted(_text(each)) for each in captures.get("qualifier", ()))
    full_name = f"{qualifier}.{name}" if qualifier else name
    kind = SCOPE if capture == SCOPE_REST else capture.removeprefix(DEFINITION)
    found.symbols[key] = _Symbol(span, _rows(node), full_name, kind, settings.get("merge") == "true", rank)


def _import(captures: Mapping[str, list[tree_sitter.Node]], settings: Mapping[str, str | None]) -> Import:
    def part(which: str) -> str:
        nodes = captures.get(f"import.{which}")
        return _text(nodes[0]).strip("\"'`<>") if nodes else settings.get(which) or ""

    module, name, member = part("module"), part("name"), part("member")
    return Import(name or member or SEPARATOR.split(module.rstrip("/"))[-1].rsplit("/", 1)[-1], module, member)


def _text(node: tree_sitter.Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")


def _rows(node: tree_sitter.Node) -> Span:
    """Return first and last row; a node that takes the line end with it does not reach into the next line."""
    first, (last, column) = node.start_point.row, node.end_point
    return first, last - 1 if column == 0 and last > first else last


def _dotted(path: str) -> str:
    """Return a path with dots and without type arguments: `ns::A<T>::b` is `ns.A.b`."""
    operator = OPERATOR.search(path)
    tail = operator.group() if operator else ""
    path = path.removesuffix(tail)
    while path != (shorter := TYPE_ARGUMENTS.sub("", path)):
        path = shorter
    return SEPARATOR.sub(".", " ".join(path.split())) + " ".join(tail.split())


def _ranges(found: _Found, lines: Sequence[str]) -> list[_Symbol]:
    """Return the symbols with the range they are shown with, in order, a parent before what it holds."""
    leads: dict[int, int] = {}
    for node in found.leads:
        first, last = _rows(node)
        if first < len(lines) and not lines[first][: node.start_point.column].strip():
            leads[last] = min(first, leads.get(last, first))
    symbols = []
    for symbol in found.symbols.values():
        span, rows = symbol.span, symbol.rows
        while span in found.wider:
            wider, rows = found.wider[span]
            if wider == span:
                break
            span = wider
        first, last = rows
        if first >= len(lines) or len(lines[first]) > MAX_LINE_CHARS:
            continue
        before = found.text[found.text.rfind(b"\n", 0, span[0]) + 1 : span[0]]
        # What leads to the first symbol of a line is not the next one's.
        if first in leads or not before.strip():
            first = min(first, leads.get(first, first))
            while first - 1 in leads:
                first = leads[first - 1]
        symbols.append(replace(symbol, span=span, rows=(first, min(last, len(lines) - 1))))
    symbols.sort(key=lambda each: (each.span[0], -each.span[1]))
    return symbols


def _nest(symbols: Sequence[_Symbol], lines: Sequence[str]) -> tuple[list[Definition], list[Span]]:
    """Return the definitions, qualified and each with its parent, and their spans."""
    definitions: list[Definition] = []
    spans: list[Span] = []
    # Around the present one: end, qualified name, kind, index of the innermost definition.
    stack: list[tuple[int, str, str, int | None]] = []
    for symbol in symbols:
        while stack and stack[-1][0] < symbol.span[1]:
            stack.pop()
        _, outer, outer_kind, parent = stack[-1] if stack else (0, "", "", None)
        name = f"{outer}.{symbol.name}" if outer and symbol.name else outer or symbol.name
        index = parent
        if symbol.kind != SCOPE:
            kind = "method" if symbol.kind == "function" and outer_kind in TYPES else symbol.kind
            first, last = symbol.rows
            # Among errors a symbol may be led to by something that its parent is part of.
            if parent is not None:
                first = max(first, definitions[parent].start_line - 1)
            new = Definition(name, kind, first + 1, last + 1, parent)
            if symbol.merge and definitions and _continues(definitions[-1], new, lines):
                definitions[-1] = replace(definitions[-1], end_line=max(new.end_line, definitions[-1].end_line))
                spans[-1] = (spans[-1][0], symbol.span[1])
            else:
                definitions.append(new)
                spans.append(symbol.span)
            index = len(definitions) - 1
        stack.append((symbol.span[1], name, symbol.kind, index))
    return definitions, spans


def _continues(before: Definition, new: Definition, lines: Sequence[str]) -> bool:
    """Say whether `new` is one more equation of the function `before`."""
    same = (before.name, before.kind, before.parent) == (new.name, new.kind, new.parent)
    return same and not "".join(lines[before.end_line : new.start_line - 1]).strip()


def _calls(found: _Found, definitions: Sequence[Definition], spans: Sequence[Span]) -> list[CallSite]:
    """Return the calls, each with the innermost definition around it."""
    starts = [start for start, _ in spans]
    sites = []
    for byte, row, target in found.calls:
        # In this order, whatever is around a byte is the last definition that starts before it, or around that one.
        last = bisect_right(starts, byte) - 1
        index = last if last >= 0 else None
        while index is not None and spans[index][1] <= byte:
            index = definitions[index].parent
        sites.append(CallSite(index, row + 1, target))
    return sites
