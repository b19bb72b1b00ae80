"""Keep standard input and output for a protocol, whatever the rest of the process reads and prints."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper


@contextmanager
def protocol_streams() -> Iterator[tuple[TextIOWrapper, TextIOWrapper]]:
    """Yield text streams for the protocol, and send whatever else is written to standard output to standard error.

    To be entered before anything is imported that might print.
    """
    stdin = TextIOWrapper(os.fdopen(os.dup(0), "rb"), encoding="utf-8", errors="replace")
    stdout = TextIOWrapper(os.fdopen(os.dup(1), "wb"), encoding="utf-8", newline="\n")
    sys.stdout.flush()
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    yield stdin, stdout
