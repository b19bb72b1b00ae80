"""Whatever is indexed and asked: results are the files' lines, fit the budget, and share none."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.scout.indexed_tree import build_index, search, write

LINES = st.sampled_from([
    "def lantern(oil):", "class Harbour:", "    def ignite(self):", "        return lantern(1)", "    pass", "", "  ",
    "@decorated", "x = '灯台 🏮'", "# lantern harbour", "if oil:", "    x = (", ")", "'''", "\tlantern",
    "a\x0cb", "a\u2028b", "fn lantern() {", "}", "y" * 300,
])  # fmt: skip
ENDS = st.sampled_from(["\n", "\r\n", "\r"])
FILE = st.lists(st.tuples(LINES, ENDS), max_size=90).map(lambda lines: "".join(map("".join, lines)))
TREE = st.dictionaries(st.sampled_from(["a.py", "b.rs", "c.js", "d/e.py", "f.md", "g.toml"]), FILE, min_size=1)
QUERY = st.lists(st.sampled_from(["lantern", "harbour", "ignite", "oil", "x", "return", '"AND"']), min_size=1).map(
    " ".join
)


def lines_of(path: Path) -> list[str]:
    text = path.read_bytes().decode().removeprefix("\ufeff")
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


@pytest.mark.requirement("scout-verified")
@pytest.mark.requirement("scout-budget")
@pytest.mark.requirement("scout-no-overlap")
@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(TREE, QUERY, st.integers(100, 3_000), st.integers(1, 50), st.booleans())
def test_results_are_lines_of_the_disk_within_the_budget(
    files: dict[str, str], query: str, max_chars: int, top_k: int, bom: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        write(root, {name: "\ufeff" * bom + text for name, text in files.items()})
        build_index(root)
        response = search(root, query, max_chars=max_chars, top_k=top_k, include_docs=True)
        returned = [*response["results"], *response["neighbors"]]
        assert len(response["results"]) <= top_k
        assert len(response["neighbors"]) <= 3
        assert response["returned_chars"] == sum(len(each["content"]) for each in returned) <= max_chars
        seen: set[tuple[str, int]] = set()
        for each in returned:
            expected = lines_of(root / each["path"])[each["start_line"] - 1 : each["end_line"]]
            assert each["content"] == "\n".join(expected)
            assert each["reference"] == f"{each['path']}:{each['start_line']}-{each['end_line']}"
            lines = {(each["path"], line) for line in range(each["start_line"], each["end_line"] + 1)}
            assert not lines & seen
            seen |= lines
