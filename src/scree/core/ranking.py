"""Order chunks by what is known of each of them: its BM25 score, its cosine similarity, and the document it is in.

Pure functions of numpy arrays with one element a chunk: no disk, no clock, no model. docs/ranking.md says what was
tried and how each choice was made.

A document is more than its best chunk, so documents compete by a mean of their best three. Words and meaning, which
have different units, are added as standard scores, meaning with more weight. A document's best chunk stands where the
document stands, and its other chunks follow as far below as they are worse, so that one long document does not fill a
page of results. Equal scores keep the order of the arguments.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

# What a further result of a document counts. Anything from .3 to .7 does as well on the one set for code.
LATER_WEIGHT = 0.5

Scores = NDArray[np.float64]

# What the best chunks of a document count, the best one first: each the reciprocal of its rank. One chunk alone is too
# little on every set tried; an equal mean of three is worse where one section of a long document has the answer, and in
# large indexes (docs/ranking.md).
CHUNK_WEIGHTS = (1.0, 1 / 2, 1 / 3)

# What a standard deviation of meaning counts against one of words. From 1.5 to 2.5 hybrid search is better than either
# alone on both evaluation sets; the low end is kept for queries that are names (docs/ranking.md).
MEANING_WEIGHT = 1.5


def keyword_order(documents: NDArray[np.int64], lexical: NDArray[np.floating]) -> NDArray[np.intp]:
    """Return the positions of the chunks that hold a word of the query, best first.

    Args:
        documents: `(n,)` the document of each chunk.
        lexical: `(n,)` BM25 scores, 0 where no word occurs.
    """
    return best_first(keyword_scores(documents, lexical))


def semantic_order(documents: NDArray[np.int64], dense: NDArray[np.floating]) -> NDArray[np.intp]:
    """Return the positions of the chunks that have an embedding, best first.

    Args:
        documents: `(n,)` the document of each chunk.
        dense: `(n,)` cosine similarities, NaN where a chunk has no embedding yet.
    """
    return best_first(semantic_scores(documents, dense))


def hybrid_order(
    documents: NDArray[np.int64], lexical: NDArray[np.floating], dense: NDArray[np.floating]
) -> NDArray[np.intp]:
    """Return the positions of all chunks, best first by words and meaning; the arguments are as above."""
    return best_first(hybrid_scores(documents, lexical, dense))


def keyword_scores(documents: NDArray[np.int64], lexical: NDArray[np.floating]) -> Scores:
    """Return what `keyword_order` goes by: `(n,)`, minus infinity for chunks without a word of the query."""
    words = lexical.astype(np.float64)
    owner = owners(documents)
    scores = standing(owner, document_scores(owner, words), words)
    scores[words <= 0] = -np.inf
    return scores


def semantic_scores(documents: NDArray[np.int64], dense: NDArray[np.floating]) -> Scores:
    """Return what `semantic_order` goes by: `(n,)`, minus infinity for chunks without an embedding."""
    known = np.flatnonzero(~np.isnan(dense))
    meaning = dense[known].astype(np.float64)
    owner = owners(documents[known])
    scores = np.full(len(documents), -np.inf)
    scores[known] = standing(owner, document_scores(owner, meaning), meaning)
    return scores


def hybrid_scores(documents: NDArray[np.int64], lexical: NDArray[np.floating], dense: NDArray[np.floating]) -> Scores:
    """Return what `hybrid_order` goes by: `(n,)`."""
    words, meaning = lexical.astype(np.float64), dense.astype(np.float64)
    owner = owners(documents)
    of_document = fused(document_scores(owner, words), document_scores(owner, meaning))
    return standing(owner, of_document, fused(words, meaning))


def best_first(scores: Scores) -> NDArray[np.intp]:
    """Return the positions of the finite scores of `(n,)`, best first; of equal ones the earlier first."""
    order = np.argsort(-scores, kind="stable")
    return order[: np.count_nonzero(scores > -np.inf)]


class Spread:
    """Takes candidates best first, where each that is taken makes the next of its document count half.

    Results that all come from one document say less than results from several. What counts are standard scores, which
    mean the same whatever they are made of; only those above the mean are made less.
    """

    def __init__(self, documents: NDArray[np.integer], scores: Scores, weights: Scores | None = None) -> None:
        """Prepare.

        Args:
            documents: `(n,)` the document of each candidate.
            scores: `(n,)`, minus infinity for what is no candidate.
            weights: `(n,)` what each candidate counts from the start; 1 unless told otherwise.
        """
        known = standard(np.where(np.isinf(scores), np.nan, scores))
        if weights is not None:
            known = np.where(known > 0, known * weights, known)
        self._documents = documents
        self._scores = np.where(np.isnan(known), -np.inf, known)
        self._order = best_first(self._scores)
        self._next = 0
        # Negated score, position, how many of its document were taken then.
        self._late: list[tuple[float, int, int]] = []
        self._taken: Counter[int] = Counter()

    def __iter__(self) -> Iterator[tuple[int, float]]:
        """Yield positions and what they count, never more than the one before, if `take` is told of each in time."""
        while True:
            head = int(self._order[self._next]) if self._next < len(self._order) else None
            if self._late and (head is None or -self._late[0][0] > self._scores[head]):
                negated, position, count = heappop(self._late)
                score = -negated
            elif head is not None:
                position, count, score = head, 0, float(self._scores[head])
                self._next += 1
            else:
                return
            now = self._taken[int(self._documents[position])]
            if now == count or score <= 0:
                yield position, score
            else:
                heappush(self._late, (-float(self._scores[position]) * LATER_WEIGHT**now, position, now))

    def take(self, position: int) -> None:
        """Count a candidate of its document as taken."""
        self._taken[int(self._documents[position])] += 1


def owners(documents: NDArray[np.int64]) -> NDArray[np.intp]:
    """Number the documents of `(n,)` chunks from 0 without gaps: `(n,)`."""
    return np.unique(documents, return_inverse=True)[1]


def document_scores(owner: NDArray[np.intp], scores: Scores) -> Scores:
    """Return the mean of each document's best scores, weighted by `CHUNK_WEIGHTS`.

    A document with fewer known scores than weights has the mean of those: being short costs it nothing.

    Args:
        owner: `(n,)` from `owners`.
        scores: `(n,)`; NaN, where unknown, does not count.

    Returns:
        `(documents,)`; NaN where nothing is known of a document.
    """
    documents = int(owner.max(initial=-1)) + 1
    total, weights = np.zeros(documents), np.zeros(documents)
    rest = np.where(np.isnan(scores), -np.inf, scores)
    for weight in CHUNK_WEIGHTS:
        best = best_of(owner, rest, documents)
        found = np.isfinite(best)
        total[found] += weight * best[found]
        weights[found] += weight
        # Set one chunk of each document aside: where several are equally good, the last.
        place = np.zeros(documents, np.intp)
        best_chunks = np.flatnonzero(rest == best[owner])
        place[owner[best_chunks]] = best_chunks
        rest[place[found]] = -np.inf
    mean = np.full(documents, np.nan)
    np.divide(total, weights, out=mean, where=weights > 0)
    return mean


def best_of(owner: NDArray[np.intp], scores: Scores, documents: int) -> Scores:
    """Return the best score of each document: `(documents,)`."""
    best = np.full(documents, -np.inf)
    np.maximum.at(best, owner, scores)
    return best


def fused(words: Scores, meaning: Scores) -> Scores:
    """Add the standard scores of words and meaning, `(n,)` each, of chunks or of documents.

    Where `meaning` is unknown (NaN) its standard score is estimated from that of `words`, by least squares over what is
    known: being embedded already is neither a bonus nor a penalty.
    """
    by_words, by_meaning = standard(words), standard(meaning)
    unknown = np.isnan(by_meaning)
    if unknown.any():
        known_words = by_words[~unknown]
        spread = float(known_words @ known_words)
        slope = float(known_words @ by_meaning[~unknown]) / spread if spread > 0 else 0.0
        # Few known scores can give any slope; by nature it is a correlation of two signals that should agree.
        by_meaning[unknown] = min(max(slope, 0.0), 1.0) * by_words[unknown]
    return by_words + MEANING_WEIGHT * by_meaning


def standard(scores: Scores) -> Scores:
    """Return how many standard deviations each score lies above the mean; NaN stays, equal scores give 0."""
    known = scores[~np.isnan(scores)]
    if not len(known) or known.min() == known.max():
        return np.where(np.isnan(scores), np.nan, 0.0)
    centred: Scores = scores - known.mean()
    return centred / float(known.std())


def standing(owner: NDArray[np.intp], of_document: Scores, of_chunk: Scores) -> Scores:
    """Score chunks: each document's best with the document's, its others as far below as they are worse."""
    behind_best = of_chunk - best_of(owner, of_chunk, len(of_document))[owner]
    scores: Scores = of_document[owner] + behind_best
    return scores
