"""The root, the paths allowed in it, and reading a file."""

from __future__ import annotations

import codecs
import hashlib
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from scree.core.files import ChangedWhileRead, contained, decode, find_root, read_source
from scree.errors import ArgumentError, RefusedError, RootError, ScreeError, SkippedFile
from tests.repositories import GitRepository

Repositories = Callable[..., GitRepository]

MAX_BYTES = 1000

# ---------------------------------------------------------------------------------------------------- root


@pytest.mark.requirement("root-explicit")
def test_the_named_root_comes_first_and_is_taken_as_it_is(git_repository: Repositories, tmp_path: Path) -> None:
    repository = git_repository({"docs/a.md": ""}, name="one")
    other = git_repository({"b.md": ""}, name="two")
    environment = {"CLAUDE_PROJECT_DIR": str(other.path)}
    assert find_root(str(repository.path / "docs"), environment, other.path) == repository.path / "docs"
    assert find_root("one/docs", environment, tmp_path) == repository.path / "docs"
    assert find_root("~", environment, tmp_path) == Path.home()


@pytest.mark.requirement("root-claude-project-dir")
def test_the_project_of_claude_comes_next(git_repository: Repositories, tmp_path: Path) -> None:
    repository = git_repository({"docs/a.md": ""})
    assert find_root(None, {"CLAUDE_PROJECT_DIR": str(repository.path / "docs")}, tmp_path) == repository.path
    assert find_root(None, {"CLAUDE_PROJECT_DIR": ""}, repository.path / "docs") == repository.path


@pytest.mark.requirement("root-git-top-level")
def test_the_top_level_of_the_working_folder_comes_last(git_repository: Repositories) -> None:
    repository = git_repository({"docs/deep/er/a.md": ""}, name="na\nme ")
    assert find_root(None, {}, repository.path / "docs" / "deep" / "er") == repository.path


@pytest.mark.requirement("root-outside-git")
def test_outside_git_the_folder_itself_is_the_root(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    assert find_root(None, {}, tmp_path / "link") == tmp_path


@pytest.mark.requirement("root-worktree")
@pytest.mark.requirement("root-submodule")
def test_worktrees_and_submodules_are_roots_of_their_own(git_repository: Repositories) -> None:
    library = git_repository({"docs/a.md": ""}, name="library")
    repository = git_repository({"README.md": ""}, name="outer")
    repository.git("submodule", "--quiet", "add", str(library.path), "parts/module")
    repository.git("worktree", "add", "--quiet", "copy")
    module = repository.path / "parts" / "module"
    assert find_root(None, {}, module / "docs") == module
    assert find_root(None, {}, repository.path / "copy") == repository.path / "copy"


@pytest.mark.requirement("root-home-refused")
def test_a_home_folder_is_refused_unless_it_is_named(tmp_path: Path) -> None:
    environment = {"HOME": str(tmp_path)}
    with pytest.raises(RootError, match=rf'home folder.*--root "{tmp_path}"'):
        find_root(None, environment, tmp_path)
    with pytest.raises(RootError, match="home folder"):
        find_root(None, {**environment, "CLAUDE_PROJECT_DIR": str(tmp_path)}, Path("/tmp"))
    assert find_root(str(tmp_path), environment, tmp_path) == tmp_path


@pytest.mark.requirement("root-home-refused")
def test_a_home_folder_under_git_is_no_project_for_what_lies_in_it(git_repository: Repositories) -> None:
    home = git_repository({"notes/a.md": ""}, name="home")
    with pytest.raises(RootError, match="home folder"):
        find_root(None, {"HOME": str(home.path)}, home.path / "notes")


@pytest.mark.requirement("root-filesystem-refused")
def test_a_file_system_root_is_refused_unless_it_is_named() -> None:
    with pytest.raises(RootError, match=r'root of the file system.*--root "/"'):
        find_root(None, {"HOME": "/nonexistent"}, Path("/"))
    assert find_root("/", {}, Path("/tmp")) == Path("/")


@pytest.mark.parametrize("name", ["", "missing", "file", "\0"])
def test_a_root_that_is_no_folder_is_refused_by_name(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RootError, match=r"^--root names .* not a folder"):
        find_root(name, {}, tmp_path)
    if name:
        with pytest.raises(RootError, match=r"^CLAUDE_PROJECT_DIR names .* not a folder"):
            find_root(None, {"CLAUDE_PROJECT_DIR": name}, tmp_path)


# --------------------------------------------------------------------------------------------- containment


@pytest.mark.requirement("read-outside")
@pytest.mark.parametrize(
    ("path", "printed"),
    [
        ("../secret.md", "../secret.md"),
        ("docs/../../secret.md", "docs/../../secret.md"),
        ("docs/..", "docs/.."),
        ("/etc/passwd", "/etc/passwd"),
        ("//a.md", "//a.md"),
        ("a\0.md", "a.md"),
        ("/a\n\x1b.md", "/a.md"),
        ("\ud800.md", "\ufffd.md"),
    ],
)
def test_what_leaves_the_project_is_refused_in_the_same_words(path: str, printed: str) -> None:
    with pytest.raises(RefusedError) as refusal:
        contained(path)
    assert str(refusal.value) == f'refused: "{printed}" is outside the project'


@pytest.mark.parametrize(
    ("path", "normal"),
    [
        ("a.md", "a.md"),
        ("./docs//a.md", "docs/a.md"),
        ("docs/./a.md/", "docs/a.md"),
        ("..a/b...md", "..a/b...md"),
        ("a\\..\\b.md", "a\\..\\b.md"),
        ("C:\\a.md", "C:\\a.md"),
        ("~/a.md", "~/a.md"),
        ("a\nb.md", "a\nb.md"),
        ("\udcff.md", "\udcff.md"),
    ],
)
def test_a_path_within_has_one_form(path: str, normal: str) -> None:
    assert contained(path) == normal


@pytest.mark.parametrize("path", ["", ".", "./."])
def test_a_path_must_name_a_file(path: str) -> None:
    with pytest.raises(ArgumentError, match="path"):
        contained(path)


# ------------------------------------------------------------------------------------------------- reading


def read(root: Path, path: str) -> str:
    return read_source(root, path, MAX_BYTES).text


def skip_reason(root: Path, path: str) -> str:
    with pytest.raises(SkippedFile) as skipped:
        read_source(root, path, MAX_BYTES)
    return skipped.value.reason


def test_a_file_is_read_with_its_hash_and_state(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    content = "# Tïtle\r\n\rtext\f\u2028more".encode()
    (tmp_path / "docs" / "a.md").write_bytes(content)
    source = read_source(tmp_path, "docs/a.md", MAX_BYTES)
    assert source.text.encode() == content
    assert source.sha256 == hashlib.sha256(content).digest()
    assert source.stat.st_mtime_ns == os.lstat(tmp_path / "docs" / "a.md").st_mtime_ns


@pytest.mark.requirement("indexed-decoding")
@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", ""),
        (codecs.BOM_UTF8 + "é".encode(), "é"),
        (codecs.BOM_UTF8, ""),
        (codecs.BOM_UTF16_LE + "aé🪨\n".encode("utf-16-le"), "aé🪨\n"),
        (codecs.BOM_UTF16_BE + "aé🪨\n".encode("utf-16-be"), "aé🪨\n"),
        (codecs.BOM_UTF16_LE + b"a\0b", "a\ufffd"),
        (codecs.BOM_UTF16_LE + b"\x00\xd8a\0", "\ufffda"),
        ("naïve café".encode("latin-1"), "na\ufffdve caf\ufffd"),
        (b"a\xed\xa0\x80b", "a\ufffd\ufffd\ufffdb"),
        ("a\ufeffb".encode(), "a\ufeffb"),
    ],
)
def test_text_is_decoded_by_its_mark_or_as_utf_8(data: bytes, text: str) -> None:
    assert decode(data) == text
    decode(data).encode()  # nothing that cannot be written again


@pytest.mark.requirement("indexed-nul")
@pytest.mark.parametrize(
    "data", [b"\0", b"text\0", codecs.BOM_UTF8 + b"a\0", codecs.BOM_UTF32_LE + b"a\0\0\0", b"a" * 900 + b"\0"]
)
def test_what_has_a_nul_is_not_text(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.md").write_bytes(data)
    assert skip_reason(tmp_path, "a.md") == "is not text (it has a NUL byte)"


@pytest.mark.requirement("indexed-size")
def test_a_file_over_the_limit_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_bytes(b"a" * MAX_BYTES)
    assert len(read(tmp_path, "a.md")) == MAX_BYTES
    (tmp_path / "a.md").write_bytes(b"a" * (MAX_BYTES + 1))
    assert skip_reason(tmp_path, "a.md") == "is larger than 1000 bytes"


@pytest.mark.requirement("indexed-no-links")
@pytest.mark.requirement("read-symlink")
def test_no_link_is_followed_anywhere_on_the_way(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "docs" / "deep").mkdir(parents=True)
    (root / "docs" / "deep" / "a.md").touch()
    (root / "alias.md").symlink_to("docs/deep/a.md")
    (root / "folder").symlink_to("docs")
    (root / "docs" / "up").symlink_to("..")
    (root / "out").symlink_to("/etc")
    (root / "loop").symlink_to("loop")
    for path in ("alias.md", "folder/deep/a.md", "docs/up/docs/deep/a.md", "out/passwd", "out/none", "loop/a", "loop"):
        assert skip_reason(root, path) == "is a symbolic link"
    # The root itself may be reached through one.
    (tmp_path / "way").symlink_to(root)
    assert read(tmp_path / "way", "docs/deep/a.md") == ""


@pytest.mark.parametrize("swapped", ["docs", "docs/a.md"])
def test_a_link_put_there_at_the_last_moment_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, swapped: str
) -> None:
    root = tmp_path / "root"
    (root / "docs").mkdir(parents=True)
    (root / "docs" / "a.md").write_text("ours")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("secret")
    look = os.stat

    def look_and_swap(path: str, **options: int | bool) -> os.stat_result:
        status = look(path, **options)  # type: ignore[arg-type]
        if path == os.path.basename(swapped):
            (root / swapped).rename(root / "aside")
            (root / swapped).symlink_to(tmp_path / swapped)
        return status

    monkeypatch.setattr(os, "stat", look_and_swap)
    with pytest.raises(OSError, match=r"symbolic|directory"):
        read(root, "docs/a.md")


@pytest.mark.requirement("indexed-regular-files")
def test_only_regular_files_are_opened(runtime_folder: Path) -> None:
    root = runtime_folder / "read"
    (root / "folder.md").mkdir(parents=True)
    os.mkfifo(root / "fifo.md")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(root / "socket.md"))
        for name in ("folder.md", "fifo.md", "socket.md"):
            assert skip_reason(root, name) == "is not a regular file"
    assert skip_reason(Path("/dev"), "null") == "is not a regular file"


def test_what_is_missing_is_missing(tmp_path: Path) -> None:
    (tmp_path / "a.md").touch()
    for path in ("b.md", "docs/b.md"):
        with pytest.raises(FileNotFoundError):
            read(tmp_path, path)
    with pytest.raises(NotADirectoryError):
        read(tmp_path, "a.md/b.md")


def test_names_may_be_anything(tmp_path: Path) -> None:
    for name in ("a\nb.md", 'q"<>&.md', "\udcff.md", "é.md", "e\u0301.md", " .md"):
        (tmp_path / name).write_bytes(os.fsencode(name))
        assert read(tmp_path, name) == os.fsencode(name).decode("utf-8", "replace")


@pytest.mark.parametrize("grow", ["a", "a" * MAX_BYTES])
def test_a_file_that_changes_while_it_is_read_is_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, grow: str
) -> None:
    (tmp_path / "a.md").write_text("text")
    look = os.fstat
    looks = 0

    def write_after_first_look(file: int) -> os.stat_result:
        nonlocal looks
        looks += 1
        status = look(file)
        if looks == 1:
            with (tmp_path / "a.md").open("a") as stream:
                stream.write(grow)
        return status

    monkeypatch.setattr(os, "fstat", write_after_first_look)
    expected: type[ScreeError] = ChangedWhileRead if len(grow) == 1 else SkippedFile
    with pytest.raises(expected):
        read(tmp_path, "a.md")


def test_no_file_stays_open(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_bytes(b"\0")
    (tmp_path / "link").symlink_to("docs")
    before = os.listdir("/dev/fd")
    for path in ("docs/a.md", "docs/b.md", "link/a.md", "docs/a.md/c", "docs"):
        with pytest.raises((SkippedFile, OSError)):
            read(tmp_path, path)
    assert os.listdir("/dev/fd") == before
