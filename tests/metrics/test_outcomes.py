"""Outcomes of every kind: concordance, conditional AUC, and all that is built on them."""

import numpy as np
import pytest

from harmonrank.metrics import (
    Outcomes,
    auc,
    auc_influence,
    auc_intervals,
    auc_sum_interval,
    bootstrap_areas,
    concordance,
    events_at_k,
    grouped_auc,
    grouped_auc_intervals,
    value_at_k,
)
from harmonrank.metrics._concordance import concordance_influence
from harmonrank.support import UsageError
from resampled import bootstrap_auc_sum


def by_pairs(scores, labels, weight):
    """Count the pairs one by one."""
    won = total = 0.0
    for i in range(len(scores)):
        for j in range(len(scores)):
            if labels[i] > labels[j]:
                both = weight[i] * weight[j]
                total += both
                won += both * ((scores[i] > scores[j]) + 0.5 * (scores[i] == scores[j]))
    return won / total if total else np.nan


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("levels", [2, 5, 1000])
def test_concordance_is_the_share_of_pairs(seed, levels):
    rng = np.random.default_rng(seed)
    scores, labels = rng.integers(0, 12, 60) / 7, rng.integers(0, levels, 60) * 1.5 - 3
    weight = rng.choice([0.0, 0.5, 1.0, 3.0], 60)
    result = concordance(scores, labels, sample_weight=weight)
    assert result == pytest.approx(by_pairs(scores, labels, weight))
    assert concordance(scores, labels) == pytest.approx(by_pairs(scores, labels, np.ones(60)))
    assert concordance(-scores, labels) == pytest.approx(1 - concordance(scores, labels))
    # Only the order of labels counts.
    assert concordance(scores, np.exp(labels / 100)) == concordance(scores, labels)


def test_concordance_of_0_and_1_is_auc_and_so_is_its_influence():
    rng = np.random.default_rng(0)
    scores, labels, weight = rng.integers(0, 30, 500), rng.random(500) < 0.3, rng.random(500)
    area, influence = auc_influence(scores, labels, sample_weight=weight)
    result, moves = concordance_influence(scores, labels.astype(float), sample_weight=weight)
    assert result == pytest.approx(area[0])
    np.testing.assert_allclose(moves, influence[:, 0], atol=1e-10)


def test_influence_is_the_derivative_by_the_weight_of_a_row():
    rng = np.random.default_rng(1)
    scores, labels, weight = rng.integers(0, 9, 40), rng.integers(0, 6, 40), rng.random(40) + 0.5
    _, influence = concordance_influence(scores, labels, sample_weight=weight)
    for row in range(0, 40, 7):
        more, less = weight.copy(), weight.copy()
        more[row] += 1e-6
        less[row] -= 1e-6
        up, down = (concordance(scores, labels, sample_weight=w) for w in (more, less))
        slope = (up - down) / 2e-6
        # φ is n w dC/dw, and the weights' own scale does not count.
        assert influence[row] == pytest.approx(40 * weight[row] * slope, abs=1e-6)


def test_concordance_without_a_pair_is_nan_and_bad_labels_are_refused():
    assert np.isnan(concordance([1, 2], [3, 3]))
    assert np.isnan(concordance([], []))
    with pytest.raises(UsageError, match=r"one number per score, \(2,\). Got \(3,\)"):
        concordance([1, 2], [1, 2, 3])
    with pytest.raises(UsageError, match="`labels` must be finite"):
        concordance([1, 2], [1, np.nan])


def of_each_kind(n=400, seed=0):
    """Return scores, and outcomes of a click, an order given click and seconds."""
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 60, n) / 10
    click = rng.random(n) < 0.2 + 0.1 * scores / 6
    order = (rng.random(n) < 0.5 + 0.05 * scores) & click
    seconds = np.floor(rng.exponential(3 + scores))
    values = np.stack([click, order, seconds], axis=1).astype(float)
    shown = np.stack([np.ones(n), click, np.ones(n)], axis=1)
    return scores, Outcomes(values, np.array([False, False, True]), shown)


def test_each_objective_is_measured_as_its_kind_on_the_rows_that_show_it():
    scores, result = of_each_kind()
    weight = np.random.default_rng(1).random(400)
    shown = result.shown[:, 1] > 0
    expected = [
        auc(scores, result.values[:, 0], sample_weight=weight),
        auc(scores[shown], result.values[shown, 1], sample_weight=weight[shown]),
        concordance(scores, result.values[:, 2], sample_weight=weight),
    ]
    np.testing.assert_allclose(auc(scores, result, sample_weight=weight), expected)
    np.testing.assert_allclose(
        auc(scores, result.columns([2, 0]), sample_weight=weight), [expected[2], expected[0]]
    )


def test_intervals_and_resampled_areas_agree_for_every_kind():
    scores, result = of_each_kind(3000)
    groups = np.arange(3000) // 3
    each = auc_intervals(scores, result, groups=groups)[0]
    drawn = bootstrap_areas(scores, result, groups=groups, replicates=400)
    for m, interval in enumerate(each):
        width = (interval.high - interval.low) / (2 * 1.96)
        assert drawn[:, m].mean() == pytest.approx(interval.estimate, abs=0.3 * width)
        assert drawn[:, m].std() == pytest.approx(width, rel=0.15)
    total = auc_sum_interval(scores, result, objective_weights=[1, 2, -1], groups=groups)
    same = bootstrap_auc_sum(scores, result, objective_weights=[1, 2, -1], groups=groups)
    assert total.estimate == pytest.approx(same.estimate)
    assert total.high - total.low == pytest.approx(same.high - same.low, rel=0.25)
    assert auc_sum_interval(scores, result, minus=scores).estimate == 0


def test_intervals_of_concordance_cover_what_more_rows_say():
    truth = auc(*of_each_kind(200_000, seed=99))
    inside = np.zeros(3)
    for seed in range(100):
        for m, interval in enumerate(auc_intervals(*of_each_kind(400, seed=seed))[0]):
            inside[m] += interval.low <= truth[m] <= interval.high
    assert (inside >= 87).all()


def test_per_request_figures_count_the_pairs_of_each_request():
    scores, result = of_each_kind(60)
    groups = np.arange(60) // 6
    got = grouped_auc(scores, result, groups)
    for m in range(3):
        shown = result.shown[:, m] > 0
        total = say = 0.0
        for g in range(10):
            rows = np.flatnonzero((groups == g) & shown)
            y = result.values[rows, m]
            if len(np.unique(y)) > 1:
                total += len(rows) * by_pairs(scores[rows], y, np.ones(len(rows)))
                say += len(rows)
        assert got[m] == pytest.approx(total / say)
    each, _ = grouped_auc_intervals(scores, result, groups)
    np.testing.assert_allclose([interval.estimate for interval in each], got)


def test_events_are_labels_in_their_own_units_where_they_were_shown():
    scores, result = of_each_kind(60)
    groups = np.arange(60) // 6
    top = np.array([np.flatnonzero(groups == g)[:6] for g in range(10)])
    events = events_at_k(scores, result, groups, 6)
    np.testing.assert_allclose(events, result.values[top.reshape(-1)].sum(axis=0) / 10)
    worth = value_at_k(scores, result, groups, 6, value=[1, 10, 0.01])
    assert worth == pytest.approx(events @ [1, 10, 0.01])


def test_a_density_stands_for_labels_drawn_from_it_again_and_again():
    rng = np.random.default_rng(0)
    scores, density = rng.normal(size=80), rng.normal(size=(80, 4)) + rng.normal(size=(80, 1))
    known = Outcomes(density[:, :1], np.array([True]), None, {0: density})
    every = np.repeat(scores, 4)
    assert auc(scores, known)[0] == pytest.approx(concordance(every, density.reshape(-1)))
    assert known.events()[3, 0] == pytest.approx(density[3].mean())
    chances = Outcomes(np.full((80, 1), 0.3), np.array([False]), rng.random((80, 1)))
    assert auc(scores, chances)[0] == pytest.approx(0.5)
