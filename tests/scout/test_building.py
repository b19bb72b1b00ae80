"""Building a snapshot: the same input gives the same file, and whatever goes wrong leaves the old one."""

from __future__ import annotations

import errno
import fcntl
import os
import sqlite3
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Self

import pytest

from scree.errors import ArgumentError, LockedIndexError, ReadOnlyIndexError, ScreeError, StorageError
from scree.scout import building, parallel, postings
from scree.scout.files import list_files
from scree.scout.snapshot import Snapshot
from tests.fake_encoder import FakeEncoder
from tests.scout.indexed_tree import LANTERNS, build_index, index_path, names, search, write

FILES = {f"part{number}/module{number}.py": LANTERNS.replace("Lantern", f"Lamp{number}") for number in range(6)}


class Clock(datetime):
    """A clock that stands still."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Self:
        return cls(2026, 1, 2, tzinfo=tz)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path / "project", FILES)
    return tmp_path / "project"


def end_this_process(*_: object) -> None:
    os._exit(1)


def leftovers(root: Path) -> list[str]:
    return sorted(path.name for path in index_path(root).parent.iterdir())


@pytest.mark.requirement("scout-deterministic")
def test_the_same_tree_gives_the_same_bytes(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "datetime", Clock)
    build_index(root, FakeEncoder(), output=root.parent / "a.sqlite")
    build_index(root, FakeEncoder(), output=root.parent / "b.sqlite")
    assert (root.parent / "a.sqlite").read_bytes() == (root.parent / "b.sqlite").read_bytes()


@pytest.mark.requirement("scout-deterministic")
@pytest.mark.requirement("scout-build-streams")
def test_worker_processes_and_runs_put_aside_give_the_same_bytes(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "datetime", Clock)
    build_index(root, output=root.parent / "a.sqlite")
    monkeypatch.setattr(parallel, "MIN_BYTES_FOR_WORKERS", 0)
    monkeypatch.setattr(parallel, "BATCH_BYTES", 500)
    monkeypatch.setattr(parallel, "usable_cores", lambda: 2)
    monkeypatch.setattr(postings, "MAX_HELD", 50)
    build_index(root, output=root.parent / "b.sqlite")
    assert (root.parent / "a.sqlite").read_bytes() == (root.parent / "b.sqlite").read_bytes()


def test_batches_hold_every_file_once_in_order(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "BATCH_BYTES", 700)
    files = list_files(root).files
    batches = list(parallel.batches(files))
    assert [file for batch in batches for file in batch] == list(files)
    assert len(batches) > 1


@pytest.mark.requirement("scout-snapshot-swap")
def test_a_reader_that_is_open_keeps_the_old_snapshot(root: Path) -> None:
    old_facts = build_index(root)
    old = Snapshot(index_path(root))
    write(root, {"new.py": LANTERNS})
    new_facts = build_index(root)
    assert old_facts.snapshot != new_facts.snapshot
    assert old.facts == old_facts
    assert old.entry(old_facts.symbols - 1).path == "part5/module5.py"
    assert Snapshot(index_path(root)).facts == new_facts
    assert leftovers(root) == [".gitignore", "index.sqlite"]


@pytest.mark.requirement("scout-max-symbols")
def test_too_many_symbols_are_an_error_that_leaves_the_old_index(root: Path) -> None:
    facts = build_index(root)
    with pytest.raises(ArgumentError, match=r"more than 10 symbols.*module2.py.*--max-symbols"):
        build_index(root, max_symbols=10)
    assert Snapshot(index_path(root)).facts == facts
    assert leftovers(root) == [".gitignore", "index.sqlite"]
    assert build_index(root, max_symbols=facts.symbols).symbols == facts.symbols


@pytest.mark.requirement("scout-reindex-reuse")
def test_only_code_whose_normalised_text_changed_is_embedded_again(root: Path) -> None:
    first = build_index(root, FakeEncoder())
    assert (first.embedded, first.reused) == (first.symbols, 0)
    changed = FILES["part2/module2.py"].replace("return None", "return 1").replace("import json", "import json  ")
    write(root, {"part2/module2.py": "\n\n\n" + changed.replace("\n", "\r\n")})
    encoder = FakeEncoder()
    second = build_index(root, encoder)
    # The method, and the class that holds it; the lines above, the blanks and the line ends do not count.
    assert [passage.context.split(" ", 1)[1] for passage in encoder.embedded] == ["Lamp2", "Lamp2.douse"]
    assert (second.embedded, second.reused) == (2, second.symbols - 2)


@pytest.mark.requirement("scout-reindex-reuse")
def test_another_encoder_embeds_everything_again(root: Path) -> None:
    build_index(root, FakeEncoder())
    facts = build_index(root, FakeEncoder("another"))
    assert (facts.embedded, facts.reused) == (facts.symbols, 0)


def test_what_a_killed_build_left_behind_is_cleared(root: Path) -> None:
    build_index(root)
    aside = index_path(root).with_name("index.sqlite.building")
    aside.write_bytes(b"half a database")
    build_index(root)
    assert leftovers(root) == [".gitignore", "index.sqlite"]


def test_a_second_build_is_an_error_while_the_first_goes_on(root: Path) -> None:
    facts = build_index(root)
    aside = index_path(root).with_name("index.sqlite.building")
    with aside.open("wb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(LockedIndexError, match="Another process is building"):
            build_index(root)
    assert Snapshot(index_path(root)).facts == facts


def test_a_link_in_place_of_the_new_file_is_not_followed(root: Path) -> None:
    build_index(root)
    victim = root.parent / "victim"
    victim.write_text("precious")
    index_path(root).with_name("index.sqlite.building").symlink_to(victim)
    with pytest.raises(ReadOnlyIndexError, match="symbolic link"):
        build_index(root)
    assert victim.read_text() == "precious"


def test_a_file_that_is_no_index_is_not_replaced(root: Path) -> None:
    notes = root.parent / "notes.txt"
    notes.write_text("precious")
    with pytest.raises(StorageError, match="no intact index"):
        build_index(root, output=notes)
    foreign = root.parent / "foreign.sqlite"
    connection = sqlite3.connect(foreign)
    connection.execute("CREATE TABLE precious (a)")
    connection.close()
    with pytest.raises(StorageError, match="another program"):
        build_index(root, output=foreign)
    assert notes.read_text() == "precious"
    assert sorted(os.listdir(root.parent)) == ["foreign.sqlite", "notes.txt", "project"]


def test_a_damaged_index_in_its_own_place_is_built_again(root: Path) -> None:
    build_index(root)
    index_path(root).write_bytes(b"damaged" * 1000)
    build_index(root)
    assert names(search(root, "Lamp3"))


def test_an_output_folder_that_is_missing_is_an_error(root: Path) -> None:
    with pytest.raises(ReadOnlyIndexError, match="cannot be written"):
        build_index(root, output=root / "missing" / "index.sqlite")


def test_half_a_surrogate_pair_in_a_name_is_stored(tmp_path: Path) -> None:
    write(tmp_path, {"a.py": LANTERNS, "b.js": "function f() { return '\\ud800' }\n"})
    assert build_index(tmp_path).files == 2


def test_files_that_do_not_parse_are_counted(root: Path) -> None:
    write(root, {"broken.py": "def (:\n"})
    facts = build_index(root)
    assert (facts.unparsed, facts.unparsed_examples) == (1, ["broken.py"])


def test_a_full_disk_is_one_sentence_and_leaves_the_old_index(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = build_index(root)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(postings.PostingsWriter, "add", full)
    with pytest.raises(StorageError, match="No space left on device"):
        build_index(root)
    assert Snapshot(index_path(root)).facts == facts
    assert leftovers(root) == [".gitignore", "index.sqlite"]


def test_a_worker_that_is_ended_from_outside_is_one_sentence(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "MIN_BYTES_FOR_WORKERS", 0)
    monkeypatch.setattr(parallel, "usable_cores", lambda: 2)
    monkeypatch.setattr(parallel, "analyse_batch", end_this_process)
    with pytest.raises(ScreeError, match="ended from outside"):
        list(parallel.analyse_all(root, list_files(root).files, False))
