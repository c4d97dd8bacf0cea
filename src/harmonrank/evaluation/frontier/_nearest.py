"""Nearest: what comes nearest to floors that cannot hold together, and which of them conflict."""

from collections.abc import Sequence

import numpy as np

from harmonrank.evaluation.frontier._floors import Floor
from harmonrank.evaluation.frontier._sweep import Sweep
from harmonrank.evaluation.frontier._trial import Trial, Trials

_FIRST_STEP, _LAST_STEP = 1.0, 1e-3
_EASINGS = 14


def nearest_to(trials: Trials) -> Trial:
    """Return weights whose worst floor misses least, by raising those that miss most."""
    M = len(trials.sweep.names)
    starts = [np.isin(np.arange(M), trials.columns).astype(float), trials.sweep.count]
    starts += [np.eye(M)[m] for m in sorted(set(trials.columns))]
    nearest = max((trials.trial(start) for start in starts), key=lambda trial: trial.worst)
    step = _FIRST_STEP
    while step > _LAST_STEP:
        better = _raised(trials, nearest, step)
        if better is None:
            step /= 2
        else:
            nearest = better
    return nearest


def _raised(trials: Trials, at: Trial, step: float) -> Trial | None:
    """Raise the weight of the worst floor, of the worst two, and so on; the first that helps."""
    order = np.argsort(at.slack, kind="stable")
    for size in range(1, len(order) + 1):
        worst = sorted({trials.columns[place] for place in order[:size]})
        weights = at.weights.copy()
        weights[worst] = np.maximum(weights[worst], 1e-3) * (1 + step)
        if len(worst) == len(set(trials.columns)):
            # All of them: at the cost of what has no floor.
            others = np.setdiff1d(np.arange(len(weights)), worst)
            weights[others] /= 1 + step
        tried = trials.trial(weights)
        if tried.worst > at.worst:
            return tried
    return None


def conflict_of(sweep: Sweep, floors: Sequence[Floor], level: float) -> tuple[Floor, ...]:
    """Return floors that cannot hold together, of which none can be left out."""
    kept = list(floors)
    for floor in floors:
        rest = [each for each in kept if each is not floor]
        if rest and nearest_to(Trials(sweep, rest, level)).worst < 0:
            kept = rest
    return tuple(kept)


def eased(trials: Trials, held: Trial) -> Trial:
    """Return the weights nearest to what AUCs count, on the way from some that hold all floors."""
    count = trials.sweep.count * (len(held.weights) / trials.sweep.count.sum())
    low, high = 0.0, 1.0
    for _ in range(_EASINGS):
        middle = (low + high) / 2
        tried = trials.trial((1 - middle) * held.weights + middle * count)
        low, high = (middle, high) if tried.worst >= 0 else (low, middle)
    assert trials.best is not None, "the first of them holds"
    return trials.best
