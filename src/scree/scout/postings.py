"""The inverted index of a snapshot: built in bounded memory, stored as one row a term, so that a query reads only its
own terms.

Takes part in the caller's transaction; knows neither files nor symbols, only positions of candidates.
"""

from __future__ import annotations

import re
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from scree.core.lexical_index import CHUNK_SHIFT, TERM_SHIFT, term_number

NAME = re.compile(r"\w+")

# In front of the terms that only definitions have; no text gives a term with such a character.
DEFINES = "\0"

# Postings held in memory before they are sorted and put aside: 32 MB.
MAX_HELD = 4_000_000

# The merge takes so many equal ranges of terms one after the other.
RANGES = 64
TERMS = 2**32


class PostingsWriter:
    """Collects postings file by file and writes them term by term."""

    def __init__(self, folder: Path) -> None:
        """Prepare.

        Args:
            folder: where runs are put aside, in files that have no name and so leave no litter.
        """
        self._folder = folder
        self._held: list[NDArray[np.uint64]] = []
        self._count = 0
        self._runs: list[IO[bytes]] = []

    def add(self, first: int, postings: NDArray[np.uint64]) -> None:
        """Take the postings of one file, whose first candidate has the position `first`."""
        self._held.append(postings + np.uint64(first << CHUNK_SHIFT))
        self._count += len(postings)
        if self._count >= MAX_HELD:
            self._put_aside()

    def write(self, connection: sqlite3.Connection) -> None:
        """Write all postings, ordered by term, each term's by position."""
        sources: list[NDArray[np.uint64]] = [np.memmap(run, np.uint64, "r") for run in self._runs]
        if self._held:
            sources.append(self._sorted())
        for low in range(0, TERMS, TERMS // RANGES):
            parts = [_between(source, low, low + TERMS // RANGES) for source in sources]
            connection.executemany("INSERT INTO postings VALUES (?, ?)", _rows(np.concatenate([_NONE, *parts])))

    def close(self) -> None:
        """Drop what was put aside."""
        for run in self._runs:
            run.close()

    def _put_aside(self) -> None:
        run = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115 - closed when it has been merged
        self._sorted().tofile(run)
        run.flush()
        self._runs.append(run)

    def _sorted(self) -> NDArray[np.uint64]:
        postings = np.concatenate(self._held)
        postings.sort()
        self._held, self._count = [], 0
        return postings


_NONE = np.empty(0, np.uint64)
_CANDIDATE_BITS = np.uint64(2**TERM_SHIFT - 1)


def _between(postings: NDArray[np.uint64], low: int, high: int) -> NDArray[np.uint64]:
    """Return the postings of the terms from `low` to below `high`."""
    start = np.searchsorted(postings, np.uint64(low << TERM_SHIFT))
    end = len(postings) if high == TERMS else np.searchsorted(postings, np.uint64(high << TERM_SHIFT))
    return postings[start:end]


def _rows(postings: NDArray[np.uint64]) -> Iterator[tuple[int, bytes]]:
    postings.sort()
    terms = postings >> TERM_SHIFT
    candidates = (postings & _CANDIDATE_BITS).astype("<u4")
    starts = np.flatnonzero(np.diff(terms, prepend=terms[:1] + np.uint64(1)))
    ends = np.append(starts, len(postings))[1:]
    for term, start, end in zip(terms[starts].tolist(), starts.tolist(), ends.tolist(), strict=True):
        yield term, candidates[start:end].tobytes()


def defining_numbers(name: str) -> list[int]:
    """Return the numbers of the terms by which a symbol with this qualified name is found as a definition."""
    return naming_numbers(" ".join(NAME.findall(name)[-1:]))


def naming_numbers(query: str) -> list[int]:
    """Return the numbers of the terms that find the definitions of what a query may name: one for each word.

    A query that names a symbol means its definition and not the many places that use it.
    """
    return [term_number(DEFINES + word.casefold()) for word in NAME.findall(query)]


def read_postings(connection: sqlite3.Connection, term: int) -> NDArray[np.uint32] | None:
    """Return the postings of one term by position, packed as in `lexical_index` without the term; None if it has none.

    Raises:
        ValueError: they are damaged.
    """
    row = connection.execute("SELECT candidates FROM postings WHERE term = ?", (term,)).fetchone()
    return None if row is None else np.frombuffer(row[0], "<u4")
