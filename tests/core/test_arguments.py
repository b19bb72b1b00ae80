"""The checks that the tools of both halves share."""

from __future__ import annotations

import pytest

from scree.core.arguments import choice, flag, known, text, whole
from scree.errors import ArgumentError


@pytest.mark.parametrize(("value", "expected"), [(None, None), (True, True), (False, False)])
def test_a_flag_is_true_false_or_missing(value: object, expected: bool | None) -> None:
    assert flag({"deep": value}, "deep") is expected


@pytest.mark.parametrize("value", ["yes", 1, 0, []])
def test_anything_else_is_no_flag(value: object) -> None:
    with pytest.raises(ArgumentError, match="deep must be true or false"):
        flag({"deep": value}, "deep")


def test_large_numbers_in_a_range_are_grouped() -> None:
    with pytest.raises(ArgumentError, match="from 100 to 100,000, not 7"):
        whole({"max": 7}, "max", 100, 100_000)


def test_a_text_may_have_a_longest_length() -> None:
    assert text({"query": "abc"}, "query", "short", 3) == "abc"
    with pytest.raises(ArgumentError, match="at most 3 characters, not 4"):
        text({"query": "abcd"}, "query", "short", 3)


def test_a_choice_may_be_missing_and_is_otherwise_one_of_them() -> None:
    assert choice({}, "mode", ("a", "b")) is None
    assert choice({"mode": "b"}, "mode", ("a", "b")) == "b"
    with pytest.raises(ArgumentError, match="mode must be one of a, b, not 'c'"):
        choice({"mode": "c"}, "mode", ("a", "b"))


def test_an_unknown_argument_is_named() -> None:
    with pytest.raises(ArgumentError, match="'wild' is not an argument of this tool; it takes query, mode"):
        known({"query": 1, "wild": 2}, ("query", "mode"))
