"""The arguments of the three tools: what they are, what is allowed, and the sentence for what is not.

The MCP server and the command line both go through here, so that a limit is written down once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, cast, get_args

from scree.core.arguments import choice, known, text, whole
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
        known(raw, ("query", "k", "mode"))
        query = text(raw, "query", f"from 1 to {MAX_QUERY_CHARS:,} characters", MAX_QUERY_CHARS)
        k = whole(raw, "k", 1, MAX_HITS)
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
        known(raw, ("path", "start", "end"))
        start = whole(raw, "start", 1)
        end = whole(raw, "end", 1)
        if start is not None and end is not None and start > end:
            raise ArgumentError(f"start must not be after end, but {start} is after {end}.")
        return cls(text(raw, "path", PATH_RANGE), start, end)


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
        known(raw, ("path",))
        return cls(None if raw.get("path") is None else text(raw, "path", PATH_RANGE))


def _mode(raw: Mapping[str, object]) -> Mode:
    return cast(Mode, choice(raw, "mode", MODES) or "hybrid")
