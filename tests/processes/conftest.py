"""What the process tests share."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.repositories import GitRepository

WORDS = ("pump", "valve", "river", "stone", "bridge", "engine", "signal", "harbour", "meadow", "copper", "ladder")

# With one thread the embedding of this takes many seconds anywhere; reading it takes less than one.
SLOW_FILES = 250
SLOW_WORDS = 700
SLOW = {"SCREE_THREADS": "1"}


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Where a program in the background writes its stderr."""
    return tmp_path / "stderr.txt"


@pytest.fixture(scope="module")
def slow_files() -> dict[str, str]:
    """Files whose first sync goes on for long: `docs/0.md` and so on, each with a word of its own, `unique0`."""
    dice = random.Random(7)
    return {
        f"docs/{number}.md": f"# Part {number}\n\nunique{number} {' '.join(dice.choices(WORDS, k=SLOW_WORDS))}\n"
        for number in range(SLOW_FILES)
    }


@pytest.fixture
def slow_repository(git_repository: Callable[..., GitRepository], slow_files: dict[str, str]) -> GitRepository:
    """A repository whose first sync goes on for long, in the environment `SLOW`."""
    repository = git_repository()
    repository.write(slow_files)
    return repository
