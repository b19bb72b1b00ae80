"""Every embedding of an index as one matrix in memory, kept equal to the index in place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from scree.docs.store import Store

# Rows are kept in blocks of this many, 0.8 MB at 384 dimensions: one matrix would have to be copied whole to grow.
BLOCK_ROWS = 1_024

# In memory a coordinate is a 16-bit integer and this is 1: half the room of float32, finer than the half precision on
# disk, and turned into float32 ten times as fast, so that a search takes no longer for it.
ONE = 32_767


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
        self._blocks: list[NDArray[np.int16]] = []
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
                place = len(self._owners) + len(owners)
                if place == BLOCK_ROWS * len(self._blocks):
                    self._blocks.append(np.zeros((BLOCK_ROWS, self._dimension), np.int16))
                self._row(place)[:] = np.rint(ONE * row)
                owners.append(chunk_id)
        self._owners = np.concatenate([self._owners, np.array(owners, np.int64)])
        self.chunk_ids, self.document_ids = current[:, 0], current[:, 1]
        self._chunk_of_row = np.searchsorted(self.chunk_ids, self._owners)

    def best_windows(self, query: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the cosine similarity of each chunk's best window to a `(dim,)` unit query: `(chunks,)` float32."""
        scaled = query / np.float32(ONE)
        similarity = np.empty(BLOCK_ROWS * len(self._blocks), np.float32)
        for block, part in zip(self._blocks, similarity.reshape(-1, BLOCK_ROWS), strict=True):
            # Not `@`: BLAS would share the product among threads, which gains little and waits for a busy core.
            np.vecdot(block.astype(np.float32), scaled, out=part)
        best = np.full(len(self.chunk_ids), -1.0, np.float32)
        np.maximum.at(best, self._chunk_of_row, similarity[: len(self._owners)])
        return best

    def _row(self, place: int) -> NDArray[np.int16]:
        row: NDArray[np.int16] = self._blocks[place // BLOCK_ROWS][place % BLOCK_ROWS]
        return row

    def _remove(self, chunk_ids: NDArray[np.int64]) -> None:
        """Drop the rows of these chunks, moving the last rows into the holes."""
        if not len(chunk_ids):
            return
        gone = np.flatnonzero(np.isin(self._owners, chunk_ids))
        size = len(self._owners) - len(gone)
        holes = gone[gone < size]
        movers = np.setdiff1d(np.arange(size, len(self._owners)), gone, assume_unique=True)
        for hole, mover in zip(holes.tolist(), movers.tolist(), strict=True):
            self._row(hole)[:] = self._row(mover)
        self._owners[holes] = self._owners[movers]
        self._owners = self._owners[:size]
        del self._blocks[-(-size // BLOCK_ROWS) :]
