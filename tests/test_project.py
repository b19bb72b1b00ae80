"""The project's own files agree with each other: ranges and locks, and what the locks say."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parent.parent
PIN = re.compile(r"^([\w.-]+)==([^\s;]+)", re.MULTILINE)


def lock(name: str) -> str:
    """A lock file's text."""
    return (ROOT / "requirements" / name).read_text(encoding="utf-8")


def pins(name: str) -> dict[str, set[Version]]:
    """The locked versions of each distribution: more than one where Python versions differ."""
    found: dict[str, set[Version]] = {}
    for distribution, version in PIN.findall(lock(name)):
        found.setdefault(distribution, set()).add(Version(version))
    return found


def project() -> dict[str, list[Requirement]]:
    """The ranges in `pyproject.toml`, by the lock that must satisfy them."""
    with (ROOT / "pyproject.toml").open("rb") as stream:
        settings = tomllib.load(stream)
    runtime = settings["project"]["dependencies"]
    return {
        "runtime.lock": [Requirement(text) for text in runtime],
        "dev.lock": [Requirement(text) for text in runtime + settings["dependency-groups"]["dev"]],
    }


def test_the_locks_satisfy_the_ranges() -> None:
    for name, requirements in project().items():
        locked = pins(name)
        for requirement in requirements:
            assert locked.get(requirement.name), f"{name} lacks {requirement.name}: run make lock"
            assert all(version in requirement.specifier for version in locked[requirement.name]), requirement


def test_development_runs_on_the_versions_that_users_get() -> None:
    development = pins("dev.lock")
    assert {name: development.get(name) for name in pins("runtime.lock")} == pins("runtime.lock")


def test_no_lock_names_a_host() -> None:
    for name in project():
        assert "//" not in lock(name), name
        assert "index-url" not in lock(name), name
