"""Calibrations of all objectives at once, from sums over blocks."""

import numpy as np
import pytest

from harmonrank.fusion.baselines.closed_form import fit_calibrations
from harmonrank.metrics import fit_logistic, sigmoid
from harmonrank.model.fit_rows import cut_rows


def drawn(rows=2000, objectives=3, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(-1, 1, (rows, objectives))
    labels = (rng.random(x.shape) < sigmoid(x * [1.0, 0.5, -0.7] - 0.3)).astype(np.uint8)
    return sigmoid(x).astype(np.float32), labels, rng.uniform(0.5, 2, rows)


def blocks_of(scores, labels, weight=None, shares=None, size=300):
    codes = np.empty((len(scores), 0), np.int32)
    return cut_rows(scores, codes, labels, weight, shares, size=size)


@pytest.mark.parametrize("weighted", [False, True])
def test_they_are_those_of_one_objective_at_a_time(weighted):
    scores, labels, weight = drawn()
    weight = weight if weighted else None
    fitted = fit_calibrations(blocks_of(scores, labels, weight))
    for m in range(3):
        expected = fit_logistic(scores[:, m], labels[:, m], weight)
        np.testing.assert_allclose(fitted[m], expected, rtol=1e-9, atol=1e-9)


def test_rows_that_do_not_show_an_objective_are_as_if_left_out():
    scores, labels, weight = drawn()
    shown = np.random.default_rng(1).random(labels.shape) < 0.6
    fitted = fit_calibrations(blocks_of(scores, labels, weight, shown.astype(float)))
    for m in range(3):
        there = shown[:, m]
        expected = fit_logistic(scores[there, m], labels[there, m], weight[there])
        np.testing.assert_allclose(fitted[m], expected, rtol=1e-9, atol=1e-9)


def test_separable_labels_and_labels_of_one_class_stay_finite():
    scores = np.linspace(0.01, 0.99, 400)[:, None].repeat(2, axis=1)
    labels = np.stack([scores[:, 0] > 0.5, np.zeros(400)], axis=1).astype(np.uint8)
    fitted = fit_calibrations(blocks_of(scores, labels))
    assert np.isfinite(fitted).all()
    for m in range(2):
        expected = fit_logistic(scores[:, m], labels[:, m])
        np.testing.assert_allclose(fitted[m], expected, rtol=1e-5, atol=1e-9)
