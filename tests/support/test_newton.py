"""One Newton solver: it ends at the top, says when it does not, and never steps down."""

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar

from harmonrank.support.errors import ConvergenceWarning
from harmonrank.support.newton import Likelihood, Prior, Rounds, Step, maximise, settled

D = 4
GROUP = np.array([-1, 0, 0, 1])


def problem(seed, rows=300, scale=1.0):
    rng = np.random.default_rng(seed)
    X = np.c_[np.ones(rows), rng.normal(size=(rows, D - 1)) * scale]
    return X, (rng.random(rows) < 1 / (1 + np.exp(-X @ rng.normal(size=D)))).astype(float)


def logistic(problems):
    """Return what looks at logistic regressions, and the values that it saw."""
    seen = []

    def look(theta):
        parts = []
        for (X, y), t in zip(problems, theta, strict=True):
            h = X @ t
            p = 0.5 + 0.5 * np.tanh(h / 2)
            value = y @ h - np.logaddexp(0, h).sum()
            parts.append((value, X.T @ (y - p), (X.T * (p * (1 - p))) @ X))
        seen.append(np.array([part[0] for part in parts]))
        return Likelihood(*map(np.stack, zip(*parts, strict=True)))

    return look, seen


def newton(prior, enough=1e-9):
    def propose(theta, there):
        target, _ = prior.top(theta, there)
        return Step(target, prior.penalty, np.abs(target - theta).max(axis=1) < enough)

    return propose


def fixed(*precision):
    return Prior(np.zeros(D), np.array(precision), GROUP)


def test_a_quadratic_takes_one_step_to_the_ridge_solution():
    rng = np.random.default_rng(0)
    X, y, prior = rng.normal(size=(50, D)), rng.normal(size=50), fixed(3.0, 7.0)

    def look(theta):
        away = y - X @ theta[0]
        return Likelihood(np.array([-0.5 * away @ away]), (X.T @ away)[None], (X.T @ X)[None])

    result = maximise(look, np.zeros((1, D)), newton(prior, np.inf), 1)
    expected = np.linalg.solve(X.T @ X + np.diag([1e-6, 3.0, 3.0, 7.0]), X.T @ y)
    np.testing.assert_allclose(result.theta[0], expected, rtol=1e-12)
    assert result.converged.all()


def test_several_problems_end_where_a_general_minimiser_does():
    problems, prior = [problem(seed) for seed in range(3)], fixed(0.5, 20.0)
    look, _ = logistic(problems)
    result = maximise(look, np.zeros((3, D)), newton(prior), 50)
    assert result.converged.all()
    for (X, y), theta in zip(problems, result.theta, strict=True):

        def lost(t, X=X, y=y):
            h = X @ t
            return np.logaddexp(0, h).sum() - y @ h + prior.penalty(t[None])[0]

        best = minimize(lost, np.zeros(D), method="BFGS", options={"gtol": 1e-7}).x
        np.testing.assert_allclose(theta, best, atol=1e-5)


def test_no_step_is_worse_however_far_the_start():
    problems, prior = [problem(seed, 60, 3.0) for seed in range(4)], fixed(0.1, 0.1)
    look, seen = logistic(problems)
    taken = []

    def propose(theta, there):
        taken.append(there.value - prior.penalty(theta))
        return newton(prior)(theta, there)

    result = maximise(look, np.full((4, D), 8.0) * [[1], [-1], [0.1], [0]], propose, 60)
    assert result.converged.all()
    assert len(seen) > len(taken) + 1  # Some step was tried again, half as long.
    assert (np.diff(taken, axis=0) > -1e-6).all()
    alone = maximise(logistic(problems[:1])[0], np.full((1, D), 8.0), newton(prior), 60)
    np.testing.assert_allclose(result.theta[0], alone.theta[0], atol=1e-9)


def test_a_problem_without_a_better_point_stays_where_it_is():
    def look(theta):  # The slope leads downhill.
        return Likelihood(-theta[:, 0], np.ones((1, D)), np.eye(D)[None])

    result = maximise(look, np.ones((1, D)), newton(fixed(1e-3, 1e-3), np.inf), 3)
    np.testing.assert_allclose(result.theta, 1.0, rtol=1e-7)
    assert not result.converged.any()


def test_what_has_not_converged_says_so():
    look, _ = logistic([problem(0), problem(1)])
    result = maximise(look, np.zeros((2, D)), newton(fixed(1.0, 1.0)), 1)
    assert not result.converged.any()
    with pytest.warns(ConvergenceWarning, match=r"The regression did not converge \(2 of 2\)"):
        result.checked("The regression")


def test_the_settled_precision_is_that_of_the_largest_evidence():
    rng = np.random.default_rng(3)
    size, sigma = 200, 1 / np.sqrt(5.0)
    curvature = np.diag(rng.uniform(1, 40, size))
    seen = sigma * rng.normal(size=size) + rng.normal(size=size) / np.sqrt(np.diag(curvature))
    there = Likelihood(np.zeros(1), (curvature @ seen)[None], curvature[None])
    prior = Prior(np.zeros(size), np.ones(1), np.zeros(size, int))
    start = np.zeros((1, size))
    _, prior, _ = settled(
        start, prior, lambda p: p.top(start, there), Prior.updated, Rounds(500, 1e-9, 1e-9)
    )

    def lost(log_precision):
        variance = np.exp(-log_precision) + 1 / np.diag(curvature)
        return (np.log(variance) + seen**2 / variance).sum()

    best = minimize_scalar(lost, bounds=(-3, 5), method="bounded", options={"xatol": 1e-9}).x
    np.testing.assert_allclose(np.log(prior.precision[0]), best, atol=1e-5)
