"""Unit vectors in memory, in half the room of float32, and their cosine similarity to a query: exact, row by row."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# Rows are kept in blocks of this many, 0.8 MB at 384 dimensions: one matrix would have to be copied whole to grow.
BLOCK_ROWS = 1_024

# In memory a coordinate is a 16-bit integer and this is 1: half the room of float32, finer than the half precision on
# disk, and turned into float32 ten times as fast, so that a search takes no longer for it.
ONE = 32_767


class UnitRows:
    """A list of unit vectors of one length that grows and shrinks at its end."""

    def __init__(self, dimension: int) -> None:
        self._dimension = dimension
        self._blocks: list[NDArray[np.int16]] = []
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def append(self, row: NDArray[np.float32]) -> None:
        """Add a unit vector (dimension,)."""
        if self._size == BLOCK_ROWS * len(self._blocks):
            self._blocks.append(np.zeros((BLOCK_ROWS, self._dimension), np.int16))
        self._row(self._size)[:] = np.rint(ONE * row)
        self._size += 1

    def move(self, place: int, to: int) -> None:
        """Write the row at `place` over the one at `to`."""
        self._row(to)[:] = self._row(place)

    def shorten(self, size: int) -> None:
        """Keep the first `size` rows."""
        self._size = size
        del self._blocks[-(-size // BLOCK_ROWS) :]

    def similarities(self, query: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the cosine similarity of each row to a `(dimension,)` unit query: `(rows,)` float32."""
        scaled = query / np.float32(ONE)
        similarity = np.empty(BLOCK_ROWS * len(self._blocks), np.float32)
        for block, part in zip(self._blocks, similarity.reshape(-1, BLOCK_ROWS), strict=True):
            # Not `@`: BLAS would share the product among threads, which gains little and waits for a busy core.
            np.vecdot(block.astype(np.float32), scaled, out=part)
        return similarity[: self._size]

    def _row(self, place: int) -> NDArray[np.int16]:
        row: NDArray[np.int16] = self._blocks[place // BLOCK_ROWS][place % BLOCK_ROWS]
        return row
