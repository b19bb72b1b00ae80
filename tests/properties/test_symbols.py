"""Whatever the text is, an outline comes back, and its ranges are lines of the file."""

from __future__ import annotations

import random
from pathlib import Path

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scree.scout.graph import edges
from scree.scout.languages import LANGUAGES, TABLE_BY_NAME, language_of
from scree.scout.outlines import CHUNK_LINES
from scree.scout.symbols import Outline, outline, split_lines

GOLDEN = Path(__file__).parents[1] / "golden" / "symbols"
# Each language's sample, and real files: the tools that check this project lie beside the interpreter.
SAMPLES = [path for path in sorted(GOLDEN.iterdir()) if path.suffix != ".outline"]
REAL = [Path(path) for path in (random.__file__, pytest.__file__, hypothesis.__file__)]

with_symbols = st.sampled_from(["python", *(name for name, row in TABLE_BY_NAME.items() if row.grammar)])
# What grammars are made of, so that nonsense comes close to code.
PIECES = [
    "def ", "class ", "function ", "fn ", "func ", "end", "do", "{", "}", "(", ")", "[", "]", "<", ">", ":", ";", "\n",
    "\r\n", "\r", "    ", "\t", "'", '"', "`", "\\", "/*", "*/", "//", "#", "--", "'''", "${", "@", "=>", "::", "->",
    "é", "字", "🦊", "\u2028", "\f", "\0", "\ufeff", "\ud800", "x", "A", "1", "=", ",", ".", "<?php ", "<|endoftext|>",
    "impl ",
]  # fmt: skip
nonsense = st.lists(st.sampled_from(PIECES) | st.text(max_size=5), max_size=80).map("".join)


def check(source: str, found: Outline) -> None:
    """Ranges lie in the file, parents before and around what they hold, no line of text is in no candidate."""
    lines = split_lines(source)
    covered: set[int] = set()
    for place, each in enumerate(found.candidates):
        assert 1 <= each.start_line <= each.end_line <= len(lines)
        covered.update(range(each.start_line, each.end_line + 1))
        if each.parent is not None:
            parent = found.candidates[each.parent]
            assert each.parent < place
            assert parent.start_line <= each.start_line
            assert each.end_line <= parent.end_line
        if each.kind in {"chunk", "fragment"} or not each.name:
            assert each.end_line - each.start_line < CHUNK_LINES
    starts = [each.start_line for each in found.candidates if each.kind != "fragment"]
    assert starts == sorted(starts)
    assert {number for number, line in enumerate(lines, 1) if line.strip()} <= covered
    assert all(0 <= call.source < len(found.candidates) and call.target for call in found.calls)


@pytest.mark.requirement("scout-never-raises")
@given(nonsense, with_symbols)
def test_nonsense(source: str, language: str) -> None:
    check(source.removeprefix("\ufeff"), outline(source, language))


@pytest.mark.requirement("scout-never-raises")
@given(st.binary(max_size=2_000), st.sampled_from(LANGUAGES))
def test_random_bytes(data: bytes, language: str) -> None:
    source = data.decode("utf-8", "replace")
    check(source.removeprefix("\ufeff"), outline(source, language))


@pytest.mark.requirement("scout-never-raises")
@given(st.sampled_from([*SAMPLES, *REAL]), st.data())
def test_mutated_files(path: Path, data: st.DataObject) -> None:
    source = path.read_text(encoding="utf-8")
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(source)))
        end = data.draw(st.integers(start, min(len(source), start + 200)))
        source = source[:start] + data.draw(st.sampled_from(PIECES)) * data.draw(st.integers(0, 3)) + source[end:]
    language = language_of(path.name) or ""
    found = outline(source, language)
    check(source.removeprefix("\ufeff"), found)
    assert found == outline(source, language)
    for edge in edges({path.name: found, f"copy/{path.name}": found}):
        assert edge.source != edge.target


@pytest.mark.requirement("scout-lines")
@given(st.text(alphabet="a\r\n\f\u2028\v\x85", max_size=30))
def test_lines_join_to_the_text(source: str) -> None:
    lines = split_lines(source)
    unix = source.replace("\r\n", "\n").replace("\r", "\n")
    assert "\n".join(lines) + "\n" * (unix.endswith("\n") and bool(lines)) == unix
