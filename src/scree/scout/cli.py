"""The `micro-scout` program: its commands, one small function each, nothing heavy imported before it is needed.

Standard output carries JSON or MCP and nothing else. A failure, of usage too, is one JSON line on standard error.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from scree import __version__
from scree.errors import ArgumentError, RootError, ScreeError

# The pipeline of `scree.training`, imported only when it is asked for: it needs more than serving does.
TRAINING = ("data", "train", "evaluate", "export")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the command line asks for; returns the exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        if given[:1] and given[0] in TRAINING:
            return _train(given)
        options = _parser().parse_args(given)
        result = options.run(options)
        if result is not None:
            # Text from a file name may hold what is no UTF-8.
            sys.stdout.buffer.write(json.dumps(result, indent=2).encode() + b"\n")
        sys.stdout.flush()
    except ScreeError as error:
        print(json.dumps({"error": str(error), "type": type(error).__name__}), file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader of our output went away, as `head` does; Python would complain again on exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    return 0


def _train(arguments: Sequence[str]) -> int:
    """Hand a command of the training pipeline on to it."""
    try:
        training = import_module("scree.training.cli")
    except ModuleNotFoundError as error:
        raise ArgumentError(
            f'The command "{arguments[0]}" needs the module {error.name}, which comes with the extra "train".'
        ) from error
    status: int = training.main(arguments)
    return status


class _Parser(argparse.ArgumentParser):
    """Reports a wrong command line like any other failure."""

    def error(self, message: str) -> NoReturn:
        """Raise what argparse would print."""
        raise ArgumentError(f"{message}; see {self.prog} --help")


def _parser() -> argparse.ArgumentParser:
    from scree.scout.arguments import DEFAULT_CHARS, DEFAULT_RESULTS, MODES
    from scree.scout.models import DEVICES

    parser = _Parser(prog="micro-scout", description="Verified code search over a snapshot of a repository.")
    parser.add_argument("--version", action="version", version=f"micro-scout {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def command(name: str, run: object, text: str, *, index: bool = True) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        if index:
            sub.add_argument(
                "--index",
                metavar="FILE",
                default=".micro-scout/index.sqlite",
                help="the index file (default: .micro-scout/index.sqlite in this folder)",
            )
        sub.set_defaults(run=run)
        return sub

    def with_model(sub: argparse.ArgumentParser, default: str) -> None:
        sub.add_argument("--model", metavar="M", help=f"builtin, none or an encoder's folder (default: {default})")
        sub.add_argument("--device", choices=DEVICES, default=DEVICES[0], help="what the model runs on")

    sub = command("index", _index, "build the snapshot of a tree, or bring it up to date", index=False)
    sub.add_argument("root", metavar="ROOT", help="the folder to index")
    sub.add_argument("--output", metavar="FILE", help="the index file (default: ROOT/.micro-scout/index.sqlite)")
    with_model(sub, "builtin")
    sub.add_argument("--threads", type=int, metavar="N", help="cores the model uses (default: all, at most 4)")
    sub.add_argument("--max-symbols", type=int, metavar="N", default=500_000, help="stop beyond so many (500,000)")
    sub = command("search", _search, "search once")
    sub.add_argument("query", metavar="QUERY", help="what the code does, or what it is called")
    with_model(sub, "the index's own")
    sub.add_argument("--mode", metavar="M", help=f"{', '.join(MODES)} (default: the model's)")
    sub.add_argument("--top-k", type=int, default=DEFAULT_RESULTS, metavar="N", help="how many results at most")
    sub.add_argument("--max-chars", type=int, default=DEFAULT_CHARS, metavar="N", help="source characters at most")
    sub.add_argument("--language", metavar="L", help="only this language")
    sub.add_argument("--include-docs", action="store_true", help="prose, too")
    sub.add_argument("--no-expand", action="store_true", help="no neighbours in the call graph")
    sub.add_argument("--trace", metavar="FILE", help="append what was asked and returned to this file")
    sub = command("read", _read, "print one symbol, checked against the disk again")
    sub.add_argument("id", metavar="ID", help="as a search gave it")
    sub.add_argument("--max-chars", type=int, default=DEFAULT_CHARS, metavar="N", help="source characters at most")
    command("status", _status, "describe the index")
    sub = command("serve", _serve, "serve the tools over MCP on stdio")
    with_model(sub, "the index's own")
    sub.add_argument("--threads", type=int, metavar="N", help="cores the model uses")
    sub.add_argument("--trace", metavar="FILE", help="append what was asked and returned to this file")
    sub = command("benchmark", _benchmark, "measure warm searches on this index")
    with_model(sub, "the index's own")
    sub.add_argument("--iterations", type=int, default=100, metavar="N", help="how many searches")
    sub.add_argument("--queries", metavar="FILE", help="one query a line (default: names from the index)")
    sub.add_argument("--output", metavar="FILE", help="write the result there, too")
    for name in TRAINING:
        commands.add_parser(name, help="part of training an encoder; see its own --help")
    return parser


def _index(options: argparse.Namespace) -> dict[str, Any]:
    from dataclasses import asdict

    from scree.core.encoder import BUILTIN, load_encoder
    from scree.core.progress import progress_bar
    from scree.scout.building import Model, build
    from scree.scout.models import NONE, model_name
    from scree.scout.snapshot import INDEX_FOLDER, INDEX_NAME

    _at_least_one(options, "threads", "max_symbols")
    root = Path(options.root)
    if not root.is_dir():
        raise RootError(f'"{options.root}" is not a folder; name the one that holds the code.')
    root = root.resolve()
    output = Path(options.output).absolute() if options.output else root / INDEX_FOLDER / INDEX_NAME
    name = BUILTIN if options.model is None else options.model
    model = None if name == NONE else Model(model_name(name), load_encoder(name, threads=options.threads))
    with progress_bar({"indexing": "files"}) as progress:
        facts = build(root, output, model, options.max_symbols, progress)
    return {"index": str(output), **asdict(facts)}


def _search(options: argparse.Namespace) -> dict[str, Any]:
    from scree.scout.service import Service

    service = Service(Path(options.index), options.model, _trace(options))
    raw = {name: getattr(options, name) for name in ("query", "top_k", "max_chars", "language", "include_docs", "mode")}
    return service.search(raw, expand=not options.no_expand)


def _read(options: argparse.Namespace) -> dict[str, Any]:
    from scree.scout.models import NONE
    from scree.scout.service import Service

    raw = {"symbol_id": options.id, "max_chars": options.max_chars}
    return Service(Path(options.index), NONE).read(raw)


def _status(options: argparse.Namespace) -> dict[str, Any]:
    from scree.scout.service import Service

    return Service(Path(options.index), None).status()


def _serve(options: argparse.Namespace) -> None:
    # Standard output is the protocol's; whatever a library prints goes to standard error.
    output = os.dup(1)
    os.dup2(2, 1)
    from scree.scout.service import Service

    _at_least_one(options, "threads")
    trace = _trace(options)
    service = Service(Path(options.index), options.model, trace, threads=options.threads)
    from scree.scout.mcp_server import serve

    serve(service, output, feedback=trace is not None)


def _benchmark(options: argparse.Namespace) -> dict[str, Any]:
    from scree.scout.benchmark import benchmark

    _at_least_one(options, "iterations")
    queries = Path(options.queries) if options.queries else None
    return benchmark(
        Path(options.index),
        options.model,
        options.iterations,
        queries,
        Path(options.output) if options.output else None,
    )


def _trace(options: argparse.Namespace) -> Any:
    from scree.scout.traces import Trace

    return Trace(Path(options.trace)) if options.trace else None


def _at_least_one(options: argparse.Namespace, *names: str) -> None:
    for name in names:
        value = getattr(options, name)
        if value is not None and value < 1:
            raise ArgumentError(f"--{name.replace('_', '-')} must be a whole number of at least 1, not {value}.")


if __name__ == "__main__":
    sys.exit(main())
