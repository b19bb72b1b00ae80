"""The one line that ends a search while the index is not complete or not updating."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from scree.docs.lease import INDEX_FOLDER, WriterLease
from tests.oracle import PATIENCE_SECONDS, content
from tests.processes.conftest import SLOW, SLOW_FILES
from tests.processes.mcp_client import Client, connected, found, note
from tests.processes.programs import SCREE, UNPRIVILEGED, printed, running
from tests.repositories import GitRepository
from tests.waiting import eventually

FILES = {f"docs/{number}.md": f"# Part {number}\n\nThe zephyr blows.\n\nunique{number}\n" for number in range(3)}

FIRST_SYNC = re.compile(r"\[index incomplete: first sync in progress, (\d+) notes indexed so far\]")


def embedded_so_far(client: Client) -> int:
    """How many notes the status note counts, which has to be that of a first sync."""
    match = FIRST_SYNC.fullmatch(note(client.search("unique7", mode="keyword", k=1)) or "")
    assert match is not None
    return int(match[1])


@pytest.mark.requirement("keyword-first")
@pytest.mark.requirement("search-never-waits")
@pytest.mark.requirement("note-first-sync")
@pytest.mark.requirement("writer-wal")
@pytest.mark.requirement("reindex-first-sync")
def test_searches_are_answered_while_the_first_sync_goes_on(slow_repository: GitRepository) -> None:
    with connected(cwd=slow_repository.path, environment=SLOW) as client:
        # Every file can be found by its words before most of them have an embedding.
        last = f"unique{SLOW_FILES - 1}"
        eventually(lambda: client.hits(last, mode="keyword"), PATIENCE_SECONDS, "the last file by its word")
        for mode in ("keyword", "hybrid", "semantic"):
            response = client.search(last, mode=mode)
            assert FIRST_SYNC.fullmatch(note(response) or "")
            assert response.count("\n[index ") <= 1
        assert client.hits(last)[0].path == f"docs/{SLOW_FILES - 1}.md"
        # A hit that has no embedding yet has a score all the same.
        assert client.hits(last, mode="keyword")[0].score is not None
        eventually(lambda: embedded_so_far(client) > 0, PATIENCE_SECONDS, "some embeddings")
        counted = embedded_so_far(client)
        eventually(lambda: embedded_so_far(client) > counted, PATIENCE_SECONDS, "more embeddings")
        reply = client.call("reindex")
        counted = int(re.findall(r"\d+", reply)[0])
        assert reply == (
            f"The first sync is still running ({counted} notes indexed so far); new and changed files are included."
        )
        assert 0 < counted < SLOW_FILES


@pytest.mark.requirement("watch-edit")
@pytest.mark.requirement("search-never-waits")
def test_an_edit_during_the_first_sync_is_found_before_it_ends(slow_repository: GitRepository) -> None:
    with connected(cwd=slow_repository.path, environment=SLOW) as client:
        eventually(lambda: embedded_so_far(client) > 0, PATIENCE_SECONDS, "some embeddings")
        slow_repository.write({"docs/new.md": "# New\n\nA quinquereme of Nineveh.\n"})
        eventually(lambda: client.hits("quinquereme", mode="keyword"), PATIENCE_SECONDS, "the new file")
        assert embedded_so_far(client) < SLOW_FILES


@pytest.mark.requirement("note-other-builds")
@pytest.mark.requirement("reindex-other-writer")
@pytest.mark.requirement("reindex-ignored")
def test_the_note_names_another_process_that_builds_the_index(slow_repository: GitRepository, log: Path) -> None:
    root = slow_repository.path
    with running("watch", cwd=root, log=log, environment=SLOW) as writer:
        eventually(lambda: WriterLease(root / INDEX_FOLDER).holder() == writer.pid, PATIENCE_SECONDS, "the writer")
        with connected(cwd=root, environment=SLOW) as client:
            told = f"[index incomplete: another scree process (pid {writer.pid}) is building it]"
            eventually(lambda: note(client.search("unique7")) == told, PATIENCE_SECONDS, "the note")
            eventually(lambda: client.hits("unique7", mode="keyword"), PATIENCE_SECONDS, "the first hit")
            assert note(client.search("unique7", mode="keyword")) == told
            elsewhere = (
                f"Another scree process (pid {writer.pid}) keeps this index current; "
                "edits are picked up within a few seconds."
            )
            assert client.call("reindex") == client.call("reindex", path="docs/7.md") == elsewhere
            assert "ignored by scree" in client.error("reindex", path=".git/x.md")
            assert "no such" in client.error("reindex", path="docs/none.md")


@pytest.mark.requirement("note-not-updating")
def test_without_an_encoder_the_note_says_why_and_words_are_still_found(
    git_repository: Callable[..., GitRepository], tmp_path: Path
) -> None:
    environment = {"SCREE_ENCODER": str(tmp_path / "nowhere")}
    with connected(cwd=git_repository(FILES).path, environment=environment) as client:
        eventually(lambda: client.hits("zephyr unique1", mode="keyword"), PATIENCE_SECONDS, "keyword search")
        response = eventually(
            lambda: said if "not updating" in (said := client.search("zephyr unique1")) else "", what="the note"
        )
        assert found(response)[0].path == "docs/1.md"
        assert found(response)[0].score is None
        told = note(response) or ""
        assert told.startswith("[index not updating: ")
        assert str(tmp_path / "nowhere") in told
        assert "\n[index " not in response.removesuffix(told).removesuffix("\n")


@pytest.mark.requirement("note-not-updating")
@pytest.mark.requirement("index-read-only")
def test_where_the_index_cannot_be_written_the_note_says_so(git_repository: Callable[..., GitRepository]) -> None:
    root = git_repository(FILES).path
    command = (*UNPRIVILEGED, *SCREE, "serve")
    root.chmod(0o555)
    try:
        with connected(cwd=root, command=command) as client:
            told = eventually(lambda: note(client.search("zephyr")) or "", PATIENCE_SECONDS, "the note")
            assert client.search("zephyr") == f"No matching documents.\n{told}"
            assert told.startswith(f'[index not updating: "{root}/.scree" cannot be written')
            assert "zephyr" in client.call("read_doc", path="docs/1.md")
    finally:
        root.chmod(0o755)


@pytest.mark.requirement("note-not-updating")
@pytest.mark.requirement("sync-empty-root")
@pytest.mark.requirement("index-sources-kept")
def test_an_emptied_root_wipes_nothing(git_repository: Callable[..., GitRepository], tmp_path: Path) -> None:
    root = git_repository().path
    GitRepository(root).write(FILES)
    with connected(cwd=root) as client:
        client.await_complete()
        before = content(root)
        (root / "docs").rename(tmp_path / "away")
        told = f'[index not updating: the folder "{root}" is empty or not mounted]'
        eventually(lambda: note(client.search("zephyr")) == told, PATIENCE_SECONDS, "the note")
        assert client.search("zephyr", mode="keyword") == f"No matching documents.\n{told}"
        assert content(root)["documents"] == before["documents"]
        assert "Nothing was changed" in client.error("reindex")
        (tmp_path / "away").rename(root / "docs")
        client.await_complete()
        assert len(client.hits("zephyr", mode="keyword")) == 3
        assert content(root) == before


@pytest.mark.requirement("note-over-cap")
@pytest.mark.requirement("first-sync-cap")
@pytest.mark.requirement("command-reindex-over-cap")
def test_the_cap_is_for_the_first_sync_only(git_repository: Callable[..., GitRepository]) -> None:
    root = git_repository(FILES | {"large.md": "# Large\n\n" + "x" * 150_000}).path
    environment = {"SCREE_FIRST_SYNC_MB": "0.1"}
    told = (
        "[not indexed: this folder has 0.2 MB of markdown, over SCREE_FIRST_SYNC_MB=0.1; "
        'run "scree reindex" in it to index it anyway]'
    )
    assert printed("search", "zephyr", cwd=root, environment=environment) == f"No matching documents.\n{told}\n"
    with connected(cwd=root, environment=environment) as client:
        eventually(lambda: note(client.search("zephyr")) == told, PATIENCE_SECONDS, "the note")
        assert client.search("zephyr") == f"No matching documents.\n{told}"
        assert "zephyr" in client.call("read_doc", path="docs/1.md")
        # A running session takes up what the user asks for.
        assert printed("reindex", cwd=root, environment=environment).startswith("Scanned 4 notes: 4 indexed")
        client.await_complete()
        assert len(client.hits("zephyr", mode="keyword")) == 3
    (root / "second.md").write_text("# Second\n\n" + "y" * 150_000 + "\n\nquinquereme")
    with connected(cwd=root, environment=environment) as client:
        eventually(lambda: client.hits("quinquereme", mode="keyword"), PATIENCE_SECONDS, "what came over the cap later")
        assert note(client.search("zephyr")) is None


@pytest.mark.requirement("note-single")
@pytest.mark.requirement("writer-killed")
def test_after_a_first_sync_that_was_cut_off_the_next_one_goes_on(slow_repository: GitRepository, log: Path) -> None:
    root = slow_repository.path
    with running("watch", cwd=root, log=log, environment=SLOW) as writer:
        eventually(lambda: embedded_chunks(root), PATIENCE_SECONDS, "embeddings")
        writer.kill()
    kept = embedded_chunks(root)
    assert kept > 0
    with connected(cwd=root, environment=SLOW) as client:
        # The count goes on from what was there.
        eventually(lambda: embedded_so_far(client) > 0, PATIENCE_SECONDS, "the count")
        assert embedded_chunks(root) >= kept


def embedded_chunks(root: Path) -> int:
    """How many chunks of the index have an embedding."""
    return sum(vectors is not None for *_, chunks in content(root)["documents"].values() for *_, vectors in chunks)
