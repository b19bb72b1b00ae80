"""The work trees of one repository: each has its own index, and no text is embedded twice."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from scree.docs.lease import INDEX_FOLDER
from scree.docs.store import index_path
from tests.oracle import await_equal_to_fresh, content, fresh_content
from tests.processes.mcp_client import Client, Found, connected, found
from tests.processes.programs import printed, running, startup_hook
from tests.repositories import GitRepository
from tests.waiting import eventually

# Each text that is embedded, by any program of the test, is a line of a file.
RECORDING = """
import json
from scree.core.encoder import OnnxEncoder

encode = OnnxEncoder.encode_documents

def recorded(passages):
    for passage in passages:
        with open({log!r}, "a") as log:
            log.write(json.dumps(passage.text) + "\\n")
        yield passage

OnnxEncoder.encode_documents = lambda self, passages: encode(self, recorded(passages))
"""

SUBJECTS = ("pump", "valve", "bridge", "harbour", "engine", "ladder", "signal", "meadow")
FILES: dict[str, str | bytes] = {
    **{
        f"docs/{subject}.md": f"# The {subject}\n\nHow the {subject} is looked after.\n\n"
        f"## Repairs\n\nWhat to do when the {subject} breaks.\n"
        for subject in SUBJECTS
    },
    "README.md": "# Works\n\nWhere everything is written down.\n",
}
TEXTS = 2 * len(SUBJECTS) + 1

QUERIES = ("what if the bridge fails", "where is it written down", "valve")


class Recorder:
    """Knows what was embedded by programs that run in its environment."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._log = folder / "embedded.jsonl"
        self._log.touch()
        self.environment = startup_hook(folder / "hook", RECORDING.format(log=str(self._log)))

    def embedded(self) -> list[str]:
        """Return the texts embedded so far."""
        return [json.loads(line) for line in self._log.read_text().splitlines()]


@pytest.fixture
def recorder(tmp_path: Path) -> Recorder:
    return Recorder(tmp_path / "recorder")


@pytest.fixture
def main(git_repository: Callable[..., GitRepository]) -> GitRepository:
    return git_repository(FILES, name="main")


def add(repository: GitRepository, name: str) -> GitRepository:
    """Make a work tree beside the repository, on a new branch of that name."""
    path = repository.path.parent / name
    repository.git("worktree", "add", "--quiet", "-b", name, path)
    return GitRepository(path)


def answers(client: Client) -> list[list[Found]]:
    return [client.hits(query, mode=mode) for query in QUERIES for mode in ("hybrid", "semantic", "keyword")]


@pytest.mark.requirement("worktree-embeddings")
def test_a_new_worktree_of_an_indexed_repository_is_searchable_with_nothing_embedded(
    main: GitRepository, recorder: Recorder
) -> None:
    printed("reindex", cwd=main.path, environment=recorder.environment)
    assert len(recorder.embedded()) == TEXTS
    linked = add(main, "linked")
    with connected(cwd=linked.path, environment=recorder.environment) as client:
        client.await_complete()
        new = answers(client)
    with connected(cwd=main.path, environment=recorder.environment) as client:
        assert answers(client) == new
    assert all(new)
    assert len(recorder.embedded()) == TEXTS
    assert content(linked.path) == content(main.path)
    state = json.loads(printed("status", "--json", cwd=linked.path))
    assert (state["root"], state["chunks"], state["note"]) == (str(linked.path), TEXTS, None)


@pytest.mark.requirement("worktree-embeddings")
def test_that_holds_beside_a_running_writer_and_for_many_at_once(main: GitRepository, recorder: Recorder) -> None:
    with ExitStack() as sessions:
        first = sessions.enter_context(connected(cwd=main.path, environment=recorder.environment))
        first.await_complete()
        linked = [add(main, f"linked{number}") for number in range(4)]
        clients = [
            sessions.enter_context(connected(cwd=other.path, environment=recorder.environment)) for other in linked
        ]
        for client in clients:
            client.await_complete()
            assert answers(client) == answers(first)
        assert len(recorder.embedded()) == TEXTS
        assert all(content(other.path) == content(main.path) for other in linked)


@pytest.mark.requirement("worktree-own-text")
def test_no_worktree_ever_finds_the_text_of_another_branch(main: GitRepository, recorder: Recorder) -> None:
    linked = add(main, "linked")
    with (
        connected(cwd=main.path, environment=recorder.environment) as here,
        connected(cwd=linked.path, environment=recorder.environment) as there,
    ):
        here.await_complete()
        there.await_complete()
        main.write({"docs/bridge.md": "# The bridge\n\nOnly main says zeppelin.\n"})
        main.commit()
        linked.write({"docs/bridge.md": "# The bridge\n\nOnly linked says submarine.\n"})
        (linked.path / "docs" / "pump.md").unlink()
        linked.commit()
        eventually(lambda: "zeppelin" in here.search("zeppelin"), what="the edit in the one")
        eventually(lambda: "submarine" in there.search("submarine"), what="the edit in the other")
        eventually(lambda: "docs/pump.md" not in there.search("pump", k=50), what="the file to be gone")
        for client, foreign in ((here, "submarine"), (there, "zeppelin")):
            for mode in ("hybrid", "semantic", "keyword"):
                text = client.search(f"the bridge, {foreign}", k=50, mode=mode)
                assert foreign not in text
                assert found(text) or mode == "keyword"
        assert any(hit.path == "docs/pump.md" for hit in here.hits("pump", k=50))
        # The branches become one: the text that moves over is found there, and was embedded before.
        count = len(recorder.embedded())
        linked.git("checkout", "--quiet", "--detach", "main")
        eventually(lambda: "zeppelin" in there.search("zeppelin"), what="the branch switch")
        there.await_complete()
        eventually(lambda: content(linked.path) == content(main.path), 30.0, "equal indexes")
        assert len(recorder.embedded()) == count


@pytest.mark.requirement("worktree-own-text")
def test_removing_the_first_worktree_harms_no_other(main: GitRepository, recorder: Recorder, tmp_path: Path) -> None:
    first, second = add(main, "first"), add(main, "second")
    printed("reindex", cwd=first.path, environment=recorder.environment)
    with connected(cwd=second.path, environment=recorder.environment) as client:
        client.await_complete()
        before = answers(client)
        main.git("worktree", "remove", first.path)
        assert answers(client) == before
        second.write({"new.md": "# New\n\nA text that nobody has had.\n"})
        eventually(lambda: client.hits("a text that nobody has had", mode="semantic")[0].path == "new.md")
        await_equal_to_fresh(second.path, tmp_path)
    assert recorder.embedded()[TEXTS:] == ["A text that nobody has had."]


@pytest.mark.requirement("worktree-embeddings")
def test_what_a_killed_writer_had_embedded_is_not_embedded_again(
    main: GitRepository, recorder: Recorder, log: Path, tmp_path: Path
) -> None:
    main.write({f"more/{number}.md": f"# Part {number}\n\n" + f"word{number} and " * 150 for number in range(80)})
    main.commit()
    linked = add(main, "linked")
    with running("watch", cwd=main.path, log=log, environment={**recorder.environment, "SCREE_THREADS": "1"}) as writer:
        eventually(lambda: len(recorder.embedded()) > 40, 30.0, "some embeddings")
        writer.kill()
    stored = [chunk for document in content(main.path)["documents"].values() for chunk in document[-1] if chunk[-1]]
    before = len(recorder.embedded())
    assert 0 < len(stored) < TEXTS + 80
    assert index_path(main.path).with_name("index.sqlite-wal").stat().st_size > 0
    printed("reindex", cwd=linked.path, environment=recorder.environment)
    assert len(recorder.embedded()) - before == TEXTS + 80 - len(stored)
    # Compared with an index that could borrow from nobody.
    plain = tmp_path / "plain"
    shutil.copytree(linked.path, plain, ignore=shutil.ignore_patterns(".git", INDEX_FOLDER))
    assert content(linked.path) == fresh_content(plain, tmp_path)
