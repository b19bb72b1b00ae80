"""The arguments of the three tools: what they are, what is allowed, and the sentence for what is not.

The MCP server and the command line both go through here, so that a limit is written down once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from scree.errors import ArgumentError

Mode = Literal["hybrid", "semantic", "keyword"]
MODES: tuple[Mode, ...] = get_args(Mode)

DEFAULT_HITS = 8
MAX_HITS = 50
MAX_QUERY_CHARS = 8_000
PATH_RANGE = "the name of a file, relative to the project's root"


@dataclass(frozen=True, slots=True)
class SearchArguments:
    """Arguments of `search_docs`."""

    query: str
    k: int = DEFAULT_HITS
    mode: Mode = "hybrid"

    @classmethod
    def checked(cls, raw: Mapping[str, object]) -> SearchArguments:
        """Check the arguments of a call.

        Raises:
            ArgumentError: one is missing, unknown or outside its range.
        """
        _known(raw, ("query", "k", "mode"))
        query = _text(raw, "query", f"from 1 to {MAX_QUERY_CHARS:,} characters")
        if len(query) > MAX_QUERY_CHARS:
            raise ArgumentError(f"query must have at most {MAX_QUERY_CHARS:,} characters, not {len(query):,}.")
        k = _whole(raw, "k", 1, MAX_HITS)
        return cls(query, DEFAULT_HITS if k is None else k, _mode(raw))


@dataclass(frozen=True, slots=True)
class ReadArguments:
    """Arguments of `read_doc`; lines are 1-based and inclusive."""

    path: str
    start: int | None = None
    end: int | None = None

    @classmethod
    def checked(cls, raw: Mapping[str, object]) -> ReadArguments:
        """Check the arguments of a call.

        Raises:
            ArgumentError: one is missing, unknown or outside its range.
        """
        _known(raw, ("path", "start", "end"))
        start = _whole(raw, "start", 1)
        end = _whole(raw, "end", 1)
        if start is not None and end is not None and start > end:
            raise ArgumentError(f"start must not be after end, but {start} is after {end}.")
        return cls(_text(raw, "path", PATH_RANGE), start, end)


@dataclass(frozen=True, slots=True)
class ReindexArguments:
    """Arguments of `reindex`."""

    path: str | None = None

    @classmethod
    def checked(cls, raw: Mapping[str, object]) -> ReindexArguments:
        """Check the arguments of a call.

        Raises:
            ArgumentError: one is unknown, or the path is empty.
        """
        _known(raw, ("path",))
        return cls(None if raw.get("path") is None else _text(raw, "path", PATH_RANGE))


def _known(raw: Mapping[str, object], names: tuple[str, ...]) -> None:
    for name in raw:
        if name not in names:
            raise ArgumentError(f"{_shown(name)} is not an argument of this tool; it takes {', '.join(names)}.")


def _text(raw: Mapping[str, object], name: str, allowed: str) -> str:
    value = raw.get(name)
    if value is None:
        raise ArgumentError(f"{name} is required: {allowed}.")
    if not isinstance(value, str):
        raise ArgumentError(f"{name} must be text, {allowed}, not {_shown(value)}.")
    if not value.strip():
        raise ArgumentError(f"{name} must not be empty: {allowed}.")
    return value


def _mode(raw: Mapping[str, object]) -> Mode:
    value = raw.get("mode")
    if value is None:
        return "hybrid"
    for mode in MODES:
        if value == mode:
            return mode
    raise ArgumentError(f"mode must be one of {', '.join(MODES)}, not {_shown(value)}.")


def _whole(raw: Mapping[str, object], name: str, low: int, high: int | None = None) -> int | None:
    value = raw.get(name)
    if value is None:
        return None
    # JSON knows one kind of number: some clients write 8 as 8.0.
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and low <= value and (high is None or value <= high):
        return value
    allowed = f"from {low} to {high}" if high is not None else f"of at least {low}"
    raise ArgumentError(f"{name} must be a whole number {allowed}, not {_shown(value)}.")


def _shown(value: object) -> str:
    """Show a wrong value, short enough for a sentence."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
