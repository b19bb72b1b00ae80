"""The project's own files agree with each other: ranges and locks, and what the locks say."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
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


@pytest.mark.requirement("package-imports")
def test_the_module_borders_hold() -> None:
    done = subprocess.run(
        [Path(sys.executable).parent / "lint-imports", "--no-logo"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.requirement("package-wheel")
def test_the_wheel_carries_the_package_and_its_model_only(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=60)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert not [name for name in names if not name.startswith(("scree/", "scree_mcp-"))]
    assert "scree/models/minilm/model.onnx" in names
    assert any(name.endswith("licenses/NOTICE") for name in names)
