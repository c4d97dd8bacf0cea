"""Sums row by row: those of whole contexts within the rounding of float32, fits included."""

import numpy as np
import pytest

import harmonrank.model.linear.heads_sums as sums_module
from harmonrank.model import HeadColumns, fit_heads
from harmonrank.model.density.density import distinct_contexts
from harmonrank.model.density.density_sums import fit_density
from harmonrank.model.linear.heads import _numbers
from harmonrank.model.linear.heads_sums import HeadSums
from harmonrank.model.terms.residual_sums import ResidualRows
from harmonrank.support import limited_threads

SLOTS = (6, 4, 5)
ROWS, M = 3_000, 4


def drawn(seed=0, rows=ROWS):
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(0, size, rows) for size in SLOTS], axis=1)
    coordinates = (
        rng.normal(-1, 1, (rows, M)) + rng.normal(size=(rows, 1)) + 0.3 * (codes[:, :1] % 3)
    )
    labels = (rng.random((rows, M)) < 1 / (1 + np.exp(-coordinates))).astype(np.float32)
    return coordinates, codes, labels, rng.uniform(0.5, 2, rows)


@pytest.fixture
def sums(monkeypatch):
    """Return a function of how many rows per objective make a context one with many."""

    def of(many, weight=None):
        monkeypatch.setattr(sums_module, "_MANY_ROWS", many)
        coordinates, codes, labels, w = drawn()
        density = fit_density(coordinates, codes, SLOTS)
        return HeadSums.of(
            density, coordinates, codes, SLOTS, labels, w if weight is None else weight
        )

    return of


def coefficients(seed=1):
    columns = HeadColumns(M)
    theta = 0.2 * np.random.default_rng(seed).normal(size=(M, columns.total(SLOTS)))
    theta[:, 1] += 1.0
    return theta


@pytest.mark.parametrize("by_head", [False, True])
def test_sums_row_by_row_are_those_of_the_definition(sums, by_head):
    coordinates, codes, labels, w = drawn()
    weight = w[:, None] * np.array([1.0, 0.5, 2.0, 1.5]) if by_head else w
    theta, data = coefficients(), sums(10_000, weight)
    assert data.common == 0
    value, slopes, curved = data.likelihood(theta)
    contexts, of_row = distinct_contexts(codes, SLOTS)
    numbers = _numbers(data.density, coordinates, contexts, of_row)  # (rows, M, width)
    one_hot = np.concatenate([np.eye(n)[codes[:, f]] for f, n in enumerate(SLOTS)], axis=1)
    for m in range(M):
        x = np.concatenate([numbers[:, m], one_hot], axis=1)
        p = 1 / (1 + np.exp(-x @ theta[m]))
        own = weight[:, m] if by_head else weight
        expected = (x.T * (own * p * (1 - p))) @ x
        np.testing.assert_allclose(curved[m], expected, rtol=1e-5, atol=1e-5 * expected.max())
        gradient = x.T @ (own * (labels[:, m] - p))
        lost = own @ (np.logaddexp(0, x @ theta[m]) - labels[:, m] * (x @ theta[m]))
        np.testing.assert_allclose(value[m], -lost, rtol=1e-6)
        np.testing.assert_allclose(slopes[m], gradient, atol=2e-5 * np.abs(x).sum(axis=0).max())


def test_few_and_many_rows_per_context_give_the_same_sums(sums):
    theta = coefficients()
    few, some, many = sums(10_000), sums(7), sums(0)
    assert few.common == 0 < some.common < many.common == len(many.contexts)
    expected = many.likelihood(theta)
    for data in (few, some):
        for total, whole in zip(data.likelihood(theta), expected, strict=True):
            np.testing.assert_allclose(total, whole, atol=1e-5 * np.abs(whole).max())


def test_the_residual_sees_the_same_rows_either_way(sums):
    theta, ends = coefficients(), np.ones(2 * M + 1)
    few, some = sums(10_000), sums(7)
    mine = ResidualRows.of(few, SLOTS, theta, -ends, ends)
    theirs = ResidualRows.of(some, SLOTS, theta, -ends, ends)

    def in_order(rows):
        """Bring rows into an order that does not depend on which contexts come first."""
        order = np.lexsort([*rows.inputs[:, :M].T.round(4), *rows.contexts[rows.context].T])
        return rows.inputs[order], rows.heads[order], rows.contexts[rows.context][order]

    for array, expected in zip(in_order(mine), in_order(theirs), strict=True):
        np.testing.assert_allclose(array, expected, atol=2e-5)


def test_threads_change_no_bit(sums):
    theta, data = coefficients(), sums(10_000)
    expected = data.likelihood(theta)
    with limited_threads(1):
        for one, other in zip(data.likelihood(theta), expected, strict=True):
            np.testing.assert_array_equal(one, other)


def test_fits_row_by_row_and_by_context_differ_by_rounding(monkeypatch):
    coordinates, codes, labels, _ = drawn(rows=6_000)
    fits = []
    for many in (0, 10_000):
        monkeypatch.setattr(sums_module, "_MANY_ROWS", many)
        fits.append(fit_heads(coordinates.copy(), codes, SLOTS, labels))
    whole, rowwise = fits
    np.testing.assert_allclose(rowwise.theta, whole.theta, atol=1e-6)
    # Rows of which curvature is drawn may change with the last digit of a logit.
    difference = np.abs(rowwise.logits(coordinates, codes) - whole.logits(coordinates, codes))
    assert difference.max() < 1e-3
