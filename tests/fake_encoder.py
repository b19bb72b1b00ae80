"""An encoder without a model: deterministic vectors from hashes of words, and a count of what was embedded."""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Iterable

import numpy as np
from numpy.typing import NDArray

from scree.core.encoder import Passage

WINDOW_WORDS = 40


class FakeEncoder:
    """Implements the `Encoder` protocol; texts that share words are alike, long ones have several windows.

    Attributes:
        embedded: every passage that was embedded, in order.
    """

    def __init__(self, fingerprint: str = "fake", dimension: int = 16) -> None:
        self.fingerprint = fingerprint
        self.dimension = dimension
        self.embedded: list[Passage] = []

    def encode_query(self, text: str) -> NDArray[np.float32]:
        total = np.full(self.dimension, 1e-3, np.float32)
        for word in text.lower().split():
            seed = int.from_bytes(hashlib.sha256(f"{self.fingerprint} {word}".encode()).digest()[:8])
            total += np.random.default_rng(seed).standard_normal(self.dimension, np.float32)
        unit: NDArray[np.float32] = total / np.linalg.norm(total)
        return unit

    def encode_documents(self, passages: Iterable[Passage]) -> Generator[NDArray[np.float32], None, None]:
        for passage in passages:
            self.embedded.append(passage)
            words = passage.text.split()
            windows = [words[start : start + WINDOW_WORDS] for start in range(0, len(words), WINDOW_WORDS)] or [[]]
            yield np.stack([self.encode_query(" ".join([passage.context, *window])) for window in windows])
