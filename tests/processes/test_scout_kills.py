"""`index` killed at any moment leaves the old snapshot as it was, and nothing that the next build does not clear."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from scree.scout.snapshot import Snapshot
from tests.processes.scout_programs import SCOUT, result
from tests.scout.indexed_tree import LANTERNS, build_index, index_path, names, search, write
from tests.waiting import eventually

KILLS = 12
# Enough for worker processes, so that these are killed in the middle of their work, too.
FILES = 260
COPIES = 30


def children(process: int) -> list[int]:
    return list(map(int, Path(f"/proc/{process}/task/{process}/children").read_text().split()))


def runs(process: int) -> bool:
    try:
        status = Path(f"/proc/{process}/stat").read_text()
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


@pytest.mark.skipif(sys.platform != "linux", reason="children are listed by /proc")
def test_the_workers_of_a_killed_build_end_with_it(tmp_path: Path) -> None:
    write(tmp_path, {f"m{number}.py": LANTERNS * COPIES for number in range(FILES)})
    command = [*SCOUT, "index", ".", "--model", "none"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        workers = eventually(lambda: children(process.pid), 30.0, "workers")
        process.kill()
        process.wait(10.0)
    eventually(lambda: not any(map(runs, workers)), 10.0, "the end of the workers")


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
