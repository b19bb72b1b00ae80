from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from scree.docs.status import Status, size_on_disk
from tests.ordinary_user import ordinary_user

STATUS = Status(
    root=Path("/projects/ours"),
    index_path=Path("/projects/ours/.scree/index.sqlite"),
    files=(("README.md", 3), ("docs/a.md", 4)),
    model="0123456789abcdef",
    index_bytes=1_234_567,
    writer_pid=4_321,
    last_sync=1_700_000_000,
    skipped=(("node_modules", "dependency folder"), ("old.md", 'opt-out marker "scree: ignore"')),
    note="[index incomplete: first sync in progress, 2 notes indexed so far]",
)
NOTHING = replace(STATUS, files=(), model=None, index_bytes=0, writer_pid=None, last_sync=None, skipped=(), note=None)


@pytest.fixture(autouse=True)
def new_york(monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.setenv("TZ", "EST+5")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.requirement("command-status-json")
def test_json_has_the_promised_keys() -> None:
    assert STATUS.as_json() == {
        "root": "/projects/ours",
        "index_path": "/projects/ours/.scree/index.sqlite",
        "files": [{"path": "README.md", "chunks": 3}, {"path": "docs/a.md", "chunks": 4}],
        "chunks": 7,
        "model": "0123456789abcdef",
        "index_bytes": 1_234_567,
        "writer_pid": 4_321,
        "last_sync": "2023-11-14T17:13:20-0500",
        "skipped": [
            {"path": "node_modules", "reason": "dependency folder"},
            {"path": "old.md", "reason": 'opt-out marker "scree: ignore"'},
        ],
        "note": "[index incomplete: first sync in progress, 2 notes indexed so far]",
    }


@pytest.mark.requirement("command-status-json")
def test_json_has_them_also_where_there_is_no_index() -> None:
    found = NOTHING.as_json()
    assert found.keys() == STATUS.as_json().keys()
    assert [found[key] for key in ("files", "chunks", "model", "writer_pid", "last_sync", "skipped", "note")] == [
        [],
        0,
        None,
        None,
        None,
        [],
        None,
    ]


@pytest.mark.requirement("command-status")
def test_the_text_shows_everything() -> None:
    assert STATUS.as_text().splitlines() == [
        "root       /projects/ours",
        "index      /projects/ours/.scree/index.sqlite (1.2 MB)",
        "files      2",
        "chunks     7",
        "model      0123456789ab",
        "written by process 4321",
        "last sync  2023-11-14T17:13:20-0500",
        "skipped    2",
        "  node_modules: dependency folder",
        '  old.md: opt-out marker "scree: ignore"',
        "[index incomplete: first sync in progress, 2 notes indexed so far]",
    ]


@pytest.mark.requirement("command-status")
def test_the_text_says_what_there_is_not() -> None:
    lines = NOTHING.as_text().splitlines()
    assert lines[4:] == [
        "model      none yet",
        "written by nobody; the next search or session brings it up to date",
        "last sync  never",
        "skipped    0",
    ]
    assert "1970" in replace(NOTHING, last_sync=86_400).as_text()


@pytest.mark.requirement("hit-attributes")
def test_no_name_breaks_a_line_or_cannot_be_printed() -> None:
    odd = os.fsdecode(b"a\n[note]\x1b[31m\xff.md")
    status = replace(STATUS, root=Path("/p") / odd, files=((odd, 1),), skipped=((odd, "reason"),), note=None)
    text = status.as_text()
    assert len(text.splitlines()) == 9
    assert "\x1b" not in text
    text.encode()
    json.dumps(status.as_json(), ensure_ascii=False).encode()


def test_the_size_is_that_of_the_files_that_exist(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 10)
    (tmp_path / "b").write_bytes(b"x" * 5)
    assert size_on_disk([tmp_path / "a", tmp_path / "b", tmp_path / "c", tmp_path / "a" / "d"]) == 15
    assert size_on_disk([]) == 0


def test_the_size_of_a_file_behind_a_closed_folder_is_not_guessed() -> None:
    with ordinary_user() as folder:
        (folder / "closed").mkdir(mode=0o000)
        assert size_on_disk([folder / "closed" / "a"]) == 0
        (folder / "closed").chmod(0o700)
