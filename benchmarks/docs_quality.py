"""How well scree finds pages: its three modes through its own index and search, beside two plain baselines.

    python -m benchmarks.docs_quality [--sets DIR] [--work DIR]

The evaluation sets lie in a folder beside the project (`../shared/evals`), with a README of their own. The documents of
each repository become a git repository of their own, are indexed by scree, and every question is searched there.

- Page MRR: the reciprocal rank of the first right page, averaged, pages standing in the order of their first hit. Ranks
  are taken from the 50 hits that a search returns at most; a page that is not among them counts 0.
- Section MRR: the same for the first hit that lies in a right section.
- Hit@5: the share of queries with a right document among the first five.
- Baselines: the best chunk of a page by BM25 over headings and text as one, and by cosine similarity alone.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
import sqlite3
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.report import progress, store, table
from scree.core.lexical_index import LexicalIndex
from scree.docs.arguments import MAX_HITS, MODES, SearchArguments
from scree.docs.session import Session
from scree.docs.settings import Settings
from scree.docs.store import Store, chunk_context, index_path
from scree.docs.sync import silent
from scree.docs.vectors import EmbeddingMatrix

SETS = Path(__file__).resolve().parents[2] / "shared" / "evals"

BASELINES = ("bm25-best-chunk", "cosine-best-chunk")
WAYS = (*MODES, *BASELINES)

# The goals the project has set itself, page MRR of hybrid search.
GOALS = {"docs-questions": 0.66, "docs-sites": 0.76}
HITS_AT = 5


@dataclass(frozen=True, slots=True)
class Question:
    """A query and what answers it.

    Attributes:
        pool: the name of the repository to search in.
        text: the query.
        pages: paths of the right pages.
        sections: `(path, heading)` of the right sections; empty where nobody has said.
        kind: what the set says about the question.
    """

    pool: str
    text: str
    pages: frozenset[str]
    sections: frozenset[tuple[str, str]]
    kind: str


@dataclass(frozen=True, slots=True)
class EvaluationSet:
    """Questions, and the documents of each pool: text by path."""

    pools: dict[str, dict[str, str]]
    questions: list[Question]


def docs_questions(sets: Path) -> EvaluationSet:
    """Read `docs-questions`: questions of users, each searched in its own repository."""
    folder = sets / "docs-questions"
    pools: dict[str, dict[str, str]] = defaultdict(dict)
    for line in _lines(folder / "corpus.jsonl.gz"):
        document = json.loads(line)
        pools[document["meta"]["repo"]][document["meta"]["path"]] = document["text"]
    pages, sections = defaultdict(set), defaultdict(set)
    for line in _lines(folder / "qrels-pages.tsv")[1:]:
        query, document, _ = line.split("\t")
        pages[query].add(document.partition(":")[2])
    for line in _lines(folder / "qrels-sections.tsv")[1:]:
        query, document, _ = line.split("\t")
        path, _, heading = document.partition(":")[2].partition("#")
        sections[query].add((path, heading))
    questions = [
        Question(
            query["meta"]["repo"],
            query["text"],
            frozenset(pages[query["id"]]),
            frozenset(sections[query["id"]]),
            query["meta"]["evidence"],
        )
        for query in map(json.loads, _lines(folder / "queries.jsonl"))
    ]
    return EvaluationSet(pools, questions)


def docs_sites(sets: Path) -> EvaluationSet:
    """Read `docs-sites`: short queries over the pages of two sites together; every grade counts as right."""
    folder = sets / "docs-sites"
    documents = map(json.loads, _lines(folder / "corpus.jsonl.gz"))
    questions = [
        Question(
            "sites",
            query["text"],
            frozenset(judged["path"] for judged in query["qrels"]),
            frozenset(),
            query["intent"],
        )
        for query in map(json.loads, _lines(folder / "queries.jsonl"))
    ]
    return EvaluationSet({"sites": {document["id"]: document["text"] for document in documents}}, questions)


def cjk_lexical(sets: Path) -> EvaluationSet:
    """Read `cjk-lexical`: words in Chinese, Japanese and Korean, over the documents of all three."""
    folder = sets / "cjk-lexical"
    texts = {
        path.relative_to(folder / "corpus").as_posix(): path.read_text("utf-8")
        for path in sorted((folder / "corpus").rglob("*.md"))
    }
    right = defaultdict(set)
    for judged in json.loads((folder / "qrels.json").read_text("utf-8"))["judgments"]:
        if judged["relevance"] > 0:
            right[judged["queryId"]].add(judged["docid"])
    questions = [
        Question("cjk", query["query"], frozenset(right[query["id"]]), frozenset(), query["language"])
        for query in json.loads((folder / "queries.json").read_text("utf-8"))
    ]
    return EvaluationSet({"cjk": texts}, questions)


@dataclass(frozen=True, slots=True)
class Found:
    """One hit: where its text stands, and the headings above it."""

    paths: tuple[str, ...]
    headings: frozenset[str]


Search = Callable[[str], list[Found]]


@contextlib.contextmanager
def searchable(root: Path, documents: Mapping[str, str]) -> Iterator[dict[str, Search]]:
    """Make `documents` a repository at `root`, index it, and give a search function for each way."""
    for path, text in documents.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(text.encode("utf-8", "surrogatepass"))
    subprocess.run(["git", "init", "--quiet", root], check=True)
    # What git tracks is indexed even in a folder called `build`.
    subprocess.run(["git", "-C", root, "add", "--all", "--force", "--", "."], check=True)
    session = Session(root, Settings())
    session.reindex_now(None, silent)
    left_out = sorted(documents.keys() - {path for path, _ in session.status().files})
    if left_out:
        progress(f"not indexed: {', '.join(left_out)}")

    def by_mode(mode: str) -> Search:
        def search(query: str) -> list[Found]:
            hits, _ = session.search(SearchArguments.checked({"query": query, "k": MAX_HITS, "mode": mode}))
            return [
                Found((hit.location.path, *(also.path for also in hit.also)), _headings(hit.trail, hit.text))
                for hit in hits
            ]

        return search

    with contextlib.closing(Baselines(root, session)) as baselines:
        yield {mode: by_mode(mode) for mode in MODES} | {
            "bm25-best-chunk": baselines.by_words,
            "cosine-best-chunk": baselines.by_meaning,
        }


class Baselines:
    """Chunks in the order of one plain score, from scree's own chunks and embeddings."""

    def __init__(self, root: Path, session: Session) -> None:
        encoder = session.encoder()
        self._encode = encoder.encode_query
        self._store = Store.reader(index_path(root))
        self._embeddings = EmbeddingMatrix(encoder.dimension)
        encoder_id = self._store.encoder_id(encoder.fingerprint)
        assert encoder_id is not None
        with self._store.view():
            self._embeddings.update(self._store, encoder_id)
        memory = sqlite3.connect(":memory:")
        memory.executescript(LexicalIndex.CREATE)
        self._words = LexicalIndex(memory)
        for chunk in self._store.chunks(self._embeddings.chunk_ids.tolist()):
            self._words.add(chunk.id, 0, heading="", body=f"{chunk_context('', chunk.trail)}\n{chunk.text}")
        self._words.update()

    def close(self) -> None:
        """Close the index."""
        self._store.close()

    def by_words(self, query: str) -> list[Found]:
        """Return the best chunks by BM25 over headings and text."""
        return self._best(self._words.chunk_ids, self._words.scores(query))

    def by_meaning(self, query: str) -> list[Found]:
        """Return the best chunks by cosine similarity."""
        return self._best(self._embeddings.chunk_ids, self._embeddings.best_windows(self._encode(query)))

    def _best(self, chunk_ids: NDArray[np.int64], scores: NDArray[np.float32]) -> list[Found]:
        order = np.argsort(-scores, kind="stable")[:MAX_HITS]
        chunks = self._store.chunks(chunk_ids[order].tolist())
        return [Found((chunk.path,), _headings(chunk.trail, chunk.text)) for chunk in chunks]


def page_rank(found: Iterable[Found], pages: frozenset[str]) -> float:
    """Return the reciprocal rank of the first right page, 0 without one."""
    seen: set[str] = set()
    for hit in found:
        if not pages.isdisjoint(hit.paths):
            return 1 / (len(seen) + 1)
        seen.add(hit.paths[0])
    return 0.0


def section_rank(found: Iterable[Found], sections: frozenset[tuple[str, str]]) -> float:
    """Return the reciprocal rank of the first hit in a right section, 0 without one."""
    right = {(path, _plain(heading)) for path, heading in sections}
    for rank, hit in enumerate(found, start=1):
        if any((path, heading) in right for path in hit.paths for heading in hit.headings):
            return 1 / rank
    return 0.0


def evaluate(name: str, wanted: EvaluationSet, work: Path) -> dict[str, dict[str, list[tuple[Question, list[Found]]]]]:
    """Search every question in every way: hits by way, then by pool."""
    results: dict[str, dict[str, list[tuple[Question, list[Found]]]]] = {way: {} for way in WAYS}
    for pool, documents in wanted.pools.items():
        progress(f"{name}: {pool}, {len(documents)} documents")
        with searchable(work / name / pool.replace("/", "-"), documents) as ways:
            for way, search in ways.items():
                asked = [question for question in wanted.questions if question.pool == pool]
                results[way][pool] = [(question, search(question.text)) for question in asked]
    return results


def measure(sets: Path, work: Path) -> dict[str, object]:
    """Evaluate every set, print the tables, and return the numbers."""
    results: dict[str, object] = {}
    for name, read in (("docs-questions", docs_questions), ("docs-sites", docs_sites)):
        hits = evaluate(name, read(sets), work)
        ranks = {
            way: [
                (question, page_rank(found, question.pages), section_rank(found, question.sections))
                for answers in hits[way].values()
                for question, found in answers
            ]
            for way in WAYS
        }
        kinds = sorted({question.kind for question, _, _ in ranks[WAYS[0]]})
        pools = sorted({question.pool for question, _, _ in ranks[WAYS[0]]})
        numbers = {
            way: {
                "page MRR": _mean(page for _, page, _ in rows),
                "section MRR": _mean(section for question, _, section in rows if question.sections),
                "by kind": {kind: _mean(page for question, page, _ in rows if question.kind == kind) for kind in kinds},
                "by pool": {pool: _mean(page for question, page, _ in rows if question.pool == pool) for pool in pools},
            }
            for way, rows in ranks.items()
        }
        counts = {kind: sum(question.kind == kind for question, _, _ in ranks[WAYS[0]]) for kind in kinds}
        print(f"\n{name}: {len(ranks[WAYS[0]])} questions, goal for hybrid {GOALS[name]:.2f}")
        heading = ["", "page MRR", "section MRR", *(f"{kind} ({counts[kind]})" for kind in kinds)]
        print(table([heading, *([way, *_cells(numbers[way], kinds)] for way in WAYS)]))
        results[name] = {"goal": GOALS[name], "questions": counts, "ways": numbers}
    results["cjk-lexical"] = _measure_cjk(sets, work)
    return results


def _measure_cjk(sets: Path, work: Path) -> dict[str, float | None]:
    hits = evaluate("cjk-lexical", cjk_lexical(sets), work)["keyword"]["cjk"]
    by_language: dict[str, list[bool]] = defaultdict(list)
    for question, found in hits:
        by_language[question.kind].append(page_rank(found, question.pages) >= 1 / HITS_AT)
    shares = {language: _mean(map(float, right)) for language, right in sorted(by_language.items())}
    print(f"\ncjk-lexical: Hit@{HITS_AT} of keyword search")
    print(table([list(shares), list(shares.values())]))
    return shares


def _cells(numbers: Mapping[str, object], kinds: Sequence[str]) -> list[object]:
    by_kind = numbers["by kind"]
    assert isinstance(by_kind, dict)
    return [numbers["page MRR"], numbers["section MRR"], *(by_kind[kind] for kind in kinds)]


def _mean(values: Iterable[float]) -> float | None:
    """Return the mean; None of nothing."""
    held = list(values)
    return sum(held) / len(held) if held else None


def _headings(trail: Iterable[str], text: str) -> frozenset[str]:
    """Return the headings above a chunk and those inside it, as `_plain` text."""
    inside = (line.lstrip("#") for line in text.splitlines() if line.startswith("#"))
    return frozenset(_plain(heading) for heading in (*trail, *inside))


def _plain(heading: str) -> str:
    """Return a heading without the marks of markdown that the sets keep and a trail does not."""
    return heading.replace("`", "").strip()


def _lines(path: Path) -> list[str]:
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8").removesuffix("\n").split("\n")


def run() -> dict[str, object]:
    """Evaluate the sets where they lie; the name `python -m benchmarks` knows."""
    if not SETS.is_dir():
        progress(f"docs-quality: there are no evaluation sets at {SETS}")
        return {}
    with tempfile.TemporaryDirectory() as work:
        return measure(SETS, Path(work))


def main() -> int:
    """Evaluate what the command line asks for and store it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.docs_quality", description="Measure scree's ranking.")
    parser.add_argument("--sets", type=Path, default=SETS, metavar="DIR", help="the evaluation sets (%(default)s)")
    parser.add_argument("--work", type=Path, metavar="DIR", help="keep the indexes here, and use what is there")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        work = options.work or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        results = measure(options.sets.resolve(), work.resolve())
    print(f"stored in {store('docs-quality', results)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
