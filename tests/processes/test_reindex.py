"""`reindex`, as a tool and as a command, whoever writes."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from scree.docs.lease import INDEX_FOLDER, WriterLease
from scree.docs.store import index_path
from tests.oracle import PATIENCE_SECONDS, await_equal_to_fresh, content, fresh_content
from tests.processes.conftest import SLOW
from tests.processes.mcp_client import Client, connected
from tests.processes.programs import DEAF, SCREE, UNPRIVILEGED, complaint, printed, running, scree, stand_in
from tests.repositories import GitRepository
from tests.waiting import eventually

FILES = {f"docs/{number}.md": f"# Part {number}\n\nThe zephyr blows over {number}.\n" for number in range(4)}


def deaf(folder: Path) -> dict[str, str]:
    """The environment of a program that never hears of a change, so that only `reindex` takes it up."""
    return stand_in(folder, "watchfiles", DEAF)


@pytest.fixture
def repository(git_repository: Callable[..., GitRepository]) -> GitRepository:
    repository = git_repository()
    repository.write(FILES)
    return repository


# The tool, where this session writes


@pytest.fixture
def client(repository: GitRepository, tmp_path: Path) -> Iterator[Client]:
    with connected(cwd=repository.path, environment=deaf(tmp_path / "hook")) as client:
        client.await_complete()
        # Once its watch stands, a writer looks at everything again; what it does from now on, it does on request.
        client.call("reindex")
        yield client


@pytest.mark.requirement("reindex-path")
@pytest.mark.requirement("reindex-scan")
@pytest.mark.requirement("reindex-ignored")
def test_the_reply_says_what_was_done(repository: GitRepository, client: Client, tmp_path: Path) -> None:
    root = repository.path
    assert client.call("reindex", path="docs/1.md") == '"docs/1.md" is already up to date.'
    assert client.call("reindex") == "Scanned 4 notes: 0 indexed, 0 removed, 0 failed, 0 deferred."
    repository.write({"docs/1.md": "# New\n\nA quinquereme.\n", "docs/new.md": "# New\n", "docs/2.md": "# Changed\n"})
    (root / "docs/3.md").unlink()
    assert client.call("reindex", path="docs/1.md") == 'Re-indexed "docs/1.md".'
    assert client.hits("quinquereme", mode="keyword")
    assert client.call("reindex", path="docs/1.md") == '"docs/1.md" is already up to date.'
    assert client.call("reindex") == "Scanned 4 notes: 2 indexed, 1 removed, 0 failed, 0 deferred."
    assert content(root) == fresh_content(root, tmp_path)
    assert client.call("reindex") == "Scanned 4 notes: 0 indexed, 0 removed, 0 failed, 0 deferred."
    for path in ("x.py", ".git/x.md", "../x.md"):
        assert client.error("reindex", path=path).startswith("refused: ")
    assert client.error("reindex", path="docs/3.md").startswith("no such file")


@pytest.mark.requirement("reindex-path")
def test_a_path_may_be_given_as_a_hit_printed_it(repository: GitRepository, client: Client) -> None:
    name = '"quoted"\t<name>.md'
    repository.write({name: "# One\n"})
    assert client.call("reindex").startswith("Scanned 5 notes: 1 indexed")
    repository.write({name: "# Two\n"})
    assert client.call("reindex", path="&quot;quoted&quot;&lt;name>.md") == 'Re-indexed ""quoted"<name>.md".'


def test_a_touched_file_is_up_to_date(repository: GitRepository, client: Client) -> None:
    os.utime(repository.path / "docs/1.md", ns=(10**18, 10**18))
    assert client.call("reindex", path="docs/1.md") == '"docs/1.md" is already up to date.'


@pytest.mark.requirement("tools-errors-survived")
def test_a_reindex_that_cannot_write_is_told_so_and_the_server_goes_on(
    repository: GitRepository, client: Client
) -> None:
    with closing(sqlite3.connect(index_path(repository.path), isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        repository.write({"docs/1.md": "# New\n\nA quinquereme.\n"})
        assert "locked by another program" in client.error("reindex")
        assert len(client.hits("zephyr", mode="keyword")) >= 3
        other.execute("ROLLBACK")
    eventually(lambda: client.hits("quinquereme", mode="keyword"), PATIENCE_SECONDS, "the writer to go on")
    client.await_complete()


@pytest.mark.requirement("tools-errors-survived")
def test_a_reindex_where_nothing_can_be_written_is_told_so(repository: GitRepository) -> None:
    repository.path.chmod(0o555)
    try:
        with connected(cwd=repository.path, command=(*UNPRIVILEGED, *SCREE, "serve")) as client:
            eventually(lambda: "not updating" in client.search("zephyr"), PATIENCE_SECONDS, "the writer to give up")
            assert "cannot be written" in client.error("reindex")
    finally:
        repository.path.chmod(0o755)


# The command, with and without a writer


@pytest.mark.requirement("command-reindex-all")
@pytest.mark.requirement("command-reindex-file")
@pytest.mark.requirement("reindex-ignored")
def test_the_command_does_it_itself_where_nobody_writes(repository: GitRepository, tmp_path: Path) -> None:
    root = repository.path
    assert printed("reindex", cwd=root) == "Scanned 4 notes: 4 indexed, 0 removed, 0 failed, 0 deferred.\n"
    repository.write({"docs/1.md": "# New\n", "docs/2.md": "# New\n"})
    # A path is meant from the working folder, or with --root from there.
    assert printed("reindex", "1.md", cwd=root / "docs") == 'Re-indexed "docs/1.md".\n'
    assert printed("reindex", "--root", str(root), "docs/1.md", cwd=tmp_path) == '"docs/1.md" is already up to date.\n'
    assert printed("reindex", cwd=root / "docs") == ("Scanned 4 notes: 1 indexed, 0 removed, 0 failed, 0 deferred.\n")
    assert content(root) == fresh_content(root, tmp_path)
    assert "is ignored by scree (" in complaint("reindex", ".git/x.md", cwd=root)
    assert complaint("reindex", "docs/none.md", cwd=root) == 'no such file: "docs/none.md"'
    assert "outside the project" in complaint("reindex", "../x.md", cwd=root)


@pytest.mark.requirement("command-reindex-handed-over")
@pytest.mark.requirement("command-reindex-file")
@pytest.mark.requirement("reindex-ignored")
@pytest.mark.parametrize("writer", ["watch", "serve"])
def test_the_command_hands_the_job_to_whoever_writes(
    repository: GitRepository, tmp_path: Path, log: Path, writer: str
) -> None:
    root = repository.path
    with running(writer, cwd=root, log=log, environment=deaf(tmp_path / "hook")) as program:
        eventually(lambda: content(root).get("facts", {}).get("completed_for"), PATIENCE_SECONDS, "the first sync")
        # Once its watch stands, a writer looks at everything again; what it does from now on, it does on request.
        assert printed("reindex", cwd=root) == "Scanned 4 notes: 0 indexed, 0 removed, 0 failed, 0 deferred.\n"
        repository.write({"docs/1.md": "# New\n\nA quinquereme.\n", "docs/2.md": "# Changed\n"})
        assert printed("reindex", "docs/1.md", cwd=root) == 'Re-indexed "docs/1.md".\n'
        assert "is ignored by scree (" in complaint("reindex", ".git/x.md", cwd=root)
        assert printed("reindex", cwd=root) == "Scanned 4 notes: 1 indexed, 0 removed, 0 failed, 0 deferred.\n"
        # What it said is done, embeddings included.
        assert content(root) == fresh_content(root, tmp_path)
        assert WriterLease(root / INDEX_FOLDER).holder() == program.pid
        assert program.process.poll() is None


@pytest.mark.requirement("command-reindex-handed-over")
def test_a_job_waits_for_the_first_sync_of_the_process_that_has_it(
    repository: GitRepository, tmp_path: Path, log: Path
) -> None:
    files = {f"more/{number}.md": f"# More {number}\n\n" + f"word{number} " * 150 for number in range(20)}
    repository.write(files)
    root = repository.path
    with running("watch", cwd=root, log=log):
        eventually(lambda: WriterLease(root / INDEX_FOLDER).holder(), PATIENCE_SECONDS, "the writer")
        assert printed("reindex", cwd=root).startswith("Scanned 24 notes: ")
        assert content(root) == fresh_content(root, tmp_path)


@pytest.mark.requirement("command-reindex-handed-over")
def test_a_writer_that_dies_over_a_job_is_told_in_one_sentence(
    slow_repository: GitRepository, log: Path, tmp_path: Path
) -> None:
    root = slow_repository.path
    with running("watch", cwd=root, log=log, environment=SLOW) as writer:
        eventually(lambda: content(root)["documents"], PATIENCE_SECONDS, "the writer")
        with running("reindex", cwd=root, log=tmp_path / "reindex.txt") as command:
            connected_to_writer = f"/proc/{command.pid}/fd"
            eventually(lambda: any_socket(connected_to_writer), PATIENCE_SECONDS, "the request")
            writer.kill()
            assert command.process.wait(PATIENCE_SECONDS) == 2
            (said,) = command.log()
            assert said.startswith("scree: ")
            assert "does not answer" in said
    # Nothing is lost, and nothing is locked.
    assert WriterLease(root / INDEX_FOLDER).holder() is None
    assert "traceback" not in scree("status", cwd=root).stderr.lower()


def any_socket(folder: str) -> bool:
    """Whether a process, given by the folder of its descriptors, has a socket open."""
    links = []
    for name in os.listdir(folder):
        try:
            links.append(os.readlink(f"{folder}/{name}"))
        except FileNotFoundError:
            continue
    return any(link.startswith("socket:") for link in links)


@pytest.mark.requirement("reindex-deferred")
def test_a_file_that_is_being_written_to_is_taken_up_in_the_end(repository: GitRepository, tmp_path: Path) -> None:
    root = repository.path
    with connected(cwd=root) as client:
        client.await_complete()
        with (root / "docs/growing.md").open("w") as file:
            for number in range(40):
                file.write(f"## Step {number}\n\nThe growing{number} line.\n\n")
                file.flush()
                client.search("growing", mode="keyword", k=1)
        await_equal_to_fresh(root, tmp_path)
        assert client.hits("growing39", mode="keyword")
