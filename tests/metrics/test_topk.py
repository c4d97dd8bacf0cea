import numpy as np
import pytest

from harmonrank.metrics import hit_at_k, ndcg_at_k, precision_at_k
from harmonrank.support.errors import UsageError
from reference import top_k_by_enumeration


def _gain(labels):
    return sum(y / np.log2(j + 2) for j, y in enumerate(labels))


def _expected(name, scores, labels, k):
    """One request by enumeration of all its tie orders; nan where the request is left out."""
    if name == "precision":
        return top_k_by_enumeration(scores, labels, k, np.mean)
    if not any(labels):
        return np.nan
    if name == "hit":
        return top_k_by_enumeration(scores, labels, k, any)
    best = _gain(sorted(labels, reverse=True)[:k])
    return top_k_by_enumeration(scores, labels, k, _gain) / best


FIGURES = {"precision": precision_at_k, "ndcg": ndcg_at_k, "hit": hit_at_k}


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.parametrize("k", [1, 2, 4, 10])
def test_equals_the_mean_over_all_tie_orders(name, k):
    rng = np.random.default_rng(k)
    sizes = rng.integers(1, 7, 25)
    groups = np.repeat([f"r{i}" for i in range(25)], sizes)
    scores = rng.integers(0, 3, len(groups))
    labels = (rng.random((len(groups), 2)) < [0.3, 0.6]).astype(int)
    expected = [
        np.nanmean(
            [
                _expected(name, scores[groups == g], list(labels[groups == g, m]), k)
                for g in np.unique(groups)
            ]
        )
        for m in range(2)
    ]
    np.testing.assert_allclose(FIGURES[name](scores, labels, groups, k), expected, rtol=1e-12)


@pytest.mark.parametrize("figure", FIGURES.values())
def test_row_order_does_not_matter(figure):
    rng = np.random.default_rng(0)
    scores, labels = rng.integers(0, 4, 500), rng.random((500, 2)) < 0.2
    groups, shuffled = rng.integers(0, 50, 500), rng.permutation(500)
    moved = figure(scores[shuffled], labels[shuffled], groups[shuffled], 5)
    np.testing.assert_array_equal(moved, figure(scores, labels, groups, 5))


@pytest.mark.parametrize("figure", FIGURES.values())
def test_perfect_order_is_one(figure):
    labels = np.array([1, 1, 0, 0, 1, 0])
    assert figure(labels + np.array([0.1, 0, 0.2, 0, 0, 0]), labels, [0, 0, 0, 0, 1, 1], 1) == 1


def test_requests_without_a_positive():
    scores, labels, groups = [1, 2, 1, 2], [0, 1, 0, 0], ["a", "a", "b", "b"]
    assert precision_at_k(scores, labels, groups, 1) == 0.5
    assert ndcg_at_k(scores, labels, groups, 1) == 1
    assert hit_at_k(scores, labels, groups, 1) == 1
    assert np.isnan(ndcg_at_k(scores, np.zeros(4), groups, 1)).all()
    assert np.isnan(hit_at_k(scores, np.zeros(4), groups, 1)).all()
    assert precision_at_k(scores, np.zeros(4), groups, 1) == 0


@pytest.mark.parametrize("figure", FIGURES.values())
def test_no_rows_is_nan(figure):
    result = figure(np.empty(0), np.empty((0, 2)), np.empty(0, int), 3)
    np.testing.assert_array_equal(result, [np.nan, np.nan])


def test_wrong_input_is_named():
    with pytest.raises(UsageError, match=r"`k` must be a whole number from 1 up\. Got 0"):
        hit_at_k([1, 2], [0, 1], [0, 0], 0)
    with pytest.raises(UsageError, match=r"`k` must be a whole number from 1 up\. Got 1\.5"):
        hit_at_k([1, 2], [0, 1], [0, 0], 1.5)
    with pytest.raises(UsageError, match=r"`labels` must be 0 or 1 here"):
        precision_at_k([1, 2], [0.5, 1], [0, 0], 1)
