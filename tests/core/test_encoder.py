"""The encoder that the package carries, run for real: what its vectors mean, and what it does to odd text and files."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from scree.core.encoder import (
    BUILTIN,
    BUILTIN_FOLDER,
    MANIFEST_NAME,
    MAX_QUERY_WINDOWS,
    SLICE_CHARS,
    Encoder,
    Manifest,
    Passage,
    load_encoder,
    windows,
)
from scree.errors import EncoderError

FILLER = (
    "The kitchen garden lies behind the house, between the stable and the old wall. Beans are sown in May, when the "
    "nights are no longer cold, and leeks are set out in July. Water in the morning, and never at noon. "
)
PASSWORD = "Whoever has forgotten the password signs in with the recovery code."
QUESTION = "I lost my password, how do I log in?"

# Unit length as float32 arithmetic over 384 values keeps it.
UNIT = 1e-5


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    return load_encoder(BUILTIN, threads=2)


def rows(encoder: Encoder, text: str, context: str = "") -> NDArray[np.float32]:
    """The vectors of one passage."""
    (vectors,) = encoder.encode_documents([Passage(context, text)])
    return vectors


def write_manifest(folder: Path, **changed: object) -> Path:
    """A folder with the builtin encoder's manifest, some keys changed."""
    facts = json.loads((BUILTIN_FOLDER / MANIFEST_NAME).read_bytes())
    (folder / MANIFEST_NAME).write_text(json.dumps(facts | changed))
    return folder


def write_garbage(folder: Path, *names: str) -> Path:
    """A folder whose digests are right, but the files named are not what they should be."""
    digests = json.loads((BUILTIN_FOLDER / MANIFEST_NAME).read_bytes())["sha256"]
    for name in digests:
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(BUILTIN_FOLDER / name)
    for name in names:
        (folder / name).unlink()
        (folder / name).write_text("garbage")
        digests[name] = hashlib.sha256(b"garbage").hexdigest()
    return write_manifest(folder, sha256=digests)


# ---------------------------------------------------------------------------------------------------- What vectors mean


@pytest.mark.requirement("encoder-builtin")
def test_the_carried_files_are_those_their_card_records() -> None:
    manifest = Manifest.read(BUILTIN)
    card = (BUILTIN_FOLDER / "card.md").read_text()
    for name, digest in manifest.sha256.items():
        assert manifest.file(name).is_file()
        assert f"| `{name}` |" in card
        assert digest in card
    assert "Apache License" in (BUILTIN_FOLDER / "LICENSE").read_text()


def test_vectors_have_unit_length(encoder: Encoder) -> None:
    vectors = np.concatenate([rows(encoder, text) for text in ("", "word", "a sentence of some words", FILLER * 10)])
    assert vectors.dtype == np.float32
    assert vectors.shape[1] == encoder.dimension == 384
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=UNIT)
    query = encoder.encode_query(QUESTION)
    assert query.shape == (384,)
    assert query.dtype == np.float32
    assert np.linalg.norm(query) == pytest.approx(1, abs=UNIT)


@pytest.mark.parametrize(
    ("query", "near", "far"),
    [
        (QUESTION, PASSWORD, "Passwords are stored as salted hashes, twelve rounds."),
        ("undo the last commit", "git reset moves the branch back to an earlier revision.", "git log lists revisions."),
        ("make it faster", "Caching halves the time that a build takes.", "The build prints the time it started."),
    ],
)
def test_the_answer_is_nearer_than_its_neighbour(encoder: Encoder, query: str, near: str, far: str) -> None:
    vector = encoder.encode_query(query)
    assert rows(encoder, near)[0] @ vector > rows(encoder, far)[0] @ vector


def test_a_query_is_embedded_as_a_passage_is(encoder: Encoder) -> None:
    np.testing.assert_allclose(encoder.encode_query(PASSWORD), rows(encoder, PASSWORD)[0], atol=UNIT)


# -------------------------------------------------------------------------------------------------------------- Windows


@given(st.integers(0, 3_000), st.integers(2, 300), st.data())
def test_windows_cover_every_token(tokens: int, size: int, data: st.DataObject) -> None:
    overlap = data.draw(st.integers(0, size - 1))
    parts = windows(tokens, size, overlap)
    assert parts[0].start == 0
    assert parts[-1].stop == tokens
    assert len({part.stop - part.start for part in parts}) == 1
    assert parts[0].stop <= size
    assert all(before.stop - after.start >= overlap for before, after in pairwise(parts))


def test_windows_are_as_few_as_can_be() -> None:
    assert len(windows(256, 256, 32)) == 1
    assert len(windows(257, 256, 32)) == 2
    assert len(windows(480, 256, 32)) == 2
    assert len(windows(481, 256, 32)) == 3


@pytest.mark.requirement("chunks-all-embedded")
@pytest.mark.requirement("encoder-windows")
def test_the_last_sentence_of_a_long_section_is_found(encoder: Encoder) -> None:
    section = (FILLER * 20)[: 3_400 - len(PASSWORD)] + PASSWORD
    query = encoder.encode_query(QUESTION)
    scores = rows(encoder, section) @ query
    assert len(scores) > 1
    assert scores.argmax() == len(scores) - 1
    assert scores.max() > (rows(encoder, FILLER * 17) @ query).max() + 0.05


@pytest.mark.requirement("chunks-all-embedded")
@pytest.mark.parametrize("position", range(0, 3_300, 300))
def test_a_sentence_is_seen_wherever_it_stands(encoder: Encoder, position: int) -> None:
    filler = FILLER * 20
    section = f"{filler[:position]}\n\n{PASSWORD}\n\n{filler[position:3_300]}"
    query = encoder.encode_query(QUESTION)
    assert (rows(encoder, section) @ query).max() > (rows(encoder, filler[:3_300]) @ query).max() + 0.02


@pytest.mark.requirement("chunks-trail-embedded")
def test_context_is_in_front_of_every_window(encoder: Encoder) -> None:
    query = encoder.encode_query("recover a lost password")
    plain = rows(encoder, FILLER * 15) @ query
    titled = rows(encoder, FILLER * 15, "Account > Recovering a lost password") @ query
    assert titled.min() > plain.max() + 0.05


def test_of_a_long_context_the_end_is_seen(encoder: Encoder) -> None:
    trail = f"{FILLER * 4} > Recovering a lost password"
    query = encoder.encode_query("recover a lost password")
    assert (rows(encoder, FILLER, trail) @ query)[0] > (rows(encoder, FILLER, FILLER * 4) @ query)[0] + 0.05


def test_a_long_query_is_read_to_its_end(encoder: Encoder) -> None:
    tail = encoder.encode_query(PASSWORD)
    filler = (FILLER * 40)[:7_000]
    long_query = encoder.encode_query(filler + f" {PASSWORD}" * 14)
    assert np.linalg.norm(long_query) == pytest.approx(1, abs=UNIT)
    assert long_query @ tail > encoder.encode_query(filler) @ tail + 0.05


def test_an_endless_query_is_cut(encoder: Encoder) -> None:
    text = FILLER * 100
    expected = rows(encoder, text)[:MAX_QUERY_WINDOWS].mean(axis=0)
    expected /= np.linalg.norm(expected)
    np.testing.assert_allclose(encoder.encode_query(text), expected, atol=UNIT)


# ------------------------------------------------------------------------------------------ The same whatever is around


def test_a_vector_depends_on_nothing_but_its_passage(encoder: Encoder) -> None:
    passages = [Passage(f"Page {number}", FILLER[: 7 * number] * (1 + number % 5)) for number in range(1, 25)]
    together = list(encoder.encode_documents(passages))
    backwards = list(encoder.encode_documents(passages[::-1]))[::-1]
    alone = [rows(encoder, passage.text, passage.context) for passage in passages]
    one_thread = list(load_encoder(BUILTIN, threads=1).encode_documents(passages))
    for other in (backwards, alone, one_thread):
        assert all(np.array_equal(left, right) for left, right in zip(together, other, strict=True))


def test_queries_are_answered_while_documents_are_embedded(encoder: Encoder) -> None:
    expected = encoder.encode_query(QUESTION)
    for _ in encoder.encode_documents([Passage("", FILLER * number) for number in range(1, 10)]):
        assert np.array_equal(encoder.encode_query(QUESTION), expected)


def test_passages_are_taken_as_they_are_needed(encoder: Encoder) -> None:
    taken = 0

    def endless() -> Iterator[Passage]:
        nonlocal taken
        while True:
            taken += 1
            yield Passage("", "one more")

    vectors = encoder.encode_documents(endless())
    next(vectors)
    assert taken < 50
    vectors.close()


def test_no_passages_no_vectors(encoder: Encoder) -> None:
    assert list(encoder.encode_documents([])) == []


# ------------------------------------------------------------------------------------------------------------- Odd text


@pytest.mark.parametrize(
    "text", ["", " \n\t ", "\u200b", "\x00", "😀", "👩‍👩‍👧", "\ud83d", "日本語のテキスト", "ﷺ" * 50]
)
def test_any_text_has_a_vector(encoder: Encoder, text: str) -> None:
    assert np.linalg.norm(encoder.encode_query(text)) == pytest.approx(1, abs=UNIT)
    assert rows(encoder, text, text).shape == (1, encoder.dimension)


def test_half_a_surrogate_pair_counts_as_a_question_mark(encoder: Encoder) -> None:
    assert np.array_equal(encoder.encode_query("is it é\udcff so"), encoder.encode_query("is it é? so"))


@pytest.mark.parametrize("name", ["[CLS]", "[SEP]", "[MASK]", "[PAD]", "[UNK]"])
def test_special_tokens_in_text_are_plain_text(encoder: Encoder, name: str) -> None:
    spaced = f"[ {name[1:-1].lower()} ]"
    assert np.array_equal(
        encoder.encode_query(f"mind the {name} here"), encoder.encode_query(f"mind the {spaced} here")
    )


def test_one_huge_word(encoder: Encoder) -> None:
    assert rows(encoder, "x" * 900_000).shape == (1, encoder.dimension)


def test_a_line_longer_than_one_slice_is_read_to_its_end(encoder: Encoder) -> None:
    line = ("salt " * (SLICE_CHARS // 5 + 1))[:SLICE_CHARS] + PASSWORD
    scores = rows(encoder, line) @ encoder.encode_query(QUESTION)
    assert scores.argmax() == len(scores) - 1


# -------------------------------------------------------------------------------------------- Folders and what they say


@pytest.mark.requirement("encoder-fingerprint")
def test_the_fingerprint_covers_files_and_settings(tmp_path: Path, encoder: Encoder) -> None:
    assert re.fullmatch("[0-9a-f]{64}", encoder.fingerprint)
    same = Manifest.read(str(write_manifest(tmp_path)))
    assert same.fingerprint == encoder.fingerprint == Manifest.read(BUILTIN).fingerprint
    changes: list[dict[str, Any]] = [
        {"window_tokens": 96},
        {"query_prefix": "query: "},
        {"sha256": dict(same.sha256) | {"model.onnx": "0" * 64}},
    ]
    changed = {Manifest.read(str(write_manifest(tmp_path, **change))).fingerprint for change in changes}
    assert len(changed | {same.fingerprint}) == 4


def test_a_folder_is_an_encoder_like_the_builtin_one(tmp_path: Path, encoder: Encoder) -> None:
    write_garbage(tmp_path)
    other = load_encoder(str(tmp_path))
    assert other.fingerprint == encoder.fingerprint
    assert np.array_equal(other.encode_query(QUESTION), encoder.encode_query(QUESTION))


def test_the_window_is_a_setting(tmp_path: Path, encoder: Encoder) -> None:
    write_garbage(tmp_path)
    write_manifest(tmp_path, window_tokens=256)
    assert len(rows(load_encoder(str(tmp_path)), FILLER * 10)) < len(rows(encoder, FILLER * 10))


def test_prefixes_go_in_front(tmp_path: Path, encoder: Encoder) -> None:
    write_garbage(tmp_path)
    write_manifest(tmp_path, query_prefix="query: ", document_prefix="passage: ")
    other = load_encoder(str(tmp_path))
    assert np.array_equal(other.encode_query("salt"), encoder.encode_query("query: salt"))
    assert np.array_equal(rows(other, "salt", "herbs"), rows(encoder, "salt", "passage: herbs"))


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"kind": "oracle"}, 'unknown kind "oracle"'),
        ({"dimension": "many"}, 'needs "dimension", of the type int'),
        ({"sha256": None}, 'needs "sha256", of the type dict'),
        ({"window_tokens": 90}, "leaves no room for text in 90 tokens"),
        ({"sha256": {"model.onnx": "0" * 64}}, r"model\.onnx\" is damaged or not the one"),
        ({"sha256": {}}, r"model\.onnx\" is damaged or not the one"),
    ],
)
def test_a_manifest_that_cannot_be_used(tmp_path: Path, changed: dict[str, object], sentence: str) -> None:
    write_garbage(tmp_path)
    with pytest.raises(EncoderError, match=sentence):
        load_encoder(str(write_manifest(tmp_path, **changed)))


@pytest.mark.parametrize(("content", "sentence"), [("{", "Cannot read"), ("[]", "holds no JSON object")])
def test_a_manifest_that_is_none(tmp_path: Path, content: str, sentence: str) -> None:
    (tmp_path / MANIFEST_NAME).write_text(content)
    with pytest.raises(EncoderError, match=sentence):
        load_encoder(str(tmp_path))


def test_no_such_folder(tmp_path: Path) -> None:
    with pytest.raises(EncoderError, match=r'There is no encoder in ".*nowhere": name "builtin" or a folder'):
        load_encoder(str(tmp_path / "nowhere"))


def test_a_missing_file(tmp_path: Path) -> None:
    write_garbage(tmp_path)
    (tmp_path / "tokenizer.json").unlink()
    with pytest.raises(EncoderError, match=r'Cannot read the encoder file ".*tokenizer\.json": No such file'):
        load_encoder(str(tmp_path))


@pytest.mark.parametrize(("name", "library"), [("model.onnx", "ONNX Runtime"), ("tokenizer.json", "tokenizers")])
def test_a_file_its_library_cannot_load(tmp_path: Path, name: str, library: str) -> None:
    with pytest.raises(EncoderError, match=f"{library} cannot load .*{name}"):
        load_encoder(str(write_garbage(tmp_path, name)))


@pytest.mark.parametrize("library", ["onnxruntime", "tokenizers"])
def test_a_library_that_is_not_installed(monkeypatch: pytest.MonkeyPatch, library: str) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(EncoderError, match=f"needs {library}, which cannot be imported"):
        load_encoder(BUILTIN)


# -------------------------------------------------------------------------------------------------------- A quiet guest


@pytest.mark.requirement("encoder-builtin")
def test_nothing_heavy_before_loading_and_no_word_after() -> None:
    script = """
import sys
from scree.core import encoder
heavy = {"numpy", "onnxruntime", "tokenizers", "torch", "transformers", "huggingface_hub"}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
encoder.Manifest.read(encoder.BUILTIN)
assert not heavy & set(sys.modules), heavy & set(sys.modules)
loaded = encoder.load_encoder(encoder.BUILTIN)
loaded.encode_query("anything")
list(loaded.encode_documents([encoder.Passage("", "anything")]))
assert not {"torch", "transformers"} & set(sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=50, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
