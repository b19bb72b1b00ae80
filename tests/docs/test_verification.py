from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest

from scree.core.files import ChangedWhileRead
from scree.core.ignore_rules import IgnoreRules
from scree.docs import verification
from scree.docs.file_state import FileState
from scree.docs.settings import MARKDOWN_SUFFIXES, MAX_FILE_BYTES
from scree.docs.store import ChunkRow
from scree.docs.verification import Place, Verifier, find
from tests.indexed_project import IndexedProject
from tests.repositories import GitRepository

FILE = "# A\n\nfirst\n\n## B\n\nsecond line\nand more\n"


@pytest.fixture
def project(tmp_path: Path) -> Iterator[IndexedProject]:
    with closing(IndexedProject(tmp_path)) as opened:
        opened.write({"docs/a.md": FILE})
        opened.settle()
        opened.update()
        yield opened


@pytest.fixture
def verifier(project: IndexedProject) -> Verifier:
    return Verifier(project.root, project.rules, MAX_FILE_BYTES)


def chunks(project: IndexedProject) -> list[ChunkRow]:
    return project.store.chunks_of(project.store.documents()["docs/a.md"].id)


def refuse_to_read(*_: object) -> NoReturn:
    raise AssertionError("a file was read")


def test_an_unchanged_file_is_not_read(
    project: IndexedProject, verifier: Verifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verification, "read_source", refuse_to_read)
    assert [verifier.place(chunk) for chunk in chunks(project)] == [Place(3, 3, True), Place(7, 8, True)]


@pytest.mark.requirement("hit-lines-older-schema")
def test_a_row_without_an_end_line_has_none(project: IndexedProject, verifier: Verifier) -> None:
    assert verifier.place(replace(chunks(project)[1], end_line=None)) == Place(7, None, True)


@pytest.mark.requirement("hit-rechecked")
def test_a_file_that_is_gone_has_no_place(project: IndexedProject, verifier: Verifier) -> None:
    (project.root / "docs" / "a.md").unlink()
    assert [verifier.place(chunk) for chunk in chunks(project)] == [None, None]
    (project.root / "docs").rmdir()
    assert [verifier.place(chunk) for chunk in chunks(project)] == [None, None]
    (project.root / "docs").write_text("now a file")
    assert [verifier.place(chunk) for chunk in chunks(project)] == [None, None]


@pytest.mark.requirement("hit-rechecked")
@pytest.mark.parametrize(
    ("name", "content"), [(".gitignore", "a.md"), (".screeignore", "docs"), ("docs/.screeignore", "*")]
)
def test_a_file_that_is_newly_ignored_has_none(
    project: IndexedProject, verifier: Verifier, name: str, content: str
) -> None:
    if name == ".gitignore":
        GitRepository.create(project.root)
        verifier = Verifier(project.root, IgnoreRules(project.root, MARKDOWN_SUFFIXES), MAX_FILE_BYTES)
    assert verifier.place(chunks(project)[0]) is not None
    project.write({name: content})
    assert verifier.place(chunks(project)[0]) is None


@pytest.mark.requirement("hit-rechecked")
@pytest.mark.parametrize("marker", ["---\nscree: ignore\n---\n", "<!-- scree: ignore -->\n"])
def test_a_file_that_opts_out_has_none(project: IndexedProject, verifier: Verifier, marker: str) -> None:
    project.write({"docs/a.md": marker + FILE})
    assert verifier.place(chunks(project)[0]) is None


@pytest.mark.requirement("hit-rechecked")
@pytest.mark.parametrize("kind", ["link", "fifo", "nul", "large", "folder", "link to its folder"])
def test_a_file_that_became_something_else_has_none(project: IndexedProject, verifier: Verifier, kind: str) -> None:
    path = project.root / "docs" / "a.md"
    aside = path.rename(project.root / "aside.md")
    if kind == "link":
        path.symlink_to(aside)
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "nul":
        path.write_bytes(FILE.encode() + b"\0")
    elif kind == "large":
        path.write_text(FILE + "x" * MAX_FILE_BYTES)
    elif kind == "folder":
        path.mkdir()
    else:
        aside.rename(path)
        path.parent.rename(project.root / "elsewhere")
        path.parent.symlink_to("elsewhere")
    assert verifier.place(chunks(project)[0]) is None


@pytest.mark.requirement("indexed-size")
def test_a_file_over_a_lowered_limit_has_none(project: IndexedProject) -> None:
    assert Verifier(project.root, project.rules, len(FILE)).place(chunks(project)[0]) == Place(3, 3, True)
    assert Verifier(project.root, project.rules, len(FILE) - 1).place(chunks(project)[0]) is None


@pytest.mark.requirement("hit-moved")
def test_in_a_changed_file_a_chunk_is_where_its_text_is(project: IndexedProject, verifier: Verifier) -> None:
    project.write({"docs/a.md": "new\nlines\n\n" + FILE.replace("\n", "\r\n")})
    first, second = chunks(project)
    assert verifier.place(first) == Place(6, 6, False)
    assert verifier.place(second) == Place(10, 11, False)


@pytest.mark.requirement("hit-stale")
def test_where_the_text_is_gone_there_are_no_lines(project: IndexedProject, verifier: Verifier) -> None:
    project.write({"docs/a.md": FILE.replace("and more", "and less")})
    first, second = chunks(project)
    assert verifier.place(first) == Place(3, 3, False)
    assert verifier.place(second) == Place(None, None, False)


def test_a_file_that_only_looks_the_same_is_read(project: IndexedProject, verifier: Verifier) -> None:
    """It was read within a tick of the clock after it was written, so it may have been written again."""
    project.write({"docs/a.md": FILE.replace("first", "FIRST")})
    state = FileState.of((project.root / "docs" / "a.md").stat())
    first, second = (replace(chunk, state=state, read_ns=state.ctime_ns + 1) for chunk in chunks(project))
    assert verifier.place(first) == Place(None, None, False)
    assert verifier.place(second) == Place(7, 8, False)


@pytest.mark.requirement("hit-stale")
@pytest.mark.parametrize("error", [OSError(5, "Input/output error"), ChangedWhileRead("changed")])
def test_a_file_that_cannot_be_read_now_is_stale(
    project: IndexedProject, verifier: Verifier, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*_: object) -> NoReturn:
        raise error

    project.write({"docs/a.md": FILE + "more"})
    monkeypatch.setattr(verification, "read_source", fail)
    assert verifier.place(chunks(project)[0]) == Place(None, None, False)


@pytest.mark.parametrize(
    ("line", "text", "source", "place"),
    [
        (1, "b", "a\nb\nc", Place(2, 2, False)),
        (1, "b\nc", "a\nb\nc", Place(2, 3, False)),
        (9, "same", "same\n\nsame\n\nsame", Place(5, 5, False)),
        (4, "same", "same\n\nsame\n\n\nsame", Place(3, 3, False)),
        (1, "same", "same\n\nsame", Place(1, 1, False)),
        (3, "aa", "x\naaa\naaa", Place(3, 3, False)),
        (2, "b\nc", "a\r\nb\r\nc\r\n", Place(2, 3, False)),
        (1, "b\rc", "a\nb\rc", Place(2, 2, False)),
        (1, "b\u2028c", "a\n\fb\u2028c", Place(2, 2, False)),
        (1, "gone", "a\nb", Place(None, None, False)),
        (1, "gone", "", Place(None, None, False)),
    ],
)
def test_text_is_found_nearest_to_where_it_was(
    project: IndexedProject, line: int, text: str, source: str, place: Place
) -> None:
    assert find(replace(chunks(project)[0], start_line=line, text=text), source) == place


def test_text_that_is_there_many_times_is_found_in_time(project: IndexedProject) -> None:
    chunk = replace(chunks(project)[0], start_line=200_000, text="a\n" * 1_000 + "a")
    assert find(chunk, "a\n" * 200_000) == Place(199_000, 200_000, False)
