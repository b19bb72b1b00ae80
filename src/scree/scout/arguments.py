"""The arguments of the four tools: what they are, what is allowed, and the sentence for what is not.

The MCP server and the command line both go through here, so that a limit is written down once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, cast, get_args

from scree.core.arguments import choice, flag, known, shown, text, whole
from scree.errors import ArgumentError
from scree.scout.languages import LANGUAGES

Mode = Literal["lexical", "dense", "hybrid"]
MODES: tuple[Mode, ...] = get_args(Mode)
Outcome = Literal["helpful", "unhelpful", "unknown"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)

# The contract's limits.
MAX_QUERY_CHARS = 8_000
DEFAULT_RESULTS = 6
MAX_RESULTS = 50
DEFAULT_CHARS = 12_000
MIN_CHARS = 100
MAX_CHARS = 100_000

ID_RANGE = "an id as scout_search gave it"


@dataclass(frozen=True, slots=True)
class SearchArguments:
    """Arguments of `scout_search`; `expand` is the command line's alone."""

    query: str
    top_k: int = DEFAULT_RESULTS
    max_chars: int = DEFAULT_CHARS
    language: str | None = None
    include_docs: bool = False
    mode: Mode | None = None
    expand: bool = True

    NAMES: ClassVar = ("query", "top_k", "max_chars", "language", "include_docs", "mode")

    @classmethod
    def checked(cls, raw: Mapping[str, object], *, expand: bool = True) -> SearchArguments:
        """Check the arguments of a call.

        Raises:
            ArgumentError: one is missing, unknown or outside its range.
        """
        known(raw, cls.NAMES)
        return cls(
            text(raw, "query", f"from 1 to {MAX_QUERY_CHARS:,} characters", MAX_QUERY_CHARS),
            _or(whole(raw, "top_k", 1, MAX_RESULTS), DEFAULT_RESULTS),
            _or(whole(raw, "max_chars", MIN_CHARS, MAX_CHARS), DEFAULT_CHARS),
            choice(raw, "language", LANGUAGES),
            bool(flag(raw, "include_docs")),
            cast(Mode | None, choice(raw, "mode", MODES)),
            expand,
        )


@dataclass(frozen=True, slots=True)
class ReadArguments:
    """Arguments of `scout_read`."""

    symbol_id: str
    max_chars: int = DEFAULT_CHARS

    NAMES: ClassVar = ("symbol_id", "max_chars")

    @classmethod
    def checked(cls, raw: Mapping[str, object]) -> ReadArguments:
        """Check the arguments of a call.

        Raises:
            ArgumentError: one is missing, unknown or outside its range.
        """
        known(raw, cls.NAMES)
        return cls(text(raw, "symbol_id", ID_RANGE), _or(whole(raw, "max_chars", MIN_CHARS, MAX_CHARS), DEFAULT_CHARS))


@dataclass(frozen=True, slots=True)
class FeedbackArguments:
    """Arguments of `scout_feedback`."""

    request_id: str
    useful_ids: tuple[str, ...]
    outcome: Outcome

    NAMES: ClassVar = ("request_id", "useful_ids", "outcome")

    @classmethod
    def checked(cls, raw: Mapping[str, object]) -> FeedbackArguments:
        """Check the arguments of a call.

        Raises:
            ArgumentError: one is missing, unknown or outside its range.
        """
        known(raw, cls.NAMES)
        outcome = choice(raw, "outcome", OUTCOMES)
        if outcome is None:
            raise ArgumentError(f"outcome is required: one of {', '.join(OUTCOMES)}.")
        ids = raw.get("useful_ids")
        if not isinstance(ids, list) or not all(isinstance(one, str) for one in ids):
            raise ArgumentError(f"useful_ids must be a list of ids as scout_search gave them, not {shown(ids)}.")
        return cls(
            text(raw, "request_id", "the request_id of a search"), tuple(dict.fromkeys(ids)), cast(Outcome, outcome)
        )


def _or(value: int | None, default: int) -> int:
    return default if value is None else value
