"""The list of promises and the tests that carry them agree.

The ids in use are read from the test files' syntax, not from a pytest run, so that running one test or one
folder gives the same answer as running all.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parent


def listed() -> dict[str, dict[str, str]]:
    """Every promise by its id."""
    with (TESTS / "requirements.toml").open("rb") as stream:
        return tomllib.load(stream)


def is_marker(node: ast.AST) -> bool:
    """Whether `node` is `pytest.mark.requirement`."""
    return (
        isinstance(node, ast.Attribute)
        and node.attr == "requirement"
        and isinstance(node.value, ast.Attribute)
        and node.value.attr == "mark"
    )


def claims(source: str) -> Iterator[str]:
    """The ids that a test file's source claims.

    Raises:
        ValueError: a marker that does not have exactly one id, written out, and so cannot be checked.
    """
    nodes = list(ast.walk(ast.parse(source)))
    calls = [node for node in nodes if isinstance(node, ast.Call) and is_marker(node.func)]
    if sum(map(is_marker, nodes)) != len(calls):
        raise ValueError("a requirement marker stands without its id")
    for call in calls:
        match call:
            case ast.Call(args=[ast.Constant(value=str() as requirement)], keywords=[]):
                yield requirement
            case _:
                raise ValueError(f"line {call.lineno}: the marker takes one id, written out as a string")


def claimed() -> dict[str, list[str]]:
    """For every id in use, the test files that claim it."""
    found: dict[str, list[str]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        for requirement in claims(path.read_text(encoding="utf-8")):
            found.setdefault(requirement, []).append(str(path.relative_to(TESTS)))
    return found


def test_every_promise_is_carried_by_a_test() -> None:
    kept = {name for name, entry in listed().items() if entry.get("status") != "planned"}
    assert sorted(kept - claimed().keys()) == []


def test_every_claimed_id_is_listed() -> None:
    names = listed().keys()
    assert {name: files for name, files in claimed().items() if name not in names} == {}


def test_no_planned_promise_is_claimed() -> None:
    planned = {name for name, entry in listed().items() if entry.get("status") == "planned"}
    assert {name: files for name, files in claimed().items() if name in planned} == {}


def test_every_entry_says_what_and_where() -> None:
    for name, entry in listed().items():
        assert entry.keys() - {"status"} == {"section", "text"}, name
        assert entry.get("status", "planned") == "planned", name
        assert name == name.lower(), name
        assert name.replace("-", "").isalnum(), name


@pytest.mark.parametrize("arguments", ["", "()", "(NAME)", '("a", "b")', '(id="a")'])
def test_an_id_that_cannot_be_checked_is_refused(arguments: str) -> None:
    with pytest.raises(ValueError, match="marker"):
        list(claims(f"pytestmark = pytest.mark.requirement{arguments}"))


def test_ids_are_read_wherever_marks_can_stand() -> None:
    mark = "pytest.mark.requirement"
    source = f'pytestmark = [{mark}("a")]\n@{mark}("b")\n@{mark}("c")\ndef test(): ...\n'
    assert sorted(claims(source)) == ["a", "b", "c"]
