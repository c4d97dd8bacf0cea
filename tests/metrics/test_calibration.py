import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.isotonic import IsotonicRegression

from harmonrank.metrics import fit_isotonic, fit_logistic, logit, sigmoid


def drawn(rows=2000, seed=0, slope=0.7, intercept=-1.0):
    rng = np.random.default_rng(seed)
    scores = rng.beta(2, 5, rows)
    labels = (rng.random(rows) < sigmoid(slope * logit(scores) + intercept)).astype(float)
    return scores, labels


def test_sigmoid_undoes_logit_and_never_overflows():
    p = np.array([1e-9, 0.25, 0.5, 1 - 1e-9])
    np.testing.assert_allclose(sigmoid(logit(p)), p, rtol=1e-9)
    np.testing.assert_allclose(sigmoid(np.array([-1e5, 1e5])), [0, 1], atol=1e-300)
    assert np.isfinite(logit(np.array([0.0, 1.0]))).all()


def test_logistic_is_the_best_fit_of_a_general_optimiser():
    scores, labels = drawn()
    x = logit(scores)

    def loss(theta):
        z = theta[0] * x + theta[1]
        return (np.logaddexp(0, z) - labels * z).sum()

    np.testing.assert_allclose(
        fit_logistic(scores, labels), minimize(loss, [0, 0], tol=1e-9).x, atol=1e-3
    )


def test_logistic_finds_the_curve_the_labels_were_drawn_from():
    slope, intercept = fit_logistic(*drawn(200_000))
    assert slope == pytest.approx(0.7, abs=0.02)
    assert intercept == pytest.approx(-1.0, abs=0.03)


def test_a_row_of_weight_two_is_two_rows_and_scale_of_weights_is_nothing():
    scores, labels = drawn(500)
    weight = np.random.default_rng(1).integers(0, 3, 500).astype(float)
    repeat = np.repeat(np.arange(500), weight.astype(int))
    by_weight = fit_logistic(scores, labels, weight)
    np.testing.assert_allclose(by_weight, fit_logistic(scores[repeat], labels[repeat]), atol=1e-4)
    np.testing.assert_allclose(by_weight, fit_logistic(scores, labels, weight * 1e-6), rtol=1e-6)
    knots = fit_isotonic(scores, labels, weight)
    for one, other in zip(knots, fit_isotonic(scores[repeat], labels[repeat]), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)


@pytest.mark.parametrize(
    "scores",
    [
        np.r_[np.full(50, 0.2), np.full(50, 0.8)],
        np.r_[np.zeros(50), np.ones(50)],
        np.r_[np.full(50, 1e-12), np.full(50, 0.5)],
    ],
)
def test_separable_labels_give_a_finite_rising_curve(scores):
    labels = np.r_[np.zeros(50), np.ones(50)]
    slope, intercept = fit_logistic(scores, labels)
    assert np.isfinite([slope, intercept]).all()
    assert slope > 0
    p = sigmoid(slope * logit(scores) + intercept)
    assert p[:50].max() < 0.05
    assert p[50:].min() > 0.95


def test_a_score_that_speaks_against_its_label_is_turned_round():
    scores, labels = drawn()
    assert fit_logistic(scores, 1 - labels)[0] < 0


def test_constant_scores_give_the_prevalence():
    labels = np.r_[np.zeros(90), np.ones(10)]
    _, intercept = fit_logistic(np.full(100, 0.5), labels)
    assert sigmoid(np.array(intercept)) == pytest.approx(0.1, abs=1e-3)
    x, y = fit_isotonic(np.full(100, 0.1), labels)
    np.testing.assert_allclose([x, y], [[0.1], [0.1]])


@pytest.mark.parametrize("decimals", [16, 2, 1])
def test_isotonic_fits_as_scikit_learn_does_with_and_without_ties(decimals):
    scores, labels = drawn(800)
    scores = scores.round(decimals)
    weight = np.random.default_rng(2).uniform(0.1, 3, 800)
    theirs = IsotonicRegression().fit(scores, labels, weight).predict(scores)
    x, y = fit_isotonic(scores, labels, weight)
    blocks = np.unique(theirs.round(9))
    assert len(x) == len(blocks)
    np.testing.assert_allclose(y, blocks, atol=1e-8)
    for value, knot in zip(blocks, x, strict=True):
        inside = np.abs(theirs - value) < 1e-8
        np.testing.assert_allclose(np.average(scores[inside], weights=weight[inside]), knot)


def test_equal_scores_are_one_knot_however_often_they_come():
    # The mean of many 0.1 is not 0.1 in floating point; ties must be found before pooling.
    scores = np.r_[np.full(1000, 0.1), np.full(1000, 0.3)]
    labels = np.tile([0.0, 1.0], 1000)
    np.testing.assert_array_equal(fit_isotonic(scores, labels)[1], [0.5])


def test_isotonic_knots_rise_strictly():
    x, y = fit_isotonic(*drawn(5000))
    assert (np.diff(x) > 0).all()
    assert (np.diff(y) > 0).all()


def test_order_of_rows_does_not_matter():
    scores, labels = drawn(300)
    order = np.random.default_rng(3).permutation(300)
    np.testing.assert_allclose(
        fit_logistic(scores, labels), fit_logistic(scores[order], labels[order]), rtol=1e-9
    )
    for one, other in zip(
        fit_isotonic(scores, labels), fit_isotonic(scores[order], labels[order]), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-12)
