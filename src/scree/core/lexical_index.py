"""Keep the index terms of chunks in SQLite, and score every chunk against a query by BM25.

SQLite holds the postings of a chunk as one row; the inverted index made of them lives in memory and takes up what has
changed since the last look. It commits nothing, and it does not know what a chunk or its document is.

FTS5 was measured first: its cost is the frequent words, which made a question over 5,000 chunks a hundred times slower
than here, and ranking by document needs a score for every chunk, not only for the best.
"""

from __future__ import annotations

import math
import sqlite3
import zlib
from collections import Counter
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from scree.core.lexical import REMEMBERED_WORDS, terms, word_terms, words

# Okapi BM25 with the constants that FTS5 and Lucene use: how fast repeats saturate, and how much length counts.
K1 = 1.2
B = 0.75

# A word in a heading counts as often as this many in the text, in one term frequency (BM25F). Any weight from 2 to 8
# does as well on the evaluation sets (docs/ranking.md).
HEADING_WEIGHT = 4

# One posting on disk: a term by the CRC-32 of its UTF-8 bytes, and how often the chunk has it. Among 100,000 different
# terms about one pair shares a number, which costs that pair a little of its rank.
POSTING = np.dtype([("term", "<u4"), ("frequency", "u1")])
MAX_FREQUENCY = 255

# One posting in memory is one number, so that sorting puts them in order by term, then by chunk, without a second copy:
# 32 bits of term, 24 of the chunk's position (16 million chunks), 8 of frequency.
TERM_SHIFT = 32
CHUNK_SHIFT = 8
MAX_CHUNK = 2**24 - 1


class LexicalIndex:
    """The postings of one database, through one connection.

    Writing methods take part in the caller's transaction. `update` must have been called before `scores`, and no chunk
    id may ever be used for a second content (`AUTOINCREMENT` sees to that). Use one instance from one thread at a time.

    Attributes:
        CREATE: the script that makes the tables.
        chunk_ids: `(chunks,)` int64, ascending, as of the last `update`.
        document_ids: `(chunks,)` int64; the document of each.
    """

    CREATE: ClassVar[str] = """
CREATE TABLE lexical (chunk_id INTEGER PRIMARY KEY, document_id INTEGER NOT NULL, postings BLOB NOT NULL);
CREATE INDEX lexical_by_document ON lexical (document_id);
"""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.chunk_ids: NDArray[np.int64] = np.empty(0, np.int64)
        self.document_ids: NDArray[np.int64] = np.empty(0, np.int64)
        self._postings: NDArray[np.uint64] = np.empty(0, np.uint64)  # ascending
        self._length: NDArray[np.int64] = np.empty(0, np.int64)  # of each chunk, in words
        self._length_norm: NDArray[np.float32] = np.empty(0, np.float32)

    def add(self, chunk_id: int, document_id: int, *, heading: str, body: str) -> None:
        """Store the terms of a chunk: `heading` is what stands above its text, and counts more than `body`."""
        counts = Counter(terms(body))
        for term, count in Counter(terms(heading)).items():
            counts[term] += HEADING_WEIGHT * count
        postings = np.empty(len(counts), POSTING)
        postings["term"] = [term_number(term) for term in counts]
        postings["frequency"] = np.minimum(np.fromiter(counts.values(), np.int64, len(counts)), MAX_FREQUENCY)
        self._connection.execute(
            "INSERT INTO lexical (chunk_id, document_id, postings) VALUES (?, ?, ?)",
            (chunk_id, document_id, postings.tobytes()),
        )

    def remove(self, document_id: int) -> None:
        """Remove the chunks of a document."""
        self._connection.execute("DELETE FROM lexical WHERE document_id = ?", (document_id,))

    def update(self) -> None:
        """Take up what the tables have gained and lost since the last update; reads only the new postings."""
        newest = int(self.chunk_ids[-1]) if len(self.chunk_ids) else 0
        held = self._connection.execute("SELECT chunk_id FROM lexical WHERE chunk_id <= ?", (newest,)).fetchall()
        gained = self._connection.execute(
            "SELECT chunk_id, document_id, postings FROM lexical WHERE chunk_id > ? ORDER BY chunk_id", (newest,)
        ).fetchall()
        if not gained and len(held) == len(self.chunk_ids):
            return
        kept = np.isin(self.chunk_ids, np.array(held, np.int64), assume_unique=True)
        ids = np.array([row[:2] for row in gained], np.int64).reshape(-1, 2)
        self.chunk_ids = np.concatenate([self.chunk_ids[kept], ids[:, 0]])
        self.document_ids = np.concatenate([self.document_ids[kept], ids[:, 1]])
        new = np.frombuffer(b"".join(postings for _, _, postings in gained), POSTING)
        ends = np.cumsum([0, *(len(postings) // POSTING.itemsize for _, _, postings in gained)])
        words = np.cumsum(np.append(np.uint8(0), new["frequency"]), dtype=np.int64)[ends]
        self._length = np.concatenate([self._length[kept], np.diff(words)])
        self._length_norm = length_norms(self._length)
        if not kept.all():
            place = chunk_places(self._postings)
            self._postings -= (np.cumsum(~kept).astype(np.uint64) << CHUNK_SHIFT)[place]
            self._postings = self._postings[kept[place]]
        packed = new["term"].astype(np.uint64) << TERM_SHIFT
        packed |= np.repeat(np.arange(len(held), len(self.chunk_ids), dtype=np.uint64) << CHUNK_SHIFT, np.diff(ends))
        packed |= new["frequency"]
        # What is held is in order: to sort all of it again would take five times as long.
        packed.sort()
        self._postings = np.insert(self._postings, np.searchsorted(self._postings, packed), packed)

    def scores(self, query: str) -> NDArray[np.float32]:
        """Return the BM25 score of every chunk: `(chunks,)` float32, 0 where no word of the query occurs.

        Every different term of the query counts, none is required.
        """
        scores = np.zeros(len(self.chunk_ids), np.float32)
        for number in dict.fromkeys(term_numbers(query)):
            start = np.searchsorted(self._postings, np.uint64(number << TERM_SHIFT))
            end = np.searchsorted(self._postings, np.uint64((number << TERM_SHIFT) + 2**TERM_SHIFT - 1), side="right")
            if start == end:
                continue
            add_scores(scores, self._postings[start:end], self._length_norm)
        return scores


def add_scores(
    scores: NDArray[np.float32], postings: NDArray[np.unsignedinteger], length_norm: NDArray[np.float32]
) -> None:
    """Add what one term gives to the BM25 score of each chunk, in place.

    The inverse document frequency is Lucene's, which is never negative.

    Args:
        scores: `(chunks,)`.
        postings: one for each chunk that has the term: its position and the frequency, as in memory; the term's own
            bits may be missing.
        length_norm: `(chunks,)` from `length_norms`.
    """
    chunk = chunk_places(postings)
    frequency = (postings & MAX_FREQUENCY).astype(np.float32)
    holding = len(postings)
    idf = math.log(1 + (len(scores) - holding + 0.5) / (holding + 0.5))
    scores[chunk] += idf * (K1 + 1) * frequency / (frequency + length_norm[chunk])


def length_norms(lengths: NDArray[np.integer]) -> NDArray[np.float32]:
    """Return what BM25 adds to a term frequency for the length of each chunk: `(chunks,)`, from lengths in words."""
    mean_length = max(lengths.sum() / max(len(lengths), 1), 1)
    norms: NDArray[np.float32] = (K1 * (1 - B + B * lengths / mean_length)).astype(np.float32)
    return norms


def chunk_places(postings: NDArray[np.unsignedinteger]) -> NDArray[np.int64]:
    """Return the position in `chunk_ids` of the chunk of each posting."""
    places = postings >> CHUNK_SHIFT
    places &= MAX_CHUNK
    return places.astype(np.int64, copy=False)


def term_numbers(text: str) -> list[int]:
    """Return the numbers of the terms of `text`, in order, repeats kept."""
    numbers: list[int] = []
    for word in words(text):
        numbers += word_numbers(word)
    return numbers


@lru_cache(REMEMBERED_WORDS)
def word_numbers(word: str) -> tuple[int, ...]:
    """Return the numbers of the terms that one of the `words` of a text gives."""
    return tuple(map(term_number, word_terms(word)))


def term_number(term: str) -> int:
    """Return the number that stands for a term in postings, 0 to 2^32 - 1."""
    return zlib.crc32(term.encode("utf-8", "surrogatepass"))
