"""Results are spread over documents: the next of one that has given some counts less."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from scree.core.ranking import Spread


def taken(documents: list[int], scores: list[float], weights: list[float] | None = None) -> list[int]:
    spread = Spread(np.array(documents), np.array(scores), None if weights is None else np.array(weights))
    order = []
    for position, _ in spread:
        spread.take(position)
        order.append(position)
    return order


def test_the_second_of_a_document_waits_for_the_first_of_others() -> None:
    assert taken([1, 1, 2, 3, 3, 3], [10, 9, 7, 0, 0, 0]) == [0, 2, 1, 3, 4, 5]


def test_one_that_is_much_better_does_not_wait() -> None:
    assert taken([1, 1, 2, 3, 3, 3], [10, 9.9, 2.2, 0, 0, 0]) == [0, 1, 2, 3, 4, 5]


def test_what_was_not_taken_does_not_count() -> None:
    spread = Spread(np.array([1, 1, 2]), np.array([10.0, 9.0, 0.0]))
    assert [position for position, _ in spread] == [0, 1, 2]


def test_what_is_no_candidate_never_comes() -> None:
    assert taken([1, 2, 3], [1, -np.inf, 2]) == [2, 0]
    assert taken([], []) == []


def test_a_weight_moves_what_is_above_the_mean_down() -> None:
    assert taken([1, 2, 3, 4], [10, 9, 0, 0], [0.1, 1, 1, 1]) == [1, 0, 2, 3]


@given(st.lists(st.tuples(st.integers(0, 5), st.floats(-9, 9), st.sampled_from([0.5, 1.0])), min_size=1, max_size=40))
def test_everything_comes_once_and_counts_never_rise(candidates: list[tuple[int, float, float]]) -> None:
    documents, scores, weights = map(np.array, zip(*candidates, strict=True))
    spread = Spread(documents, scores.astype(float), weights)
    seen, counts = [], []
    for position, count in spread:
        spread.take(position)
        seen.append(position)
        counts.append(count)
    assert sorted(seen) == list(range(len(candidates)))
    assert counts == sorted(counts, reverse=True)
