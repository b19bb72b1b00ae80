"""Measure warm searches on one index, in this process. Prints nothing."""

from __future__ import annotations

import itertools
import json
import statistics
import time
from pathlib import Path
from typing import Any

from scree.errors import ArgumentError
from scree.scout.service import Service
from scree.scout.snapshot import Snapshot

# Queries made of symbols' names where the user gives none, taken evenly over the index.
SAMPLED_QUERIES = 50


def benchmark(
    index: Path, model: str | None, iterations: int, queries: Path | None, output: Path | None
) -> dict[str, Any]:
    """Search `iterations` times and return the times in milliseconds.

    Args:
        index: the index file.
        model: as for a search.
        iterations: at least 1; each takes the next query.
        queries: a file with one query a line; None for names from the index.
        output: a file that gets the result, too.

    Raises:
        ScreeError: as for a search; a file that cannot be read or written.
    """
    asked = _read_queries(queries) if queries else _sampled(index)
    started = time.perf_counter()
    service = Service(index, model)
    first = service.search({"query": asked[0]})
    startup = time.perf_counter() - started
    times = []
    for query in itertools.islice(itertools.cycle(asked), iterations):
        before = time.perf_counter()
        service.search({"query": query})
        times.append(1000 * (time.perf_counter() - before))
    result = {
        "snapshot": first["snapshot"],
        "mode": first["mode"],
        "iterations": iterations,
        "queries": len(asked),
        "median_ms": round(statistics.median(times), 3),
        # The nearest-rank percentile: a time that was really measured.
        "p95_ms": round(sorted(times)[-(-95 * len(times) // 100) - 1], 3),
        "min_ms": round(min(times), 3),
        "max_ms": round(max(times), 3),
        "startup_ms": round(1000 * startup, 3),
    }
    if output is not None:
        try:
            output.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
        except OSError as error:
            raise ArgumentError(f'--output names "{output}", which cannot be written: {error.strerror}.') from error
    return result


def _read_queries(path: Path) -> list[str]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ArgumentError(f'--queries names "{path}", which cannot be read: {error}.') from error
    queries = [line for line in lines if line.strip()]
    if not queries:
        raise ArgumentError(f'--queries names "{path}", which holds no query.')
    return queries


def _sampled(index: Path) -> list[str]:
    snapshot = Snapshot(index)
    symbols = snapshot.facts.symbols
    positions = range(0, symbols, max(1, symbols // SAMPLED_QUERIES))
    entries = [snapshot.entry(position) for position in positions]
    snapshot.close()
    return [entry.name or entry.path for entry in entries]
