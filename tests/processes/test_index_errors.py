"""What the commands and the server say of an index that is not as it should be, and what they do about it."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from scree.core.encoder import BUILTIN_FOLDER, MANIFEST_NAME
from scree.docs.lease import INDEX_FOLDER, WriterLease
from scree.docs.store import index_path
from tests.older_index import make_version_1
from tests.oracle import PATIENCE_SECONDS, content, fresh_content
from tests.processes.mcp_client import connected, note, only_text
from tests.processes.programs import UNPRIVILEGED, printed, scree
from tests.repositories import GitRepository
from tests.waiting import eventually

FILES = {f"docs/{number}.md": f"# Part {number}\n\nThe zephyr blows over {number}.\n" for number in range(4)}


@pytest.fixture(scope="module")
def indexed(module_environment: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An indexed repository."""
    assert module_environment.is_dir()
    root = GitRepository.create(tmp_path_factory.mktemp("errors") / "project", FILES).path
    printed("reindex", cwd=root)
    return root


@pytest.fixture
def root(indexed: Path, tmp_path: Path) -> Path:
    """A copy of it for one test."""
    return Path(shutil.copytree(indexed, tmp_path / "project"))


def sources(root: Path) -> dict[str, str]:
    return {name: (root / name).read_text() for name in FILES}


def damage(root: Path) -> None:
    """Write over the middle of the index."""
    path = index_path(root)
    data = bytearray(path.read_bytes())
    data[2_000 : len(data) // 2] = b"\x5a" * (len(data) // 2 - 2_000)
    path.write_bytes(data)


def truncate(root: Path) -> None:
    path = index_path(root)
    path.write_bytes(path.read_bytes()[:5_000])


def replace_by_text(root: Path) -> None:
    index_path(root).write_text("This is no database. " * 1_000)


def newer_schema(root: Path) -> None:
    with closing(sqlite3.connect(index_path(root))) as index:
        index.execute("PRAGMA user_version = 99")


def other_program(root: Path) -> None:
    index_path(root).unlink()
    with closing(sqlite3.connect(index_path(root))) as index:
        index.execute("CREATE TABLE photos (name)")


# Damaged


@pytest.mark.requirement("index-truncated")
@pytest.mark.requirement("index-sources-kept")
@pytest.mark.parametrize("harm", [truncate, damage, replace_by_text])
def test_a_damaged_index_is_said_to_be_damaged_and_built_again(
    root: Path, tmp_path: Path, harm: Callable[[Path], None]
) -> None:
    harm(root)
    done = scree("search", "zephyr", "--mode", "keyword", cwd=root)
    assert done.returncode == 0
    assert done.stdout.count("<hit ") == 4
    assert done.stderr.startswith(f'scree: The index "{index_path(root)}" is damaged (')
    assert done.stderr.count("\n") == 1
    assert content(root) == fresh_content(root, tmp_path)
    assert sources(root) == FILES
    assert printed("search", "zephyr", cwd=root)


@pytest.mark.requirement("index-truncated")
def test_a_server_builds_a_damaged_index_again(root: Path, tmp_path: Path) -> None:
    truncate(root)
    with connected(cwd=root, log=tmp_path / "log") as client:
        client.await_complete()
        assert len(client.hits("zephyr", mode="keyword")) == 4
    assert "is damaged" in (tmp_path / "log").read_text()
    assert content(root) == fresh_content(root, tmp_path)


@pytest.mark.requirement("index-truncated")
def test_status_says_that_an_index_is_damaged_and_leaves_it(root: Path) -> None:
    truncate(root)
    damaged = index_path(root).read_bytes()
    told = json.loads(printed("status", "--json", cwd=root))
    assert "is damaged" in told["note"]
    assert (told["files"], told["chunks"]) == ([], 0)
    assert index_path(root).read_bytes() == damaged


@pytest.mark.requirement("index-truncated")
def test_an_index_damaged_under_a_running_server_is_built_again(root: Path, tmp_path: Path) -> None:
    with connected(cwd=root) as client:
        client.await_complete()
        damage(root)
        (root / "docs/new.md").write_text("# New\n\nA quinquereme.\n")
        # Until then a search may say that the index is damaged.
        arguments = {"query": "quinquereme", "mode": "keyword"}
        eventually(
            lambda: "docs/new.md" in only_text(client.result("search_docs", arguments)),
            PATIENCE_SECONDS,
            "the index to be built again",
        )
        client.await_complete()
        assert content(root) == fresh_content(root, tmp_path)


# Locked


@pytest.mark.requirement("index-locked")
@pytest.mark.requirement("index-sources-kept")
def test_a_locked_index_is_said_to_be_locked_and_stays(root: Path) -> None:
    before = content(root)
    with closing(sqlite3.connect(index_path(root), isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        (root / "docs/1.md").write_text("# Changed\n")
        for arguments in (("reindex",), ("search", "zephyr")):
            done = scree(*arguments, cwd=root)
            assert "is locked by another program; close that program and try again." in done.stderr + done.stdout
            assert done.stderr.count("\n") == 1
        other.execute("ROLLBACK")
    assert content(root) == before
    assert printed("reindex", cwd=root).startswith("Scanned 4 notes: 1 indexed")


@pytest.mark.requirement("index-locked")
@pytest.mark.requirement("note-not-updating")
def test_a_server_searches_on_while_the_index_cannot_be_written(root: Path) -> None:
    with closing(sqlite3.connect(index_path(root), isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        (root / "docs/1.md").write_text("# Changed\n\nA quinquereme.\n")
        with connected(cwd=root) as client:
            told = eventually(lambda: note(client.search("zephyr")), PATIENCE_SECONDS, "the note")
            assert told == (
                f'[index not updating: The index "{index_path(root)}" is locked by another program; '
                "close that program and try again.]"
            )
            assert len(client.hits("zephyr", mode="keyword")) >= 3
            other.execute("ROLLBACK")
            eventually(lambda: client.hits("quinquereme", mode="keyword"), PATIENCE_SECONDS, "the writer to go on")
            client.await_complete()


# Read-only


@pytest.mark.requirement("index-read-only")
@pytest.mark.requirement("note-not-updating")
@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_read_only_index_is_said_to_be_so_and_can_still_be_searched(root: Path, what: str) -> None:
    before = content(root)
    target = index_path(root) if what == "file" else root / INDEX_FOLDER
    for side in root.joinpath(INDEX_FOLDER).glob("index.sqlite-*"):
        side.unlink()
    mode = target.stat().st_mode
    target.chmod(0o444 if what == "file" else 0o555)
    if what == "folder":
        (root / INDEX_FOLDER / "writer.lock").chmod(0o444)
    (root / "docs/1.md").write_text("# Changed\n")
    try:
        done = scree("reindex", cwd=root, prefix=UNPRIVILEGED)
        assert done.returncode == 2
        assert "cannot be written" in done.stderr
        assert done.stderr.count("\n") == 1
        done = scree("search", "zephyr", "--mode", "keyword", cwd=root, prefix=UNPRIVILEGED)
        assert done.stdout.count("<hit ") >= 3
        told = note(done.stdout.removesuffix("\n")) or ""
        assert told.startswith("[index not updating: ")
        assert "cannot be written" in told
    finally:
        target.chmod(mode)
        (root / INDEX_FOLDER / "writer.lock").chmod(0o600)
    assert content(root) == before


# Another version, another program


@pytest.mark.requirement("index-older-schema")
@pytest.mark.requirement("backfill")
@pytest.mark.requirement("hit-lines-older-schema")
@pytest.mark.requirement("index-sources-kept")
def test_an_older_index_is_upgraded_and_filled_in_without_embedding(root: Path, tmp_path: Path) -> None:
    expected = content(root)
    newer = tmp_path / "newer.sqlite"
    printed("status", cwd=root)
    with closing(sqlite3.connect(index_path(root))) as index:
        index.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        index.execute("VACUUM INTO ?", (str(newer),))
    for file in root.joinpath(INDEX_FOLDER).glob("index.sqlite*"):
        file.unlink()
    make_version_1(index_path(root), newer)
    lease = WriterLease(root / INDEX_FOLDER)
    assert lease.acquire()
    # Whoever may not write leaves it as it is, and says so.
    done = scree("search", "zephyr", cwd=root)
    assert "has schema version 1, older than 2" in done.stdout + done.stderr
    lease.release()
    embedded = embedding_ids(root)
    assert printed("search", "zephyr over 1", "-k", "1", cwd=root).startswith('<hit n="1" path="docs/1.md" lines="3-3"')
    assert embedding_ids(root) == embedded
    found = content(root)
    assert found["documents"] == expected["documents"]
    assert found == fresh_content(root, tmp_path)
    assert sources(root) == FILES


def embedding_ids(root: Path) -> list[int]:
    with closing(sqlite3.connect(index_path(root))) as index:
        return [number for (number,) in index.execute("SELECT id FROM embeddings")]


@pytest.mark.requirement("index-older-schema")
@pytest.mark.requirement("index-sources-kept")
@pytest.mark.parametrize(
    ("make", "sentence"), [(newer_schema, "schema version 99, newer than"), (other_program, "of another program")]
)
def test_an_index_of_a_newer_version_or_another_program_is_left_alone(
    root: Path, make: Callable[[Path], None], sentence: str
) -> None:
    make(root)
    with closing(sqlite3.connect(index_path(root))) as index:
        before = list(index.iterdump())
    for arguments in (("reindex",), ("search", "zephyr")):
        done = scree(*arguments, cwd=root)
        assert done.returncode == 2
        assert sentence in done.stderr
        assert done.stdout == ""
    assert sentence in json.loads(printed("status", "--json", cwd=root))["note"]
    with connected(cwd=root) as client:
        assert sentence in eventually(lambda: client.error("search_docs", query="zephyr"), what="the sentence")
        assert "zephyr" in client.call("read_doc", path="docs/1.md")
    with closing(sqlite3.connect(index_path(root))) as index:
        assert list(index.iterdump()) == before
    assert sources(root) == FILES


@pytest.mark.requirement("index-location")
@pytest.mark.requirement("indexed-no-links")
@pytest.mark.parametrize("what", ["folder", "index", "lock"])
def test_a_link_in_place_of_the_index_is_not_followed(
    git_repository: Callable[..., GitRepository], tmp_path: Path, what: str
) -> None:
    """A repository may carry one, to have files written or read elsewhere."""
    root = git_repository(FILES).path
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "index.sqlite").touch()
    (elsewhere / "writer.lock").touch()
    folder = root / INDEX_FOLDER
    if what == "folder":
        folder.symlink_to(elsewhere)
    else:
        folder.mkdir()
        name = "index.sqlite" if what == "index" else "writer.lock"
        (folder / name).symlink_to(elsewhere / name)
    done = scree("reindex", cwd=root)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert sum(file.stat().st_size for file in elsewhere.iterdir()) == 0


# Another model


@pytest.fixture
def other_model(tmp_path: Path) -> Path:
    """The builtin model under other settings, so that its embeddings are not comparable."""
    folder = tmp_path / "other model"
    shutil.copytree(BUILTIN_FOLDER, folder)
    facts = json.loads((folder / MANIFEST_NAME).read_text())
    facts["document_prefix"] = "passage: "
    (folder / MANIFEST_NAME).write_text(json.dumps(facts))
    return folder


@pytest.mark.requirement("index-other-model")
@pytest.mark.requirement("index-sources-kept")
def test_an_index_of_another_model_is_embedded_anew_by_whoever_writes(
    root: Path, other_model: Path, tmp_path: Path
) -> None:
    first = content(root)
    with connected(cwd=root, environment={"SCREE_ENCODER": str(other_model)}) as client:
        assert len(client.hits("zephyr", mode="keyword")) == 4
        client.await_complete()
        assert client.hits("who blows", mode="semantic", k=1)
        eventually(lambda: content(root)["facts"] != first["facts"], PATIENCE_SECONDS, "the other model's embeddings")
    second = content(root)
    assert second["documents"].keys() == first["documents"].keys()
    assert {chunk[-2] for *_, chunks in second["documents"].values() for chunk in chunks} == {
        second["facts"]["completed_for"]
    }
    printed("reindex", cwd=root)
    assert content(root) == first == fresh_content(root, tmp_path)


@pytest.mark.requirement("index-other-model")
def test_a_reader_with_another_model_says_so_and_finds_words(root: Path, other_model: Path) -> None:
    lease = WriterLease(root / INDEX_FOLDER)
    assert lease.acquire()
    environment = {"SCREE_ENCODER": str(other_model)}
    with connected(cwd=root, environment=environment) as client:
        response = client.search("zephyr", mode="keyword")
        assert response.count("<hit ") == 4
        assert "was made with another model" in (note(response) or "")
    lease.release()
