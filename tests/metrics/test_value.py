import numpy as np
import pytest

from harmonrank.metrics import (
    bootstrap_values,
    events_at_k,
    percentiles,
    value_at_k,
)
from harmonrank.support import DataError
from reference import top_k_by_enumeration

VALUE = np.array([1.0, 10.0, -4.0])


def _log(seed, requests=25, scores=3):
    rng = np.random.default_rng(seed)
    groups = np.repeat([f"r{i}" for i in range(requests)], rng.integers(1, 7, requests))
    labels = (rng.random((len(groups), 3)) < [0.5, 0.1, 0.2]).astype(np.uint8)
    return rng.integers(0, scores, len(groups)), labels, groups


@pytest.mark.parametrize("k", [1, 2, 4, 10])
def test_equals_the_mean_over_all_tie_orders(k):
    scores, labels, groups = _log(k)
    gains = labels @ VALUE
    expected = np.mean(
        [
            top_k_by_enumeration(scores[groups == g], gains[groups == g], k, sum)
            for g in np.unique(groups)
        ]
    )
    assert value_at_k(scores, labels, groups, k, value=VALUE) == pytest.approx(expected, rel=1e-12)


def test_without_ties_it_is_the_sum_over_the_first_k():
    scores, labels, groups = _log(0, requests=300, scores=10**9)
    brute = [
        (labels[groups == g] @ VALUE)[np.argsort(-scores[groups == g])[:2]].sum()
        for g in np.unique(groups)
    ]
    mean = value_at_k(scores, labels, groups, 2, value=VALUE)
    drawn = bootstrap_values(scores, labels, groups, 2, value=VALUE, replicates=2000)
    result = percentiles(mean, drawn, 0.95)
    assert result.estimate == pytest.approx(np.mean(brute))
    reach = 1.96 * np.std(brute) / np.sqrt(len(brute))
    assert result.estimate - result.low == pytest.approx(reach, rel=0.15)
    assert result.high - result.estimate == pytest.approx(reach, rel=0.15)


def test_row_order_does_not_matter():
    scores, labels, groups = _log(5)
    order = np.random.default_rng(0).permutation(len(scores))
    moved = value_at_k(scores[order], labels[order], groups[order], 3, value=VALUE)
    assert moved == pytest.approx(value_at_k(scores, labels, groups, 3, value=VALUE), rel=1e-12)


def test_no_request_has_no_value():
    none = np.empty(0, np.int64)
    assert np.isnan(value_at_k(none, none, none, 3, value=[1.0]))
    assert np.isnan(bootstrap_values(none, none, none, 3, value=[1.0])).all()


@pytest.mark.parametrize("value", [[1.0], [1.0, 2.0, np.nan], 3.0])
def test_a_value_for_each_objective_is_needed(value):
    scores, labels, groups = _log(1)
    with pytest.raises(DataError, match="`value` must have one finite number for each of 3 obj"):
        value_at_k(scores, labels, groups, 3, value=value)


@pytest.mark.parametrize("k", [1, 3, 10])
def test_value_is_the_worth_of_the_events_at_k(k):
    scores, labels, groups = _log(k)
    events = events_at_k(scores, labels, groups, k)
    assert events @ VALUE == pytest.approx(value_at_k(scores, labels, groups, k, value=VALUE))
    assert np.isnan(events_at_k([], np.empty((0, 3)), np.empty(0, int), k)).all()
