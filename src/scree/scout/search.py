"""Rank the candidates of a snapshot, check what is returned against the disk, and cut it to the budget.

The disk is right: nothing is returned of a file that is not, byte for byte, the one that was indexed. Writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scree.core.arguments import shown as shown_value
from scree.core.encoder import Encoder
from scree.core.lexical import terms
from scree.core.lexical_index import add_scores, length_norms, term_numbers
from scree.core.printable import printable
from scree.core.ranking import Spread, hybrid_scores, keyword_scores, semantic_scores
from scree.core.vectors import UnitRows
from scree.errors import ArgumentError, ChangedFileError, NotFoundError
from scree.scout.analysis import FRAGMENT
from scree.scout.arguments import Mode, ReadArguments, SearchArguments
from scree.scout.languages import DOCS
from scree.scout.postings import naming_numbers
from scree.scout.render import allot, fitting
from scree.scout.snapshot import Entry, Relation, Snapshot
from scree.scout.verification import Disk, KnownLines, Snippet, cut

# The contract's.
MAX_NEIGHBOURS = 3

# What a candidate in a test counts, unless the query asks for tests. On the one set for code .5 and .7 do as well.
TEST_WEIGHT = 0.5
TEST_WORDS = frozenset({"test", "tests", "testing", "spec", "specs"})

# Warnings of a kind beyond these are counted.
MAX_WARNINGS = 20


@dataclass(frozen=True, slots=True)
class Ranked:
    """A candidate as it was ranked.

    Attributes:
        place: among those that were ranked.
        position: in the snapshot.
        score: it goes by.
        bm25: None if words play no part.
        cosine: None if meaning plays no part, or there is no embedding.
    """

    place: int
    position: int
    score: float
    bm25: float | None
    cosine: float | None


class Searcher:
    """Searches one snapshot. Use one instance from one thread at a time."""

    def __init__(self, snapshot: Snapshot) -> None:
        """Prepare to search an open snapshot; nothing is read yet."""
        self.snapshot = snapshot
        self._known = KnownLines()
        self._norms: NDArray[np.float32] | None = None
        self._vectors: tuple[NDArray[np.int64], UnitRows] | None = None

    def search(self, arguments: SearchArguments, mode: Mode, encoder: Encoder | None = None) -> dict[str, Any]:
        """Answer a query: `results`, `neighbors`, `warnings` and `returned_chars` of a response.

        Args:
            arguments: of the search.
            mode: what counts.
            encoder: the one the snapshot was built with; only words count without it.

        Raises:
            ArgumentError: the mode needs an encoder and there is none.
            DamagedIndexError: the index cannot be trusted.
        """
        if mode != "lexical" and encoder is None:
            raise ArgumentError(f"mode must be lexical, not {mode}, without an encoder.")
        disk = Disk(self.snapshot.root, self._known)
        warnings: list[str] = []
        allowed = self._allowed(arguments, warnings)
        chosen = self._choose(self._ranked(arguments.query, mode, encoder, allowed), arguments, disk, warnings)
        counts = allot([snippet.lines for _, snippet in chosen], arguments.max_chars)
        shown = [(rank, cut(snippet, count)) for (rank, snippet), count in zip(chosen, counts, strict=True) if count]
        if len(shown) < len(chosen):
            warnings.append(f"{len(chosen) - len(shown)} more results did not fit into max_chars.")
        results = [as_json(snippet) | scores_of(rank) for rank, snippet in shown]
        left = arguments.max_chars - sum(len(result["content"]) for result in results)
        neighbours = []
        if arguments.expand:
            neighbours = list(self._neighbours([snippet for _, snippet in shown], allowed, disk, left))
        return {
            "results": results,
            "neighbors": neighbours,
            "warnings": _bounded(disk.warnings) + warnings,
            "returned_chars": sum(len(each["content"]) for each in [*results, *neighbours]),
        }

    def read(self, arguments: ReadArguments) -> dict[str, Any]:
        """Return a symbol; for a fragment the function it is of, where that fits.

        Raises:
            NotFoundError: no symbol has this id.
            ChangedFileError: its file is not as it was indexed.
            ArgumentError: its first line alone is longer than `max_chars`.
        """
        entry = self.snapshot.find(arguments.symbol_id)
        if entry is None:
            raise NotFoundError(
                f"{shown_value(arguments.symbol_id)} is no id of this index; search again: ids change with their file."
            )
        disk = Disk(self.snapshot.root, self._known)
        snippet = disk.snippet(entry)
        if entry.kind == FRAGMENT and entry.parent is not None:
            whole = disk.snippet(self._entry(entry.parent))
            if fitting(whole.lines, arguments.max_chars) == len(whole.lines):
                snippet = whole
        count = fitting(snippet.lines, arguments.max_chars)
        if not count:
            raise ArgumentError(_long_line(snippet, arguments.max_chars))
        content = as_json(cut(snippet, count))
        return content | {"requested_id": entry.id, "warnings": [], "returned_chars": len(content["content"])}

    def _allowed(self, arguments: SearchArguments, warnings: list[str]) -> NDArray[np.bool_]:
        """Return which candidates the filters let through."""
        languages = list(self.snapshot.facts.languages)
        if arguments.language is not None:
            wanted = {arguments.language}
            if arguments.language not in languages:
                warnings.append(f"The index has no {arguments.language} file; it has {', '.join(sorted(languages))}.")
        else:
            wanted = set(languages) if arguments.include_docs else set(languages) - DOCS
        by_number = np.array([language in wanted for language in languages], np.bool_)
        allowed: NDArray[np.bool_] = by_number[self.snapshot.column("language")]
        return allowed

    def _ranked(self, query: str, mode: Mode, encoder: Encoder | None, allowed: NDArray[np.bool_]) -> Candidates:
        """Rank the candidates that may be returned."""
        positions = np.flatnonzero(allowed)
        documents = self.snapshot.column("file")[positions].astype(np.int64)
        words = meaning = None
        if encoder is None or mode == "lexical":
            words = self._word_scores(query)[positions]
            scores = keyword_scores(documents, words)
        elif mode == "dense":
            meaning = self._similarities(query, encoder)[positions]
            scores = semantic_scores(documents, meaning)
        else:
            words, meaning = self._word_scores(query)[positions], self._similarities(query, encoder)[positions]
            scores = hybrid_scores(documents, words, meaning)
        return Candidates(positions, Spread(documents, scores, self._weights(query, positions)), words, meaning)

    def _weights(self, query: str, positions: NDArray[np.intp]) -> NDArray[np.float64] | None:
        """Return what each candidate counts: tests less, for they repeat the words of what they test."""
        if not TEST_WORDS.isdisjoint(terms(query)):
            return None
        return np.where(self.snapshot.column("test")[positions] > 0, TEST_WEIGHT, 1.0)

    def _word_scores(self, query: str) -> NDArray[np.float32]:
        """Return the BM25 score of every candidate: `(symbols,)`."""
        if self._norms is None:
            self._norms = length_norms(self.snapshot.column("length"))
        scores = np.zeros(self.snapshot.facts.symbols, np.float32)
        for term in dict.fromkeys(term_numbers(query) + naming_numbers(query)):
            postings = self.snapshot.postings(term)
            if postings is not None:
                add_scores(scores, postings, self._norms)
        return scores

    def _similarities(self, query: str, encoder: Encoder) -> NDArray[np.float32]:
        """Return the cosine similarity of every candidate: `(symbols,)`, NaN where one has no embedding."""
        if self._vectors is None:
            self._vectors = self._load_vectors(encoder.dimension)
        positions, rows = self._vectors
        similarities = np.full(self.snapshot.facts.symbols, np.nan, np.float32)
        similarities[positions] = rows.similarities(encoder.encode_query(query))
        return similarities

    def _load_vectors(self, dimension: int) -> tuple[NDArray[np.int64], UnitRows]:
        rows, positions = UnitRows(dimension), []
        for position, packed in self.snapshot.vectors(dimension):
            rows.append(packed)
            positions.append(position)
        return np.array(positions, np.int64), rows

    def _choose(
        self, candidates: Candidates, arguments: SearchArguments, disk: Disk, warnings: list[str]
    ) -> list[tuple[Ranked, Snippet]]:
        """Return the best candidates that are as they were indexed and share no line."""
        chosen: list[tuple[Ranked, Snippet]] = []
        taken = Taken()
        for rank in candidates:
            entry = self._entry(rank.position)
            if taken.overlaps(entry):
                continue
            try:
                snippet = disk.snippet(entry)
            except ChangedFileError:
                continue
            if len(snippet.lines[0]) > arguments.max_chars:
                warnings.append(_long_line(snippet, arguments.max_chars))
                continue
            taken.add(entry)
            candidates.take(rank)
            chosen.append((rank, snippet))
            if len(chosen) == arguments.top_k:
                break
        return chosen

    def _neighbours(
        self, shown: Sequence[Snippet], allowed: NDArray[np.bool_], disk: Disk, left: int
    ) -> Iterator[dict[str, Any]]:
        """Yield what the shown snippets call and what calls them, in `left` characters, no line that was shown."""
        taken = Taken()
        for snippet in shown:
            taken.add(snippet.entry)
        found = 0
        for snippet in shown:
            for relation in self.snapshot.relations(snippet.entry.position):
                if found == MAX_NEIGHBOURS or left <= 0:
                    return
                entry = self._entry(relation.other)
                if not allowed[relation.other] or taken.overlaps(entry):
                    continue
                try:
                    neighbour = disk.snippet(entry)
                except ChangedFileError:
                    continue
                count = fitting(neighbour.lines, left)
                if not count:
                    continue
                neighbour = cut(neighbour, count)
                taken.add(neighbour.entry)
                content = as_json(neighbour) | relation_of(relation, snippet.entry)
                left -= len(content["content"])
                found += 1
                yield content

    def _entry(self, position: int) -> Entry:
        return self.snapshot.entry(position)


@dataclass(frozen=True, slots=True)
class Candidates:
    """What a query ranked, best first.

    Attributes:
        positions: `(n,)` of the candidates; the others are `(n,)` too.
        spread: puts them in order.
        words: BM25 scores, if they play a part.
        meaning: cosine similarities, if they play a part.
    """

    positions: NDArray[np.intp]
    spread: Spread
    words: NDArray[np.float32] | None
    meaning: NDArray[np.float32] | None

    def __iter__(self) -> Iterator[Ranked]:
        for place, score in self.spread:
            yield Ranked(
                place, int(self.positions[place]), score, _number(self.words, place), _number(self.meaning, place)
            )

    def take(self, rank: Ranked) -> None:
        """Count a candidate as returned."""
        self.spread.take(rank.place)


class Taken:
    """Lines that are already returned, by file."""

    def __init__(self) -> None:
        self._ranges: dict[str, list[tuple[int, int]]] = {}

    def add(self, entry: Entry) -> None:
        """Take the lines of a candidate."""
        self._ranges.setdefault(entry.path, []).append((entry.start_line, entry.end_line))

    def overlaps(self, entry: Entry) -> bool:
        """Whether any of a candidate's lines is taken."""
        ranges = self._ranges.get(entry.path, ())
        return any(start <= entry.end_line and entry.start_line <= end for start, end in ranges)


def as_json(snippet: Snippet) -> dict[str, Any]:
    """Return what results, neighbours and reads have in common."""
    entry = snippet.entry
    return {
        "id": entry.id,
        "path": printable(entry.path),
        "name": printable(entry.name),
        "kind": entry.kind,
        "language": entry.language,
        "start_line": entry.start_line,
        "end_line": entry.end_line,
        "reference": f"{printable(entry.path)}:{entry.start_line}-{entry.end_line}",
        "content": "\n".join(snippet.lines),
        "file_sha256": entry.sha256.hex(),
        "verified": True,
        "truncated": snippet.truncated,
        **({"parent_id": entry.parent_id} if entry.kind == FRAGMENT else {}),
    }


def scores_of(rank: Ranked) -> dict[str, float | None]:
    """Return the scores of a result."""
    return {"score": rank.score, "bm25_score": rank.bm25, "cosine_similarity": rank.cosine}


def relation_of(relation: Relation, source: Entry) -> dict[str, str]:
    """Return what a neighbour has in place of the scores."""
    return {"relation": relation.kind, "direction": relation.direction, "from_id": source.id}


def _number(scores: NDArray[np.float32] | None, place: int) -> float | None:
    return None if scores is None or np.isnan(scores[place]) else float(scores[place])


def _long_line(snippet: Snippet, max_chars: int) -> str:
    entry = snippet.entry
    return (
        f'"{printable(entry.path)}:{entry.start_line}" has a line of {len(snippet.lines[0]):,} characters, more than '
        f"max_chars, {max_chars:,}; it is left out."
    )


def _bounded(warnings: Sequence[str]) -> list[str]:
    shown = list(islice(warnings, MAX_WARNINGS))
    rest = len(warnings) - len(shown)
    return [*shown, f"{rest} more files are not as they were indexed."] if rest else shown
