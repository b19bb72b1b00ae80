"""`index` killed at any moment leaves the old snapshot as it was, and nothing that the next build does not clear."""

from __future__ import annotations

import random
import subprocess
import time
from pathlib import Path

import pytest

from scree.scout.snapshot import Snapshot
from tests.processes.scout_programs import SCOUT, result
from tests.scout.indexed_tree import LANTERNS, build_index, index_path, names, search, write

KILLS = 12
# Enough for worker processes, so that these are killed in the middle of their work, too.
FILES = 260
COPIES = 30


@pytest.mark.timeout(300)
@pytest.mark.requirement("scout-kill")
def test_killed_at_random_moments_it_leaves_the_old_snapshot_and_no_litter(tmp_path: Path) -> None:
    root = tmp_path / "project"
    bodies = {f"m{number}.py": LANTERNS.replace("Lantern", f"Lamp{number}") * COPIES for number in range(FILES)}
    body = bodies["m0.py"]
    write(root, bodies | {"m0.py": body + "\n# begin\n"})
    facts = build_index(root)
    command = [*SCOUT, "index", ".", "--model", "none"]
    started = time.monotonic()
    subprocess.run(command, cwd=root, check=True, capture_output=True, timeout=120)
    length = time.monotonic() - started
    dice = random.Random(7)
    finished = 0
    for turn in range(KILLS):
        write(root, {"m0.py": body + f"\n# turn {turn}\n"})
        with subprocess.Popen(command, cwd=root, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            try:
                process.wait(dice.uniform(0, length))
                finished += 1
            except subprocess.TimeoutExpired:
                process.kill()
        snapshot = Snapshot(index_path(root))
        assert snapshot.facts.symbols == facts.symbols
        snapshot.close()
        assert names(search(root, "Lamp7"))[0] == "Lamp7"
    assert finished < KILLS
    result("index", ".", "--model", "none", cwd=root)
    assert sorted(path.name for path in index_path(root).parent.iterdir()) == [".gitignore", "index.sqlite"]
    assert Snapshot(index_path(root)).facts.symbols == facts.symbols
