"""What every test gets: an environment of its own, and real git repositories on request."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import hypothesis
import pytest

from tests.repositories import GitRepository

# Deadlines would test the machine, not the code. In CI a run repeats exactly; elsewhere it explores.
hypothesis.settings.register_profile("local", deadline=None)
hypothesis.settings.register_profile("ci", deadline=None, derandomize=True, database=None)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "local")

LEAKING_PREFIXES = ("GIT_", "SCREE_", "XDG_")
LEAKING_NAMES = ("CLAUDE_PROJECT_DIR",)

GIT_CONFIG = """\
[user]
    name = A Tester
    email = tester@example.org
[init]
    defaultBranch = main
[commit]
    gpgSign = false
[core]
    autocrlf = false
[protocol "file"]
    allow = always
"""


@pytest.fixture(scope="module")
def runtime_folder() -> Iterator[Path]:
    """A module's private folder, its path short enough for Unix sockets (about 100 bytes), unlike pytest's own."""
    with tempfile.TemporaryDirectory(prefix="scree-") as folder:
        yield Path(folder)


@pytest.fixture(autouse=True)
def isolated_environment(
    tmp_path_factory: pytest.TempPathFactory, runtime_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """Hide the user's home, git settings and scree settings from the test and from what it starts.

    Returns:
        The home folder the test has instead, new and all but empty.
    """
    return isolate(monkeypatch, tmp_path_factory, runtime_folder)


@pytest.fixture(scope="module")
def module_environment(tmp_path_factory: pytest.TempPathFactory, runtime_folder: Path) -> Iterator[Path]:
    """Do the same for what the tests of a module share, for repositories and servers among it; yields the home."""
    with pytest.MonkeyPatch.context() as patch:
        yield isolate(patch, tmp_path_factory, runtime_folder)


def isolate(patch: pytest.MonkeyPatch, folders: pytest.TempPathFactory, runtime_folder: Path) -> Path:
    """Replace everything in the environment that git and scree go by; returns the new home folder."""
    for name in list(os.environ):
        if name.startswith(LEAKING_PREFIXES) or name in LEAKING_NAMES:
            patch.delenv(name)
    home = folders.mktemp("home")
    git_config = home / ".gitconfig"
    git_config.write_text(GIT_CONFIG)
    patch.setenv("HOME", str(home))
    patch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    patch.setenv("XDG_CACHE_HOME", str(home / ".cache"))
    patch.setenv("XDG_DATA_HOME", str(home / ".local" / "share"))
    patch.setenv("XDG_STATE_HOME", str(home / ".local" / "state"))
    patch.setenv("XDG_RUNTIME_DIR", str(runtime_folder))
    patch.setenv("GIT_CONFIG_GLOBAL", str(git_config))
    patch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    # A temporary folder inside somebody's repository must still count as "outside git".
    patch.setenv("GIT_CEILING_DIRECTORIES", str(folders.getbasetemp()))
    return home


@pytest.fixture
def git_repository(tmp_path: Path) -> Callable[..., GitRepository]:
    """A factory: `git_repository({"docs/a.md": "# A"}, name="project")` commits that under `tmp_path`."""

    def create(files: Mapping[str, str | bytes] | None = None, name: str = "repository") -> GitRepository:
        return GitRepository.create(tmp_path / name, files)

    return create
