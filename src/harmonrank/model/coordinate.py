"""Coordinates: the scale on which each upstream score is best taken.

A calibrated model's logit is the right scale, whatever its distribution. Of a model that is not
calibrated, say one that reports the square of a probability, the normal quantile of the score is as
good as ever, since it does not change under any rising transform. Each objective takes the one on
which a calibration of its score alone fits its labels better, the logit if they are about equal.
"""

__all__ = ["Coordinate", "fit_coordinate"]

from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Annotated, Any

import numpy as np

from harmonrank.metrics import fit_logistic_curves, logistic_likelihood
from harmonrank.support.kernel import kernel
from harmonrank.support.storage.arrays import Array

_TAIL = (0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02)
_SHARES = np.array([*_TAIL, *np.linspace(0.035, 0.965, 28), *(1 - t for t in reversed(_TAIL))])
_NORMAL = np.array([NormalDist().inv_cdf(share) for share in _SHARES])
_GRID = 512
_BINS = 1000
# A tail's slope is taken over this many quantiles, since the last few are noisy.
_TAIL_POINTS = 6
# Log likelihood that a normal quantile must gain over the logit.
_GAIN = 3.0
_FARTHEST = 100.0  # No logit of a score lies beyond.


@dataclass(frozen=True)
class Coordinate:
    """A rising map of each logit: a table over an even grid, straight lines beyond it.

    Attributes:
        low, high: (M,) ends of the grid.
        table: (M, grid) values on it.
        below, above: (M,) slopes beyond its ends.
        normal: (M,) 1 where the map is a normal quantile, 0 where it is the logit itself.
        target: (M, quantiles) values that the quantiles are sent to.
    """

    low: Annotated[np.ndarray, Array(("M",), low=-_FARTHEST, high=_FARTHEST)]
    high: Annotated[np.ndarray, Array(("M",), low=-_FARTHEST, high=_FARTHEST)]
    table: Annotated[np.ndarray, Array(("M", _GRID), low=-1e6, high=1e6, rising=True)]
    below: Annotated[np.ndarray, Array(("M",), low=0.0, high=1e12)]
    above: Annotated[np.ndarray, Array(("M",), low=0.0, high=1e12)]
    normal: Annotated[np.ndarray, Array(("M",), low=0.0, high=1.0)]
    target: Annotated[np.ndarray, Array(("M", len(_SHARES)), low=-1e6, high=1e6, rising=True)]

    def __call__(self, logits: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """Return the coordinates of (rows, M) logits; `out` may be the logits themselves."""
        result = np.empty_like(logits) if out is None else out
        _bend(logits, self.low, self.high, self.table, self.below, self.above, result)
        return result

    def inverse(self, coordinates: np.ndarray) -> np.ndarray:
        """Return the logits whose coordinates these are, (rows, M)."""
        logits = np.empty_like(coordinates)
        for m, x in enumerate(coordinates.T):
            table = self.table[m]
            inside = np.interp(x, table, np.linspace(self.low[m], self.high[m], len(table)))
            below, above = np.maximum([self.below[m], self.above[m]], 1e-12)
            inside += np.minimum(x - table[0], 0.0) / below
            logits[:, m] = inside + np.maximum(x - table[-1], 0.0) / above
        bounded: np.ndarray = np.clip(logits, -_FARTHEST, _FARTHEST)
        return bounded

    def refitted(self, logits: np.ndarray, changed: Any = 1) -> "Coordinate":
        """Return the map that sends logits of changed upstream models to where the old ones went.

        Only normal quantiles move; a logit's new scale and offset are the business of `Density`.
        `changed`, (M,), tells which models are others; all of them, if left out.
        """
        result = self
        for m in np.flatnonzero(self.normal * changed).tolist():
            knots = _quantiles(_known(logits[:, m]))
            if _spread_out(knots):
                result = _with_knots(result, m, knots, self.target[m])
        return result


def fit_coordinate(
    logits: np.ndarray, labels: np.ndarray, weight: np.ndarray | None = None
) -> Coordinate:
    """Choose and fit the coordinate of each objective, by the rows that have its score.

    Weights are (rows,), or (rows, M) where rows count differently for each objective.
    """
    M = logits.shape[1]
    same = np.tile(np.linspace(-1.0, 1.0, _GRID), (M, 1))
    ones = np.ones(M)
    plain = Coordinate(-ones, ones, same, ones, ones, np.zeros(M), np.zeros((M, len(_SHARES))))
    bent = plain
    for m, x in enumerate(map(_known, logits.T)):
        knots = _quantiles(x)
        if _spread_out(knots):
            bent = _with_knots(bent, m, knots, x.mean() + x.std() * _NORMAL)
    # The normal quantile has to prove itself on the labels; on equal terms a logit stays a logit.
    gain = _fits(bent(logits), labels, weight) - _fits(logits, labels, weight)
    chosen = bent.normal * (gain > _GAIN)
    return _either(plain, bent, chosen)


def _known(x: np.ndarray) -> np.ndarray:
    """Return the values that are not missing; the column itself if none is."""
    missing = np.isnan(x)
    return x[~missing] if missing.any() else x


def _quantiles(x: np.ndarray) -> np.ndarray:
    """Return the quantiles at `_SHARES`, between two rows by interpolation."""
    ascending = np.sort(x)
    quantiles: np.ndarray = np.interp(_SHARES * (len(x) - 1), np.arange(len(x)), ascending)
    return quantiles


def _spread_out(knots: np.ndarray) -> bool:
    """Tell whether all quantiles differ, so that a rising map can go through them."""
    return len(np.unique(knots)) == len(knots)


def _with_knots(old: Coordinate, m: int, knots: np.ndarray, target: np.ndarray) -> Coordinate:
    """Return the map with objective m sent so that its quantiles hit the target."""
    grid = np.linspace(knots[0], knots[-1], _GRID)
    # Beyond the outermost quantiles the map goes on with the slope of the last few of them.
    k = _TAIL_POINTS

    def put(array: np.ndarray, value: np.ndarray | float) -> np.ndarray:
        array = array.copy()
        array[m] = value
        return array

    return replace(
        old,
        low=put(old.low, knots[0]),
        high=put(old.high, knots[-1]),
        table=put(old.table, np.interp(grid, knots, target)),
        below=put(old.below, (target[k] - target[0]) / max(knots[k] - knots[0], 1e-9)),
        above=put(old.above, (target[-1] - target[-1 - k]) / max(knots[-1] - knots[-1 - k], 1e-9)),
        normal=put(old.normal, 1.0),
        target=put(old.target, target),
    )


def _either(plain: Coordinate, bent: Coordinate, chosen: np.ndarray) -> Coordinate:
    def pick(name: str) -> np.ndarray:
        a, b = getattr(plain, name), getattr(bent, name)
        where = chosen.reshape(-1, *[1] * (a.ndim - 1)) > 0
        picked: np.ndarray = np.where(where, b, a)
        return picked

    return Coordinate(*(pick(name) for name in Coordinate.__dataclass_fields__))


def _fits(x: np.ndarray, labels: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    """Return the log likelihood of a logistic calibration of each column alone, in bins."""
    w = np.ones(len(x)) if weight is None else weight
    fits = []
    for m, column in enumerate(x.T):
        mass, positive, total = np.zeros((3, _BINS))
        low, high = np.nanmin(column), np.nanmax(column)
        own = w if w.ndim == 1 else np.ascontiguousarray(w[:, m])
        _count(column, labels[:, m], own, low, high, mass, positive, total)
        # The rows of a bin stand at their mean; with so many bins the likelihood hardly changes.
        there = mass > 0
        bins = np.stack([total, positive, mass])[:, there, None]
        given = bins[0] / bins[2], bins[1] / bins[2], bins[2]
        share = np.array([positive.sum() / mass.sum()])
        maximum = fit_logistic_curves(lambda at: logistic_likelihood(*given, at), share)  # noqa: B023
        fits.append(maximum.there.value[0])
    return np.array(fits)


@kernel
def _bend(x: Any, low: Any, high: Any, table: Any, below: Any, above: Any, result: Any) -> None:
    """Look each logit up between two points of the grid; go straight on beyond its ends."""
    last = table.shape[1] - 1
    for i in range(len(x)):
        for m in range(x.shape[1]):
            v = x[i, m]
            if np.isnan(v):
                result[i, m] = v
                continue
            place = (v - low[m]) / (high[m] - low[m]) * last
            cell = int(min(max(place, 0.0), last - 1.0))
            inside = min(max(place, 0.0), float(last)) - cell
            bent = table[m, cell] + inside * (table[m, cell + 1] - table[m, cell])
            result[i, m] = bent + below[m] * min(v - low[m], 0.0) + above[m] * max(v - high[m], 0.0)


@kernel
def _count(
    x: Any, labels: Any, w: Any, low: float, high: float, mass: Any, positive: Any, total: Any
) -> None:
    """Add the weight, the positives and the weighted value of each row to its bin."""
    per_unit = (mass.size - 1) / max(high - low, 1e-12)
    for i in range(len(x)):
        if np.isnan(x[i]):
            continue
        k = int((x[i] - low) * per_unit)
        mass[k] += w[i]
        positive[k] += w[i] * labels[i]
        total[k] += w[i] * x[i]
