"""The commands of `scree`: one small function each, nothing heavy imported before it is needed."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING

from scree import __version__
from scree.core.files import find_root
from scree.docs.arguments import DEFAULT_HITS, MAX_HITS, MODES, ReadArguments, SearchArguments
from scree.docs.settings import Settings
from scree.errors import ScreeError

if TYPE_CHECKING:
    from scree.docs.session import Session


def run(arguments: Sequence[str], root_to: int | None = None) -> int:
    """Run one command; returns the exit status.

    Args:
        arguments: of the command line, the command's name first.
        root_to: for `serve`, a descriptor to write the root to in place of serving it.
    """
    options = _parser().parse_args(arguments, argparse.Namespace(root_to=root_to))
    if isinstance(sys.stdout, TextIOWrapper):
        # A terminal that cannot show a character is no reason to show nothing.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        status: int = options.run(options)
        sys.stdout.flush()
    except ScreeError as error:
        print(f"scree: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader of our output went away, as `head` does; Python would complain again on exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="scree", description="Search a project's markdown by meaning, from a terminal or, over MCP, from an agent."
    )
    parser.add_argument("--version", action="version", version=f"scree {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def command(name: str, run: object, text: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        sub.add_argument("--root", metavar="DIR", help="the project folder (default: the git top level of this one)")
        sub.set_defaults(run=run)
        return sub

    command("serve", _serve, "serve the tools over MCP on stdio; keeps the index current if no other process does")
    command("watch", _watch, "keep the index current without serving, logging each change")
    sub = command("reindex", _reindex, "bring the index up to date now, whatever its size")
    sub.add_argument("path", nargs="?", metavar="PATH", help="one file (default: the whole project)")
    sub = command("search", _search, "search once")
    sub.add_argument("query", metavar="QUERY", help="what you want to know")
    sub.add_argument("-k", type=int, default=DEFAULT_HITS, metavar="N", help=f"how many hits, 1 to {MAX_HITS}")
    sub.add_argument("--mode", default="hybrid", metavar="M", help=f"{', '.join(MODES)} (default: hybrid)")
    sub.add_argument("--json", action="store_true", help="print JSON")
    sub = command("read", _read, "print a document, or some of its lines, as an agent sees it")
    sub.add_argument("path", metavar="PATH", help="the path as a hit gave it, relative to the project folder")
    sub.add_argument("--start", type=int, metavar="A", help="first line, 1-based")
    sub.add_argument("--end", type=int, metavar="B", help="last line, inclusive")
    sub = command("status", _status, "describe the index: what is in it, what is skipped and why, who writes it")
    sub.add_argument("--json", action="store_true", help="print JSON")
    sub = command(
        "ignored", _ignored, "say whether a path is ignored, and why; exits 0 if it is, 1 if not, 2 on errors"
    )
    sub.add_argument("path", metavar="PATH", help="a path, existing or not")
    sub = command("init", _init, "opt the project in: add scree to its .mcp.json")
    sub.add_argument("--remove", action="store_true", help="opt the project out")
    return parser


def _session(options: argparse.Namespace) -> Session:
    from scree.docs.session import Session

    return Session(find_root(options.root, os.environ, Path.cwd()), Settings.from_environment(os.environ))


def _serve(options: argparse.Namespace) -> int:
    root = find_root(options.root, os.environ, Path.cwd())
    Settings.from_environment(os.environ)  # a wrong one is not to show only when this session comes to write
    os.write(options.root_to, os.fsencode(root))
    return 0


def _watch(options: argparse.Namespace) -> int:
    from scree.docs.host import watch

    watch(find_root(options.root, os.environ, Path.cwd()))
    return 0


def _reindex(options: argparse.Namespace) -> int:
    from scree.docs.progress import progress_bar

    session = _session(options)
    path = None if options.path is None else _relative(session.root, options)
    with progress_bar() as progress:
        line = session.reindex_now(path, progress)
    print(line)
    return 0


def _search(options: argparse.Namespace) -> int:
    from scree.docs.progress import progress_bar
    from scree.docs.render import hits_as_json, render_hits

    arguments = SearchArguments.checked({"query": options.query, "k": options.k, "mode": options.mode})
    session = _session(options)
    with progress_bar() as progress:
        session.catch_up(progress)
    hits, note = session.search(arguments)
    if options.json:
        print(json.dumps(hits_as_json(hits, note), ensure_ascii=False, indent=2))
    else:
        print(render_hits(hits, note))
    return 0


def _read(options: argparse.Namespace) -> int:
    raw = {"path": options.path, "start": options.start, "end": options.end}
    print(_session(options).read(ReadArguments.checked(raw)))
    return 0


def _status(options: argparse.Namespace) -> int:
    status = _session(options).status()
    if options.json:
        print(json.dumps(status.as_json(), ensure_ascii=False, indent=2))
    else:
        print(status.as_text())
    return 0


def _ignored(options: argparse.Namespace) -> int:
    session = _session(options)
    reason = session.ignore_reason(_relative(session.root, options))
    print("not ignored" if reason is None else f"ignored: {reason}")
    return 1 if reason is None else 0


def _init(options: argparse.Namespace) -> int:
    from scree.core.database import protect_folder
    from scree.docs.client_config import CONFIG_NAME, add_entry, remove_entry
    from scree.docs.lease import INDEX_FOLDER

    root = find_root(options.root, os.environ, Path.cwd())
    if options.remove:
        removed = remove_entry(root)
        print(
            f'Removed scree from "{root / CONFIG_NAME}".' if removed else f'scree is not in "{root / CONFIG_NAME}".',
            f'The index stays in "{root / INDEX_FOLDER}"; delete that folder if you do not want it.',
        )
        return 0
    protect_folder(root / INDEX_FOLDER)
    added = add_entry(root, _server_command())
    print(f'Added scree to "{root / CONFIG_NAME}".' if added else f'scree is already in "{root / CONFIG_NAME}".')
    print("A client that reads that file, such as Claude Code, starts scree in its next session here.")
    return 0


def _server_command() -> str:
    """Return what starts the server: its name where the PATH leads to this installation, else its full path."""
    import shutil

    beside = Path(sys.argv[0]).absolute().parent / "scree-mcp"
    found = shutil.which("scree-mcp")
    if found is None or (beside.exists() and Path(found).resolve() != beside.resolve()):
        return str(beside)
    return "scree-mcp"


def _relative(root: Path, options: argparse.Namespace) -> str:
    """Return a path typed in a terminal relative to the root: it is meant from here, or with --root from there."""
    base = root if options.root else Path.cwd()
    path = Path(os.path.normpath(base / options.path))
    # What lies outside is refused later, in the words of the contract.
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(options.path)
