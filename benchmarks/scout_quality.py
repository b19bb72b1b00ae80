"""How well micro-scout finds files of code: `repo-search`, 500 queries over 25 pinned repositories.

    python -m benchmarks.scout_quality --repositories DIR [--sets DIR] [--work DIR] [--model M]

The labels lie in a folder beside the project (`../shared/evals/repo-search`), whose README says how they are scored and
what they are worth. Below DIR each repository is checked out under the name it has there.

- NDCG@10: a target counts at the rank of the first of ten results that hits it, discounted by log2(rank + 1), over the
  best that is possible. Of a query, averaged over a repository's, averaged over repositories.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from benchmarks.report import progress, store, table
from scree.core.encoder import load_encoder
from scree.core.progress import silent
from scree.scout.building import MAX_SYMBOLS, Model, build
from scree.scout.models import NONE, model_name
from scree.scout.service import Service

SETS = Path(__file__).resolve().parents[2] / "shared" / "evals"
CUT = 10

# The goal the project has set itself, in lexical mode.
GOAL = 0.75


def run() -> dict[str, object]:
    """Return what can be measured without being told where the repositories are."""
    return {"not measured": "python -m benchmarks.scout_quality --repositories DIR"}


def measure(sets: Path, repositories: Path, work: Path, model: str) -> dict[str, Any]:
    """Return NDCG@10 by mode, in the mean, by repository and by category of query."""
    folder = sets / "repo-search"
    encoder = None if model == NONE else Model(model_name(model), load_encoder(model))
    modes = ("lexical",) if encoder is None else ("lexical", "dense", "hybrid")
    by_repository: dict[str, dict[str, float]] = {}
    by_category: dict[str, dict[str, list[float]]] = {mode: defaultdict(list) for mode in modes}
    for repository in json.loads((folder / "repos.json").read_text(encoding="utf-8")):
        name = repository["name"]
        root = repositories / name / repository["root"]
        index = work / f"{name}.sqlite"
        build(root.resolve(), index, encoder, MAX_SYMBOLS, silent)
        service = Service(index, None)
        labels = json.loads((folder / "labels" / f"{name}.json").read_text(encoding="utf-8"))
        by_repository[name] = {}
        for mode in modes:
            scores = []
            for label in labels:
                raw = {"query": label["query"], "top_k": CUT, "max_chars": 100_000, "mode": mode}
                results = service.search(raw, expand=False)["results"]
                scores.append(ndcg(results, [*label["relevant"], *label["secondary"]], repository["root"]))
                by_category[mode][label["category"]].append(scores[-1])
            by_repository[name][mode] = mean(scores)
        service.close()
        progress(f"{name}: {by_repository[name]}")
    return {
        "mean NDCG@10": {mode: mean(scores[mode] for scores in by_repository.values()) for mode in modes},
        "repositories": by_repository,
        "categories": {
            mode: {category: mean(scores) for category, scores in by_category[mode].items()} for mode in modes
        },
    }


def ndcg(results: Sequence[Mapping[str, Any]], targets: Sequence[str | Mapping[str, Any]], root: str) -> float:
    """Return NDCG@10 of one query.

    Args:
        results: of the search, best first.
        targets: paths, some with lines.
        root: the sub-folder that was indexed.
    """
    ranks = set()
    for target in targets:
        place = {"path": target} if isinstance(target, str) else target
        ranks.update(list(_hits(results, place, root))[:1])
    gain = sum(1 / math.log2(rank + 1) for rank in ranks)
    ideal = sum(1 / math.log2(rank + 1) for rank in range(1, min(CUT, len(targets)) + 1))
    return gain / ideal


def _hits(results: Sequence[Mapping[str, Any]], target: Mapping[str, Any], root: str) -> Iterator[int]:
    for rank, result in enumerate(results, start=1):
        path = f"{root}/{result['path']}" if root else result["path"]
        same = path == target["path"] or f"/{path}".endswith(f"/{target['path']}")
        first, last = target.get("start_line", 1), target.get("end_line", math.inf)
        if (
            (same or f"/{target['path']}".endswith(f"/{path}"))
            and result["start_line"] <= last
            and result["end_line"] >= first
        ):
            yield rank


def main() -> int:
    """Measure, print a table, store the result."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scout_quality", description=__doc__)
    parser.add_argument("--repositories", type=Path, required=True, metavar="DIR", help="the checkouts")
    parser.add_argument("--sets", type=Path, default=SETS, metavar="DIR", help="the evaluation sets")
    parser.add_argument("--work", type=Path, metavar="DIR", help="keep the indexes here (default: nowhere)")
    parser.add_argument("--model", default=NONE, metavar="M", help="builtin, none or an encoder's folder")
    parser.add_argument("--no-store", action="store_true", help="only print")
    options = parser.parse_args()
    with contextlib.ExitStack() as closing:
        work = options.work or Path(closing.enter_context(tempfile.TemporaryDirectory()))
        results = measure(options.sets, options.repositories, work, options.model)
    modes = list(results["mean NDCG@10"])
    rows = [["repository", *modes]]
    rows += [[name, *(scores[mode] for mode in modes)] for name, scores in results["repositories"].items()]
    rows.append(["mean", *results["mean NDCG@10"].values()])
    print(table(rows))
    if not options.no_store:
        print(f"stored in {store('scout-quality', results)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
