"""A small repository, its index and a search in one line, for tests of the code half."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scree.core.progress import silent
from scree.scout.arguments import Mode, SearchArguments
from scree.scout.building import MAX_SYMBOLS, Model, build
from scree.scout.search import Searcher
from scree.scout.snapshot import INDEX_FOLDER, INDEX_NAME, Facts, Snapshot
from tests.fake_encoder import FakeEncoder

LANTERNS = '''"""Lanterns of the harbour."""
import json


def load_config(path):
    """Read the settings."""
    return json.load(open(path))


class Lantern:
    """One light."""

    def ignite(self, oil):
        return load_config(oil)

    def douse(self):
        return None
'''


def write(root: Path, files: Mapping[str, str | bytes]) -> None:
    """Write files, given as relative path and content; folders are made as needed."""
    for name, content in files.items():
        target = root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode() if isinstance(content, str) else content)


def index_path(root: Path) -> Path:
    """Where the index of a root lies by default."""
    return root / INDEX_FOLDER / INDEX_NAME


def build_index(
    root: Path, encoder: FakeEncoder | None = None, *, output: Path | None = None, max_symbols: int = MAX_SYMBOLS
) -> Facts:
    """Build the index of a tree."""
    model = None if encoder is None else Model("fake", encoder)
    return build(root, output or index_path(root), model, max_symbols, silent)


def search(
    root: Path, query: str, *, mode: Mode = "lexical", encoder: FakeEncoder | None = None, **arguments: Any
) -> dict[str, Any]:
    """Search the index of a tree."""
    snapshot = Snapshot(index_path(root))
    try:
        return Searcher(snapshot).search(SearchArguments(query, **arguments), mode, encoder)
    finally:
        snapshot.close()


def names(response: Mapping[str, Any]) -> list[str]:
    """The names of a response's results, best first."""
    return [result["name"] for result in response["results"]]


def paths(response: Mapping[str, Any]) -> list[str]:
    """The paths of a response's results, best first."""
    return [result["path"] for result in response["results"]]
