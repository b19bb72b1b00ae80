from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from scree.core.database import content_key
from scree.core.vectors import BLOCK_ROWS
from scree.docs.chunks import Chunk, Document
from scree.docs.file_state import FileState
from scree.docs.store import Store
from scree.docs.vectors import EmbeddingMatrix

DIMENSION = 4
STATE = FileState(1, 2, 3, 4)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store.writer(tmp_path / "index.sqlite")) as opened:
        opened.register_encoder("f", DIMENSION)
        yield opened


def put(store: Store, path: str, *texts: str) -> None:
    chunks = tuple(Chunk((), text, number, number) for number, text in enumerate(texts, start=1))
    store.put_document(path, STATE, b"", 5, Document("", chunks, opted_out=False))


def embed(store: Store, text: str, *windows: list[float]) -> None:
    store.put_embeddings(1, [(content_key("", text), np.array(windows, np.float32))])


def chunk_ids(store: Store, path: str) -> list[int]:
    return [chunk.id for chunk in store.chunks_of(store.documents()[path].id)]


def axis(number: int) -> NDArray[np.float32]:
    unit = np.zeros(DIMENSION, np.float32)
    unit[number] = 1
    return unit


def similarities(matrix: EmbeddingMatrix, query: NDArray[np.float32]) -> dict[int, float]:
    best = matrix.best_windows(query).round(4)  # a matrix of 16-bit integers holds the fifth decimal roughly
    return dict(zip(matrix.chunk_ids.tolist(), best.tolist(), strict=True))


def test_an_empty_index_has_no_similarities(store: Store) -> None:
    matrix = EmbeddingMatrix(DIMENSION)
    assert matrix.best_windows(axis(0)).shape == (0,)
    matrix.update(store, 1)
    assert matrix.best_windows(axis(0)).shape == matrix.chunk_ids.shape == matrix.document_ids.shape == (0,)


@pytest.mark.requirement("encoder-windows")
def test_a_chunk_scores_by_its_best_window(store: Store) -> None:
    put(store, "a.md", "long", "short")
    embed(store, "long", [1, 0, 0, 0], [0, 1, 0, 0], [0, 0.5, 0.5, 0])
    embed(store, "short", [0, -1, 0, 0])
    matrix = EmbeddingMatrix(DIMENSION)
    matrix.update(store, 1)
    long, short = chunk_ids(store, "a.md")
    assert similarities(matrix, axis(0)) == {long: 1.0, short: 0.0}
    assert similarities(matrix, axis(1)) == {long: 1.0, short: -1.0}
    assert similarities(matrix, axis(2)) == {long: 0.5, short: 0.0}
    assert matrix.best_windows(axis(0)).dtype == np.float32


def test_chunks_without_an_embedding_are_not_in_it_until_they_have_one(store: Store) -> None:
    put(store, "a.md", "one", "two")
    embed(store, "two", [0, 1, 0, 0])
    matrix = EmbeddingMatrix(DIMENSION)
    matrix.update(store, 1)
    one, two = chunk_ids(store, "a.md")
    assert matrix.chunk_ids.tolist() == [two]
    embed(store, "one", [1, 0, 0, 0])
    matrix.update(store, 1)
    assert matrix.chunk_ids.tolist() == [one, two]
    assert similarities(matrix, axis(0)) == {one: 1.0, two: 0.0}


def test_identical_chunks_of_two_documents_are_two_rows_of_one_embedding(store: Store) -> None:
    put(store, "a.md", "same")
    put(store, "b.md", "same")
    embed(store, "same", [0, 0, 1, 0])
    matrix = EmbeddingMatrix(DIMENSION)
    matrix.update(store, 1)
    assert matrix.chunk_ids.tolist() == chunk_ids(store, "a.md") + chunk_ids(store, "b.md")
    assert matrix.document_ids.tolist() == [store.documents()[path].id for path in ("a.md", "b.md")]
    assert matrix.best_windows(axis(2)).tolist() == [1.0, 1.0]


def test_an_update_reads_only_what_is_new(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    put(store, "a.md", "one", "two")
    embed(store, "one", [1, 0, 0, 0])
    embed(store, "two", [0, 1, 0, 0])
    matrix = EmbeddingMatrix(DIMENSION)
    matrix.update(store, 1)
    asked: list[int] = []
    embeddings = Store.embeddings

    def counted(
        self: Store, encoder_id: int, chunk_ids: list[int], dimension: int
    ) -> Iterator[tuple[int, NDArray[np.float32]]]:
        asked.extend(chunk_ids)
        return embeddings(self, encoder_id, chunk_ids, dimension)

    monkeypatch.setattr(Store, "embeddings", counted)
    matrix.update(store, 1)
    assert asked == []
    put(store, "b.md", "one")
    store.remove_documents(["a.md"])
    matrix.update(store, 1)
    assert asked == chunk_ids(store, "b.md") == matrix.chunk_ids.tolist()


def test_it_grows_as_far_as_it_has_to(store: Store) -> None:
    count = 2 * BLOCK_ROWS  # half precision holds integers up to 2,048
    put(store, "a.md", *(f"text {number}" for number in range(count)))
    matrix = EmbeddingMatrix(DIMENSION)
    for half in (range(0, count, 2), range(1, count, 2)):
        for number in half:
            embed(store, f"text {number}", [number / count, 0, 0, 1], [0, number / count, 0, 0])
        matrix.update(store, 1)
    assert (matrix.best_windows(axis(0)) * count).round().tolist() == list(range(count))
    assert (matrix.best_windows(axis(1)) * count).round().tolist() == list(range(count))
    store.remove_documents(["a.md"])
    matrix.update(store, 1)
    assert matrix.best_windows(axis(0)).shape == (0,)
    put(store, "a.md", "text 7")
    matrix.update(store, 1)
    assert (matrix.best_windows(axis(0)) * count).round().tolist() == [7.0]
