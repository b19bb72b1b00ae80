from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scree.docs.client_config import add_entry, remove_entry

COMMAND = "scree-mcp"
ENTRY = {"command": COMMAND, "args": []}

Layout = Callable[[Any], str]

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3), max_leaves=8
)
servers = st.dictionaries(st.text().filter(lambda key: key != "scree"), values, max_size=3)


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    document: dict[str, Any] = draw(st.dictionaries(st.text(), values, max_size=4))
    document.pop("mcpServers", None)
    if draw(st.booleans()):
        items = list(document.items())
        items.insert(draw(st.integers(0, len(items))), ("mcpServers", draw(servers)))
        document = dict(items)
    return document


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    indent = draw(st.sampled_from([None, 0, 1, 2, 3, 4, 8, "\t", " \t"]))
    separators = draw(st.sampled_from([None, (",", ":"), (" , ", " :\t")]))
    ensure_ascii = draw(st.booleans())
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    before, after = (
        draw(st.sampled_from(["", "\n", "  ", "\ufeff", "\ufeff\n "])),
        draw(st.sampled_from(["", "\n", " "])),
    )

    def layout(document: Any) -> str:
        text = json.dumps(document, indent=indent, separators=separators, ensure_ascii=ensure_ascii)
        return (before + text + after).replace("\n", newline)

    return layout


def parsed(path: Path) -> Any:
    return json.loads(path.read_bytes().decode().removeprefix("\ufeff"))


@pytest.mark.requirement("command-init")
@pytest.mark.requirement("command-init-remove")
@pytest.mark.requirement("command-init-formatting")
@hypothesis.settings(max_examples=60)
@given(documents(), layouts())
def test_init_adds_one_thing_and_remove_takes_it_back(document: dict[str, Any], layout: Layout) -> None:
    text = layout(document).encode()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        path = root / ".mcp.json"
        path.write_bytes(text)
        assert add_entry(root, COMMAND)
        added = path.read_bytes()
        names = [*document, *([] if "mcpServers" in document else ["mcpServers"])]
        found = parsed(path)
        assert list(found) == names
        assert found == {**document, "mcpServers": {**document.get("mcpServers", {}), "scree": ENTRY}}
        assert not add_entry(root, COMMAND)
        assert path.read_bytes() == added

        assert remove_entry(root)
        left = path.read_bytes()
        if document.get("mcpServers"):
            assert left == text
        elif "mcpServers" in document:
            assert parsed(path) == document
            assert left.split() == text.split()
        else:
            # What it cannot know is whether the empty list of servers was there before.
            head, servers_key, tail = left.rpartition(b'"mcpServers": {}')
            assert servers_key
            assert head.rstrip().removesuffix(b",").rstrip() + tail.lstrip() == compact_end(text)
            assert parsed(path) == {**document, "mcpServers": {}}


def compact_end(text: bytes) -> bytes:
    """The text without the white space before its last brace."""
    head, brace, tail = text.rpartition(b"}")
    return head.rstrip() + brace + tail
