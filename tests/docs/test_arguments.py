from __future__ import annotations

import pytest

from scree.docs.arguments import MAX_QUERY_CHARS, ReadArguments, ReindexArguments, SearchArguments
from scree.errors import ArgumentError


def test_what_is_left_out_has_its_default() -> None:
    assert SearchArguments.checked({"query": "q"}) == SearchArguments("q", k=8, mode="hybrid")
    assert SearchArguments.checked({"query": "q", "k": None, "mode": None}) == SearchArguments("q")
    assert ReadArguments.checked({"path": "a.md"}) == ReadArguments("a.md", None, None)
    assert ReadArguments.checked({"path": "a.md", "start": None, "end": None}) == ReadArguments("a.md")
    assert ReindexArguments.checked({}) == ReindexArguments.checked({"path": None}) == ReindexArguments(None)


def test_what_is_allowed_is_taken_as_it_is() -> None:
    assert SearchArguments.checked({"query": " q ", "k": 50, "mode": "keyword"}) == SearchArguments(
        " q ", 50, "keyword"
    )
    assert SearchArguments.checked({"query": "q", "k": 1, "mode": "semantic"}) == SearchArguments("q", 1, "semantic")
    assert ReadArguments.checked({"path": "a.md", "start": 3, "end": 3}) == ReadArguments("a.md", 3, 3)
    assert ReindexArguments.checked({"path": "a.md"}) == ReindexArguments("a.md")


def test_a_whole_number_may_be_written_as_json_writes_any_number() -> None:
    arguments = SearchArguments.checked({"query": "q", "k": 8.0})
    assert arguments == SearchArguments("q", 8)
    assert isinstance(arguments.k, int)


@pytest.mark.parametrize("query", ["😀" * MAX_QUERY_CHARS, "a\0b", '"', "AND (", "*", "\ud800"])
def test_a_query_may_hold_anything(query: str) -> None:
    assert SearchArguments.checked({"query": query}).query == query


@pytest.mark.requirement("tools-bad-arguments")
@pytest.mark.parametrize("k", [0, 51, -1, 1.5, True, "8", float("nan"), float("inf"), [8], 10**30])
def test_a_wrong_k_is_named_with_its_range(k: object) -> None:
    with pytest.raises(ArgumentError, match=r"^k must be a whole number from 1 to 50, not .+\.$"):
        SearchArguments.checked({"query": "q", "k": k})


@pytest.mark.requirement("tools-bad-arguments")
@pytest.mark.parametrize("mode", ["", "Hybrid", "fuzzy", 1, [], {"a": 1}])
def test_a_wrong_mode_is_named_with_the_right_ones(mode: object) -> None:
    with pytest.raises(ArgumentError, match=r"^mode must be one of hybrid, semantic, keyword, not .+\.$"):
        SearchArguments.checked({"query": "q", "mode": mode})


@pytest.mark.requirement("tools-bad-arguments")
@pytest.mark.parametrize(
    ("raw", "sentence"),
    [
        ({}, "query is required: from 1 to 8,000 characters."),
        ({"query": None}, "query is required: from 1 to 8,000 characters."),
        ({"query": ""}, "query must not be empty: from 1 to 8,000 characters."),
        ({"query": " \n\u3000"}, "query must not be empty: from 1 to 8,000 characters."),
        ({"query": 7}, "query must be text, from 1 to 8,000 characters, not 7."),
        ({"query": "x" * 8_001}, "query must have at most 8,000 characters, not 8,001."),
    ],
)
def test_a_wrong_query_is_named_with_what_is_allowed(raw: dict[str, object], sentence: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        SearchArguments.checked(raw)
    assert str(caught.value) == sentence


@pytest.mark.requirement("read-range-errors")
@pytest.mark.parametrize("name", ["start", "end"])
@pytest.mark.parametrize("line", [0, -4, 2.5, "1", False])
def test_a_line_is_at_least_1(name: str, line: object) -> None:
    with pytest.raises(ArgumentError, match=rf"^{name} must be a whole number of at least 1, not .+\.$"):
        ReadArguments.checked({"path": "a.md", name: line})


@pytest.mark.requirement("read-range-errors")
def test_start_is_not_after_end() -> None:
    with pytest.raises(ArgumentError, match=r"^start must not be after end, but 5 is after 4\.$"):
        ReadArguments.checked({"path": "a.md", "start": 5, "end": 4})


@pytest.mark.requirement("tools-bad-arguments")
def test_a_path_is_named_where_it_is_missing() -> None:
    for checked in (ReadArguments.checked, ReindexArguments.checked):
        with pytest.raises(ArgumentError, match=r"^path must not be empty: the name of a file"):
            checked({"path": " "})
        with pytest.raises(ArgumentError, match=r"^path must be text"):
            checked({"path": ["a.md"]})
    with pytest.raises(ArgumentError, match=r"^path is required"):
        ReadArguments.checked({"start": 1})


@pytest.mark.requirement("tools-unknown-arguments")
def test_an_unknown_argument_is_an_error() -> None:
    for checked, known in (
        (SearchArguments.checked, "query, k, mode"),
        (ReadArguments.checked, "path, start, end"),
        (ReindexArguments.checked, "path"),
    ):
        with pytest.raises(ArgumentError) as caught:
            checked({"query": "q", "path": "a.md", "limit": 3})
        assert str(caught.value).endswith(f"is not an argument of this tool; it takes {known}.")


def test_a_long_wrong_value_is_cut_short() -> None:
    with pytest.raises(ArgumentError) as caught:
        SearchArguments.checked({"query": "q", "mode": "x" * 10_000})
    assert len(str(caught.value)) < 200
