"""Order chunks by what is known of each of them: its BM25 score, its cosine similarity, and the document it is in.

Pure functions of numpy arrays with one element a chunk: no disk, no clock, no model. docs/ranking.md says what was tried
and how each choice was made.

A document is more than its best chunk, so documents compete by the mean of their best three. Words and meaning, which
have different units, are added as standard scores; nothing is weighted. A document's best chunk stands where the
document stands, and its other chunks follow as far below as they are worse, so that one long document does not fill a
page of results. Equal scores keep the order of the arguments.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# By how many of its chunks a document is judged: with one, both evaluation sets lose .05 or more of page MRR; from two
# to five they do not tell the numbers apart.
CHUNKS_OF_DOCUMENT = 3


def keyword_order(documents: NDArray[np.int64], lexical: NDArray[np.float32]) -> NDArray[np.intp]:
    """Return the positions of the chunks that hold a word of the query, best first.

    Args:
        documents: `(n,)` the document of each chunk.
        lexical: `(n,)` BM25 scores, 0 where no word occurs.
    """
    owner = owners(documents)
    order = standing(owner, document_scores(owner, lexical), lexical)
    return order[lexical[order] > 0]


def semantic_order(documents: NDArray[np.int64], dense: NDArray[np.float32]) -> NDArray[np.intp]:
    """Return the positions of the chunks that have an embedding, best first.

    Args:
        documents: `(n,)` the document of each chunk.
        dense: `(n,)` cosine similarities, NaN where a chunk has no embedding yet.
    """
    known = np.flatnonzero(~np.isnan(dense))
    owner = owners(documents[known])
    return known[standing(owner, document_scores(owner, dense[known]), dense[known])]


def hybrid_order(
    documents: NDArray[np.int64], lexical: NDArray[np.float32], dense: NDArray[np.float32]
) -> NDArray[np.intp]:
    """Return the positions of all chunks, best first by words and meaning; the arguments are as above."""
    owner = owners(documents)
    of_document = fused(document_scores(owner, lexical), document_scores(owner, dense))
    return standing(owner, of_document, fused(lexical, dense))


def owners(documents: NDArray[np.int64]) -> NDArray[np.intp]:
    """Number the documents of `(n,)` chunks from 0 without gaps: `(n,)`."""
    return np.unique(documents, return_inverse=True)[1]


def document_scores(owner: NDArray[np.intp], scores: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return the mean of each document's best `CHUNKS_OF_DOCUMENT` scores, of all it has where those are fewer.

    Args:
        owner: `(n,)` from `owners`.
        scores: `(n,)`; NaN, where unknown, does not count.

    Returns:
        `(documents,)`; NaN where nothing is known of a document.
    """
    documents = int(owner.max(initial=-1)) + 1
    total = np.zeros(documents)
    count = np.zeros(documents)
    rest = np.where(np.isnan(scores), -np.inf, scores).astype(np.float64)
    for _ in range(CHUNKS_OF_DOCUMENT):
        best = best_of(owner, rest, documents)
        found = np.isfinite(best)
        total[found] += best[found]
        count += found
        # Set one chunk of each document aside: where several are equally good, the last.
        place = np.zeros(documents, np.intp)
        best_chunks = np.flatnonzero(rest == best[owner])
        place[owner[best_chunks]] = best_chunks
        rest[place[found]] = -np.inf
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def best_of(owner: NDArray[np.intp], scores: NDArray[np.float64], documents: int) -> NDArray[np.float64]:
    """Return the best score of each document: `(documents,)`."""
    best = np.full(documents, -np.inf)
    np.maximum.at(best, owner, scores)
    return best


def fused(lexical: NDArray[np.floating], dense: NDArray[np.floating]) -> NDArray[np.float64]:
    """Add standard scores: `(n,)` of the same things, chunks or documents.

    Where `dense` is unknown (NaN) its standard score is estimated from the lexical one, by least squares over what is
    known: neither a bonus nor a penalty for being embedded already.
    """
    words = standard(lexical)
    meaning = standard(dense)
    unknown = np.isnan(meaning)
    if unknown.any():
        known_words = words[~unknown]
        slope = known_words @ meaning[~unknown] / max(float(known_words @ known_words), 1e-9)
        meaning[unknown] = min(max(slope, 0.0), 1.0) * words[unknown]
    return words + meaning


def standard(scores: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return how many standard deviations each score lies above the mean; NaN stays, equal scores give 0."""
    known = scores[~np.isnan(scores)].astype(np.float64)
    if not len(known) or known.min() == known.max():
        return scores * 0.0
    return (scores - known.mean()) / known.std()


def standing(
    owner: NDArray[np.intp], of_document: NDArray[np.floating], of_chunk: NDArray[np.floating]
) -> NDArray[np.intp]:
    """Order chunks: each document's best where the document stands, its others as far below as they are worse."""
    best = best_of(owner, of_chunk.astype(np.float64), len(of_document))
    return np.argsort(-(of_document[owner] + (of_chunk - best[owner])), kind="stable")
