"""Every command as somebody types it."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import signal
import subprocess
import sys
import termios
from collections.abc import Callable
from pathlib import Path

import pytest

from scree.docs.lease import INDEX_FOLDER, WriterLease
from tests.oracle import PATIENCE_SECONDS, content
from tests.processes.conftest import SLOW, SLOW_FILES
from tests.processes.programs import SCREE, SECONDS, UNPRIVILEGED, complaint, printed, running, scree
from tests.repositories import GitRepository
from tests.waiting import eventually

FILES: dict[str, str | bytes] = {
    "README.md": "# Harbour\n\nThe harbour opens at dawn.\n",
    "docs/tokens.md": "# API\n\n## Tokens\n\nTokens are issued by the lantern service.\n",
    "docs/long.md": "# Long\n\n" + "".join(f"Line {number}.\n" for number in range(3, 41)),
    "docs/secret.md": "---\nscree: ignore\n---\n# Secret\n",
    "docs/binary.md": b"a\0b",
    "node_modules/x/README.md": "# Dependency\n",
    "ignored.md": "# Ignored\n",
    ".gitignore": "/ignored.md\nnode_modules\n",
    ".screeignore": "/drafts/\n",
    "drafts/one.md": "# Draft\n",
}


@pytest.fixture(scope="module")
def root(module_environment: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An indexed repository, which these tests leave as it is."""
    assert module_environment.is_dir()
    repository = GitRepository.create(tmp_path_factory.mktemp("cli") / "project", FILES)
    assert printed("reindex", cwd=repository.path).startswith("Scanned 5 notes: 3 indexed")
    return repository.path


# Search and read


@pytest.mark.requirement("command-search")
def test_search_prints_hits_as_the_tool_does(root: Path) -> None:
    said = printed("search", "tokens lantern", "-k", "1", "--mode", "keyword", cwd=root)
    assert re.fullmatch(
        r'<hit n="1" path="docs/tokens\.md" lines="5-5" heading="API > Tokens" score="0\.\d{3}">\n'
        r"Tokens are issued by the lantern service\.\n</hit>\n",
        said,
    )
    assert printed("search", "xyzzyplugh", "--mode", "keyword", cwd=root) == "No matching documents.\n"


@pytest.mark.requirement("command-search-json")
def test_search_prints_json_on_request(root: Path) -> None:
    told = json.loads(printed("search", "tokens lantern", "--json", "-k", "2", cwd=root / "docs"))
    assert list(told) == ["hits", "note"]
    assert told["note"] is None
    assert len(told["hits"]) == 2
    hit = told["hits"][0]
    keys = ["n", "path", "start_line", "end_line", "heading", "score", "text", "stale", "also"]
    assert list(hit) == keys
    assert isinstance(hit.pop("score"), float)
    assert hit == {
        "n": 1,
        "path": "docs/tokens.md",
        "start_line": 5,
        "end_line": 5,
        "heading": "API > Tokens",
        "text": "Tokens are issued by the lantern service.",
        "stale": False,
        "also": [],
    }


@pytest.mark.requirement("command-search")
def test_search_takes_up_what_changed_before_it_answers(git_repository: Callable[..., GitRepository]) -> None:
    repository = git_repository(FILES)
    # The first one builds the index.
    assert "harbour opens" in printed("search", "when does it open", "-k", "1", cwd=repository.path)
    repository.write({"docs/new.md": "# New\n\nA quinquereme of Nineveh.\n"})
    assert "docs/new.md" in printed("search", "quinquereme", "-k", "1", "--mode", "keyword", cwd=repository.path)


@pytest.mark.requirement("command-read")
def test_read_prints_what_the_tool_returns(root: Path) -> None:
    assert printed("read", "docs/long.md", "--start", "39", cwd=root) == (
        '<doc path="docs/long.md" lines="39-40">\nLine 39.\nLine 40.\n</doc>\n'
    )
    assert (
        printed("read", "docs/long.md", "--end", "1", cwd=root)
        == '<doc path="docs/long.md" lines="1-1">\n# Long\n</doc>\n'
    )
    assert printed("read", "README.md", cwd=root / "docs") == (
        '<doc path="README.md" lines="1-3">\n# Harbour\n\nThe harbour opens at dawn.\n</doc>\n'
    )


# Ignored


@pytest.mark.requirement("command-ignored")
@pytest.mark.requirement("ignore-reason")
@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("ignored.md", ".gitignore"),
        ("node_modules/x/README.md", "node_modules"),
        ("drafts/one.md", ".screeignore"),
        ("docs/secret.md", "scree: ignore"),
        ("docs/binary.md", "NUL"),
        (".hidden/x.md", "hidden"),
        ("docs/x.py", "file type"),
    ],
)
def test_ignored_prints_the_reason_and_exits_0(root: Path, path: str, reason: str) -> None:
    said = printed("ignored", path, cwd=root)
    assert re.fullmatch(r"ignored: [^\n]+\n", said)
    assert reason in said


@pytest.mark.requirement("command-ignored")
def test_ignored_exits_1_for_what_is_not_and_2_for_errors(root: Path, tmp_path: Path) -> None:
    for path, folder in (
        ("README.md", root),
        ("none.md", root),
        ("tokens.md", root / "docs"),
        ("../README.md", root / "docs"),
    ):
        done = scree("ignored", path, cwd=folder)
        assert (done.returncode, done.stdout, done.stderr) == (1, "not ignored\n", "")
    done = scree("ignored", "--root", str(root), "docs/tokens.md", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "not ignored\n")
    assert "outside the project" in complaint("ignored", "../x.md", cwd=root)


# Status


@pytest.mark.requirement("command-status-json")
@pytest.mark.requirement("command-status")
def test_status_has_the_promised_keys(root: Path) -> None:
    told = json.loads(printed("status", "--json", cwd=root))
    assert list(told) == [
        "root",
        "index_path",
        "files",
        "chunks",
        "model",
        "index_bytes",
        "writer_pid",
        "last_sync",
        "skipped",
        "note",
    ]
    assert (told["root"], told["index_path"]) == (str(root), str(root / ".scree" / "index.sqlite"))
    assert told["files"] == [
        {"path": "README.md", "chunks": 1},
        {"path": "docs/long.md", "chunks": 1},
        {"path": "docs/tokens.md", "chunks": 1},
    ]
    assert told["chunks"] == 3
    assert told["model"] == content(root)["facts"]["completed_for"]
    assert told["index_bytes"] >= (root / ".scree" / "index.sqlite").stat().st_size
    assert (told["writer_pid"], told["note"]) == (None, None)
    assert re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]", told["last_sync"])
    skipped = {entry["path"]: entry["reason"] for entry in told["skipped"]}
    assert skipped.keys() == {"docs/binary.md", "docs/secret.md", "drafts", "ignored.md", "node_modules"}
    assert all(skipped.values())


@pytest.mark.requirement("command-status")
def test_status_shows_the_same_to_people(root: Path) -> None:
    said = printed("status", cwd=root)
    for word in (
        str(root),
        "index.sqlite",
        "nobody",
        "docs/secret.md: ",
        "drafts: ",
        content(root)["facts"]["completed_for"][:12],
    ):
        assert word in said
    assert re.search(r"^files +3$", said, re.MULTILINE)
    assert re.search(r"^chunks +3$", said, re.MULTILINE)
    assert re.search(r"^last sync +\d{4}-", said, re.MULTILINE)


@pytest.mark.requirement("command-status")
def test_status_without_an_index_makes_none(git_repository: Callable[..., GitRepository]) -> None:
    root = git_repository(FILES).path
    told = json.loads(printed("status", "--json", cwd=root))
    assert (told["files"], told["chunks"], told["model"], told["last_sync"], told["index_bytes"]) == (
        [],
        0,
        None,
        None,
        0,
    )
    assert not (root / ".scree").exists()


@pytest.mark.requirement("command-status")
def test_status_names_what_nobody_may_read(git_repository: Callable[..., GitRepository]) -> None:
    root = git_repository({"closed.md": "# C", "closed/in.md": "# I", "open.md": "# O"}).path
    (root / "closed.md").chmod(0)
    (root / "closed").chmod(0)
    try:
        done = scree("status", "--json", cwd=root, prefix=UNPRIVILEGED)
        skipped = {row["path"]: row["reason"] for row in json.loads(done.stdout)["skipped"]}
        assert {path for path, reason in skipped.items() if reason == "cannot be read"} == {"closed.md", "closed"}
        assert "open.md" not in skipped
    finally:
        (root / "closed").chmod(0o755)


@pytest.mark.requirement("command-status")
@pytest.mark.requirement("command-watch")
@pytest.mark.requirement("writer-order")
def test_status_names_the_process_that_writes(slow_repository: GitRepository, log: Path) -> None:
    root = slow_repository.path
    with running("watch", cwd=root, log=log, environment=SLOW) as writer:
        eventually(lambda: WriterLease(root / INDEX_FOLDER).holder() == writer.pid, PATIENCE_SECONDS, "the writer")
        told = json.loads(printed("status", "--json", cwd=root))
        assert told["writer_pid"] == writer.pid
        assert told["note"] == f"[index incomplete: another scree process (pid {writer.pid}) is building it]"
        said = complaint("watch", cwd=root)
        assert str(writer.pid) in said
        # In the middle of a first sync, a signal is enough.
        writer.process.send_signal(signal.SIGINT)
        assert writer.process.wait(4) == 0


@pytest.mark.requirement("root-nested-listed")
@pytest.mark.requirement("root-worktree")
@pytest.mark.requirement("root-submodule")
def test_worktrees_and_submodules_are_skipped_and_are_roots_of_their_own(
    git_repository: Callable[..., GitRepository],
) -> None:
    library = git_repository({"README.md": "# Library\n\nThe submodule's quinquereme.\n"}, name="library")
    outer = git_repository({"README.md": "# Outer\n"}, name="outer")
    outer.git("submodule", "--quiet", "add", str(library.path), "library")
    outer.git("worktree", "add", "--quiet", "-b", "other", "trees/other")
    (outer.path / "trees" / "other" / "page.md").write_text("# Page\n\nThe worktree's quinquereme.\n")
    printed("reindex", cwd=outer.path)
    told = json.loads(printed("status", "--json", cwd=outer.path))
    assert [entry["path"] for entry in told["files"]] == ["README.md"]
    skipped = {entry["path"]: entry["reason"] for entry in told["skipped"]}
    assert skipped.keys() == {"library", "trees/other"}
    assert all("a repository of its own" in reason for reason in skipped.values())
    for folder, whose in (("library", "submodule"), ("trees/other", "worktree")):
        inner = outer.path / folder
        said = printed("search", "quinquereme", "-k", "1", "--mode", "keyword", cwd=inner)
        assert f"The {whose}'s quinquereme." in said
        assert json.loads(printed("status", "--json", cwd=inner))["root"] == str(inner)


# The root


@pytest.mark.requirement("root-outside-git")
def test_outside_git_the_folder_itself_is_the_root(tmp_path: Path) -> None:
    (tmp_path / "plain" / "docs").mkdir(parents=True)
    (tmp_path / "plain" / "docs" / "page.md").write_text("# Page\n")
    for folder in (tmp_path / "plain", tmp_path / "plain" / "docs"):
        assert json.loads(printed("status", "--json", cwd=folder))["root"] == str(folder)


@pytest.mark.requirement("root-home-refused")
@pytest.mark.requirement("root-filesystem-refused")
@pytest.mark.parametrize("command", [("search", "x"), ("serve",), ("init",)])
def test_a_home_folder_and_a_file_system_root_are_refused(isolated_environment: Path, command: tuple[str, ...]) -> None:
    for folder, words in ((isolated_environment, "your home folder"), (Path("/"), "the root of the file system")):
        said = complaint(*command, cwd=folder)
        assert words in said
        assert f'pass --root "{folder}"' in said
        assert not (folder / ".scree").exists()
        assert not (folder / ".mcp.json").exists()


@pytest.mark.requirement("root-home-refused")
def test_a_home_folder_that_is_named_is_taken(isolated_environment: Path) -> None:
    (isolated_environment / "page.md").write_text("# Page\n\nA page at home.\n")
    said = printed("search", "page", "--root", str(isolated_environment), cwd=isolated_environment)
    assert "A page at home." in said


# Opting in and out


@pytest.mark.requirement("command-init")
@pytest.mark.requirement("command-init-folder")
@pytest.mark.requirement("command-init-remove")
def test_init_opts_in_and_out(git_repository: Callable[..., GitRepository]) -> None:
    repository = git_repository({"README.md": "# Read me\n"})
    root, config = repository.path, repository.path / ".mcp.json"
    said = printed("init", cwd=root)
    assert str(config) in said
    entry = json.loads(config.read_text())["mcpServers"]["scree"]
    assert entry["args"] == []
    assert Path(entry["command"]).name == "scree-mcp"
    assert (root / ".scree" / ".gitignore").read_text() == "*\n"
    assert repository.git("status", "--porcelain") == "?? .mcp.json\n"
    before = config.read_bytes()
    assert "already" in printed("init", cwd=root)
    assert config.read_bytes() == before
    printed("init", "--remove", cwd=root)
    assert json.loads(config.read_text()) == {"mcpServers": {}}
    assert "is not in" in printed("init", "--remove", cwd=root)


@pytest.mark.requirement("command-init")
def test_what_init_writes_starts_a_server(git_repository: Callable[..., GitRepository]) -> None:
    root = git_repository({"README.md": "# Read me\n"}).path
    script = Path(sys.executable).with_name("scree")
    if not script.exists():
        pytest.skip("the package is not installed beside this Python")

    def run(*command: str) -> tuple[int, bytes]:
        done = subprocess.run(
            command, cwd=root, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS, check=False
        )
        return done.returncode, done.stderr

    assert run(str(script), "init") == (0, b"")
    entry = json.loads((root / ".mcp.json").read_text())["mcpServers"]["scree"]
    assert run(entry["command"], *entry["args"]) == (0, b"")


@pytest.mark.requirement("command-init-formatting")
@pytest.mark.requirement("command-init-remove")
def test_init_leaves_everything_else_as_it_is(git_repository: Callable[..., GitRepository]) -> None:
    repository = git_repository()
    config = repository.path / ".mcp.json"
    text = '{\n\t"other": [1,2],\n\t"mcpServers": {\n\t\t"z": {"command": "z"},\n\t\t"a": {"command": "a"}\n\t}\n}\n'
    config.write_text(text)
    printed("init", cwd=repository.path)
    with_entry = config.read_text()
    told = json.loads(with_entry)
    assert list(told) == ["other", "mcpServers"]
    assert list(told["mcpServers"]) == ["z", "a", "scree"]
    assert '\n\t\t"scree": {' in with_entry
    printed("init", "--remove", cwd=repository.path)
    assert config.read_text() == text


@pytest.mark.requirement("command-init-invalid-json")
@pytest.mark.parametrize("text", ["{", '{"mcpServers": []}'])
def test_init_never_touches_what_is_not_valid_json(git_repository: Callable[..., GitRepository], text: str) -> None:
    repository = git_repository()
    config = repository.path / ".mcp.json"
    config.write_text(text)
    for arguments in (("init",), ("init", "--remove")):
        assert str(config) in complaint(*arguments, cwd=repository.path)
        assert config.read_text() == text


# Errors


@pytest.mark.requirement("command-errors")
@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("search", ""), ("query", "1 to 8,000")),
        (("search", "x", "-k", "0"), ("k", "from 1 to 50")),
        (("search", "x", "-k", "51"), ("k", "from 1 to 50")),
        (("search", "x", "--mode", "fuzzy"), ("mode", "hybrid, semantic, keyword")),
        (("read", "docs/none.md"), ("no such", "docs/none.md")),
        (("read", "../x.md"), ("outside the project",)),
        (("read", "ignored.md"), ("ignored by scree",)),
        (("read", "README.md", "--start", "9"), ("start", "3 lines")),
        (("read", "README.md", "--start", "0"), ("start", "at least 1")),
        (("read", "README.md", "--start", "3", "--end", "1"), ("start", "after end")),
        (("reindex", "docs/none.md"), ("no such",)),
        (("status", "--root", "/nowhere at all"), ("/nowhere at all",)),
        (("serve", "--root", "/nowhere at all"), ("/nowhere at all",)),
    ],
)
def test_an_error_is_one_sentence(root: Path, arguments: tuple[str, ...], named: tuple[str, ...]) -> None:
    said = complaint(*arguments, cwd=root)
    for word in named:
        assert word in said


@pytest.mark.requirement("command-errors")
@pytest.mark.parametrize(
    "setting",
    [
        ("SCREE_MAX_FILE_BYTES", "many"),
        ("SCREE_FIRST_SYNC_MB", "-1"),
        ("SCREE_THREADS", "0"),
        ("CLAUDE_PROJECT_DIR", "/nowhere"),
    ],
)
def test_a_wrong_setting_is_named(root: Path, setting: tuple[str, str]) -> None:
    name, value = setting
    said = complaint("serve", cwd=root, environment={name: value})
    assert name in said
    assert value in said


@pytest.mark.requirement("command-errors")
@pytest.mark.parametrize("arguments", [(), ("nonsense",), ("search", "x", "-k", "many")])
def test_a_wrong_command_line_exits_with_2(root: Path, arguments: tuple[str, ...]) -> None:
    done = scree(*arguments, cwd=root)
    assert (done.returncode, done.stdout) == (2, "")
    assert "usage: scree" in done.stderr
    assert "Traceback" not in done.stderr


def test_help_and_version_need_no_project(tmp_path: Path) -> None:
    for command in ("serve", "watch", "reindex", "search", "read", "status", "ignored", "init"):
        assert command in printed("--help", cwd=tmp_path)
    assert re.fullmatch(r"scree \d+\.\d+\.\d+\S*\n", printed("--version", cwd=tmp_path))


@pytest.mark.requirement("command-errors")
def test_a_terminal_that_cannot_show_a_character_is_no_error(git_repository: Callable[..., GitRepository]) -> None:
    root = git_repository({"snail 🐌.md": "# Snail 🐌\n\nSlow.\n"}).path
    for arguments in (("search", "snail"), ("search", "snail", "--json")):
        done = scree(*arguments, cwd=root, environment={"PYTHONIOENCODING": "latin-1"})
        assert (done.returncode, done.stderr) == (0, "")
        assert "snail" in done.stdout


@pytest.mark.requirement("command-errors")
def test_a_reader_that_goes_away_is_no_error(root: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as pipe:
        done = subprocess.run(
            [*SCREE, "search", "harbour"], cwd=root, stdout=pipe, stderr=subprocess.PIPE, timeout=SECONDS, check=False
        )
    assert done.stderr == b""


# Terminals


def on_terminal(*arguments: str, cwd: Path) -> tuple[str, str]:
    """Run a command whose stderr is a terminal; returns what it wrote to stdout and to the terminal."""
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (24, 80))
    with (
        os.fdopen(master, "rb", buffering=0) as terminal,
        subprocess.Popen([*SCREE, *arguments], cwd=cwd, stdout=subprocess.PIPE, stderr=slave) as process,
    ):
        os.close(slave)
        shown = bytearray()
        # Linux ends a terminal that nobody writes to any more with an error, other systems with nothing.
        with contextlib.suppress(OSError):
            while part := terminal.read(65_536):
                shown += part
        assert process.stdout is not None
        said = process.stdout.read().decode()
        assert process.wait(SECONDS) == 0
    return said, shown.decode()


@pytest.mark.requirement("command-progress")
@pytest.mark.requirement("command-reindex-all")
def test_a_terminal_gets_a_progress_bar_and_nothing_else_does(git_repository: Callable[..., GitRepository]) -> None:
    root = git_repository({f"{n}.md": f"# Page {n}\n\nOn subject {n}.\n" for n in range(40)}).path
    said, shown = on_terminal("reindex", cwd=root)
    assert said == "Scanned 40 notes: 40 indexed, 0 removed, 0 failed, 0 deferred.\n"
    assert "reading" in shown
    assert "embedding" in shown
    assert "/40 [" in shown
    # It leaves an empty line.
    assert shown.endswith("\r")
    said, shown = on_terminal("search", "page 7", "-k", "1", cwd=root)
    assert said.startswith("<hit ")
    assert "embedding" not in shown
    printed("reindex", cwd=root)  # which asserts that stderr stays empty


@pytest.mark.requirement("command-progress")
@pytest.mark.requirement("command-search")
def test_a_search_that_has_to_sync_first_shows_it(git_repository: Callable[..., GitRepository]) -> None:
    root = git_repository({f"{n}.md": f"# Page {n}\n\nOn subject {n}.\n" for n in range(40)}).path
    said, shown = on_terminal("search", "page 7", "-k", "1", cwd=root)
    assert said.startswith("<hit ")
    assert "embedding" in shown


@pytest.mark.requirement("command-reindex-handed-over")
@pytest.mark.requirement("command-progress")
def test_the_progress_of_another_process_is_shown(slow_repository: GitRepository, log: Path) -> None:
    root = slow_repository.path
    # A first sync that goes on for a moment while the command waits for it.
    for number in range(30, SLOW_FILES):
        (root / f"docs/{number}.md").unlink()
    with running("watch", cwd=root, log=log, environment=SLOW):
        eventually(lambda: WriterLease(root / INDEX_FOLDER).holder(), PATIENCE_SECONDS, "the writer")
        said, shown = on_terminal("reindex", cwd=root)
    assert said.startswith("Scanned 30 notes: ")
    assert "embedding" in shown
