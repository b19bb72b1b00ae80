"""The benchmarks run from one end to the other; what they measure here says nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[1]

# Rivals are not installed where tests run.
OPTIONAL = "sentence-transformers"


@pytest.mark.timeout(180)
def test_the_speed_benchmark_measures_everything_it_lists() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.docs_speed", "--quick"],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
        timeout=170,
    )
    assert done.returncode == 0, done.stderr
    heading, *rows = done.stdout.splitlines()
    assert heading.startswith("measure")
    assert rows
    assert not [row for row in rows if row.endswith("not measured") and OPTIONAL not in row]
