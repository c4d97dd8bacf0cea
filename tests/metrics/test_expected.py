from itertools import permutations, product

import numpy as np
import pytest

from harmonrank.metrics import (
    best_request_score,
    expected_grouped_auc,
    grouped_auc,
    grouped_auc_intervals,
    request_gains,
)


def _all_labels(p):
    """Yield every vector of labels and its probability."""
    for labels in product([0, 1], repeat=len(p)):
        y = np.array(labels)
        yield y, np.prod(np.where(y == 1, p, 1 - p))


def _expected_by_labels(scores, p, groups):
    """Average over all labels of all requests, request by request."""
    total = say = 0.0
    for g in np.unique(groups):
        here = groups == g
        for y, chance in _all_labels(p[here]):
            area = grouped_auc(scores[here], y, np.zeros(here.sum(), int))[0]
            if not np.isnan(area):
                total, say = total + chance * here.sum() * area, say + chance * here.sum()
    return total / say


def test_equals_the_mean_over_all_labels():
    rng = np.random.default_rng(0)
    groups = np.array([0] * 2 + [1] * 5 + [2] * 7 + [3])
    p = rng.random((len(groups), 2)) ** 3
    scores = rng.integers(0, 4, len(groups)) / 2.0  # with ties
    result = expected_grouped_auc(scores, p, groups)
    for m in range(2):
        assert result[m] == pytest.approx(_expected_by_labels(scores, p[:, m], groups), rel=1e-12)


def test_certain_labels_give_the_plain_metric():
    rng = np.random.default_rng(1)
    scores, groups = rng.random(300), rng.integers(0, 30, 300)
    labels = (rng.random((300, 3)) < [0.1, 0.5, 0.0]).astype(float)
    expected = grouped_auc(scores, labels, groups)
    np.testing.assert_allclose(expected_grouped_auc(scores, labels, groups), expected, rtol=1e-12)


def test_is_what_drawn_labels_give_on_average():
    rng = np.random.default_rng(2)
    groups = np.repeat(np.arange(2_000), 12)
    p = 1 / (1 + np.exp(3 - rng.standard_normal((len(groups), 2)) * 1.5))
    scores = p[:, 0] + rng.random(len(groups))
    drawn = [grouped_auc(scores, rng.random(p.shape) < p, groups) for _ in range(20)]
    error = np.std(drawn, axis=0) / np.sqrt(20)
    assert (
        np.abs(np.mean(drawn, axis=0) - expected_grouped_auc(scores, p, groups)) < 4 * error
    ).all()


def test_more_nodes_change_nothing_in_a_long_request(monkeypatch):
    rng = np.random.default_rng(3)
    p, scores = rng.random((900, 1)) * [0.9], rng.random(900)
    few = expected_grouped_auc(scores, p, np.zeros(900, int))
    monkeypatch.setattr("harmonrank.metrics._expected._MOST_NODES", 451)
    np.testing.assert_allclose(expected_grouped_auc(scores, p, np.zeros(900, int)), few, rtol=1e-10)


@pytest.mark.parametrize("seed", range(4))
def test_no_order_of_a_request_beats_the_best_score_by_much(seed):
    rng = np.random.default_rng(seed)
    p, w = rng.random((5, 3)) ** 2, np.array([1.0, 2.0, 0.5])
    groups = np.zeros(5, int)
    totals = [
        w @ expected_grouped_auc(np.array(order), p, groups) for order in permutations(range(5))
    ]
    reached = w @ expected_grouped_auc(best_request_score(p, groups, w), p, groups)
    assert reached <= max(totals) + 1e-12
    # K_ij differs from pair to pair where probabilities are as wild as these.
    assert max(totals) - reached < 0.01 * (max(totals) - min(totals))


def test_gains_have_the_limits_of_rare_and_of_common_events():
    groups = np.repeat([0, 1], 40)
    rare = request_gains(np.full(80, 1e-6), groups)[:, 0]
    # n/(n − 1) per row of a usable request, of which there are n · nπ.
    np.testing.assert_allclose(rare * (2 * 40 * 40e-6), 40 / 39, rtol=1e-3)
    p = np.where(groups == 0, 0.5, 0.2)
    common = request_gains(p, groups)[:, 0]
    assert common[0] / common[-1] == pytest.approx((0.2 * 0.8) / (0.5 * 0.5), rel=0.07)


def test_objectives_without_a_usable_request_are_nan_or_gain_nothing():
    assert np.isnan(expected_grouped_auc([1, 2, 3], [[0.0], [0.0], [0.3]], [1, 1, 2])).all()
    assert not request_gains(np.array([0.5, 0.5]), [1, 2]).any()


def test_intervals_are_those_of_the_bootstrap_over_requests():
    rng = np.random.default_rng(4)
    groups = np.repeat(np.arange(400), 8)
    scores, labels = rng.random(3200), rng.random((3200, 2)) < [0.1, 0.4]
    labels[:, 0] |= (scores > 0.9) & (rng.random(3200) < 0.5)
    each, total = grouped_auc_intervals(scores, labels, groups, objective_weights=[1, 2])
    plain = grouped_auc(scores, labels, groups)
    np.testing.assert_allclose([i.estimate for i in each], plain, rtol=1e-12)
    assert total.estimate == pytest.approx(plain @ [1, 2])
    again = []
    for _ in range(200):
        drawn = rng.integers(0, 400, 400)
        rows = (drawn[:, None] * 8 + np.arange(8)).ravel()
        again.append(grouped_auc(scores[rows], labels[rows], np.repeat(np.arange(400), 8)))
    spread = np.std(again, axis=0) * 1.96
    reach = [(i.high - i.low) / 2 for i in each]
    np.testing.assert_allclose(reach, spread, rtol=0.2)
    assert (total.high - total.low) / 2 == pytest.approx(
        np.std(again @ np.array([1, 2])) * 1.96, rel=0.2
    )


def test_an_objective_that_no_request_shows_has_no_interval():
    each, total = grouped_auc_intervals([1, 2], [[0, 0], [1, 0]], [1, 1])
    assert each[0].estimate == 1.0
    assert np.isnan([each[0].low, each[1].estimate, total.estimate]).all()
    _, total = grouped_auc_intervals([1, 2], [[0, 0], [1, 0]], [1, 1], objective_weights=[1, 0])
    assert total.estimate == 1.0
