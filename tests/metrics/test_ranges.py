import numpy as np
import pytest

from harmonrank.metrics import (
    auc,
    auc_influence,
    grouped_auc_intervals,
    range_influence,
    range_totals,
    ranges_of,
    request_moments,
    splitters_of,
    tied_ranges,
    whole_totals,
)


def rows(seed, n=3000, ties=False, weighted=False):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=n)
    if ties:
        scores = np.round(scores, 1)
    labels = (rng.random((n, 3)) < [0.3, 0.02, 0.6]).astype(np.uint8)
    return scores, labels, rng.random(n) * 3 if weighted else None


def cut(scores, labels, weight, count, sample=50):
    splitters = splitters_of(scores[:sample], count)
    where = ranges_of(scores, splitters)
    taken = [np.flatnonzero(where == r) for r in range(len(splitters) + 1)]
    return [(scores[i], labels[i], None if weight is None else weight[i], i) for i in taken]


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("count", [1, 2, 7, 40])
def test_ranges_give_the_auc_of_one_sort_to_the_last_bit(count, ties):
    scores, labels, _ = rows(count, ties=ties)
    parts = cut(scores, labels, None, count)
    whole = whole_totals([range_totals(s, y) for s, y, _, _ in parts])
    # Sums of 0/1 labels and half ranks are exact, so the order of addition does not matter.
    assert whole.area.tolist() == auc(scores, labels).tolist()


def test_weights_and_fractions_are_equal_up_to_rounding():
    scores, _, weight = rows(5, ties=True, weighted=True)
    labels = np.random.default_rng(1).random((len(scores), 2))
    parts = cut(scores, labels, weight, 9)
    whole = whole_totals([range_totals(s, y, w) for s, y, w, _ in parts])
    np.testing.assert_allclose(whole.area, auc(scores, labels, sample_weight=weight), rtol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_influences_are_those_of_one_sort(weighted):
    scores, labels, weight = rows(3, ties=True, weighted=weighted)
    area, expected = auc_influence(scores, labels, sample_weight=weight)
    parts = cut(scores, labels, weight, 6)
    whole = whole_totals([range_totals(s, y, w) for s, y, w, _ in parts])
    np.testing.assert_allclose(whole.area, area, rtol=1e-12)
    for place, (s, y, w, index) in enumerate(parts):
        np.testing.assert_allclose(
            range_influence(s, y, w, whole, place), expected[index], rtol=1e-9, atol=1e-9
        )


def test_an_objective_of_one_class_has_no_auc():
    none = range_totals(np.empty(0), np.empty((0, 2)))
    whole = whole_totals([none, range_totals([0.1, 0.2], [[0, 1], [1, 1]])])
    assert whole.area[0] == 1.0
    assert np.isnan(whole.area[1])


def test_equal_scores_make_one_range():
    scores = np.full(100, 0.5)
    splitters = splitters_of(scores, 8)
    assert len(set(ranges_of(scores, splitters))) == 1
    assert splitters_of([], 8).size == 0


def test_moments_of_requests_add_up_to_the_intervals_of_all():
    scores, labels, weight = rows(8, weighted=True)
    request = np.random.default_rng(2).integers(0, 300, len(scores))
    objective_weights = np.arange(1.0, labels.shape[1] + 1)
    for w in (None, weight):
        parts = [
            request_moments(scores[i], labels[i], request[i], None if w is None else w[i])
            for i in (np.flatnonzero(request % 3 == k) for k in range(3))
        ]
        result = (parts[0] + parts[1] + parts[2]).intervals(objective_weights)
        expected = grouped_auc_intervals(
            scores, labels, request, objective_weights=objective_weights, sample_weight=w
        )
        for one, other in zip((*result[0], result[1]), (*expected[0], expected[1]), strict=True):
            np.testing.assert_allclose(
                [one.estimate, one.low, one.high],
                [other.estimate, other.low, other.high],
                rtol=1e-10,
            )


def test_a_score_that_fills_a_range_may_be_cut_anywhere():
    scores, labels, weight = rows(4, weighted=True)
    scores = np.where(scores < np.quantile(scores, 0.7), 0.0, scores)
    splitters = splitters_of(scores, 9)
    tied = tied_ranges(splitters)
    assert tied.sum() == 1
    of_row, parts, places = ranges_of(scores, splitters), [], []
    for place, single in enumerate(tied):
        index = np.flatnonzero(of_row == place)
        for some in np.array_split(index, 3 if single else 1):
            parts.append(some)
            places.append(place)
    given = [(scores[i], labels[i], weight[i]) for i in parts]
    whole = whole_totals([range_totals(*one) for one in given], places)
    np.testing.assert_allclose(whole.area, auc(scores, labels, sample_weight=weight), rtol=1e-12)
    _, expected = auc_influence(scores, labels, sample_weight=weight)
    for place, (index, one) in enumerate(zip(parts, given, strict=True)):
        np.testing.assert_allclose(
            range_influence(*one, whole, place), expected[index], rtol=1e-9, atol=1e-9
        )
