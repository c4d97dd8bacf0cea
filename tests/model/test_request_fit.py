import numpy as np
import pytest

from harmonrank.metrics import request_gains
from harmonrank.model import fit_request_weights
from harmonrank.model.requests.request_levels import _add, fit_levels
from harmonrank.model.requests.request_weights import RequestWeights


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def planted(requests=3_000, size=12, *, shared=1.5, level=0.8, seed=0):
    """Two heads whose shared parts say nothing about the labels; levels of their own."""
    rng = np.random.default_rng(seed)
    starts = np.arange(0, requests * size + 1, size)
    of_row = np.repeat(np.arange(requests), size)
    inside = rng.standard_normal((len(of_row), 2))
    h = inside + shared * rng.standard_normal((requests, 2))[of_row] - 1.5
    level = level * rng.standard_normal((requests, 2))[of_row]
    eta = -1.5 + inside @ np.array([[1.0, 0.0], [0.5, 0.8]]) + level
    labels = (rng.random(eta.shape) < sigmoid(eta)).astype(np.uint8)
    return h, starts, labels, eta


def test_slopes_within_requests_and_the_spread_of_levels_are_found():
    h, starts, labels, eta = planted()
    fit = fit_levels(h, starts, labels)
    np.testing.assert_allclose(fit.theta[:, 1:3], [[1.0, 0.5], [0.0, 0.8]], atol=0.1)
    # What a request shares does not count: its mean takes off what the slopes add.
    np.testing.assert_allclose(fit.theta[:, 3:], -fit.theta[:, 1:3], atol=0.15)
    # Modes in place of means find somewhat less than there is.
    assert ((fit.variance > 0.4) & (fit.variance < 0.75)).all()
    error = [np.mean((sigmoid(x) - sigmoid(eta)) ** 2) for x in (fit.logits, h)]
    assert error[0] < 0.3 * error[1]


def test_where_requests_are_alike_nothing_moves():
    rng = np.random.default_rng(1)
    h = rng.standard_normal((40_000, 3)) - np.array([4.0, 2.0, 1.0])
    labels = rng.random(h.shape) < sigmoid(h)
    fit = fit_levels(h, np.arange(0, 40_001, 20), labels)
    assert (fit.variance < 0.03).all()
    np.testing.assert_allclose(fit.theta[:, 1:4], np.eye(3), atol=0.06)
    assert abs(fit.theta[:, 4:]).max() < 0.06


def test_the_sums_are_the_derivatives_of_the_profile():
    h, starts, labels, _ = planted(requests=30)
    mean = np.add.reduceat(h, starts[:-1]) / 12
    of_row = np.repeat(np.arange(30), 12)
    rng = np.random.default_rng(2)
    y, w, theta = labels[:, 0].astype(float), rng.exponential(size=len(h)), rng.normal(size=5) * 0.3

    def sums(theta):
        level, slope, curved = np.zeros(30), np.zeros(5), np.zeros((5, 5))
        for _ in range(20):  # until every level is at its top
            slope[:], curved[:] = 0.0, 0.0
            _add(h, mean, starts, y, w, theta, 0.7, level, slope, curved)
        return level, slope, curved

    def value(theta):
        level, _, _ = sums(theta)
        eta = theta[0] + h @ theta[1:3] + (mean @ theta[3:])[of_row] + level[of_row]
        return (w * (y * eta - np.log1p(np.exp(eta)))).sum() - (level**2).sum() / (2 * 0.7)

    _, slope, curved = sums(theta)
    step = 1e-5 * np.eye(5)
    by_hand = [(value(theta + e) - value(theta - e)) / 2e-5 for e in step]
    np.testing.assert_allclose(slope, by_hand, rtol=1e-5, atol=1e-5)
    second = [(sums(theta + e)[1] - sums(theta - e)[1]) / 2e-5 for e in step]
    np.testing.assert_allclose(-curved, second, rtol=1e-5, atol=1e-4)


def test_weights_are_a_regression_with_a_number_per_request(monkeypatch):
    h, _, labels, eta = planted(requests=200)
    request = np.repeat(np.arange(200), 12)[::-1]
    p, inside = sigmoid(h), sigmoid(eta)

    class Known:
        probabilities = inside

    monkeypatch.setattr("harmonrank.model.requests.request_fit.fit_levels", lambda *_: Known())
    monkeypatch.setattr("harmonrank.model.requests.request_fit._proven_share", lambda *_: 1.0)
    # Sorting is stable, so that rows which come request by request stay as they are.
    weights = fit_request_weights(p, np.sort(request), labels, np.ones(2))
    target = request_gains(inside, np.sort(request)) * inside
    z = np.clip((np.log(p / (1 - p)) - weights.centre) / weights.unit, weights.low, weights.high)
    x = np.column_stack([np.ones(len(z)), z, z[:, 0] ** 2, z[:, 0] * z[:, 1], z[:, 1] ** 2])
    dummies = np.eye(200)[np.sort(request)]
    ratios = []
    for m in range(2):
        by_hand = np.linalg.lstsq(np.column_stack([p[:, [m]] * x, dummies]), target[:, m])[0][:6]
        ratios.append(weights.terms[m] / by_hand)
        parts = weights.parts(p)[:, m]
        np.testing.assert_allclose(parts, p[:, m] * (x @ weights.terms[m]), rtol=1e-9, atol=1e-12)
    # All but a factor that all have in common.
    np.testing.assert_allclose(ratios, np.mean(ratios), rtol=2e-2)


def test_a_row_alone_adds_what_it_adds_beside_others():
    h, _, labels, _ = planted(requests=300)
    p = sigmoid(h)
    weights = fit_request_weights(p, np.repeat(np.arange(300), 12), labels, np.ones(2))
    whole = weights.parts(p)
    for row in (0, 17, 3_599):
        np.testing.assert_array_equal(weights.parts(p[[row]])[0], whole[row])


def test_beyond_the_rows_of_the_fit_kappa_stays_as_it_is():
    one = np.ones(1)
    weights = RequestWeights(0 * one, one, -one, one, np.array([[1.0, 0.5, 0.0]]), one)
    p = sigmoid(np.array([[-9.0], [-1.0], [0.0], [1.0], [9.0]]))
    np.testing.assert_allclose(weights.parts(p)[:, 0] / p[:, 0], [0.5, 0.5, 1.0, 1.5, 1.5])
    assert np.isfinite(weights.parts(np.array([[0.0], [1.0]]))).all()


@pytest.mark.parametrize("scale", [1.0, 3.0])
def test_row_weights_count_rows(scale):
    h, _, labels, _ = planted(requests=400)
    request = np.repeat(np.arange(400), 12)
    once = fit_request_weights(sigmoid(h), request, labels, np.ones(2))
    same = fit_request_weights(sigmoid(h), request, labels, np.ones(2), np.ones(len(h)))
    np.testing.assert_array_equal(once.terms, same.terms)
    weighted = fit_request_weights(sigmoid(h), request, labels, np.ones(2), np.full(len(h), scale))
    assert np.isfinite(weighted.terms).all()


def test_what_unseen_requests_do_not_bear_out_is_left():
    rng = np.random.default_rng(5)
    h = rng.normal([-3.0, -5.0], 1.0, (6_000, 2))
    labels = (rng.random(h.shape) < sigmoid(h)).astype(float)
    assert (
        fit_request_weights(sigmoid(h), np.repeat(np.arange(500), 12), labels, np.ones(2)) is None
    )
