"""Index code and search it with semble, by words alone, in an environment that has it: a rival of `scout_speed`.

    python benchmarks/semble_rival.py TASKS

TASKS is a JSON file: a list of `root` and `queries`. An encoder of constant vectors stands in for the model, which
would be downloaded, and searches give it no weight. Prints one JSON line: seconds of indexing, milliseconds of each
query, peak memory in MB.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import semble.index.index as semble_index
from numpy.typing import NDArray

RESULTS = 10


class ConstantEncoder:
    """Stands in for semble's model."""

    dim = 8

    def encode(self, texts: Sequence[str], **_: object) -> NDArray[np.float32]:
        """Return the same unit vector for each text."""
        return np.full((len(texts), self.dim), self.dim**-0.5, np.float32)


def main() -> int:
    """Do the tasks."""
    semble_index.load_model = lambda *_: (ConstantEncoder(), "constant")
    seconds, queries = 0.0, []
    for task in json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")):
        started = time.perf_counter()
        index = semble_index.SembleIndex.from_path(task["root"])
        seconds += time.perf_counter() - started
        for query in task["queries"]:
            started = time.perf_counter()
            index.search(query, top_k=RESULTS, alpha=0.0)
            queries.append(1000 * (time.perf_counter() - started))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"index_s": seconds, "queries_ms": queries, "memory_mb": memory}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
