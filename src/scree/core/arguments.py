"""Check the arguments of a tool, and say in one sentence what is wrong with one: its name, what is allowed, what came.

Both servers and both command lines go through here. Nothing here knows a tool.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from scree.errors import ArgumentError


def known(raw: Mapping[str, object], names: Collection[str]) -> None:
    """Raise `ArgumentError` for an argument that is none of `names`."""
    for name in raw:
        if name not in names:
            raise ArgumentError(f"{shown(name)} is not an argument of this tool; it takes {', '.join(names)}.")


def text(raw: Mapping[str, object], name: str, allowed: str, max_chars: int | None = None) -> str:
    """Return a required text.

    Args:
        raw: all arguments.
        name: of this one.
        allowed: what it may be, for the sentence.
        max_chars: how long it may be.

    Raises:
        ArgumentError: it is missing, no text, blank or too long.
    """
    value = raw.get(name)
    if value is None:
        raise ArgumentError(f"{name} is required: {allowed}.")
    if not isinstance(value, str):
        raise ArgumentError(f"{name} must be text, {allowed}, not {shown(value)}.")
    if not value.strip():
        raise ArgumentError(f"{name} must not be empty: {allowed}.")
    if max_chars is not None and len(value) > max_chars:
        raise ArgumentError(f"{name} must have at most {max_chars:,} characters, not {len(value):,}.")
    return value


def choice(raw: Mapping[str, object], name: str, choices: Sequence[str]) -> str | None:
    """Return one of `choices`; None if the argument is missing.

    Raises:
        ArgumentError: it is something else.
    """
    value = raw.get(name)
    if value is None:
        return None
    for one in choices:
        if value == one:
            return one
    raise ArgumentError(f"{name} must be one of {', '.join(choices)}, not {shown(value)}.")


def whole(raw: Mapping[str, object], name: str, low: int, high: int | None = None) -> int | None:
    """Return a whole number from `low` to `high`; None if the argument is missing.

    Raises:
        ArgumentError: it is something else.
    """
    value = raw.get(name)
    if value is None:
        return None
    # JSON knows one kind of number: some clients write 8 as 8.0.
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and low <= value and (high is None or value <= high):
        return value
    allowed = f"from {low:,} to {high:,}" if high is not None else f"of at least {low}"
    raise ArgumentError(f"{name} must be a whole number {allowed}, not {shown(value)}.")


def flag(raw: Mapping[str, object], name: str) -> bool | None:
    """Return true or false; None if the argument is missing.

    Raises:
        ArgumentError: it is something else.
    """
    value = raw.get(name)
    if value is None or isinstance(value, bool):
        return value
    raise ArgumentError(f"{name} must be true or false, not {shown(value)}.")


def shown(value: object) -> str:
    """Show a wrong value, short enough for a sentence."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
