from __future__ import annotations

import tempfile
from contextlib import closing
from pathlib import Path

import hypothesis
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from scree.docs.chunks import Chunk, Document
from scree.docs.file_state import FileState
from scree.docs.store import Store
from scree.docs.vectors import EmbeddingMatrix

DIMENSION = 8
PATHS = [f"{letter}.md" for letter in "abcdef"]
STATE = FileState(1, 2, 3, 4)

texts = st.lists(st.integers(0, 12).map(lambda number: f"text {number}"), max_size=6)
# Between two updates: documents written (removed, where there is no text), and how much of that is embedded by then.
steps = st.lists(
    st.tuples(st.dictionaries(st.sampled_from(PATHS), st.none() | texts, max_size=4), st.integers(0, 10)), max_size=8
)


def vectors(key: bytes) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """One to three windows that depend on the content alone."""
    generator = np.random.default_rng(int.from_bytes(key))
    rows = generator.standard_normal((1 + key[0] % 3, DIMENSION), np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows


@hypothesis.settings(max_examples=40)
@given(steps)
def test_a_matrix_kept_up_to_date_equals_a_new_one(
    steps: list[tuple[dict[str, list[str] | None], int]],
) -> None:
    query = vectors(b"a query")[0]
    with tempfile.TemporaryDirectory() as folder, closing(Store.writer(Path(folder, "index.sqlite"))) as store:
        encoder_id = store.register_encoder("f", DIMENSION)
        kept = EmbeddingMatrix(DIMENSION)
        for written, embedded in steps:
            for path, content in written.items():
                if content is None:
                    store.remove_documents([path])
                    continue
                chunks = tuple(Chunk((), text, line, line) for line, text in enumerate(content, start=1))
                store.put_document(path, STATE, b"", 5, Document("", chunks, opted_out=False))
            missing = store.missing_embeddings(encoder_id)[:embedded]
            store.put_embeddings(encoder_id, [(key, vectors(key)) for key in missing])
            kept.update(store, encoder_id)
            new = EmbeddingMatrix(DIMENSION)
            new.update(store, encoder_id)
            assert kept.chunk_ids.tolist() == new.chunk_ids.tolist()
            assert kept.document_ids.tolist() == new.document_ids.tolist()
            expected = [
                float((rows @ query).max())
                for _, rows in store.embeddings(encoder_id, new.chunk_ids.tolist(), DIMENSION)
            ]
            np.testing.assert_allclose(new.best_windows(query), expected, atol=1e-4)
            np.testing.assert_allclose(kept.best_windows(query), expected, atol=1e-4)
