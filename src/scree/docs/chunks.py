"""Markdown → chunks: pieces of a document's text, each under its heading trail and with its lines.

Pure. A chunk's text is the file's own, unchanged: lines a to b of the file hold it, once CRLF is LF. Only LF
ends a line for counting; for structure a lone CR does too, so that a file from an old Mac has its headings.
Refuses to rank, embed or escape.
"""

from __future__ import annotations

import math
import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass

from scree.docs.blocks import Blocks, Heading, html_parts
from scree.docs.front_matter import read_front_matter

# The contract's limit: about 900 tokens of English, and in ASCII below the cap of a hit's text.
MAX_CHUNK_CHARS = 3_500

# Which neighbours under one parent share a chunk: those with at most this much text below their headings,
# that is headings alone. Page MRR of BM25 over chunks on docs-questions is .561 without sharing, and with
# sections of up to 200 characters sharing; .558 up to 400, .548 up to 800. A trail of its own is worth more.
SMALL_SECTION_CHARS = 0

# A shared chunk still fits one window of an encoder that reads 256 tokens.
SHARED_CHUNK_CHARS = 800

# The contract's: where an HTML comment may opt a file out.
MARKER_LINES = 20
MARKER = re.compile(r"<!--\s*scree\s*:\s*ignore\s*-->", re.IGNORECASE)

SPACE = re.compile(r"\s++")

# A cut in text without white space steps back over at most so many characters that belong to the one before;
# the longest run in Unicode's stream-safe text format (UAX #15) is 30.
MAX_COMBINING = 30
JOINER = "\u200d"


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a document.

    Attributes:
        trail: the headings above it, outermost first, as plain text; true for the whole chunk.
        text: a slice of the file without blank lines around it. The heading that opens a section is in the
            trail instead, unless the section has no other text or shares its chunk.
        start_line: first line, 1-based.
        end_line: last line, inclusive.
    """

    trail: tuple[str, ...]
    text: str
    start_line: int
    end_line: int


@dataclass(frozen=True, slots=True)
class Document:
    """A markdown file.

    Attributes:
        title: the front matter's, on one line; empty without one.
        chunks: in the order of the file, not overlapping; none for a file that opts out.
        opted_out: whether the file says `scree: ignore`.
    """

    title: str
    chunks: tuple[Chunk, ...]
    opted_out: bool


def normalise_newlines(source: str) -> str:
    """Return `source` with CRLF as LF: the text whose LFs are counted as lines."""
    return source.replace("\r\n", "\n")


def parse(
    source: str,
    *,
    max_chars: int = MAX_CHUNK_CHARS,
    small_chars: int = SMALL_SECTION_CHARS,
    shared_chars: int = SHARED_CHUNK_CHARS,
) -> Document:
    """Cut a markdown file into chunks.

    Args:
        source: the decoded file, newlines as they are.
        max_chars: most characters of a chunk.
        small_chars: sections with at most this much text below their heading may share a chunk; -1 for none.
        shared_chars: most characters of a chunk that is shared.
    """
    text = normalise_newlines(source)
    structure = _structure(text)
    front = read_front_matter(structure)
    if opts_out(source):
        return Document(front.title, (), opted_out=True)
    newlines = [match.start() for match in re.finditer("\n", text)]

    def line(offset: int) -> int:
        return bisect_left(newlines, offset) + 1

    def chunk(trail: tuple[str, ...], start: int, end: int) -> Chunk:
        return Chunk(trail, text[start:end], line(start), line(end - 1))

    blocks = Blocks(structure, front.end)
    chunks = tuple(
        chunk(trail, *piece)
        for trail, start, end in _regions(_sections(blocks), small_chars, shared_chars)
        for piece in _pieces(blocks, start, end, max_chars)
    )
    if not chunks and front.title:
        start, end = front.title_span
        chunks = (chunk((), start, min(end, start + max_chars)),)
    return Document(front.title, chunks, opted_out=False)


def opts_out(source: str) -> bool:
    """Say whether a file says `scree: ignore`, in its front matter or in a comment; in code it only shows how to."""
    text = normalise_newlines(source)
    structure = _structure(text)
    front = read_front_matter(structure)
    top_end = len("\n".join(text.split("\n", MARKER_LINES)[:MARKER_LINES]))
    top = structure[front.end : top_end]
    return front.opted_out or (bool(MARKER.search(top)) and any(map(MARKER.search, html_parts(top))))


def _structure(text: str) -> str:
    """Return `text` with lone CRs as LFs. It is as long, so that offsets hold in both."""
    return text.replace("\r", "\n")


@dataclass(frozen=True, slots=True)
class _Section:
    """A heading with the text up to the next heading, or the text before the first; offsets into the source.

    Attributes:
        level: of the heading; 0 for the text before the first.
        parent: the trail above the heading; None without a heading above.
        trail: `parent` and the heading.
        start: of the heading.
        text_start: of what its own chunk begins with.
        end: behind it.
        chars: of text below the heading.
        leaf: whether it has no subsections.
    """

    level: int
    parent: tuple[str, ...] | None
    trail: tuple[str, ...]
    start: int
    text_start: int
    end: int
    chars: int
    leaf: bool


def _sections(blocks: Blocks) -> list[_Section]:
    headings = blocks.headings
    ends = [*(heading.start for heading in headings), len(blocks.source)]
    sections = [_Section(0, None, (), blocks.begin, blocks.begin, ends[0], chars=0, leaf=False)]
    above: list[Heading] = []
    for index, (heading, end) in enumerate(zip(headings, ends[1:], strict=True)):
        while above and above[-1].level >= heading.level:
            above.pop()
        parent = tuple(other.text for other in above if other.text) if above else None
        trail = (*(parent or ()), heading.text) if heading.text else parent or ()
        leaf = index + 1 == len(headings) or headings[index + 1].level <= heading.level
        chars = len(blocks.source[heading.end : end].strip())
        # No heading may be lost: it stays in the text where no trail of a chunk would hold all of it.
        lost = not heading.complete or (heading.text and leaf and not chars)
        text_start = heading.start if lost else heading.end
        sections.append(_Section(heading.level, parent, trail, heading.start, text_start, end, chars, leaf))
        above.append(heading)
    return sections


def _regions(
    sections: list[_Section], small_chars: int, shared_chars: int
) -> Iterator[tuple[tuple[str, ...], int, int]]:
    """Yield trail, start and end of what is cut: a section, or small neighbours under one parent."""

    def small(section: _Section) -> bool:
        return section.leaf and section.parent is not None and section.chars <= small_chars

    index = 0
    while index < len(sections):
        first = last = sections[index]
        index += 1
        while (
            index < len(sections)
            and small(last)
            and small(following := sections[index])
            # Next to each other and of one level, sections have one parent.
            and following.level == first.level
            and following.end - first.start <= shared_chars
        ):
            last = following
            index += 1
        if last is first:
            yield first.trail, first.text_start, first.end
        else:
            yield first.parent or (), first.start, last.end


def _pieces(blocks: Blocks, start: int, end: int, max_chars: int) -> Iterator[tuple[int, int]]:
    """Yield start and end of pieces of at most `max_chars`, without the blank lines around them."""
    start, end = _first_line(blocks.source, start, end), _last_line(blocks.source, start, end)
    while end - start > max_chars:
        cut = _cut(blocks, start, end, max_chars)
        if (piece_end := _last_line(blocks.source, start, cut)) > start:
            yield start, piece_end
        start = _first_line(blocks.source, cut, end)
    if end > start:
        yield start, end


def _first_line(source: str, start: int, end: int) -> int:
    """Return where the first line with text starts; in the middle of a line, where its text does."""
    space = SPACE.match(source, start, end)
    text_start = space.end() if space else start
    if line_start := source.rfind("\n", start, text_start) + 1:
        return line_start
    return start if start == 0 or source[start - 1] == "\n" else text_start


def _last_line(source: str, start: int, end: int) -> int:
    """Return where the last line with text ends; `start` if there is none."""
    text_end = start + len(source[start:end].rstrip())
    if text_end == start:
        return start
    line_end = source.find("\n", text_end, end)
    if line_end >= 0:
        return line_end
    # White space at the end of the file is part of its last line; at a cut inside a line it is not wanted.
    return end if end == len(source) else text_end


def _cut(blocks: Blocks, start: int, end: int, max_chars: int) -> int:
    """Return the best offset to cut at, so that the text before it fits and the pieces are alike in size.

    The first kind of place found counts, and of that kind the place nearest to an even share of the text.
    """
    share = (end - start) / math.ceil((end - start) / max_chars)
    ideal = start + share
    longest = start + max_chars
    anywhere = (start + 1, longest)
    # No piece under half an even share, nor over one and a half.
    evenly = (int(start + share / 2) + 1, min(longest, int(ideal + share / 2), int(end - share / 2)))
    for kind, (low, high) in (
        (blocks.line_starts, evenly),
        (blocks.sentence_ends, evenly),
        (blocks.line_starts, anywhere),
        (blocks.sentence_ends, anywhere),
        (blocks.spaces, evenly),
        (blocks.spaces, anywhere),
    ):
        free = [
            (rank, abs(place - ideal), place)
            for rank, place in kind(low, high)
            if not _splits_code(blocks, place, max_chars)
        ]
        if free:
            return min(free)[2]
    return _hard_cut(blocks.source, start, max(start + 1, int(ideal)))


def _splits_code(blocks: Blocks, cut: int, max_chars: int) -> bool:
    """Say whether `cut` is inside a code block that fits a chunk."""
    around = blocks.code_around(cut)
    return around is not None and around[1] - around[0] <= max_chars


def _hard_cut(source: str, start: int, cut: int) -> int:
    """Step back from `cut` to where no character is parted from its accents."""
    for place in range(cut, max(start, cut - MAX_COMBINING), -1):
        combines = unicodedata.category(source[place]).startswith("M")
        if not combines and JOINER not in source[place - 1 : place + 1]:
            return place
    return cut
