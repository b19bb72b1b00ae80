from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest

from scree.core.database import remove_database
from scree.core.files import ChangedWhileRead, SourceText
from scree.core.files import read_source as real_read_source
from scree.docs import sync as sync_module
from scree.docs.chunks import Document
from scree.docs.chunks import parse as real_parse
from scree.docs.file_state import FileState
from scree.docs.settings import Settings
from scree.docs.store import index_path
from scree.errors import SchemaError
from tests.fake_encoder import FakeEncoder
from tests.indexed_project import IndexedProject
from tests.older_index import make_version_1
from tests.ordinary_user import ordinary_user
from tests.repositories import GitRepository

Open = Callable[..., IndexedProject]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    """Opens the index of a project, by default that of an empty one; closes all at the end."""
    projects: list[IndexedProject] = []

    def open_project(root: Path | None = None, **settings: float) -> IndexedProject:
        root = root or tmp_path / "project"
        root.mkdir(exist_ok=True)
        projects.append(IndexedProject(root, Settings(**settings)))  # type: ignore[arg-type]
        return projects[-1]

    yield open_project
    for project in projects:
        project.close()


@pytest.fixture
def project(opened: Open) -> IndexedProject:
    return opened()


def refuse_to_read(*_: object) -> NoReturn:
    raise AssertionError("a file was read")


def fresh(project: IndexedProject, tmp_path: Path) -> dict[str, object]:
    """What an index built anew from the files says."""
    with closing(IndexedProject(project.root, index=tmp_path / "fresh.sqlite")) as other:
        other.update(capped=False)
        found = other.everything()
    remove_database(tmp_path / "fresh.sqlite")
    return found


# What a look finds


def test_new_changed_and_deleted_files_are_taken_up(project: IndexedProject) -> None:
    project.write({"a.md": "# A\n\none", "docs/b.markdown": "# B\n\ntwo", "c.MDX": "three", "d.txt": "no"})
    report = project.update()
    assert (report.notes, sorted(report.indexed), report.removed, report.failed, report.deferred) == (
        3,
        ["a.md", "c.MDX", "docs/b.markdown"],
        [],
        {},
        set(),
    )
    assert project.texts() == ["one", "three", "two"]
    assert report.folders == frozenset({"", "docs"})
    project.write({"a.md": "# A\n\none more"})
    (project.root / "c.MDX").unlink()
    report = project.update()
    assert (report.indexed, report.removed) == (["a.md"], ["c.MDX"])
    assert project.texts() == ["one more", "two"]


def test_a_look_at_some_paths_is_a_look_at_these_only(project: IndexedProject) -> None:
    project.write({"a.md": "one", "b.md": "two", "c.md": "three"})
    project.update()
    project.write({"a.md": "one!", "b.md": "two!", "new.md": "four"})
    (project.root / "c.md").unlink()
    report = project.update(iter(["a.md", "c.md", "absent.md", "new.md"]))
    assert (sorted(report.indexed), report.removed, report.folders) == (["a.md", "new.md"], ["c.md"], None)
    assert project.texts() == ["one!", "two", "four"]


def test_what_the_rules_newly_leave_out_or_let_in_follows(project: IndexedProject) -> None:
    project.write({"a.md": "one", "docs/b.md": "two", ".screeignore": "/docs\n"})
    project.update()
    assert project.indexed() == ["a.md"]
    project.write({".screeignore": "a.md\n"})
    report = project.update(["a.md"])
    assert report.removed == ["a.md"]
    project.update()
    assert project.indexed() == ["docs/b.md"]


@pytest.mark.requirement("ignore-marker-front-matter")
@pytest.mark.requirement("ignore-marker-comment")
@pytest.mark.parametrize("marker", ["---\nscree: ignore\n---\n", "<!-- scree: ignore -->\n"])
def test_a_file_that_opts_out_leaves_and_comes_back(project: IndexedProject, marker: str) -> None:
    project.write({"a.md": "# A\n\none", "b.md": "two"})
    project.update()
    project.embedded()
    project.write({"a.md": marker + "# A\n\none"})
    report = project.update()
    assert (report.indexed, report.removed) == ([], ["a.md"])
    assert project.indexed() == ["b.md"]
    assert project.store.skipped_by_content() == {"a.md": 'opt-out marker "scree: ignore"'}
    assert project.update().removed == []
    project.write({"a.md": "# A\n\none"})
    assert project.update().indexed == ["a.md"]
    assert project.indexed() == ["a.md", "b.md"]
    assert project.store.skipped_by_content() == {}
    assert project.embedded() == []


# What costs nothing


@pytest.mark.requirement("sync-unchanged")
def test_an_unchanged_file_is_neither_read_nor_embedded(
    project: IndexedProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write(
        {"a.md": "one", "docs/b.md": "two", "out.md": "<!-- scree: ignore -->", "nul.md": "\0", "big.md": "x"}
    )
    project.settle()
    project.update()
    project.embedded()
    monkeypatch.setattr(sync_module, "read_source", refuse_to_read)
    for paths in (None, ["a.md", "docs/b.md"]):
        report = project.update(paths)
        assert (report.indexed, report.removed, report.failed) == ([], [], {})
    assert project.embedded() == []


@pytest.mark.requirement("sync-unchanged")
def test_that_holds_for_files_from_the_future_and_the_distant_past(
    project: IndexedProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = {"future.md": time.time_ns() + 10**18, "far.md": 2**63 - 1, "old.md": 0, "older.md": -(10**18)}
    project.write(dict.fromkeys(names, "text"))
    for name, moment in names.items():
        os.utime(project.root / name, ns=(moment, moment))
    project.settle()
    project.update()
    assert project.indexed() == sorted(names)
    monkeypatch.setattr(sync_module, "read_source", refuse_to_read)
    assert project.update().indexed == []


@pytest.mark.requirement("sync-unchanged")
def test_a_touched_file_is_read_and_not_embedded(project: IndexedProject) -> None:
    project.write({"a.md": "one"})
    project.settle()
    project.update()
    ids = [row.id for row in project.store.chunks_of(1)]
    os.utime(project.root / "a.md", ns=(5, 5))
    report = project.update()
    assert report.indexed == []
    assert [row.id for row in project.store.chunks_of(1)] == ids
    assert project.store.documents()["a.md"].state == FileState.of((project.root / "a.md").stat())


@pytest.mark.requirement("embeddings-by-content")
def test_moved_renamed_and_copied_text_is_not_embedded_again(project: IndexedProject) -> None:
    project.write({"a.md": "# A\n\none\n\n## Deep\n\ntwo", "docs/b.md": "# B\n\nthree"})
    project.update()
    assert sorted(project.embedded()) == ["one", "three", "two"]
    (project.root / "docs").rename(project.root / "manual")
    (project.root / "a.md").rename(project.root / "manual" / "z.md")
    shutil.copy(project.root / "manual" / "z.md", project.root / "copy.md")
    project.update()
    assert project.indexed() == ["copy.md", "manual/b.md", "manual/z.md"]
    project.write({"copy.md": "<!-- moved down -->\n\n\n# A\n\none\n\n## Deep\n\ntwo, changed"})
    project.update()
    assert project.embedded() == ["<!-- moved down -->", "two, changed"]


@pytest.mark.requirement("embeddings-by-content")
@pytest.mark.requirement("watch-branch-switch")
def test_a_branch_switched_to_and_back_is_embedded_once(
    git_repository: Callable[..., GitRepository], opened: Open, tmp_path: Path
) -> None:
    files: dict[str, str | bytes] = {f"docs/{number}.md": f"# Note {number}\n\ntext {number}" for number in range(30)}
    repository = git_repository(files)
    project = opened(repository.path)
    project.update()
    assert len(project.embedded()) == 30
    repository.git("checkout", "--quiet", "-b", "other")
    repository.git("rm", "--quiet", "docs/1.md", "docs/2.md")
    repository.git("mv", "docs/3.md", "docs/three.md")
    repository.write({"docs/4.md": "# Note 4\n\nanother text", "new.md": "new"})
    repository.commit()
    project.update()
    assert sorted(project.embedded()) == ["another text", "new"]
    other = project.everything()
    assert other == fresh(project, tmp_path)
    for branch in ("main", "other", "main"):
        repository.git("checkout", "--quiet", branch)
        project.update()
    assert project.embedded() == []
    assert project.everything() == fresh(project, tmp_path)
    assert len(project.indexed()) == 30


# Changes that hide


def test_a_rewrite_within_a_tick_of_the_clock_is_found_by_the_next_look(
    project: IndexedProject, tmp_path: Path
) -> None:
    """A file of the same size and times as when it was read, which was too early to tell."""
    project.write({"a.md": "one"})
    project.update()
    row = project.store.documents()["a.md"]
    project.write({"a.md": "two"})
    state = FileState.of((project.root / "a.md").stat())
    project.store.touch_document(row.id, state, state.ctime_ns + 10_000_000)
    assert project.texts() == ["one"]
    assert project.update().indexed == ["a.md"]
    assert project.everything() == fresh(project, tmp_path)


def test_a_rewrite_right_after_a_look_is_found_by_the_next_whatever_the_clock_says(project: IndexedProject) -> None:
    project.update()
    for number in range(20):
        project.write({"a.md": f"text {number:03}"})
        project.update(None if number % 2 else ["a.md"])
        assert project.texts() == [f"text {number:03}"]


def test_another_file_under_the_name_is_found_though_size_and_time_are_the_same(project: IndexedProject) -> None:
    project.write({"a.md": "one"})
    os.utime(project.root / "a.md", ns=(10**18 + 7, 10**18 + 7))
    project.settle()
    project.update()
    project.write({"aside": "two"})
    os.utime(project.root / "aside", ns=(10**18 + 7, 10**18 + 7))
    os.replace(project.root / "aside", project.root / "a.md")
    assert project.update().indexed == ["a.md"]
    assert project.texts() == ["two"]


@pytest.mark.requirement("reindex-deferred")
def test_a_file_that_changes_between_two_looks_is_taken_up_by_the_next(
    project: IndexedProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write({"a.md": "one", "b.md": "two"})

    def write_first(root: Path, path: str, max_bytes: int) -> SourceText:
        if path == "a.md":
            project.write({"a.md": "one and a half"})
        return real_read_source(root, path, max_bytes)

    with monkeypatch.context() as patch:
        patch.setattr(sync_module, "read_source", write_first)
        report = project.update()
    assert (report.deferred, report.indexed) == ({"a.md"}, ["b.md"])
    assert project.indexed() == ["b.md"]
    report = project.update(report.deferred)
    assert (report.deferred, report.indexed) == (set(), ["a.md"])
    assert project.texts() == ["one and a half", "two"]


@pytest.mark.requirement("reindex-deferred")
def test_a_file_written_to_while_it_is_read_is_deferred_too(
    project: IndexedProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write({"a.md": "one"})

    def interrupted(*_: object) -> NoReturn:
        raise ChangedWhileRead("changed")

    with monkeypatch.context() as patch:
        patch.setattr(sync_module, "read_source", interrupted)
        assert project.update().deferred == {"a.md"}
    assert project.update().indexed == ["a.md"]


@pytest.mark.parametrize("leave", [os.unlink, lambda path: shutil.rmtree(path.parent)])
def test_a_file_that_goes_between_look_and_reading_is_gone(
    project: IndexedProject, monkeypatch: pytest.MonkeyPatch, leave: Callable[[Path], None]
) -> None:
    project.write({"docs/a.md": "one", "b.md": "two"})
    project.settle()
    project.update()
    project.write({"docs/a.md": "one!"})

    def read_too_late(root: Path, path: str, max_bytes: int) -> SourceText:
        leave(root / path)
        return real_read_source(root, path, max_bytes)

    with monkeypatch.context() as patch:
        patch.setattr(sync_module, "read_source", read_too_late)
        report = project.update()
    assert (report.removed, report.failed) == (["docs/a.md"], {})
    assert project.indexed() == ["b.md"]


# Bad files


@pytest.mark.requirement("sync-bad-file")
@pytest.mark.requirement("indexed-regular-files")
@pytest.mark.requirement("indexed-no-links")
@pytest.mark.requirement("indexed-nul")
def test_no_file_stops_a_sync_whatever_it_is(opened: Open) -> None:
    project = opened(max_file_bytes=5_000)
    project.write(
        {
            "good.md": "# Good\n\ntext",
            "empty.md": "",
            "blank.md": " \n\t\n",
            "nul.md": b"text\0",
            "latin.md": b"caf\xe9",
            "utf16.md": "# Sixteen\n\nbits".encode("utf-16"),
            "half.md": b"\xff\xfe\x00",
            "big.md": "x" * 5_001,
            "fence.md": "```\n" * 500,
            "deep.md": ">" * 3_000,
            "brackets.md": "[" * 4_000,
            "front.md": "---\n" + "a: [\n" * 500,
            "surrogate.md": '---\ntitle: "\\ud800"\n---\ntext',
            os.fsdecode(b"odd\xff\n.md"): "odd name",
        }
    )
    os.mkfifo(project.root / "fifo.md")
    (project.root / "folder.md").mkdir()
    (project.root / "loop.md").symlink_to("loop.md")
    (project.root / "etc").symlink_to("/etc")
    (project.root / "up").symlink_to("..")
    (project.root / "link.md").symlink_to("good.md")
    report = project.update()
    assert report.failed == {}
    assert {"good.md", "latin.md", "utf16.md", "fence.md", "surrogate.md"} <= set(project.indexed())
    assert project.store.skipped_by_content() == {
        "nul.md": "is not text (it has a NUL byte)",
        "big.md": "is larger than 5000 bytes",
    }
    assert project.update().indexed == []


@pytest.mark.requirement("sync-bad-file")
def test_a_file_that_cannot_be_chunked_is_kept_out_until_it_changes(
    project: IndexedProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write({"a.md": "one", "b.md": "two", "c.md": "three"})
    project.update()
    project.write({"a.md": "one!", "b.md": "poison", "c.md": "three!"})

    def parse(source: str) -> Document:
        if source == "poison":
            raise RecursionError("too deep")
        return real_parse(source)

    with monkeypatch.context() as patch:
        patch.setattr(sync_module, "parse", parse)
        project.settle()
        report = project.update()
        assert sorted(report.indexed) == ["a.md", "c.md"]
        assert report.failed.keys() == {"b.md"}
        assert report.removed == ["b.md"]
        assert "too deep" in project.store.skipped_by_content()["b.md"]
        patch.setattr(sync_module, "read_source", refuse_to_read)
        assert project.update().failed == {}
    project.write({"b.md": "two again"})
    assert project.update().indexed == ["b.md"]
    assert project.texts() == ["one!", "two again", "three!"]


def test_a_file_that_cannot_be_read_keeps_its_rows_and_is_tried_again(
    project: IndexedProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write({"a.md": "one", "b.md": "two"})
    project.update()
    project.write({"a.md": "one!", "b.md": "two!"})

    def broken(root: Path, path: str, max_bytes: int) -> SourceText:
        if path == "a.md":
            raise OSError(5, "Input/output error")
        return real_read_source(root, path, max_bytes)

    with monkeypatch.context() as patch:
        patch.setattr(sync_module, "read_source", broken)
        report = project.update()
    assert report.failed == {"a.md": "Input/output error"}
    assert project.texts() == ["one", "two!"]
    assert project.update().indexed == ["a.md"]


@pytest.mark.requirement("indexed-size")
def test_another_size_limit_judges_old_files_anew(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {"small.md": 10, "middle.md": 100, "large.md": 1_000}
    first = opened(max_file_bytes=500)
    first.write({name: "x" * size for name, size in sizes.items()})
    first.settle()
    first.update()
    assert first.indexed() == ["middle.md", "small.md"]
    first.close()
    lower = opened(max_file_bytes=50)
    report = lower.update()
    assert (report.indexed, report.removed) == ([], ["middle.md"])
    assert lower.store.skipped_by_content() == dict.fromkeys(["middle.md", "large.md"], "is larger than 50 bytes")
    lower.close()
    higher = opened(max_file_bytes=5_000)
    assert higher.update(["large.md"]).indexed == ["large.md"]
    assert higher.update().indexed == ["middle.md"]
    assert higher.indexed() == sorted(sizes)
    monkeypatch.setattr(sync_module, "read_source", refuse_to_read)
    assert higher.update().indexed == []


# What is not there is not always gone


@pytest.mark.requirement("sync-unreadable-folder")
def test_rows_below_a_folder_that_nobody_may_read_survive(monkeypatch: pytest.MonkeyPatch) -> None:
    with ordinary_user() as root:
        monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
        monkeypatch.setenv("HOME", str(root))
        with closing(IndexedProject(root)) as project:
            project.write({"a.md": "one", "docs/b.md": "two", "docs/deep/c.md": "three", "locked/d.md": "four"})
            project.update()
            (root / "docs").chmod(0o000)
            (root / "locked").chmod(0o600)  # may be listed, and its files not looked at
            (root / "a.md").unlink()
            try:
                for paths in (None, ["docs/b.md", "docs/deep/c.md", "locked/d.md", "docs/new.md"]):
                    report = project.update(paths)
                    assert project.indexed() == ["docs/b.md", "docs/deep/c.md", "locked/d.md"]
                    assert report.refusal is None
            finally:
                (root / "docs").chmod(0o700)
                (root / "locked").chmod(0o700)
            (root / "docs" / "b.md").unlink()
            assert project.update().removed == ["docs/b.md"]
            project.embedded()


@pytest.mark.requirement("sync-unreadable-folder")
def test_rows_below_a_folder_that_breaks_survive(project: IndexedProject, monkeypatch: pytest.MonkeyPatch) -> None:
    project.write({"a.md": "one", "docs/b.md": "two", "docs2/c.md": "three"})
    project.update()
    scandir = os.scandir

    def broken(path: str) -> object:
        if str(path).rstrip("/").endswith("docs"):
            raise OSError(5, "Input/output error")
        return scandir(path)

    (project.root / "docs2" / "c.md").unlink()
    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", broken)
        assert project.update().removed == ["docs2/c.md"]
    assert project.indexed() == ["a.md", "docs/b.md"]


@pytest.mark.requirement("sync-empty-root")
@pytest.mark.parametrize("by_path", [False, True])
def test_an_emptied_or_unmounted_root_does_not_wipe_the_index(project: IndexedProject, by_path: bool) -> None:
    project.write({"a.md": "one", "docs/b.md": "two"})
    (project.root / ".git").mkdir()
    project.update()
    shutil.move(project.root / "a.md", project.root.parent)
    shutil.move(project.root / "docs", project.root.parent)
    for _ in range(2):
        report = project.update(["a.md", "docs/b.md"] if by_path else None)
        assert report.refusal == f'the folder "{project.root}" is empty or not mounted'
        assert report.removed == []
        assert project.indexed() == ["a.md", "docs/b.md"]
    shutil.move(project.root.parent / "a.md", project.root)
    report = project.update()
    assert (report.refusal, report.removed) == (None, ["docs/b.md"])
    assert project.indexed() == ["a.md"]


@pytest.mark.requirement("sync-empty-root")
def test_a_root_that_is_gone_does_not_wipe_the_index_either(project: IndexedProject) -> None:
    project.write({"a.md": "one"})
    project.update()
    project.root.rename(project.root.with_name("elsewhere"))
    report = project.sync.scan()
    assert report.removed == []
    assert project.indexed() == ["a.md"]


def test_a_project_whose_last_document_goes_is_empty(project: IndexedProject) -> None:
    project.write({"a.md": "one", "src/main.py": "print()"})
    project.update()
    (project.root / "a.md").unlink()
    assert project.update().removed == ["a.md"]
    assert project.indexed() == []


# The cap on a first sync


@pytest.mark.requirement("first-sync-cap")
def test_a_first_sync_over_the_cap_is_not_begun(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    project = opened(first_sync_mb=0.001)
    project.write({"a.md": "x" * 600, "b.md": "y" * 500, "code.py": "z" * 5_000})
    with monkeypatch.context() as patch:
        patch.setattr(sync_module, "read_source", refuse_to_read)
        for _ in range(2):
            report = project.update()
            assert report.excess_mb == pytest.approx(0.0011)
            assert (report.notes, report.folders) == (2, frozenset({""}))
        # An edit is no way around it.
        project.write({"a.md": "x" * 601})
        assert project.update(["a.md"]).indexed == []
    assert project.indexed() == []


@pytest.mark.requirement("first-sync-cap")
@pytest.mark.requirement("command-reindex-over-cap")
def test_whoever_asks_for_it_gets_it_and_from_then_on_the_cap_is_none(opened: Open) -> None:
    project = opened(first_sync_mb=0.001)
    project.write({"a.md": "x" * 600, "b.md": "y" * 500})
    project.update()
    assert project.update(["b.md"], capped=False).indexed == ["b.md"]
    report = project.update()
    assert report.excess_mb is not None  # one file that was asked for does not ask for the others
    assert project.indexed() == ["b.md"]
    assert project.update(capped=False).indexed == ["a.md"]
    project.write({"c.md": "z" * 5_000})
    report = project.update()
    assert (report.excess_mb, report.indexed) == (None, ["c.md"])


@pytest.mark.requirement("first-sync-cap")
def test_the_cap_counts_what_would_be_indexed(opened: Open) -> None:
    project = opened(first_sync_mb=0.001, max_file_bytes=2_000)
    project.write({"a.md": "x" * 900, "too large.md": "y" * 5_000, "out/c.md": "z" * 5_000, ".screeignore": "out\n"})
    report = project.update()
    assert (report.excess_mb, report.indexed) == (None, ["a.md"])


@pytest.mark.requirement("first-sync-cap")
def test_an_index_that_has_grown_over_the_cap_goes_on(opened: Open) -> None:
    project = opened(first_sync_mb=0.001)
    project.write({"a.md": "x"})
    project.sync.scan()
    project.close()
    project = opened(first_sync_mb=0.001)
    project.write({f"{number}.md": "x" * 1_000 for number in range(5)})
    assert len(project.update().indexed) == 5


# Embedding


def test_embedding_goes_on_where_it_was_stopped(project: IndexedProject) -> None:
    count = 3 * sync_module.EMBEDDING_SLICE + 5
    project.write({f"{number:03}.md": f"text {number}" for number in range(count)})
    project.sync.scan()
    assert not project.sync.embed_missing(project.encoder, should_stop=lambda: True)
    first = project.embedded()
    assert len(first) < count
    stored = project.store.count_embedded_documents(project.store.register_encoder("fake", 16))
    assert stored >= sync_module.EMBEDDING_SLICE
    assert project.sync.embed_missing(project.encoder)
    assert len(project.embedded()) == count - stored
    assert project.store.fact("completed_for") is None
    project.sync.complete(project.encoder)
    assert project.sync.completed_for == "fake"
    assert abs(int(project.store.fact("last_sync") or 0) - time.time()) < 60


def test_progress_counts_files_and_then_chunks(project: IndexedProject) -> None:
    count = sync_module.EMBEDDING_SLICE + 4
    project.write({f"{number:03}.md": f"text {number}" for number in range(count)})
    seen: list[tuple[str, int, int]] = []

    def progress(stage: str, done: int, total: int) -> None:
        seen.append((stage, done, total))

    project.sync.scan(progress=progress)
    assert seen == [("reading", done, count) for done in range(count + 1)]
    seen.clear()
    project.sync.embed_missing(project.encoder, progress=progress)
    assert seen[-1] == ("embedding", count, count)
    assert [done for _, done, _ in seen] == sorted(done for _, done, _ in seen)
    assert {(stage, total) for stage, _, total in seen} == {("embedding", count)}


def test_a_scan_that_is_stopped_goes_on_with_the_next(project: IndexedProject, tmp_path: Path) -> None:
    project.write({f"{number}.md": f"text {number}" for number in range(10)})
    assert project.sync.scan(should_stop=lambda: True).indexed == []
    assert len(project.update().indexed) == 10
    assert project.everything() == fresh(project, tmp_path)


@pytest.mark.requirement("index-other-model")
def test_another_model_embeds_everything_anew_and_the_old_embeddings_go(project: IndexedProject) -> None:
    project.write({"a.md": "one\n\n# H\n\ntwo", "b.md": "three"})
    project.update()
    ids = [
        chunk.id for path in ("a.md", "b.md") for chunk in project.store.chunks_of(project.store.documents()[path].id)
    ]
    other = project.encoder = FakeEncoder("other", 8)
    report = project.update()
    assert report.indexed == []
    assert sorted(project.embedded()) == ["one", "three", "two"]
    assert project.sync.completed_for == "other"
    assert project.store.encoder_id("fake") is None
    assert dict(project.store.embedded_chunks(project.store.register_encoder("other", 8))).keys() == set(ids)
    project.update()
    assert other.embedded == []


# An index of an older schema


@pytest.mark.requirement("index-older-schema")
@pytest.mark.requirement("backfill")
@pytest.mark.requirement("hit-lines-older-schema")
def test_an_older_index_is_filled_in_by_the_next_sync_without_embedding(
    opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = opened()
    project.write(
        {
            "a.md": "\n\n# A\r\n\r\none\r\ntwo\r\n\r\n## B\r\n\r\nsame\r\n\r\n## B\r\n\r\nsame\r\n",
            "b.md": "same\n\n# C\n\n```\n# no heading\n```\n",
            "changed.md": "old text",
        }
    )
    project.settle()
    project.update()
    expected = project.everything()
    ids = {
        row.id: row for path in ("a.md", "b.md") for row in project.store.chunks_of(project.store.documents()[path].id)
    }
    path = index_path(project.root)
    project.close()
    path.rename(tmp_path / "newer.sqlite")
    make_version_1(path, tmp_path / "newer.sqlite")

    project = opened()
    assert [row.end_line for row in project.store.chunks(list(ids))] == [None] * len(ids)
    monkeypatch.setattr(sync_module, "parse", refuse_to_read)  # not even cut into chunks again
    assert project.update().indexed == []
    assert project.embedded() == []
    assert project.everything() == expected
    assert [replace(row, read_ns=0) for row in project.store.chunks(list(ids))] == [
        replace(row, read_ns=0) for row in ids.values()
    ]
    monkeypatch.setattr(sync_module, "read_source", refuse_to_read)
    assert project.update().indexed == []


@pytest.mark.requirement("backfill")
def test_a_file_of_an_older_index_that_changed_is_read_anew(opened: Open, tmp_path: Path) -> None:
    project = opened()
    project.write({"a.md": "# A\n\none\n\n## B\n\ntwo"})
    project.update()
    path = index_path(project.root)
    project.close()
    path.rename(tmp_path / "newer.sqlite")
    make_version_1(path, tmp_path / "newer.sqlite")
    project = opened()
    project.write({"a.md": "# A\n\none\n\n## B\n\ntwo, changed"})
    assert project.update().indexed == ["a.md"]
    assert project.embedded() == ["two, changed"]
    assert project.everything() == fresh(project, tmp_path)


@pytest.mark.requirement("backfill")
def test_chunks_that_an_older_version_cut_otherwise_are_cut_anew(opened: Open, tmp_path: Path) -> None:
    project = opened()
    project.write({"a.md": "# A\n\none", "b.md": "two"})
    project.settle()
    project.update()
    path = index_path(project.root)
    project.close()
    path.rename(tmp_path / "newer.sqlite")
    make_version_1(path, tmp_path / "newer.sqlite")
    project = opened()
    with project.store.transaction():
        project.store._connection.execute("UPDATE chunks SET text = '# A one' WHERE text = 'one'")
    assert project.update().indexed == ["a.md"]
    assert project.everything() == fresh(project, tmp_path)


@pytest.mark.requirement("first-sync-cap")
@pytest.mark.requirement("index-older-schema")
def test_an_older_index_is_no_new_one(opened: Open, tmp_path: Path) -> None:
    project = opened()
    project.write({"a.md": "x" * 5_000})
    project.update()
    path = index_path(project.root)
    project.close()
    path.rename(tmp_path / "newer.sqlite")
    make_version_1(path, tmp_path / "newer.sqlite")
    project = opened(first_sync_mb=0.001)
    report = project.update()
    assert (report.excess_mb, report.refusal) == (None, None)
    assert project.store.documents_to_backfill() == set()


@pytest.mark.requirement("index-sources-kept")
@pytest.mark.requirement("index-older-schema")
def test_no_sync_touches_a_source(opened: Open) -> None:
    project = opened()
    files = {"a.md": "# A\n\none", "nul.md": "\0", "out.md": "<!-- scree: ignore -->"}
    project.write(files)
    before = {name: (project.root / name).stat() for name in files}
    project.update()
    project.close()
    with closing(IndexedProject(project.root)) as again:
        again.store._connection.execute("PRAGMA user_version = 99")
    with pytest.raises(SchemaError):
        opened()
    for name, content in files.items():
        assert (project.root / name).read_bytes() == content.encode()
        assert FileState.of((project.root / name).stat()) == FileState.of(before[name])


# A process that is killed


KILLED = """
import sys
from pathlib import Path
from tests.indexed_project import IndexedProject

class Slow:
    def __init__(self, project):
        self.fast = project.encoder
        self.fingerprint, self.dimension = self.fast.fingerprint, self.fast.dimension

    def encode_documents(self, passages):
        for number, rows in enumerate(self.fast.encode_documents(passages)):
            if number == 70:
                print("now", flush=True)
                sys.stdin.read()
            yield rows

project = IndexedProject(Path(sys.argv[1]))
project.sync.scan()
project.sync.embed_missing(Slow(project))
"""


@pytest.mark.requirement("writer-killed")
def test_a_sync_killed_while_it_embeds_loses_at_most_a_slice(tmp_path: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    for number in range(100):
        (root / f"{number:03}.md").write_text(f"# Note {number}\n\ntext {number}")
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, root],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "now\n"
        process.send_signal(signal.SIGKILL)
        assert process.wait(10) == -signal.SIGKILL
    with closing(IndexedProject(root)) as project:
        assert len(project.indexed()) == 100
        project.update()
        assert len(project.embedded()) <= 100 - 70 + sync_module.EMBEDDING_SLICE
        assert project.everything() == fresh(project, tmp_path)
