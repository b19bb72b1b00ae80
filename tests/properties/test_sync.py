from __future__ import annotations

import shutil
import tempfile
from contextlib import closing
from pathlib import Path

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.indexed_project import IndexedProject, long_ago

FOLDERS = ["", "docs", "docs/inner", "notes"]
PATHS = [f"{folder}/{name}.md".lstrip("/") for folder in FOLDERS for name in ("a", "b")]
TEXTS = [
    "",
    "alpha",
    "alpha beta",
    "# Alpha\n\nalpha\n\n## Beta\n\nbeta\n\n# Gamma\n\ngamma\n",
    "# Alpha\r\n\r\nalpha\r\n\r\n## Beta\r\n\r\nbeta\r\n",
    "---\ntitle: Gamma\n---\n\nalpha\n\n# Delta\n\nalpha\n",
    "<!-- scree: ignore -->\n\nalpha",
    "delta\n\n" + "beta gamma. " * 400,
    "\0",
]
RULES = ["", "docs\n", "a.md\n", "/notes/\n!/notes/b.md\n"]

paths = st.sampled_from(PATHS)
changes = st.one_of(
    st.tuples(st.just("write"), paths, st.sampled_from(TEXTS)),
    st.tuples(st.just("write, with an old time"), paths, st.sampled_from(TEXTS)),
    st.tuples(st.just("delete"), paths, st.just("")),
    st.tuples(st.just("rename"), paths, paths),
    st.tuples(st.just("rename folder"), st.sampled_from(FOLDERS[1:]), st.sampled_from(["other", "notes"])),
    st.tuples(st.just("rules"), st.just(".screeignore"), st.sampled_from(RULES)),
)
# Each step: what changes, and whether the next look is at these paths alone.
steps = st.lists(st.tuples(st.lists(changes, min_size=1, max_size=5), st.booleans()), min_size=1, max_size=5)


def markdown(root: Path) -> set[str]:
    """The markdown files there are, by relative path."""
    return {path.relative_to(root).as_posix() for path in root.rglob("*.md") if path.is_file()}


def apply(project: IndexedProject, change: tuple[str, str, str]) -> None:
    kind, name, argument = change
    path = project.root / name
    if kind.startswith("write") or kind == "rules":
        project.write({name: argument})
        if kind != "write":
            long_ago(path)
    elif kind == "delete":
        path.unlink(missing_ok=True)
    elif path.exists() and name != argument:
        target = project.root / argument
        if kind == "rename folder":
            shutil.rmtree(target, ignore_errors=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        path.rename(target)


@pytest.mark.requirement("sync-unchanged")
@pytest.mark.requirement("embeddings-by-content")
@hypothesis.settings(max_examples=20)
@given(steps)
def test_an_index_kept_up_to_date_equals_a_new_one(steps: list[tuple[list[tuple[str, str, str]], bool]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root, aside = Path(folder, "project"), Path(folder, "fresh.sqlite")
        root.mkdir()
        # A root without anything in it counts as unmounted.
        (root / "main.py").touch()
        with closing(IndexedProject(root)) as project:
            project.update()
            embedded = []
            for number, (made, by_path) in enumerate(steps):
                before = markdown(root)
                for change in made:
                    apply(project, change)
                project.update(before | markdown(root) if by_path else None)
                fresh = aside.with_name(f"{number}.sqlite")
                with closing(IndexedProject(root, index=fresh)) as new:
                    new.update()
                    assert project.everything() == new.everything()
                embedded += [(passage.context, passage.text) for passage in project.encoder.embedded]
                project.encoder.embedded.clear()
            assert len(embedded) == len(set(embedded))
