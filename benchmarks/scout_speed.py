"""How fast micro-scout indexes and searches the repositories of `repo-search` by words, beside semble.

    python -m benchmarks.scout_speed --repositories DIR [--semble PYTHON] [--sets DIR] [--rounds N]

PYTHON is an interpreter that has semble installed. The two take turns, each in a process of its own, and the best round
of each counts, so that a busy machine says as little as possible about either.

- index: seconds for all repositories, one after the other.
- memory: the peak of the largest process while indexing and searching, in MB. micro-scout's worker processes count one
  by one, each beside the main process.
- query: median of all labels' queries, warm, ten results, each checked against the disk by micro-scout.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.report import store, table
from benchmarks.scout_quality import SETS
from scree.core.progress import silent
from scree.scout.building import MAX_SYMBOLS, build
from scree.scout.service import Service

RIVAL = Path(__file__).with_name("semble_rival.py")
RESULTS = 10
SECONDS = 1_800.0

# What the project has set itself: at most so many times the rival's.
GOALS = {"index_s": 1.5, "memory_mb": 1.0, "query_ms": 2.0}


def run() -> dict[str, object]:
    """Return what can be measured without being told where the repositories are."""
    return {"not measured": "python -m benchmarks.scout_speed --repositories DIR"}


def tasks(sets: Path, repositories: Path) -> list[dict[str, Any]]:
    """Return the root and the queries of each repository."""
    folder = sets / "repo-search"
    found = []
    for repository in json.loads((folder / "repos.json").read_text(encoding="utf-8")):
        name = repository["name"]
        labels = json.loads((folder / "labels" / f"{name}.json").read_text(encoding="utf-8"))
        root = (repositories / name / repository["root"]).resolve()
        found.append({"root": str(root), "queries": [label["query"] for label in labels]})
    return found


def own(todo: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Do the tasks with micro-scout, in this process; the same numbers as `semble_rival`."""
    seconds, queries = 0.0, []
    with tempfile.TemporaryDirectory() as folder:
        for number, task in enumerate(todo):
            index = Path(folder) / f"{number}.sqlite"
            started = time.perf_counter()
            build(Path(task["root"]), index, None, MAX_SYMBOLS, silent)
            seconds += time.perf_counter() - started
            service = Service(index, None)
            for query in task["queries"]:
                started = time.perf_counter()
                service.search({"query": query, "top_k": RESULTS})
                queries.append(1000 * (time.perf_counter() - started))
            service.close()
    peaks = (resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return {"index_s": seconds, "queries_ms": queries, "memory_mb": max(peaks) / 1024}


def best(rounds: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Return the best of each measure."""
    return {
        "index_s": min(each["index_s"] for each in rounds),
        "memory_mb": min(each["memory_mb"] for each in rounds),
        "query_ms": min(statistics.median(each["queries_ms"]) for each in rounds),
    }


def measure(sets: Path, repositories: Path, rival: str | None, rounds: int) -> dict[str, Any]:
    """Return the measures of both, and their ratios."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "tasks.json"
        file.write_text(json.dumps(tasks(sets, repositories)), encoding="utf-8")
        commands = {"micro-scout": [sys.executable, "-m", "benchmarks.scout_speed", "--tasks", str(file)]}
        if rival is not None:
            commands["semble"] = [rival, str(RIVAL), str(file)]
        measured: dict[str, list[dict[str, Any]]] = {name: [] for name in commands}
        for _ in range(rounds):
            for name, command in commands.items():
                done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=SECONDS)
                measured[name].append(json.loads(done.stdout.splitlines()[-1]))
    results: dict[str, Any] = {name: best(each) for name, each in measured.items()}
    if rival is not None:
        results["ratios"] = {name: results["micro-scout"][name] / results["semble"][name] for name in GOALS}
        results["at most"] = GOALS
    return results


def main() -> int:
    """Measure, print a table, store the result."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scout_speed", description=__doc__)
    parser.add_argument("--repositories", type=Path, metavar="DIR", help="the checkouts")
    parser.add_argument("--semble", metavar="PYTHON", help="an interpreter that has semble")
    parser.add_argument("--sets", type=Path, default=SETS, metavar="DIR", help="the evaluation sets")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="how often (3)")
    parser.add_argument("--tasks", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.tasks:
        print(json.dumps(own(json.loads(options.tasks.read_text(encoding="utf-8")))))
        return 0
    results = measure(options.sets, options.repositories, options.semble, options.rounds)
    print(table([["", *GOALS], *([name, *(values[goal] for goal in GOALS)] for name, values in results.items())]))
    print(f"stored in {store('scout-speed', results)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
