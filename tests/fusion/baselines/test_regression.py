import numpy as np
import pytest
from scipy.optimize import minimize

from harmonrank.data.rows.blocks import HeldBlocks, SpilledBlocks
from harmonrank.fusion.baselines import regression
from harmonrank.fusion.baselines.regression import (
    Design,
    RidgeRows,
    fit_ridge,
    log_loss,
    predict,
)


def sample(rows=800, slots=(4, 3), objectives=3, seed=0):
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(rows, 2))
    codes = np.stack([rng.integers(0, size, rows) for size in slots], axis=1)
    design = Design.of(numbers, codes, slots)
    theta = rng.normal(size=(design.size, objectives))
    theta[0] -= 2
    labels = (rng.random((rows, objectives)) < predict(design, theta)).astype(np.uint8)
    return design, labels, rng.uniform(0.5, 2, rows)


def fitted(design, labels, weight, decay, start):
    rows = RidgeRows(design.numbers, design.codes, design.size, labels, weight)
    return fit_ridge(HeldBlocks([rows]), decay, start)


def dense(design):
    X = np.zeros((len(design.numbers), design.size))
    X[:, 0], X[:, 1 : 1 + design.numbers.shape[1]] = 1, design.numbers
    np.put_along_axis(X, design.codes.astype(int), 1, axis=1)
    return X


def decay_of(design, ridge, objectives=3):
    decay = np.full((design.size, objectives), ridge)
    decay[0] = 0
    return decay


def slope_at(design, labels, weight, ridge, theta):
    residual = weight[:, None] * (predict(design, theta) - labels)
    return dense(design).T @ residual + decay_of(design, ridge) * theta


def test_probabilities_are_those_of_the_dense_design():
    design, _, _ = sample()
    theta = np.random.default_rng(1).normal(size=(design.size, 3))
    np.testing.assert_allclose(
        predict(design, theta), 1 / (1 + np.exp(-dense(design) @ theta)), rtol=1e-12
    )


@pytest.mark.parametrize("ridge", [0.1, 10.0, 1000.0])
def test_the_gradient_vanishes_at_the_fit(ridge):
    design, labels, weight = sample()
    decay = decay_of(design, ridge)
    theta = fitted(design, labels, weight, decay, np.zeros((design.size, 3)))
    slope = slope_at(design, labels, weight, ridge, theta)
    assert np.abs(slope).max() < 1e-5 * weight.sum()


def test_the_fit_equals_a_general_minimiser():
    design, labels, weight = sample(300, objectives=1)
    X, y, decay = dense(design), labels[:, 0], np.r_[0, np.full(design.size - 1, 2.0)]

    def value(theta):
        logits = X @ theta
        return weight @ (np.logaddexp(0, logits) - y * logits) + 0.5 * decay @ theta**2

    expected = minimize(value, np.zeros(design.size), method="BFGS", options={"gtol": 1e-6}).x
    theta = fitted(design, labels, weight, decay[:, None], np.zeros((design.size, 1)))
    np.testing.assert_allclose(theta[:, 0], expected, atol=1e-4)


def test_a_large_context_is_fitted_as_exactly_as_a_small_one(monkeypatch):
    design, labels, weight = sample()
    start, decay = np.zeros((design.size, 3)), decay_of(design, 1.0)
    direct = fitted(design, labels, weight, decay, start)
    monkeypatch.setattr(regression, "_DENSE_SIZE", 0)
    np.testing.assert_allclose(fitted(design, labels, weight, decay, start), direct, atol=1e-4)


def test_a_row_of_weight_two_is_two_rows():
    design, labels, _ = sample(200)
    twice = Design(np.tile(design.numbers, (2, 1)), np.tile(design.codes, (2, 1)), design.size)
    start, decay = np.zeros((design.size, 3)), decay_of(design, 1.0)
    np.testing.assert_allclose(
        fitted(design, labels, np.full(200, 2.0), decay, start),
        fitted(twice, np.tile(labels, (2, 1)), np.ones(400), decay, start),
        atol=1e-8,
    )


def test_separable_labels_and_distant_starts_stay_finite():
    numbers = np.linspace(-1, 1, 100)[:, None]
    design = Design.of(numbers, np.empty((100, 0), np.int32), ())
    labels = (numbers > 0).astype(np.uint8)
    decay = decay_of(design, 0.01, 1)
    theta = fitted(design, labels, np.ones(100), decay, np.array([[30.0], [-30.0]]))
    assert np.isfinite(theta).all()
    assert log_loss(predict(design, theta), labels, np.ones(100))[0] < 0.1


def test_a_slot_that_no_row_has_gets_no_effect():
    design, labels, weight = sample(slots=(4, 3))
    wider = Design(design.numbers, design.codes, design.size + 1)
    theta = fitted(wider, labels, weight, decay_of(wider, 1.0), np.zeros((wider.size, 3)))
    np.testing.assert_array_equal(theta[-1], 0)


@pytest.mark.parametrize("most", [400, 5])  # the second one takes conjugate gradients
def test_blocks_give_the_fit_of_all_rows_wherever_they_are_kept(most, monkeypatch, tmp_path):
    monkeypatch.setattr(regression, "_DENSE_SIZE", most)
    design, labels, weight = sample(900)
    decay, start = decay_of(design, 3.0), np.zeros((design.size, 3))
    whole = design.numbers, design.codes, labels, weight
    cut = [[array[i : i + 250] for array in whole] for i in range(0, 900, 250)]
    blocks = [RidgeRows(x, codes, design.size, y, w) for x, codes, y, w in cut]
    held = fit_ridge(HeldBlocks(blocks), decay, start)
    spilled = fit_ridge(SpilledBlocks(blocks, tmp_path), decay, start)
    np.testing.assert_array_equal(held, spilled)
    expected = fitted(design, labels, weight, decay, start)
    np.testing.assert_allclose(held, expected, rtol=1e-9, atol=1e-9)
