"""Bounded waiting: a test says what it waits for, and fails when that does not come in time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

LOOK_SECONDS = 0.02  # short beside every wait in the suite, long beside one look at a file or a process


def eventually(look: Callable[[], T], seconds: float = 10.0, what: str = "the condition") -> T:
    """Call `look` until it returns something true, and return that.

    Raises:
        AssertionError: `seconds` have passed; the message names `what` and the last value.
    """
    deadline = time.monotonic() + seconds
    while True:
        value = look()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} did not come true within {seconds:g} s; last value: {value!r}")
        time.sleep(LOOK_SECONDS)
