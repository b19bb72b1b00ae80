"""Many sessions in one repository: what each costs, how soon one takes over, and whether they disturb each other.

    python -m benchmarks.docs_sessions [--corpus DIR] [--quick]

Real processes, driven line by line. The picture it draws goes to `docs/sessions.svg`.
"""

from __future__ import annotations

import argparse
import compileall
import os
import random
import re
import signal
import statistics
import string
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import scree
from benchmarks.corpus import Markdown, gather, write
from benchmarks.measures import Measure, median, quantile, ratios, reported
from benchmarks.report import progress, store
from benchmarks.served import processor_seconds, seconds_to_import, seconds_to_initialize, serve_command
from scree.docs.lease import INDEX_FOLDER, WriterLease
from tests.processes.mcp_client import found, note
from tests.processes.programs import running
from tests.processes.raw_session import HANDSHAKE, RawSession, answer, call, raw_session

PICTURE = Path(__file__).parents[1] / "docs" / "sessions.svg"

# What is waited for at all is waited for this long.
PATIENCE_SECONDS = 600.0
POLL_SECONDS = 0.005

# How many searches each session has made when its memory is read.
SEARCHES = 5

# A pause between the edits of one editor, at most.
PAUSE_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Plan:
    """What is measured, and how often.

    Attributes:
        corpus: folder of markdown; None takes the documentation inside the installed packages.
        chunks: how many chunks are indexed.
        sessions: how many stand side by side.
        starts: how many starts of a further session.
        edits: how many edits are waited for.
        kills: how many writers are killed.
        stops: how many times the writer is stopped.
        searchers: how many sessions search at once while files are edited.
        editors: how many threads edit.
        work_seconds: for how long.
        idle_seconds: how long idle sessions are watched.
        at_once: how many sessions are started at the same time without an index.
    """

    corpus: Path | None = None
    chunks: int = 5_000
    sessions: int = 30
    starts: int = 20
    edits: int = 50
    kills: int = 20
    stops: int = 10
    searchers: int = 10
    editors: int = 2
    work_seconds: float = 60.0
    idle_seconds: float = 60.0
    at_once: int = 40


QUICK = Plan(None, 40, 3, 1, 2, 1, 1, 2, 1, 0.5, 0.5, 3)


def run() -> Mapping[str, object]:
    """Measure everything with the defaults; prints a table and returns the results."""
    return measure(Plan())


def measure(plan: Plan) -> Mapping[str, object]:
    """Measure everything; prints a table, draws the picture and returns the results."""
    # As an installer leaves it: a process that has to compile what it imports keeps some of what that takes.
    compileall.compile_dir(str(Path(scree.__file__).parent), quiet=2)
    progress("gathering documents ...")
    documents = gather(plan.corpus, plan.chunks)
    with tempfile.TemporaryDirectory(prefix="scree-sessions-") as folder:
        bench = _Bench(plan, Path(folder).resolve(), documents)
        measures = list(bench.measures())
    return {
        "plan": {**asdict(plan), "corpus": None if plan.corpus is None else plan.corpus.name},
        "measures": reported(measures),
        "samples": bench.samples,
    }


class _Bench:
    """One index, and the sessions that come and go around it."""

    def __init__(self, plan: Plan, folder: Path, documents: Sequence[Markdown]) -> None:
        self.samples: dict[str, list[float]] = {}
        self._plan = plan
        self._folder = folder
        self._documents = documents
        self._root = folder / "project"
        self._chance = random.Random(plan.edits)
        self._logs = 0
        write(self._root, documents)

    def measures(self) -> Iterator[Measure]:
        progress("making the index ...")
        with ExitStack() as stack:
            writer = self._session(stack)
            _await(lambda: note(writer.search("what is this", k=1)) is None)
            progress("sessions side by side: memory, idling, edits, starts ...")
            others = [self._session(stack) for _ in range(self._plan.sessions)]
            for other in others:
                for query in self._queries(SEARCHES):
                    other.search(query)
            yield from self._memory(writer, others)
            yield from self._idle(writer, others)
            yield from self._edits(others[0])
        progress("starting ...")
        with ExitStack() as stack:
            self._complete(stack)
            yield from self._starts()
        progress("stopping the writer ...")
        yield from self._stops()
        progress("killing writers ...")
        yield from self._kills()
        progress("working and searching at once ...")
        yield from self._work()
        progress("starting many at once ...")
        yield from self._at_once()

    # Sessions

    def _session(self, stack: ExitStack) -> RawSession:
        self._logs += 1
        command = (serve_command(self._root)[0].replace("scree-mcp", "scree"),)
        log = self._folder / f"log-{self._logs}.txt"
        return stack.enter_context(raw_session(self._root, log, command=command))

    def _complete(self, stack: ExitStack) -> RawSession:
        session = self._session(stack)
        _await(lambda: note(session.search("what is this", k=1)) is None)
        return session

    def _queries(self, count: int) -> list[str]:
        documents = self._chance.choices(self._documents, k=count)
        return [" ".join(document.chunks[0].text.split()[:10]) or "what is this" for document in documents]

    def _holder(self) -> int | None:
        return WriterLease(self._root / INDEX_FOLDER).holder()

    # Measures

    def _memory(self, writer: RawSession, others: Sequence[RawSession]) -> Iterator[Measure]:
        found = [memory(other.pid) for other in others]
        for kind, at_most in (("Rss", 12.0), ("Pss", None), ("Private", None)):
            megabytes = [one[kind] / 1_000_000 for one in found]
            self.samples[f"{kind} of further sessions, MB"] = megabytes
            yield Measure(
                f"{kind} of the largest of {len(others)} further sessions, MB",
                max(megabytes),
                quantile(megabytes, 0.25),
                quantile(megabytes, 0.75),
                len(megabytes),
                at_most=at_most,
            )
        yield Measure("Rss of the writer that serves them, MB", memory(writer.pid)["Rss"] / 1_000_000)

    def _idle(self, writer: RawSession, others: Sequence[RawSession]) -> Iterator[Measure]:
        pids = [writer.pid, *(other.pid for other in others)]
        before = [processor_seconds(pid) or 0.0 for pid in pids]
        time.sleep(self._plan.idle_seconds)
        used = [(processor_seconds(pid) or 0.0) - earlier for pid, earlier in zip(pids, before, strict=True)]
        yield Measure(f"processor seconds of the idle writer in {self._plan.idle_seconds:g} s", used[0], at_most=0.1)
        yield Measure("the same, all further sessions together", sum(used[1:]), at_most=0.01)

    def _edits(self, session: RawSession) -> Iterator[Measure]:
        taken = []
        for _ in range(self._plan.edits):
            time.sleep(self._chance.uniform(0, PAUSE_SECONDS))
            word = "".join(self._chance.choices(string.ascii_lowercase, k=16))
            path = self._root / self._chance.choice(self._documents).path
            with path.open("a", encoding="utf-8") as file:
                file.write(f"\n\nSomebody added {word} here.\n")
            started = time.perf_counter()
            _await(lambda word=word: word in session.search(word, k=1))
            taken.append(time.perf_counter() - started)
        self.samples["seconds from an edit to the search that finds it"] = taken
        yield median("seconds from an edit to the search of another session that finds it, median", taken)
        yield Measure("the same, 95th percentile", quantile(taken, 0.95), samples=len(taken), at_most=1)

    def _starts(self) -> Iterator[Measure]:
        imports, starts = [], []
        for _ in range(1 + self._plan.starts):  # the first of each reads from the disk what the others find in memory
            imports.append(seconds_to_import("mcp"))
            starts.append(seconds_to_initialize(self._root))
        yield median("seconds that the SDK's import takes", imports[1:])
        yield median(
            "start of a further session to answered initialize / the SDK's import",
            ratios(starts[1:], imports[1:]),
            at_most=0.3,
        )

    def _stops(self) -> Iterator[Measure]:
        answered, recovered = [], []
        with ExitStack() as stack:
            writer = self._complete(stack)
            other = self._session(stack)
            for _ in range(self._plan.stops):
                os.kill(writer.pid, signal.SIGSTOP)
                started = time.perf_counter()
                response = other.search("what is this")
                answered.append(time.perf_counter() - started)
                if not found(response) or "does not answer" not in (note(response) or ""):
                    raise RuntimeError(f"It should have answered with the note, but said: {response!r}")
                os.kill(writer.pid, signal.SIGCONT)
                started = time.perf_counter()
                _await(lambda: note(other.search("what is this")) is None)
                recovered.append(time.perf_counter() - started)
        self.samples["seconds to an answer while the writer is stopped"] = answered
        yield Measure("seconds to an answer while the writer is stopped, longest", max(answered), at_most=3)
        yield median("seconds until searches come without the note again", recovered)

    def _kills(self) -> Iterator[Measure]:
        taken, answered = [], []
        with ExitStack() as stack:
            alive = {session.pid: session for session in (self._complete(stack), self._session(stack))}
            for _ in range(self._plan.kills):
                alive |= {(session := self._session(stack)).pid: session}
                time.sleep(self._chance.uniform(0, PAUSE_SECONDS))
                holder = self._holder()
                if holder is None:
                    raise RuntimeError("Nobody writes.")
                victim = alive.pop(holder)
                asked = [(session, session.ask("search_docs", query="what is this")) for session in alive.values()]
                started = time.perf_counter()
                victim.program.kill()
                _await(lambda holder=holder: self._holder() not in (None, holder))
                taken.append(time.perf_counter() - started)
                for session, number in asked:
                    session.text(number)
                answered.append(time.perf_counter() - started)
                kept = self._holder()
                for pid in [pid for pid in alive if pid != kept][1:]:
                    alive.pop(pid).program.kill()
        self.samples["seconds from the end of a writer to the next"] = taken
        self.samples["seconds from the end of a writer to an answer"] = answered
        yield Measure("seconds from the end of a writer to the next, longest", max(taken), at_most=6)
        yield median("seconds from the end of a writer until all open searches are answered", answered)

    def _work(self) -> Iterator[Measure]:
        with ExitStack() as stack:
            sessions = [self._complete(stack), *(self._session(stack) for _ in range(self._plan.searchers - 1))]
            quiet = [seconds for _ in range(10) for seconds in _timed_searches(sessions[0], self._queries(10))]
            stop = threading.Event()
            busy: list[float] = []
            errors: list[BaseException] = []

            def search(session: RawSession, queries: Sequence[str]) -> None:
                try:
                    while not stop.is_set():
                        busy.extend(_timed_searches(session, queries))
                except BaseException as error:  # noqa: BLE001 - counted
                    errors.append(error)

            def edit(seed: int) -> None:
                chance = random.Random(seed)
                while not stop.wait(chance.uniform(0, PAUSE_SECONDS)):
                    path = self._root / chance.choice(self._documents).path
                    path.write_text(chance.choice(self._documents).text + f"\n\nEdit {chance.random()}.\n", "utf-8")

            threads = [
                *(threading.Thread(target=search, args=(session, self._queries(10))) for session in sessions),
                *(threading.Thread(target=edit, args=(number,)) for number in range(self._plan.editors)),
            ]
            for thread in threads:
                thread.start()
            time.sleep(self._plan.work_seconds)
            stop.set()
            for thread in threads:
                thread.join()
        self.samples["ms of a search on a quiet index"] = [1_000 * seconds for seconds in quiet]
        self.samples["ms of a search while files are edited"] = [1_000 * seconds for seconds in busy]
        work = f"{self._plan.searchers} sessions search and {self._plan.editors} threads edit"
        yield Measure(f"errors while {work}", float(len(errors)), samples=len(busy), at_most=0)
        yield median("ms of a search on a quiet index, median", [1_000 * seconds for seconds in quiet])
        yield median(f"ms of a search while {work}, median", [1_000 * seconds for seconds in busy])
        yield Measure(
            "slowest search then / median on a quiet index",
            max(busy) / statistics.median(quiet),
            samples=len(busy),
            at_most=20,
        )

    def _at_once(self) -> Iterator[Measure]:
        root = self._folder / "small"
        write(root, self._documents[:20])
        started = time.perf_counter()
        with ExitStack() as stack:
            logs = [self._folder / f"at-once-{number}.txt" for number in range(self._plan.at_once)]
            command = (serve_command(root)[0].replace("scree-mcp", "scree"),)
            programs = [stack.enter_context(running("serve", cwd=root, log=log, command=command)) for log in logs]
            for program in programs:
                program.send(*HANDSHAKE, call(2, "search_docs", query="what is this", mode="keyword"))
            wrong = sum("error" in answer(program, number) for program in programs for number in (1, 2))
            taken = time.perf_counter() - started
            wrong += sum(bool(log.read_text()) for log in logs)
        yield Measure(f"errors when {self._plan.at_once} sessions start at once without an index", wrong, at_most=0)
        yield Measure("seconds until all of them have answered", taken)


def memory(pid: int) -> dict[str, int]:
    """Return `Rss`, `Pss` and `Private` of a process in bytes, from proc(5)."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    fields = {name: int(size) * 1024 for name, size in re.findall(r"^(\w+):\s+(\d+) kB$", text, re.MULTILINE)}
    return {"Rss": fields["Rss"], "Pss": fields["Pss"], "Private": fields["Private_Clean"] + fields["Private_Dirty"]}


def draw(samples: Mapping[str, Sequence[float]], path: Path) -> None:
    """Draw how the samples are distributed, a panel each."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "scree"  # the same numbers give the same file
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(len(samples), figsize=(7, 1.1 * len(samples)), layout="constrained")
    for axis, (what, values) in zip(axes, samples.items(), strict=True):
        ordered = sorted(values)
        axis.plot(ordered, [100 * (place + 1) / len(ordered) for place in range(len(ordered))], drawstyle="steps-post")
        axis.set_title(f"{what} ({len(ordered)})", fontsize="small", loc="left")
        axis.set_ylim(0, 101)
        axis.set_xlim(0, max(ordered) * 1.05)
        axis.set_ylabel("%", fontsize="small")
        axis.tick_params(labelsize="small")
        axis.grid(visible=True, linewidth=0.3)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


def _timed_searches(session: RawSession, queries: Sequence[str]) -> Iterator[float]:
    for query in queries:
        started = time.perf_counter()
        session.search(query)
        yield time.perf_counter() - started


def _await(look: object) -> None:
    assert callable(look)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not look():
        if time.monotonic() > deadline:
            raise TimeoutError("What was waited for did not come.")
        time.sleep(POLL_SECONDS)


def main() -> int:
    """Measure what the command line asks for, store it and draw it."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.docs_sessions", description="Measure many sessions of scree in one repository."
    )
    parser.add_argument("--corpus", type=Path, metavar="DIR", help="a folder with markdown (default: installed docs)")
    parser.add_argument(
        "--quick", action="store_true", help="tiny and meaningless: try whether it runs; stores nothing"
    )
    options = parser.parse_args()
    results = measure(replace(QUICK if options.quick else Plan(), corpus=options.corpus))
    samples = results["samples"]
    assert isinstance(samples, dict)
    if options.quick:
        return 0
    print(f"stored in {store('docs-sessions', results)}")
    draw(samples, PICTURE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
