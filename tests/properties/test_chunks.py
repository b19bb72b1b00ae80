"""What holds for every markdown file, however broken: lines, limits, and that nothing is lost."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from scree.docs.blocks import MARKDOWN
from scree.docs.chunks import MAX_CHUNK_CHARS, Document, normalise_newlines, parse

COMMONMARK = MarkdownIt("commonmark")

WORDS = st.integers(0, 99).map(lambda number: f"word{number}")
PREFIXES = st.sampled_from(
    ["", "", "", "# ", "## ", "### ", "> ", "> > ", "- ", "  - ", "1. ", "    ", "\t", "  ", "| ", ">", "#"]
)
LINES = st.one_of(
    st.builds(lambda prefix, words: prefix + " ".join(words), PREFIXES, st.lists(WORDS, max_size=4)),
    st.sampled_from(
        [
            "",
            "",
            "",
            "   ",
            "```",
            "~~~",
            "````",
            "  ```",
            "> ```",
            "---",
            "===",
            "***",
            "+++",
            "<div>",
            "</div>",
        ]
    ),
    st.sampled_from(
        ["[a]: /b", "|---|---|", "日本語。英語！", "\u2028", "a\x0cb", "\x85", "&amp; *x* `y`", "🙂\u200d"]
    ),
)
SOURCES = st.lists(LINES, max_size=30).map("\n".join)
# Front matter begins on the first line or not at all.
TEXTS = SOURCES.map(lambda source: "\n" + source)
# Newlines of every kind, comments that may run on, front matter, BOMs.
ROUGH_SOURCES = st.lists(
    st.tuples(
        st.one_of(LINES, st.sampled_from(["<!--", "-->", "title: x", "\ufeff", "\x00", "{#id}", "[a](", "![", "<b"])),
        st.sampled_from(["\n", "\n", "\n", "\r\n", "\r", "\r\r\n", ""]),
    ),
    max_size=30,
).map(lambda parts: "".join(line + newline for line, newline in parts))


def has_line(source: str, start: int, end: int) -> str:
    return "\n".join(normalise_newlines(source).split("\n")[start - 1 : end])


def squeezed(document: Document) -> str:
    """The texts of all chunks, white space left out."""
    return "".join("".join(chunk.text.split()) for chunk in document.chunks)


@pytest.mark.requirement("chunks-lines")
@given(ROUGH_SOURCES, st.integers(1, 60) | st.just(MAX_CHUNK_CHARS))
def test_lines_a_to_b_of_the_file_contain_the_text(source: str, max_chars: int) -> None:
    for chunk in parse(source, max_chars=max_chars).chunks:
        text = has_line(source, chunk.start_line, chunk.end_line)
        assert chunk.text in text
        assert chunk.text.strip()
        if "\r" not in source and "\ufeff" not in source and max_chars == MAX_CHUNK_CHARS:
            assert chunk.text == text
            assert text.split("\n")[0].strip()
            assert text.split("\n")[-1].strip()


@pytest.mark.requirement("chunk-limit")
@given(ROUGH_SOURCES, st.integers(1, 60), st.integers(-1, 60), st.integers(0, 90))
def test_chunks_keep_the_limit_and_the_order(source: str, max_chars: int, small: int, shared: int) -> None:
    text = normalise_newlines(source)
    position = 0
    chunks = parse(source, max_chars=max_chars, small_chars=small, shared_chars=shared).chunks
    for chunk in chunks:
        assert len(chunk.text) <= max_chars
        position = text.index(chunk.text, position) + len(chunk.text)
    for chunk, following in pairwise(chunks):
        assert chunk.start_line <= chunk.end_line <= following.start_line


@pytest.mark.requirement("chunks-lines")
@given(SOURCES)
def test_crlf_changes_nothing(source: str) -> None:
    assert parse(source.replace("\n", "\r\n")) == parse(source)


@pytest.mark.requirement("chunks-headings")
@given(TEXTS, st.integers(20, 60) | st.just(MAX_CHUNK_CHARS), st.integers(-1, 60))
def test_every_word_is_in_a_trail_or_a_text(source: str, max_chars: int, small_chars: int) -> None:
    document = parse(source, max_chars=max_chars, small_chars=small_chars)
    found = {
        word
        for chunk in document.chunks
        for part in (*chunk.trail, chunk.text)
        for word in re.findall(r"word\d+", part)
    }
    assert found == set(re.findall(r"word\d+", source))


@pytest.mark.requirement("chunks-lines")
@given(TEXTS)
def test_every_line_but_headings_is_in_a_chunk(source: str) -> None:
    covered = {line for chunk in parse(source).chunks for line in range(chunk.start_line, chunk.end_line + 1)}
    headings = {
        line + 1
        for token in COMMONMARK.parse(source)
        if token.type == "heading_open" and token.level == 0 and token.map
        for line in range(*token.map)
    }
    lines = {number for number, line in enumerate(source.split("\n"), 1) if line.strip()}
    assert lines - covered <= headings


@pytest.mark.requirement("chunks-split")
@given(SOURCES, st.integers(1, 60))
def test_cutting_loses_nothing(source: str, max_chars: int) -> None:
    assert squeezed(parse(source, max_chars=max_chars)) == squeezed(parse(source))


@pytest.mark.requirement("chunks-fence-whole")
@given(
    st.lists(
        st.one_of(
            st.lists(WORDS, min_size=1, max_size=30).map(" ".join),
            st.lists(WORDS | st.just(""), max_size=12).map(lambda body: "\n".join(["```", *body, "```"])),
        ),
        max_size=12,
    ),
    st.integers(60, 200),
)
def test_a_fence_that_fits_a_chunk_is_whole(blocks: list[str], max_chars: int) -> None:
    texts = [chunk.text for chunk in parse("\n\n".join(blocks), max_chars=max_chars).chunks]
    for block in blocks:
        if block.startswith("```") and len(block) <= max_chars:
            assert any(block in text for text in texts)


@pytest.mark.requirement("sync-bad-file")
@given(st.text(), st.integers(1, 20) | st.just(MAX_CHUNK_CHARS))
def test_any_text_can_be_parsed(source: str, max_chars: int) -> None:
    for chunk in parse(source, max_chars=max_chars).chunks:
        assert chunk.text in has_line(source, chunk.start_line, chunk.end_line)


@pytest.mark.requirement("chunks-code")
@given(
    st.lists(
        st.builds(
            lambda prefix, text: prefix + text,
            st.sampled_from(["> ", "> ", "> > ", "> - ", "- ", "  ", ""]),
            st.sampled_from(["# h", "a", "", "```", "    c", "- i", "===", "[a]: b", "1. x"]),
        ),
        max_size=60,
    ).map("\n".join)
)
def test_block_rules_for_speed_read_what_the_library_reads(source: str) -> None:
    ours, theirs = (
        [(token.type, token.level, token.map) for token in markdown.block.parse(source, markdown, {}, []) or []]
        for markdown in (MARKDOWN, COMMONMARK)
    )
    assert ours == theirs
