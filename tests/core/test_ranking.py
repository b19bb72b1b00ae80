from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from scree.core.ranking import document_scores, fused, hybrid_order, keyword_order, semantic_order, standard

NAN = float("nan")


def documents(*numbers: int) -> NDArray[np.int64]:
    return np.array(numbers, np.int64)


def scores(*values: float) -> NDArray[np.float64]:
    return np.array(values)


def test_a_document_scores_by_its_best_three_chunks_the_better_the_more() -> None:
    owner = np.array([0, 1, 0, 0, 1, 0, 2])
    means = document_scores(owner, scores(1, 5, 2, 3, 2, 4, 7))
    assert means == pytest.approx([(4 + 3 / 2 + 2 / 3) / (1 + 1 / 2 + 1 / 3), (5 + 2 / 2) / (1 + 1 / 2), 7])


def test_unknown_scores_of_a_document_do_not_count() -> None:
    means = document_scores(np.array([0, 0, 1, 2, 2]), scores(NAN, 2, NAN, 4, 2))
    assert means[[0, 2]] == pytest.approx([2, (4 + 2 / 2) / (1 + 1 / 2)])
    assert np.isnan(means[1])


def test_equal_scores_of_a_document_each_count() -> None:
    assert document_scores(np.array([0, 0, 0, 0]), scores(2, 2, 2, 1)) == pytest.approx([2])


def test_standard_scores_have_mean_zero_and_deviation_one() -> None:
    result = standard(scores(1, 2, 3, NAN, 6))
    assert np.isnan(result).tolist() == [False, False, False, True, False]
    assert np.nanmean(result) == pytest.approx(0)
    assert np.nanstd(result) == pytest.approx(1)


def test_equal_scores_tell_nothing() -> None:
    assert standard(scores(0.1, 0.1, 0.1)).tolist() == [0, 0, 0]


def test_documents_stand_in_their_order_each_with_its_best_chunk() -> None:
    where = documents(7, 7, 7, 9, 9, 9)
    order = semantic_order(where, scores(0.9, 0.3, 0.3, 0.6, 0.5, 0.7))
    assert where[order][0] == 9
    assert [int(position) for position in order if where[position] == 9] == [5, 3, 4]
    assert order.tolist().index(0) < order.tolist().index(4)


def test_a_long_document_does_not_fill_the_first_places() -> None:
    where = documents(*[1] * 20, 2, 3)
    dense = scores(0.9, *[0.5] * 19, 0.6, 0.55)
    assert set(where[semantic_order(where, dense)][:3].tolist()) == {1, 2, 3}


def test_keyword_order_leaves_out_chunks_without_a_word_of_the_query() -> None:
    assert keyword_order(documents(1, 1, 2), scores(0, 2, 3)).tolist() == [2, 1]
    assert keyword_order(documents(1), scores(0)).tolist() == []


def test_semantic_order_leaves_out_chunks_without_an_embedding() -> None:
    assert semantic_order(documents(1, 1, 2), scores(NAN, 0.1, 0.2)).tolist() == [2, 1]
    assert semantic_order(documents(1), scores(NAN)).tolist() == []


def test_hybrid_prefers_what_both_signals_like() -> None:
    order = hybrid_order(documents(1, 2, 3, 4), scores(5, 4, 0, 0), scores(0.1, 0.6, 0.7, 0.1))
    assert order[0] == 1
    assert len(order) == 4


def test_hybrid_without_any_embedding_is_the_order_of_words() -> None:
    lexical = scores(1, 5, 3, 4, 2)
    order = hybrid_order(documents(1, 1, 2, 3, 3), lexical, scores(*[NAN] * 5))
    assert order.tolist() == keyword_order(documents(1, 1, 2, 3, 3), lexical).tolist()


def test_hybrid_without_any_word_is_the_order_of_meaning() -> None:
    dense = scores(0.1, 0.5, 0.3, 0.4, 0.2)
    order = hybrid_order(documents(1, 1, 2, 3, 3), scores(*[0] * 5), dense)
    assert order.tolist() == semantic_order(documents(1, 1, 2, 3, 3), dense).tolist()


def test_what_is_not_embedded_yet_is_neither_favoured_nor_punished() -> None:
    lexical = scores(4, 3, 2, 1, 0, 0)
    dense = scores(0.8, 0.6, 0.4, 0.2, 0.0, 0.0)
    missing = dense.copy()
    missing[1] = NAN
    assert fused(lexical, missing).argsort().tolist() == fused(lexical, dense).argsort().tolist()


def test_words_that_mislead_the_known_predict_nothing() -> None:
    estimate = fused(scores(3, 2, 1, 3), scores(0.1, 0.2, 0.3, NAN))
    assert estimate[3] == pytest.approx(float(standard(scores(3, 2, 1, 3))[3]))


def test_equal_scores_keep_the_order_of_the_arguments() -> None:
    where = documents(*range(100))
    order = hybrid_order(where, scores(*[1] * 100), scores(*[0.5] * 100))
    assert order.tolist() == list(range(100))


def test_nothing_indexed_gives_nothing() -> None:
    empty = scores()
    assert hybrid_order(documents(), empty, empty).tolist() == []
    assert keyword_order(documents(), empty).tolist() == []
    assert semantic_order(documents(), empty).tolist() == []
