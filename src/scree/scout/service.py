"""The four tools on one index: the snapshot and the encoder held in memory, and exchanged when the index is replaced.

For MCP and the terminal alike: arguments come as they were given, responses are plain JSON values. Use one instance
from one thread at a time.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scree.errors import NotFoundError, ScreeError, StorageError
from scree.scout.arguments import FeedbackArguments, ReadArguments, SearchArguments
from scree.scout.models import ModelChoice
from scree.scout.snapshot import Facts, Snapshot, file_identity

if TYPE_CHECKING:
    from scree.scout.search import Searcher
    from scree.scout.traces import Trace


class Service:
    """One index, as one process uses it."""

    def __init__(self, index: Path, model: str | None, trace: Trace | None = None, threads: int | None = None) -> None:
        """Open the index; nothing heavy is loaded before the first search.

        Args:
            index: the index file.
            model: as `--model` names it; None for what the index was built with.
            trace: where searches are recorded.
            threads: cores the encoder may use.

        Raises:
            StorageError: there is no index that can be used, or it was built with another model.
            EncoderError: there is no such model.
        """
        self._index = index
        self._model = model
        self._trace = trace
        self._snapshot = Snapshot(index)
        try:
            self._choice = ModelChoice.of(model, self._snapshot.facts, threads)
        except BaseException:
            self._snapshot.close()
            raise
        self._searcher: Searcher | None = None
        self._refused: tuple[int, int, int] | None = None

    def search(self, raw: Mapping[str, object], *, expand: bool = True) -> dict[str, Any]:
        """Answer `scout_search`.

        Raises:
            ScreeError: what is told to the user.
        """
        arguments = SearchArguments.checked(raw, expand=expand)
        started = time.perf_counter()
        warnings = self._reload()
        mode = self._choice.mode(arguments.mode)
        encoder = None if mode == "lexical" else self._choice.encoder
        found = self._searching().search(arguments, mode, encoder)
        facts = self._snapshot.facts
        response = {
            "request_id": uuid.uuid4().hex,
            "query": arguments.query,
            "mode": mode,
            "snapshot": facts.snapshot,
            "model_fingerprint": facts.model_fingerprint,
            "filters": {"language": arguments.language, "include_docs": arguments.include_docs},
            **found,
            "warnings": warnings + found["warnings"],
            "latency_ms": round(1000 * (time.perf_counter() - started), 3),
        }
        if self._trace:
            try:
                self._trace.search(response)
            except StorageError as error:
                response["warnings"].append(str(error))
        return response

    def read(self, raw: Mapping[str, object]) -> dict[str, Any]:
        """Answer `scout_read`.

        Raises:
            ScreeError: what is told to the user.
        """
        arguments = ReadArguments.checked(raw)
        warnings = self._reload()
        response = self._searching().read(arguments)
        return response | {"snapshot": self._snapshot.facts.snapshot, "warnings": warnings + response["warnings"]}

    def status(self) -> dict[str, Any]:
        """Answer `scout_status`."""
        warnings = self._reload()
        facts = self._snapshot.facts
        if facts.unparsed:
            warnings.append(
                f"{facts.unparsed} files could not be parsed and are searched in chunks, such as "
                f'"{facts.unparsed_examples[0]}".'
            )
        return {
            "snapshot": facts.snapshot,
            "index": str(self._index),
            "root": str(self._snapshot.root),
            "built_at": facts.built_at,
            "age": age(facts),
            "files": facts.files,
            "symbols": facts.symbols,
            "edges": facts.edges,
            "languages": facts.languages,
            "model": facts.model,
            "model_fingerprint": facts.model_fingerprint,
            "dimension": facts.dimension,
            "default_mode": self._choice.default_mode,
            "embedded": facts.embedded,
            "reused_embeddings": facts.reused,
            "skipped": facts.skipped,
            "unparsed": {"count": facts.unparsed, "examples": facts.unparsed_examples},
            "warnings": warnings,
        }

    def feedback(self, raw: Mapping[str, object]) -> dict[str, Any]:
        """Answer `scout_feedback`.

        Raises:
            ScreeError: what is told to the user.
        """
        if self._trace is None:
            raise NotFoundError("Feedback is recorded only where the server was started with --trace.")
        self._trace.feedback(FeedbackArguments.checked(raw))
        return {"recorded": True}

    def tools(self) -> dict[str, Callable[[Mapping[str, object]], dict[str, Any]]]:
        """Return what runs each tool."""
        return {"scout_search": self.search, "scout_read": self.read, "scout_feedback": self.feedback}

    def close(self) -> None:
        """Close the index."""
        self._snapshot.close()

    def _searching(self) -> Searcher:
        """Return what searches the present snapshot."""
        from scree.scout.search import Searcher

        if self._searcher is None or self._searcher.snapshot is not self._snapshot:
            self._searcher = Searcher(self._snapshot)
        return self._searcher

    def _reload(self) -> list[str]:
        """Take the index file that is there now, if it is another one; returns what is to be said about it."""
        identity = file_identity(self._index)
        loaded = self._snapshot
        if identity == loaded.identity:
            return []
        state = f"the loaded snapshot {loaded.facts.snapshot} was built {age(loaded.facts)} ago"
        if identity is None:
            return [f"The index file is gone; {state} and goes on answering."]
        try:
            snapshot = Snapshot(self._index)
        except ScreeError as error:
            return [f"The index file was replaced and cannot be used ({error}); {state} and goes on answering."]
        try:
            self._choice = self._choice.again(self._model, snapshot.facts)
        except ScreeError as error:
            snapshot.close()
            return [f"The index file was replaced and cannot be used ({error}); {state} and goes on answering."]
        self._snapshot, self._searcher = snapshot, None
        loaded.close()
        if snapshot.facts.snapshot == loaded.facts.snapshot:
            return []
        return [
            f"The index was built again: {state}; this answer is from snapshot {snapshot.facts.snapshot}, built "
            f"{age(snapshot.facts)} ago."
        ]


def age(facts: Facts) -> str:
    """Return how long ago a snapshot was built, in words."""
    try:
        seconds = (datetime.now(UTC) - datetime.fromisoformat(facts.built_at)).total_seconds()
    except (TypeError, ValueError):
        return "an unknown time"
    for unit, length in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= length:
            count = int(seconds // length)
            return f"{count} {unit}{'s' if count > 1 else ''}"
    return "less than a minute"
