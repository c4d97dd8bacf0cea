import numpy as np
import pytest

from harmonrank.metrics import auc, grouped_auc, request_areas
from reference import auc_by_pairs


def _log(seed, n=400, requests=40):
    rng = np.random.default_rng(seed)
    labels = rng.random((n, 3)) < [0.1, 0.4, 0.0]
    return rng.integers(0, 9, n) / 2, labels, rng.integers(0, requests, n) * 3 - 7, rng


def _loop(scores, labels, groups, weights):
    """Average the AUC of each request in turn, by its rows, for one objective."""
    total = say = 0
    for g in np.unique(groups):
        here = groups == g
        area = auc_by_pairs(scores[here], labels[here].astype(float), weights[here])
        if not np.isnan(area):
            total, say = total + weights[here].sum() * area, say + weights[here].sum()
    return total / say if say else np.nan


@pytest.mark.parametrize("weighted", [False, True])
def test_equals_a_loop_over_requests(weighted):
    scores, labels, groups, rng = _log(0)
    weights = rng.exponential(size=400) if weighted else np.ones(400)
    result = grouped_auc(scores, labels, groups, sample_weight=weights if weighted else None)
    expected = [_loop(scores, labels[:, m], groups, weights) for m in range(3)]
    np.testing.assert_allclose(result, expected, rtol=1e-12)


def test_ids_of_any_kind_and_order_give_the_same():
    scores, labels, groups, rng = _log(1)
    expected = grouped_auc(scores, labels, groups)
    far = groups.astype(np.int64) * 10**15
    for ids in (
        groups.astype(str),
        groups.astype(str).astype(object),
        far,
        -groups,
        groups.astype("i2"),
    ):
        np.testing.assert_allclose(grouped_auc(scores, labels, ids), expected, rtol=1e-12)
    shuffled = rng.permutation(400)
    moved = grouped_auc(scores[shuffled], labels[shuffled], groups[shuffled])
    np.testing.assert_array_equal(moved, expected)


def test_unsigned_ids_beyond_int64():
    ids = np.array([2**64 - 1, 2**64 - 1, 2**63, 2**63], dtype=np.uint64)
    assert grouped_auc([1, 2, 3, 4], [0, 1, 1, 0], ids)[0] == 0.5


def test_one_request_is_the_plain_auc():
    scores, labels, _, _ = _log(2)
    result = grouped_auc(scores, labels, np.zeros(400, int))
    np.testing.assert_allclose(result, auc(scores, labels), rtol=1e-12)


def test_a_shift_per_request_changes_nothing():
    scores, labels, groups, _ = _log(3)
    expected = grouped_auc(scores, labels, groups)
    np.testing.assert_array_equal(grouped_auc(scores + 100 * groups, labels, groups), expected)


def test_objective_without_a_usable_request_is_nan():
    result = grouped_auc([1, 2, 3], [[1, 0], [1, 1], [0, 0]], ["a", "a", "b"])
    np.testing.assert_array_equal(result, [np.nan, 1.0])


def test_fractions_give_the_expected_share_of_pairs():
    rng = np.random.default_rng(4)
    scores, p = np.array([1.0, 2.0, 2.0, 5.0]), np.array([0.2, 0.5, 0.9, 0.4])
    drawn = rng.random((20_000, 4)) < p
    requests = np.repeat(np.arange(20_000), 4)
    area, _, pairs = request_areas(np.tile(scores, 20_000), drawn.ravel(), requests)
    exact = grouped_auc(scores, p, np.zeros(4, int))
    assert exact[0] == pytest.approx(np.average(area[:, 0], weights=pairs[:, 0]), abs=0.01)
    assert np.isnan(grouped_auc([1.0], [0.5], [0])[0])


def test_no_rows():
    result = grouped_auc(np.empty(0), np.empty((0, 2)), np.empty(0, int))
    np.testing.assert_array_equal(result, [np.nan, np.nan])
