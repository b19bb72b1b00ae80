from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from scree.core.lexical_index import LexicalIndex


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "index.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.executescript(LexicalIndex.CREATE)
    connection.close()
    return path


@pytest.fixture
def connection(path: Path) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(path, isolation_level=None)
    yield connection
    connection.close()


@pytest.fixture
def index(connection: sqlite3.Connection) -> LexicalIndex:
    return LexicalIndex(connection)


def add_bodies(index: LexicalIndex, *bodies: str, first: int = 1) -> None:
    for chunk_id, body in enumerate(bodies, first):
        index.add(chunk_id, 10 * chunk_id, heading="", body=body)


def found(index: LexicalIndex, query: str) -> list[int]:
    """The chunks that hold a word of the query, best first."""
    index.update()
    scores = index.scores(query)
    order = np.argsort(-scores, kind="stable")
    return [int(index.chunk_ids[position]) for position in order if scores[position] > 0]


def test_scores_are_okapi_bm25(index: LexicalIndex) -> None:
    add_bodies(index, "red red blue", "blue", "green green green green")
    index.update()
    mean_length = 8 / 3
    idf = np.log(1 + (3 - 1 + 0.5) / (1 + 0.5))
    expected = idf * 2 * 2.2 / (2 + 1.2 * (0.25 + 0.75 * 3 / mean_length))
    assert index.scores("red") == pytest.approx([expected, 0, 0], rel=1e-5)
    assert index.scores("red red RED") == pytest.approx(index.scores("red"))
    assert index.scores("red blue") == pytest.approx(index.scores("red") + index.scores("blue"), rel=1e-5)


@pytest.mark.requirement("keyword-any-word")
def test_no_word_is_required(index: LexicalIndex) -> None:
    add_bodies(index, "the cache folder", "another text")
    assert found(index, "cache unicorn") == [1]
    assert found(index, "unicorn") == []


@pytest.mark.requirement("keyword-more-and-rarer")
def test_more_words_and_rarer_words_rank_higher(index: LexicalIndex) -> None:
    add_bodies(index, "common filler", "common rare", "common text", "rare text", "other filler", "common other")
    assert found(index, "common rare")[:2] == [2, 4]


def test_a_word_in_the_heading_counts_more(index: LexicalIndex) -> None:
    index.add(1, 1, heading="Install", body="cache it again and again")
    index.add(2, 1, heading="Cache", body="install it again and again")
    assert found(index, "cache") == [2, 1]


def test_update_takes_up_what_was_added_and_removed(index: LexicalIndex) -> None:
    add_bodies(index, "alpha common", "beta common", "gamma common")
    assert found(index, "common") == [1, 2, 3]
    index.remove(20)
    add_bodies(index, "delta common", "beta delta", first=4)
    assert found(index, "common") == [1, 3, 4]
    assert found(index, "beta") == [5]
    assert index.chunk_ids.tolist() == [1, 3, 4, 5]
    assert index.document_ids.tolist() == [10, 30, 40, 50]
    index.remove(50)
    assert found(index, "beta") == []
    for document_id in (10, 30, 40):
        index.remove(document_id)
    assert found(index, "common") == []


def test_an_index_that_grew_scores_as_one_made_at_once(path: Path, index: LexicalIndex) -> None:
    add_bodies(index, "alpha beta", "beta", "alpha gamma")
    index.update()
    index.remove(10)
    add_bodies(index, "beta gamma gamma", "alpha", first=4)
    index.update()
    other = sqlite3.connect(path)
    fresh = LexicalIndex(other)
    fresh.update()
    for query in ("alpha", "beta gamma", "alpha beta gamma"):
        assert index.scores(query) == pytest.approx(fresh.scores(query))
    other.close()


def test_another_connection_sees_what_is_committed_only(path: Path, connection: sqlite3.Connection) -> None:
    writer, other = LexicalIndex(connection), sqlite3.connect(path)
    reader = LexicalIndex(other)
    connection.execute("BEGIN")
    add_bodies(writer, "alpha")
    assert found(reader, "alpha") == []
    connection.execute("COMMIT")
    assert found(reader, "alpha") == [1]
    connection.execute("BEGIN")
    writer.remove(10)
    connection.execute("ROLLBACK")
    assert found(reader, "alpha") == [1]
    other.close()


@pytest.mark.parametrize(
    "query",
    [
        *("2026.4.10", "real-time", "what's the budget?", "memory:safe", "(x", '"', "AND (", "*", "\0", "", "\ud800"),
        *(
            "NOT " * 2000,
            '"a" NEAR ' * 800,
            "\N{ICE CUBE}",
            "x" * 8000,
            "body:cache",
            "^cache",
            "cache*",
            "; DROP TABLE",
        ),
    ],
)
@pytest.mark.requirement("keyword-plain-text")
def test_no_query_is_an_error(index: LexicalIndex, query: str) -> None:
    add_bodies(index, "version 2026.4.10 in real time", "the budget is what is memory safe", "(x AND y)")
    index.update()
    scores = index.scores(query)
    assert np.isfinite(scores).all()
    assert (scores >= 0).all()


@pytest.mark.parametrize("query", ["2026.4.10", "2026-4-10 release"])
def test_an_empty_index_answers(index: LexicalIndex, query: str) -> None:
    assert found(index, query) == []


@pytest.mark.requirement("keyword-cjk")
def test_words_inside_text_without_spaces_are_found(index: LexicalIndex) -> None:
    add_bodies(index, "機械学習モデルの登録", "冷蔵倉庫の点検", "서버에서 오류가 발생했다", "机器学习模型")
    assert found(index, "モデル登録")[0] == 1
    assert found(index, "倉庫")[0] == 2
    assert found(index, "서버 오류")[0] == 3
    assert found(index, "学习")[0] == 4


def test_frequent_words_saturate_instead_of_overflowing(index: LexicalIndex) -> None:
    add_bodies(index, "spam " * 100_000, "spam")
    index.update()
    assert np.isfinite(index.scores("spam")).all()
