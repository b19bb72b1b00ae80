"""What was asked and what came of it, as JSON Lines on this machine; only where the user asked for it.

Never any source text. Weights and ranking do not change by it.
"""

from __future__ import annotations

import json
import os
from collections import OrderedDict
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from scree.errors import ArgumentError, StorageError
from scree.scout.arguments import FeedbackArguments

SCHEMA_VERSION = 1

# The contract's: feedback is taken on so many searches back.
REMEMBERED_SEARCHES = 1_000


class Trace:
    """An open trace file, and what the searches of this process returned."""

    def __init__(self, path: Path) -> None:
        """Open `path` for appending, so that a wrong one shows at once.

        Raises:
            ArgumentError: it cannot be written.
        """
        self._path = path
        try:
            self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise ArgumentError(f'--trace names "{path}", which cannot be written: {error.strerror}.') from error
        self._searches: OrderedDict[str, tuple[str, frozenset[str]]] = OrderedDict()  # snapshot and ids by request

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def search(self, response: Mapping[str, Any]) -> None:
        """Record a search.

        Raises:
            StorageError: it cannot be written.
        """
        returned = [result["id"] for result in response["results"]]
        neighbours = [neighbour["id"] for neighbour in response["neighbors"]]
        self._searches[response["request_id"]] = response["snapshot"], frozenset([*returned, *neighbours])
        if len(self._searches) > REMEMBERED_SEARCHES:
            self._searches.popitem(last=False)
        told = ("request_id", "query", "mode", "filters", "snapshot", "model_fingerprint", "latency_ms")
        facts = {name: response[name] for name in told}
        self._write("search", facts | {"returned_ids": returned, "neighbor_ids": neighbours})

    def feedback(self, arguments: FeedbackArguments) -> None:
        """Record what the user thinks of a search.

        Raises:
            ArgumentError: there was no such search, or it did not return one of the ids.
            StorageError: it cannot be written.
        """
        if arguments.request_id not in self._searches:
            raise ArgumentError(
                f"request_id must be that of one of this server's last {REMEMBERED_SEARCHES:,} searches."
            )
        snapshot, returned = self._searches[arguments.request_id]
        for symbol_id in arguments.useful_ids:
            if symbol_id not in returned:
                raise ArgumentError(f"useful_ids must be ids that this search returned, which {symbol_id!r} is not.")
        facts = {"request_id": arguments.request_id, "useful_ids": list(arguments.useful_ids)}
        self._write("feedback", facts | {"outcome": arguments.outcome, "snapshot": snapshot})

    def _write(self, event: str, facts: Mapping[str, Any]) -> None:
        time = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = json.dumps({"schema_version": SCHEMA_VERSION, "time": time, "event": event, **facts}) + "\n"
        try:
            # One write, so that lines of several servers do not mix.
            os.write(self._file, line.encode())
        except OSError as error:
            raise StorageError(f'The trace "{self._path}" cannot be written: {error.strerror}.') from error
