"""micro-scout's program as real processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

SCOUT = (sys.executable, "-m", "scree.scout.cli")
SECONDS = 50.0


def scout(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(
        [*SCOUT, *arguments],
        cwd=cwd,
        env=os.environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=SECONDS,
        check=False,
    )


def result(*arguments: str, cwd: Path) -> Any:
    """Run a command that must succeed without a word on stderr; returns the JSON it printed."""
    done = scout(*arguments, cwd=cwd)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def failure(*arguments: str, cwd: Path) -> dict[str, str]:
    """Run a command that must fail; returns the one JSON line on stderr."""
    done = scout(*arguments, cwd=cwd)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    (line,) = done.stderr.splitlines()
    failed: dict[str, str] = json.loads(line)
    assert failed.keys() == {"error", "type"}
    return failed
