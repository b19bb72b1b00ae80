"""`read_doc` against a real tree."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.processes.mcp_client import Client, connected
from tests.repositories import GitRepository

FILES: dict[str, str | bytes] = {
    "docs/ten.md": "".join(f"Line {number}.\n" for number in range(1, 11)),
    "docs/unended.md": "One\nTwo",
    "docs/empty.md": "",
    "docs/crlf.md": b"One\r\nTwo\r\n\r\nFour\r\n",
    "docs/separators.md": "One\u2028still one\x0cstill one\u0085still one\rstill one\nTwo\n",
    "docs/large.md": "# Large\n" + "é" * 150_000 + "\nend\n",
    "docs/full.md": "x" * (256 * 1024),
    "docs/latin.md": b"Gr\xfc\xdfe\n",
    "docs/utf16.md": b"\xff\xfe" + "Grüße\r\nZwei\r\n".encode("utf-16-le"),
    "docs/nul.md": b"a\0b\n",
    "docs/too-large.md": "x" * 1_000_001,
    "docs/opted-out.md": "---\nscree: ignore\n---\nsecret\n",
    "docs/commented-out.md": "<!-- scree: ignore -->\nsecret\n",
    "docs/below/inside.md": "inside\n",
    "ignored.md": "secret\n",
    "node_modules/dependency/README.md": "secret\n",
    ".github/guide.md": "A guide.\n",
    ".gitignore": "/ignored.md\n/gone.md\n",
    "hidden-by-scree.md": "secret\n",
    ".screeignore": "hidden-*\n",
    "code.py": "secret = 1\n",
}


@pytest.fixture(scope="module")
def root(module_environment: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    assert module_environment.is_dir()
    folder = tmp_path_factory.mktemp("read")
    repository = GitRepository.create(folder / "project")
    repository.write(FILES)
    (folder / "outside.md").write_text("secret\n")
    for name, target in {
        "link.md": "docs/ten.md",
        "absolute.md": "/etc/hosts",
        "outside-link.md": "../outside.md",
        "self.md": "self.md",
        "dangling.md": "nowhere.md",
        "up": "..",
        "inside": "docs",
    }.items():
        (repository.path / name).symlink_to(target)
    GitRepository.create(repository.path / "nested", {"nested.md": "secret\n"})
    return repository.path


@pytest.fixture(scope="module")
def client(root: Path) -> Iterator[Client]:
    with connected(cwd=root) as client:
        client.await_complete()
        yield client


# What is read


@pytest.mark.requirement("doc-format")
@pytest.mark.requirement("read-range")
@pytest.mark.parametrize(
    ("arguments", "lines", "shown"),
    [
        ({}, "1-10", range(1, 11)),
        ({"start": 1}, "1-10", range(1, 11)),
        ({"start": 9}, "9-10", range(9, 11)),
        ({"end": 2}, "1-2", range(1, 3)),
        ({"start": 4, "end": 6}, "4-6", range(4, 7)),
        ({"start": 10, "end": 10}, "10-10", range(10, 11)),
        ({"start": 9, "end": 4_000}, "9-10", range(9, 11)),
    ],
)
def test_the_lines_asked_for(client: Client, arguments: dict[str, object], lines: str, shown: range) -> None:
    text = "\n".join(f"Line {number}." for number in shown)
    expected = f'<doc path="docs/ten.md" lines="{lines}">\n{text}\n</doc>'
    assert client.call("read_doc", path="docs/ten.md", **arguments) == expected
    # The ways to write the same path.
    assert client.call("read_doc", path="./docs//ten.md", **arguments) == expected


@pytest.mark.requirement("read-range-errors")
def test_a_start_past_the_end_is_told_how_many_lines_there_are(client: Client) -> None:
    said = client.error("read_doc", path="docs/ten.md", start=11)
    assert "start is 11" in said
    assert "10 lines" in said
    assert "start" in client.error("read_doc", path="docs/ten.md", start=0)
    assert "start" in client.error("read_doc", path="docs/ten.md", start=3, end=2)


@pytest.mark.requirement("read-lines")
@pytest.mark.requirement("indexed-decoding")
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("unended", "1-2\nOne\nTwo"),
        ("empty", "1-1\n"),
        ("crlf", "1-4\nOne\nTwo\n\nFour"),
        ("separators", "1-2\nOne\u2028still one\x0cstill one\u0085still one\rstill one\nTwo"),
        ("latin", "1-1\nGr\ufffd\ufffde"),
        ("utf16", "1-2\nGrüße\nZwei"),
    ],
)
def test_only_a_line_feed_ends_a_line(client: Client, name: str, expected: str) -> None:
    lines, text = expected.split("\n", 1)
    assert client.call("read_doc", path=f"docs/{name}.md") == (
        f'<doc path="docs/{name}.md" lines="{lines}">\n{text}\n</doc>'
    )


@pytest.mark.requirement("read-cap")
@pytest.mark.requirement("read-max-file-bytes")
def test_a_large_document_is_cut_at_256_kb(client: Client) -> None:
    _, *inside, last = client.call("read_doc", path="docs/large.md").split("\n")
    text = "\n".join(inside)
    assert last == "</doc>"
    assert text.endswith("é\n[truncated at 256 KB]")
    assert 256 * 1024 - 1 <= len(text.encode()) <= 256 * 1024
    assert "truncated" not in client.call("read_doc", path="docs/large.md", start=3)
    assert "truncated" not in client.call("read_doc", path="docs/full.md")


@pytest.mark.requirement("ignore-github-in")
def test_what_is_indexed_can_be_read(client: Client) -> None:
    assert "A guide." in client.call("read_doc", path=".github/guide.md")


# What is refused


@pytest.mark.requirement("read-ignored")
@pytest.mark.requirement("read-symlink")
@pytest.mark.requirement("indexed-no-links")
@pytest.mark.requirement("read-max-file-bytes")
@pytest.mark.requirement("indexed-size")
@pytest.mark.requirement("ignore-screeignore")
@pytest.mark.parametrize("tool", ["read_doc", "reindex"])
@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("ignored.md", ".gitignore"),
        ("gone.md", ".gitignore"),
        ("node_modules/dependency/README.md", "node_modules"),
        ("node_modules/none/README.md", "node_modules"),
        (".hidden/x.md", "hidden"),
        (".scree/x.md", ""),
        (".git/x.md", ""),
        ("hidden-by-scree.md", ".screeignore"),
        ("hidden-none.md", ".screeignore"),
        ("docs/opted-out.md", "scree: ignore"),
        ("docs/commented-out.md", "scree: ignore"),
        ("docs/nul.md", "NUL"),
        ("docs/too-large.md", "larger than 1000000 bytes"),
        ("code.py", "file type"),
        ("none.py", "file type"),
        ("link.md", "is a symbolic link"),
        ("absolute.md", "is a symbolic link"),
        ("outside-link.md", "is a symbolic link"),
        ("self.md", "is a symbolic link"),
        ("dangling.md", "is a symbolic link"),
        ("up/outside.md", "is a symbolic link"),
        ("up/none.md", "is a symbolic link"),
        ("inside/ten.md", "is a symbolic link"),
        ("inside/none.md", "is a symbolic link"),
        ("nested/nested.md", "a repository of its own"),
        ("nested/none.md", "a repository of its own"),
    ],
)
def test_what_is_ignored_is_refused_whether_or_not_it_exists(client: Client, tool: str, path: str, reason: str) -> None:
    said = client.error(tool, path=path)
    assert said.startswith(f'refused: "{path}" is ignored by scree (')
    assert said.endswith(")")
    assert reason in said
    assert "secret" not in said


@pytest.mark.requirement("read-outside")
@pytest.mark.parametrize("tool", ["read_doc", "reindex"])
@pytest.mark.parametrize(
    "path",
    [
        "../outside.md",
        "../none.md",
        "docs/../../outside.md",
        "docs/../docs/ten.md",
        "/etc/hosts.md",
        "/none.md",
        "/",
        "..",
    ],
)
def test_what_lies_outside_is_refused_in_the_same_words(client: Client, tool: str, path: str) -> None:
    assert client.error(tool, path=path) == f'refused: "{path}" is outside the project'


@pytest.mark.requirement("read-outside")
def test_an_absolute_path_is_refused_also_where_it_leads_inside(client: Client, root: Path) -> None:
    path = f"{root}/docs/ten.md"
    assert client.error("read_doc", path=path) == f'refused: "{path}" is outside the project'


@pytest.mark.requirement("read-missing")
@pytest.mark.parametrize("path", ["docs/none.md", "nowhere/none.md", "docs/ten.md/none.md", "%s.md", "a\nb.md"])
def test_a_missing_file_is_said_to_be_missing(client: Client, path: str) -> None:
    said = client.error("read_doc", path=path)
    assert said.startswith("no such file: ")
    assert "\n" not in said


def test_a_file_is_read_as_it_is_now(client: Client, root: Path) -> None:
    path = root / "docs" / "now.md"
    for text in ("first", "second"):
        path.write_text(text)
        assert client.call("read_doc", path="docs/now.md") == f'<doc path="docs/now.md" lines="1-1">\n{text}\n</doc>'
    path.unlink()
    assert client.error("read_doc", path="docs/now.md") == 'no such file: "docs/now.md"'


@pytest.mark.requirement("read-max-file-bytes")
def test_the_largest_size_can_be_set(git_repository: Callable[..., GitRepository]) -> None:
    root = git_repository({"a.md": "12345678901", "b.md": "1234567890"}).path
    with connected(cwd=root, environment={"SCREE_MAX_FILE_BYTES": "10"}) as client:
        assert client.error("read_doc", path="a.md") == (
            'refused: "a.md" is ignored by scree (is larger than 10 bytes)'
        )
        assert "1234567890" in client.call("read_doc", path="b.md")
