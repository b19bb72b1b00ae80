"""How a budget is shared out, and how a response reads as text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scree.scout.render import allot, fitting, search_text


def size(lines: list[str]) -> int:
    return len("\n".join(lines))


def test_short_snippets_are_whole_and_long_ones_share_the_rest() -> None:
    long, short = ["x" * 9] * 100, ["x" * 9] * 2
    assert allot([long, short, long], 220) == [10, 2, 10]


def test_what_no_share_takes_goes_to_the_best() -> None:
    assert allot([["x" * 60, "y"], ["z" * 60]], 100) == [2, 0]
    assert allot([["x" * 30] * 3, ["z" * 90]], 100) == [3, 0]


def test_a_long_first_line_does_not_cost_the_best_snippet_its_place() -> None:
    assert allot([["x" * 90, "y"], ["z" * 9] * 9, ["z"] * 4], 101) == [1, 1, 1]


@pytest.mark.requirement("scout-budget")
@given(st.lists(st.lists(st.text("ab", max_size=30), min_size=1, max_size=20), max_size=10), st.integers(0, 400))
def test_what_is_shown_always_fits_and_the_first_gets_something_if_it_can(
    snippets: list[list[str]], budget: int
) -> None:
    counts = allot(snippets, budget)
    shown = [lines[:count] for lines, count in zip(snippets, counts, strict=True) if count]
    assert sum(map(size, shown)) <= budget
    assert all(0 <= count <= len(lines) for count, lines in zip(counts, snippets, strict=True))
    if snippets and len(snippets[0][0]) <= budget:
        assert counts[0] > 0
    if sum(map(size, snippets)) <= budget:
        assert counts == [len(lines) for lines in snippets]


@given(st.lists(st.text("ab", max_size=9), max_size=9), st.integers(-1, 60))
def test_fitting_is_as_many_lines_as_fit(lines: list[str], budget: int) -> None:
    count = fitting(lines, budget)
    assert count == 0 or size(lines[:count]) <= budget
    assert count == len(lines) or size(lines[: count + 1]) > budget


def test_the_text_shows_warnings_references_and_source() -> None:
    result = {"id": "1", "reference": "a.py:1-2", "kind": "function", "name": "f", "truncated": True, "content": "x\ny"}
    neighbour = result | {"relation": "calls", "direction": "incoming", "from_id": "1", "truncated": False}
    text = search_text({"warnings": ["old"], "results": [result], "neighbors": [neighbour]})
    assert text == (
        "warning: old\n\na.py:1-2 function f (id 1, truncated)\nx\ny\n\n"
        "[calls, incoming, of 1] a.py:1-2 function f (id 1)\nx\ny"
    )
    assert search_text({"warnings": [], "results": [], "neighbors": []}) == "no results"
