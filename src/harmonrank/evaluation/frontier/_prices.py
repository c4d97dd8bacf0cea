"""Prices: the least that must be added to the weights of floors for all of them to hold."""

import numpy as np

from harmonrank.evaluation.frontier._trial import Trial, Trials

_ROUNDS = 30
_HALVINGS = 5
_MOST = 1e3  # A weight that is so many times all others leaves them none.
_TARGET = 1e-5  # The slack of a floor that binds: it should hold, not nearly hold.
_CLOSE = 5e-5
_DIFFERENCE = 0.05  # relative, of a weight, to measure a slope


def price_floors(trials: Trials) -> Trial | None:
    """Raise the weights of floors that do not hold until those that bind just hold.

    Newton's method on the slack of the objectives whose floors bind; none if it does not end.
    """
    count = trials.sweep.count
    objectives = sorted(set(trials.columns))
    raised = np.zeros(len(objectives))
    slack = _slack_at(trials, objectives, raised)
    for _ in range(_ROUNDS):
        binding = (raised > 0) | (slack < 0)
        if np.abs(np.where(binding, slack, 0.0)).max() <= _CLOSE and slack.min() >= 0:
            return trials.best
        step = _newton_step(trials, objectives, raised, slack, binding)
        # A weight may grow fivefold at once; from far away the slope tells no more.
        most = 4 * (raised + count[objectives] + count.sum() / len(count))
        step = np.clip(step, -raised, most)
        missed = _missed(raised, slack)
        for _ in range(_HALVINGS):
            new = raised + step
            new_slack = _slack_at(trials, objectives, new)
            if _missed(new, new_slack) < missed:
                break
            step = step / 2
        else:
            return None  # No step comes nearer.
        raised, slack = new, new_slack
        if raised.max() > _MOST * count.sum():
            break
    return None


def _slack_at(trials: Trials, objectives: list[int], raised: np.ndarray) -> np.ndarray:
    """Return the least slack of each objective's floors, with so much added to its weight."""
    weights = trials.sweep.count.copy()
    weights[objectives] += raised
    slack = trials.trial(weights).slack
    columns = np.array(trials.columns)
    return np.array([slack[columns == m].min() for m in objectives])


def _missed(raised: np.ndarray, slack: np.ndarray) -> float:
    """Return how far from the end: a floor of a raised weight should just hold, others hold."""
    return float(np.where(raised > 0, np.abs(slack - _TARGET), np.maximum(-slack, 0.0)).max())


def _newton_step(
    trials: Trials,
    objectives: list[int],
    raised: np.ndarray,
    slack: np.ndarray,
    binding: np.ndarray,
) -> np.ndarray:
    """Return the change of the raised weights that would bring the binding slacks to their end."""
    numbers = np.flatnonzero(binding)
    count, step = trials.sweep.count, np.zeros(len(raised))
    slope = np.empty((len(numbers), len(numbers)))
    for column, number in enumerate(numbers):
        h = _DIFFERENCE * (raised[number] + count[objectives[number]] + 0.1)
        tried = raised.copy()
        tried[number] += h
        slope[:, column] = (_slack_at(trials, objectives, tried) - slack)[numbers] / h
    # Slacks are the slopes of a convex function of the prices, so this matrix is one of curvatures.
    slope = (slope + slope.T) / 2
    ridge = 1e-3 * max(float(np.abs(np.diag(slope)).max()), 1e-9)
    values, vectors = np.linalg.eigh(slope)
    target = _TARGET - slack[numbers]
    step[numbers] = vectors @ ((vectors.T @ target) / np.maximum(values, ridge))
    return step


def prices_of(weights: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Return λ where the weights are c + λ, up to their scale, with the least λ that can be."""
    used = count > 0
    scale = (weights[used] / count[used]).min()
    return np.maximum(weights / scale - count, 0.0) if scale > 0 else np.full(len(count), np.inf)
