"""A search tells what is true of the disk now, whatever the index says: nobody writes it in these tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from scree.docs.lease import INDEX_FOLDER, WriterLease
from tests.oracle import PATIENCE_SECONDS, await_equal_to_fresh, content
from tests.processes.mcp_client import Client, connected, found, note
from tests.processes.programs import DEAF, printed, stand_in
from tests.repositories import GitRepository
from tests.waiting import eventually

FILES = {
    **{f"docs/{name}.md": f"# {name}\n\nThe zephyr blows over {name}.\n" for name in ("one", "two", "three", "four")},
    "other.md": "# Other\n\nNothing of that kind.\n",
}


@pytest.fixture(scope="module")
def root(module_environment: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An indexed repository; every test restores the files it changes."""
    assert module_environment.is_dir()
    repository = GitRepository.create(tmp_path_factory.mktemp("disk") / "project", FILES)
    printed("reindex", cwd=repository.path)
    return repository.path


@pytest.fixture(scope="module")
def client(root: Path) -> Iterator[Client]:
    """A server that does not write: the lease is the test's own."""
    lease = WriterLease(root / INDEX_FOLDER)
    assert lease.acquire()
    with connected(cwd=root) as client:
        assert len(client.hits("zephyr", mode="keyword")) == 4
        yield client
    lease.release()


@contextmanager
def restored(root: Path) -> Iterator[None]:
    """Undo whatever happens inside to the files of `FILES`."""
    before = content(root)
    try:
        yield
        # Nobody has written the index meanwhile.
        assert content(root) == before
    finally:
        for name, text in FILES.items():
            path = root / name
            if path.is_symlink():
                path.unlink()
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        for name in (".gitignore", ".screeignore"):
            (root / name).unlink(missing_ok=True)


def delete(root: Path) -> None:
    (root / "docs/two.md").unlink()


def ignore_by_git(root: Path) -> None:
    GitRepository(root).git("rm", "--cached", "--quiet", "docs/two.md")
    (root / ".gitignore").write_text("two.md\n")


def ignore_by_scree(root: Path) -> None:
    (root / ".screeignore").write_text("/docs/two.md\n")


def opt_out_in_comment(root: Path) -> None:
    (root / "docs/two.md").write_text("<!-- scree: ignore -->\n" + FILES["docs/two.md"])


def opt_out_in_front_matter(root: Path) -> None:
    (root / "docs/two.md").write_text("---\nscree: ignore\n---\n" + FILES["docs/two.md"])


def become_binary(root: Path) -> None:
    (root / "docs/two.md").write_text(FILES["docs/two.md"] + "\0")


def become_link(root: Path) -> None:
    (root / "docs/two.md").unlink()
    (root / "docs/two.md").symlink_to("one.md")


def grow(root: Path) -> None:
    (root / "docs/two.md").write_text(FILES["docs/two.md"] + "\n" * 1_000_000)


@pytest.mark.requirement("hit-rechecked")
@pytest.mark.requirement("hit-replaced")
@pytest.mark.requirement("ignore-marker-comment")
@pytest.mark.requirement("ignore-marker-front-matter")
@pytest.mark.parametrize(
    "change",
    [
        delete,
        ignore_by_git,
        ignore_by_scree,
        opt_out_in_comment,
        opt_out_in_front_matter,
        become_binary,
        become_link,
        grow,
    ],
)
def test_what_may_no_longer_be_shown_drops_out_at_once_and_the_next_hit_takes_its_place(
    root: Path, client: Client, change: Callable[[Path], None]
) -> None:
    ranked = [hit.path for hit in client.hits("zephyr", mode="keyword")]
    assert "docs/two.md" in ranked
    rest = [path for path in ranked if path != "docs/two.md"]
    with restored(root):
        change(root)
        hits = client.hits("zephyr", mode="keyword", k=3)
        assert [(hit.n, hit.path) for hit in hits] == list(enumerate(rest, start=1))
        assert all("zephyr" in hit.text for hit in hits)
    assert [hit.path for hit in client.hits("zephyr", mode="keyword")] == ranked


@pytest.mark.requirement("hit-moved")
@pytest.mark.requirement("hit-lines")
def test_a_hit_in_a_changed_file_has_its_present_lines(root: Path, client: Client) -> None:
    with restored(root):
        text = FILES["docs/two.md"]
        for lines_above in (4, 1, 0):
            (root / "docs/two.md").write_text("New line.\n" * lines_above + text)
            (hit,) = client.hits("zephyr over two", mode="keyword", k=1)
            assert (hit.path, hit.lines) == ("docs/two.md", f"{3 + lines_above}-{3 + lines_above}")
            start = 3 + lines_above
            assert hit.text in client.call("read_doc", path=hit.path, start=start, end=start)


@pytest.mark.requirement("hit-stale")
def test_a_hit_whose_text_is_gone_is_stale_and_has_no_lines(root: Path, client: Client) -> None:
    with restored(root):
        (root / "docs/two.md").write_text("# two\n\nAll of this is new.\n")
        response = client.search("zephyr over two", mode="keyword", k=1)
        assert response.startswith('<hit n="1" path="docs/two.md" stale="true" heading="two" score="')
        assert "The zephyr blows over two." in response


@pytest.mark.requirement("hit-also")
def test_each_place_is_named_once(git_repository: Callable[..., GitRepository]) -> None:
    """The parts of a long line can have the same text, and are all in that line."""
    root = git_repository(
        {"long.md": "# T\n\n" + "ab " * 8_000 + "\n", "other.md": "# T\n\n" + "ab " * 8_000 + "\n"}
    ).path
    hits = found(printed("search", "ab", "-k", "50", cwd=root))
    assert len(hits) > 1
    for hit in hits:
        assert hit.also in (None, "long.md:3-3", "other.md:3-3")


@pytest.mark.requirement("hit-also")
@pytest.mark.requirement("hit-rechecked")
def test_of_identical_chunks_only_those_that_are_still_there_are_named(
    git_repository: Callable[..., GitRepository],
) -> None:
    same = "# Same\n\nThe twinned paragraph.\n"
    root = git_repository({f"{name}.md": same for name in "abcd"}).path
    printed("reindex", cwd=root)
    lease = WriterLease(root / INDEX_FOLDER)
    assert lease.acquire()
    with connected(cwd=root) as client:
        (hit,) = client.hits("twinned", mode="keyword")
        assert (hit.path, hit.also) == ("a.md", "b.md:3-3, c.md:3-3, d.md:3-3")
        (root / "a.md").unlink()
        (root / "b.md").write_text("# Other\n")
        (root / "c.md").write_text("\n" + same)
        (hit,) = client.hits("twinned", mode="keyword")
        assert (hit.path, hit.lines, hit.also) in [("b.md", None, "c.md:4-4, d.md:3-3"), ("c.md", "4-4", "d.md:3-3")]
    lease.release()


@pytest.mark.requirement("note-single")
def test_an_index_that_another_process_keeps_current_needs_no_note(client: Client) -> None:
    assert note(client.search("zephyr", mode="keyword")) is None


@pytest.mark.requirement("hit-reported")
def test_the_writer_looks_again_at_a_file_whose_hit_dropped_out(
    git_repository: Callable[..., GitRepository], tmp_path: Path
) -> None:
    root = git_repository(FILES).path
    # A watch that never hears of anything: what the writer takes up, it has been told by a search.
    with connected(cwd=root, environment=stand_in(tmp_path / "hook", "watchfiles", DEAF)) as client:
        client.await_complete()
        client.call("reindex")  # the look that follows once the watch stands is over
        before = content(root)
        (root / "docs/two.md").unlink()
        (root / "docs/three.md").write_text("# three\n\nThe zephyr blows no more over three.\n")
        assert content(root) == before
        assert "docs/two.md" not in [hit.path for hit in client.hits("zephyr", mode="keyword")]
        await_equal_to_fresh(root, tmp_path)
        assert client.hits("zephyr no more", mode="keyword", k=1)[0].lines == "3-3"


def test_a_search_over_an_index_that_grows_takes_up_what_is_new(
    git_repository: Callable[..., GitRepository],
) -> None:
    """One server reads what another process writes."""
    root = git_repository(FILES).path
    lease = WriterLease(root / INDEX_FOLDER)
    assert lease.acquire()
    with connected(cwd=root) as reader:
        assert "building it]" in (note(reader.search("zephyr")) or "")
        lease.release()
        with connected(cwd=root) as writer:
            writer.await_complete()
            eventually(lambda: len(reader.hits("zephyr")) == 5, PATIENCE_SECONDS, "the other's index")
            (root / "new.md").write_text("# New\n\nA quinquereme of Nineveh.\n")
            eventually(lambda: reader.hits("quinquereme", mode="keyword"), PATIENCE_SECONDS, "the new file")
