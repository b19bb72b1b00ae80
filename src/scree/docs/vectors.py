"""Every embedding of an index as one matrix in memory, kept equal to the index in place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from scree.core.vectors import UnitRows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from scree.docs.store import Store


class EmbeddingMatrix:
    """The windows of all embedded chunks, one unit row a window.

    Attributes:
        chunk_ids: `(chunks,)` int64, ascending; the chunks that have an embedding.
        document_ids: `(chunks,)` int64; the document of each.
    """

    def __init__(self, dimension: int) -> None:
        self.chunk_ids: NDArray[np.int64] = np.empty(0, np.int64)
        self.document_ids: NDArray[np.int64] = np.empty(0, np.int64)
        self._dimension = dimension
        self._rows = UnitRows(dimension)
        self._owners: NDArray[np.int64] = np.empty(0, np.int64)  # chunk id of each row
        self._chunk_of_row: NDArray[np.intp] = np.empty(0, np.intp)  # index into chunk_ids

    def update(self, store: Store, encoder_id: int) -> None:
        """Take up what the index has gained and lost since the last update; reads only the new embeddings.

        The store's reads have to see one state of the index, as they do inside `Store.view`.
        """
        current = np.array(store.embedded_chunks(encoder_id), np.int64).reshape(-1, 2)
        self._remove(np.setdiff1d(self.chunk_ids, current[:, 0], assume_unique=True))
        gained = np.setdiff1d(current[:, 0], self.chunk_ids, assume_unique=True)
        owners: list[int] = []
        for chunk_id, rows in store.embeddings(encoder_id, gained.tolist(), self._dimension):
            for row in rows:
                self._rows.append(row)
                owners.append(chunk_id)
        self._owners = np.concatenate([self._owners, np.array(owners, np.int64)])
        self.chunk_ids, self.document_ids = current[:, 0], current[:, 1]
        self._chunk_of_row = np.searchsorted(self.chunk_ids, self._owners)

    def best_windows(self, query: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the cosine similarity of each chunk's best window to a `(dim,)` unit query: `(chunks,)` float32."""
        best = np.full(len(self.chunk_ids), -1.0, np.float32)
        np.maximum.at(best, self._chunk_of_row, self._rows.similarities(query))
        return best

    def _remove(self, chunk_ids: NDArray[np.int64]) -> None:
        """Drop the rows of these chunks, moving the last rows into the holes."""
        if not len(chunk_ids):
            return
        gone = np.flatnonzero(np.isin(self._owners, chunk_ids))
        size = len(self._owners) - len(gone)
        holes = gone[gone < size]
        movers = np.setdiff1d(np.arange(size, len(self._owners)), gone, assume_unique=True)
        for hole, mover in zip(holes.tolist(), movers.tolist(), strict=True):
            self._rows.move(mover, hole)
        self._owners[holes] = self._owners[movers]
        self._owners = self._owners[:size]
        self._rows.shorten(size)
