import numpy as np
import pytest

from harmonrank.metrics import auc, auc_influence
from reference import delong_variance


def _log(seed, n=300):
    rng = np.random.default_rng(seed)
    labels = rng.random((n, 2)) < [0.3, 0.6]
    scores = np.round(rng.normal(size=n) + labels @ [1.0, -0.5], 1)
    return scores, labels, rng


def test_area_is_the_auc():
    scores, labels, rng = _log(0)
    weights = rng.exponential(size=300)
    for w in (None, weights):
        area, influence = auc_influence(scores, labels, sample_weight=w)
        np.testing.assert_allclose(area, auc(scores, labels, sample_weight=w), rtol=1e-12)
        np.testing.assert_allclose(influence.sum(axis=0), 0, atol=1e-9)


@pytest.mark.parametrize("fractions", [False, True])
def test_influence_is_the_derivative_by_a_rows_weight(fractions):
    scores, labels, rng = _log(1, n=40)
    labels = rng.random((40, 2)) if fractions else labels
    weights = rng.exponential(size=40) + 0.1
    _, influence = auc_influence(scores, labels, sample_weight=weights)
    for row in (0, 7, 39):
        step = np.zeros(40)
        step[row] = 1e-4
        up = auc(scores, labels, sample_weight=weights + step)
        down = auc(scores, labels, sample_weight=weights - step)
        slope = (up - down) / 2e-4
        # φ = n dAUC/d(log weight): the weight of a row enters as its factor.
        np.testing.assert_allclose(influence[row], 40 * weights[row] * slope, rtol=1e-5)


def test_variance_is_delongs_up_to_one_over_n():
    scores, labels, _ = _log(2)
    _, influence = auc_influence(scores, labels)
    for m in range(2):
        ours = (influence[:, m] ** 2).sum() / 300**2
        assert ours == pytest.approx(delong_variance(scores, labels[:, m]), rel=2 / 80)


def test_variance_is_exactly_delongs_after_his_corrections():
    scores, labels, _ = _log(3)
    y = labels[:, 0]
    _, influence = auc_influence(scores, y)
    positive, negative = influence[y, 0], influence[~y, 0]
    corrected = (positive**2).sum() * len(positive) / (len(positive) - 1)
    corrected += (negative**2).sum() * len(negative) / (len(negative) - 1)
    assert corrected / 300**2 == pytest.approx(delong_variance(scores, y), rel=1e-10)


def test_scale_of_weights_does_not_matter():
    scores, labels, rng = _log(4)
    weights = rng.exponential(size=300)
    _, influence = auc_influence(scores, labels, sample_weight=weights)
    _, scaled = auc_influence(scores, labels, sample_weight=7 * weights)
    np.testing.assert_allclose(scaled, influence, rtol=1e-9, atol=1e-12)
    _, unit = auc_influence(scores, labels, sample_weight=np.full(300, 3.0))
    np.testing.assert_allclose(unit, auc_influence(scores, labels)[1], rtol=1e-9, atol=1e-12)


def test_row_order_does_not_matter():
    scores, labels, rng = _log(5)
    shuffled = rng.permutation(300)
    _, influence = auc_influence(scores, labels)
    _, moved = auc_influence(scores[shuffled], labels[shuffled])
    np.testing.assert_allclose(moved, influence[shuffled], rtol=1e-9, atol=1e-12)


def test_one_class_is_nan_and_leaves_the_others_alone():
    scores, labels, _ = _log(6)
    alone = auc_influence(scores, labels[:, :1])
    area, influence = auc_influence(scores, np.c_[labels[:, 0], np.ones(300), np.zeros(300)])
    assert np.isnan(area[1:]).all()
    assert np.isnan(influence[:, 1:]).all()
    assert area[0] == alone[0][0]
    np.testing.assert_array_equal(influence[:, 0], alone[1][:, 0])


def test_no_rows():
    area, influence = auc_influence(np.empty(0), np.empty((0, 2)))
    np.testing.assert_array_equal(area, [np.nan, np.nan])
    assert influence.shape == (0, 2)
