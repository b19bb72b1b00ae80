"""The block structure of a markdown text: its headings, its code blocks, and where it may best be cut.

Pure. CommonMark as markdown-it-py reads it, blocks only: inline markup is read in headings, to turn them into
plain text, and where a comment may hide. Offsets count characters of the text given, whose lines all end with
LF. Refuses to know about chunks.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock, blockquote, list_block
from markdown_it.token import Token

# A longer heading is a paragraph somebody underlined; a trail of several must fit beside a chunk.
MAX_HEADING_CHARS = 300

# Inline parsing of hostile markup takes up to 22 µs a character, so no more than this of one heading or
# paragraph is parsed. A longer heading stays in the text as it is.
MAX_HEADING_MARKUP_CHARS = 1_000
MAX_PARAGRAPH_MARKUP_CHARS = 20_000

# Quotes and lists nested deeper than this are read as text. It stays below markdown-it's own limit of 20,
# where that skips the rest of the file instead, headings included.
MAX_NESTING = 16

# How many lines a block quote may reach at first, and by how much more at each further try.
QUOTE_REACH = 16

# Attributes and ids at the end of a heading: `{#id}`, `{: #id .class}`, `{.class}`, and MDX's `{/* id */}`.
HEADING_ATTRIBUTES = re.compile(r"\s*\{(?::?\s*[#.][^{}]*|/\*[^{}]*\*/)\}\s*$")
MARKUP = re.compile(r"[\\`*_\[\]<>&!]")
SENTENCE_END = re.compile(r"""[.!?]["'”’)\]*_`]*\s++(?![a-z])|[。！？]["'”’」』）]*""")
SPACE = re.compile(r"\s++")
LINE_BREAK_TAG = re.compile(r"<br\s*/?>", re.IGNORECASE)


class CutRank(IntEnum):
    """How good a place is to cut at; the lower the better."""

    BLOCK = 0  # a block of the document's own, after a blank line
    ITEM = 1  # an item of the document's own lists, or a block that follows another directly
    INNER = 2  # a block inside another, or a line after a blank one
    LINE = 3
    WITHIN = 4


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading that is not inside a quote or a list.

    Attributes:
        level: 1 to 6.
        text: plain, on one line, cut at `MAX_HEADING_CHARS`.
        complete: whether `text` holds every readable word of the heading.
        start: offset of its first line.
        end: offset of the line after it.
    """

    level: int
    text: str
    complete: bool
    start: int
    end: int


class Blocks:
    """The structure of `source` from offset `begin` on.

    Attributes:
        source: the whole text.
        begin: where the markdown begins in it.
        headings: in order.
        code: offsets of the start and end of each code block, fenced or indented, in order.
    """

    def __init__(self, source: str, begin: int) -> None:
        self.source = source
        self.begin = begin
        self.headings: list[Heading] = []
        self.code: list[tuple[int, int]] = []
        self._starts = [begin, *(match.end() for match in re.compile("\n").finditer(source, begin))]
        self._ranks: dict[int, CutRank] = {}
        environment: dict[str, Any] = {}
        tokens = _block_tokens(source[begin:], environment)
        for index, token in enumerate(tokens):
            if token.map is None or token.nesting < 0 or token.type == "inline":
                continue
            first, after = token.map
            self._rank(first, token)
            if token.type == "heading_open" and token.level == 0:
                text, complete = _heading_text(tokens[index + 1].content, environment)
                level = int(token.tag[1:])
                self.headings.append(Heading(level, text, complete, self._start(first), self._start(after)))
            elif token.type in {"fence", "code_block"}:
                start, end = self._start(first), self._start(after)
                self.code.append((start, start + len(source[start:end].rstrip())))

    def line_starts(self, low: int, high: int) -> Iterator[tuple[CutRank, int]]:
        """Yield rank and offset of each line start; the line before it ends between `low` and `high`."""
        index = bisect_left(self._starts, low)
        while index < len(self._starts) and (start := self._starts[index]) <= high + 1:
            yield self._ranks.get(index, CutRank.INNER if self._follows_blank(index) else CutRank.LINE), start
            index += 1

    def sentence_ends(self, low: int, high: int) -> Iterator[tuple[CutRank, int]]:
        """Yield each place between `low` and `high` where a sentence has ended, as `line_starts` does."""
        return ((CutRank.WITHIN, match.end()) for match in SENTENCE_END.finditer(self.source, low, high))

    def spaces(self, low: int, high: int) -> Iterator[tuple[CutRank, int]]:
        """Yield each place between `low` and `high` after white space, as `line_starts` does."""
        return ((CutRank.WITHIN, match.end()) for match in SPACE.finditer(self.source, low, high))

    def code_around(self, offset: int) -> tuple[int, int] | None:
        """Return the code block that a cut at `offset` would split."""
        index = bisect_left(self.code, (offset,)) - 1
        return self.code[index] if index >= 0 and offset <= self.code[index][1] else None

    def _start(self, line: int) -> int:
        return self._starts[line] if line < len(self._starts) else len(self.source)

    def _follows_blank(self, line: int) -> bool:
        return line > 0 and not self.source[self._starts[line - 1] : self._starts[line]].strip()

    def _rank(self, line: int, token: Token) -> None:
        if token.level == 0:
            rank = CutRank.BLOCK if self._follows_blank(line) else CutRank.ITEM
        elif token.level == 1 and token.type == "list_item_open":
            rank = CutRank.ITEM
        else:
            rank = CutRank.INNER
        self._ranks.setdefault(line, rank)


def html_parts(source: str) -> Iterator[str]:
    """Yield the HTML in a text, block by block and tag by tag; what stands in code is none.

    A paragraph too long to be parsed is yielded whole.
    """
    environment: dict[str, Any] = {}
    for token in _block_tokens(source, environment):
        overlong = len(token.content) > MAX_PARAGRAPH_MARKUP_CHARS
        if token.type == "html_block" or (token.type == "inline" and overlong):
            yield token.content
        elif token.type == "inline" and "<" in token.content:
            for child in MARKDOWN.parseInline(token.content, environment)[0].children or ():
                if child.type == "html_inline":
                    yield child.content


def _block_tokens(source: str, environment: dict[str, Any]) -> list[Token]:
    return MARKDOWN.block.parse(source, MARKDOWN, environment, []) or []


def _heading_text(markup: str, environment: dict[str, Any]) -> tuple[str, bool]:
    """Return a heading's text without its markup, and whether all of it is there."""
    complete = len(markup) <= MAX_HEADING_MARKUP_CHARS
    text = HEADING_ATTRIBUTES.sub("", markup[:MAX_HEADING_MARKUP_CHARS])
    if MARKUP.search(text):
        tokens = MARKDOWN.parseInline(text, environment)[0].children or []
        text = "".join(_plain_text(token) for token in tokens)
    text = " ".join(text.split())
    if len(text) > MAX_HEADING_CHARS:
        return text[: MAX_HEADING_CHARS - 1].rstrip() + "…", False
    return text, complete and (text != "" or not markup.strip())


def _plain_text(token: Token) -> str:
    if token.type in {"softbreak", "hardbreak"} or LINE_BREAK_TAG.fullmatch(token.content):
        return " "
    return "" if token.type == "html_inline" else token.content


def _shallow_list(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Read a list unless it is nested too deep."""
    return state.level < MAX_NESTING and list_block(state, start, end, silent)


def _near_quote(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Read a block quote without looking far beyond its end, unless it is nested too deep.

    The library's rule looks ahead over every line that might continue a paragraph, even if the quote has
    none: many quotes of one heading or fence, each with a line of text below, take it quadratic time. So it
    sees a few lines, and more only if the quote fills them. Only a link definition whose title runs on over all
    of these is read otherwise than by the library.
    """
    if state.level >= MAX_NESTING:
        return False
    if silent:
        return blockquote(state, start, end, True)
    line_max, tokens, reach = state.lineMax, len(state.tokens), QUOTE_REACH
    while True:
        stop = min(end, start + reach)
        state.lineMax = line_max if stop == end else stop
        found = blockquote(state, start, stop, False)
        state.lineMax = line_max
        if not found or stop == end or state.line < stop:
            return found
        del state.tokens[tokens:]
        reach *= QUOTE_REACH


def _markdown() -> MarkdownIt:
    markdown = MarkdownIt("commonmark")
    interrupts = ["paragraph", "reference", "blockquote"]
    markdown.block.ruler.at("blockquote", _near_quote, {"alt": [*interrupts, "list"]})
    markdown.block.ruler.at("list", _shallow_list, {"alt": interrupts})
    return markdown


MARKDOWN = _markdown()
