"""What a benchmark leaves behind: a table for people and one JSON file with what it was measured on."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

RESULTS = Path(__file__).parent / "results"

LIBRARIES = (
    "mcp",
    "numpy",
    "onnxruntime",
    "tokenizers",
    "markdown-it-py",
    "watchfiles",
    "sentence-transformers",
    "torch",
)


def store(name: str, results: Mapping[str, object]) -> Path:
    """Write `results/<date>-<commit>-<name>.json` and return its path.

    The commit ends in `-dirty` where the tree has changes that are not committed.
    """
    commit = _git("describe", "--always", "--dirty", "--abbrev=10")
    report = {
        "benchmark": name,
        "commit": commit,
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "machine": machine(),
        "versions": versions(),
        "results": results,
    }
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{time.strftime('%Y-%m-%d', time.gmtime())}-{commit}-{name}.json"
    path.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    return path


def machine() -> dict[str, object]:
    """Return what the numbers depend on: system, processor, cores, memory in bytes."""
    return {
        "system": platform.platform(),
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
    }


def versions() -> dict[str, str]:
    """Return the versions of Python, SQLite and the libraries that matter, as far as they are installed."""
    import sqlite3

    found = {"python": platform.python_version(), "sqlite": sqlite3.sqlite_version}
    for library in LIBRARIES:
        try:
            found[library] = version(library)
        except PackageNotFoundError:
            continue
    return found


def table(rows: Sequence[Sequence[object]]) -> str:
    """Lay out rows of cells, the first being the heading, in columns."""
    cells = [[cell if isinstance(cell, str) else _number(cell) for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells
    )


def progress(text: str) -> None:
    """Say on standard error what is being measured."""
    print(text, file=sys.stderr, flush=True)


def _number(cell: object) -> str:
    return f"{cell:.3f}" if isinstance(cell, float) else str(cell)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.processor()
    )


def _git(*arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(RESULTS.parent), *arguments], capture_output=True, text=True, check=False, timeout=30
    )
    return done.stdout.strip() or "unknown"
