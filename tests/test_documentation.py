"""What the pages say exists: the files and headings they link to, modules, commands, settings."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "scree"
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])

LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#{1,6} +(.+?)\s*$", re.MULTILINE)
SETTING = re.compile(r"\bSCREE_[A-Z_]+\b")
SHELL_BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)


def text(page: Path) -> str:
    """A page as text."""
    return page.read_text(encoding="utf-8")


def anchors(page: Path) -> set[str]:
    """The anchors that code hosts give a page's headings: lower case, no punctuation, hyphens for spaces."""
    slugs = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in HEADING.findall(text(page)))
    return {slug.replace(" ", "-") for slug in slugs}


def shell_lines() -> list[str]:
    """Every command that the pages show."""
    blocks = (block for page in PAGES for block in SHELL_BLOCK.findall(text(page)))
    return [line for block in blocks for line in block.splitlines()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_lead_somewhere(page: Path) -> None:
    for link in LINK.findall(text(page)):
        if "://" in link:
            continue
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_the_module_map_is_complete_and_true() -> None:
    mapped = re.findall(r"^\| `([\w/]+\.py)`", text(ROOT / "ARCHITECTURE.md"), re.MULTILINE)
    modules = [str(path.relative_to(SOURCE)) for path in SOURCE.rglob("*.py") if path.name != "__init__.py"]
    assert sorted(mapped) == sorted(modules)


def test_the_settings_in_the_pages_are_those_in_the_code() -> None:
    in_code = set(SETTING.findall(text(SOURCE / "docs" / "settings.py")))
    assert set(SETTING.findall(text(ROOT / "README.md"))) == in_code
    for page in PAGES:
        assert set(SETTING.findall(text(page))) <= in_code, page


def test_make_commands_in_the_pages_exist() -> None:
    targets = set(re.findall(r"^([a-z]+):", text(ROOT / "Makefile"), re.MULTILINE))
    shown = {line.split()[1] for line in shell_lines() if line.startswith("make ")}
    assert shown
    assert shown <= targets


def test_scree_commands_in_the_pages_exist() -> None:
    shown = {line.split()[1] for line in shell_lines() if line.startswith("scree ")}
    assert shown
    for command in shown:
        done = subprocess.run(
            [sys.executable, "-m", "scree.docs.cli", command, "--help"],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert f"scree {command}" in done.stdout
