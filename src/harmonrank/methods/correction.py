"""Correction: weights by which feedback counts as if every place had been looked at.

With feedback = looked at × wanted, the weight of a row is the chance that it was looked at, given
its feedback, over the chance of its place (eqs. 3 and 4 of docs/position.md):

    u = 1/θ where there is any feedback, (1 − ρ)/(1 − θρ) where there is none.

Given what a fusion sees, E[u f(y)] = E f(wanted) for every f: one weight per row makes losses,
heads and metrics of all objectives unbiased, and it is never negative.
"""

__all__ = ["MOST_WEIGHT", "corrected", "estimated_curve", "inverse_weights"]

from dataclasses import replace

import numpy as np

from harmonrank.data import Log
from harmonrank.data.examination import chances_at
from harmonrank.errors import DataError
from harmonrank.methods.click_model import ClickModel, relevance_features

MOST_WEIGHT = 20.0
"""Chances below 1/20 are taken for 1/20: some bias, against weights that a few rows would rule."""

_CURVE_ROWS = 200_000
_RELEVANCE_ROWS = 100_000
# A place with fewer answered rows shares the chance of the places after it.
_FEWEST_ANSWERED = 30
_MOST_PLACES = 60


def corrected(log: Log) -> Log:
    """Return rows whose sample weights undo their places, where the schema names a position.

    The schema of what is returned has the examination curve, estimated where it was not given.
    Rows without labels or without a position come back as they are, and so do rows that are
    corrected already. Candidates that were not shown tell nothing, so they have the weight 0.
    """
    if log.position is None or log.labels is None or log.inverse is not None:
        return log
    shown = log.position >= 0
    if not shown.all():
        return _with_unshown(log, shown)
    curve = dict(log.schema.examination) or estimated_curve(log)
    answered = _answered(log)
    if not answered.any():
        return log.corrected(np.ones(log.rows), curve)
    chance = np.maximum(chances_at(curve, log.position), 1 / MOST_WEIGHT)
    rho = _relevance(log, answered, chance)
    return log.corrected(inverse_weights(answered, chance, rho), curve)


def _with_unshown(log: Log, shown: np.ndarray) -> Log:
    """Correct the rows that were shown, and count no other."""
    if not shown.any() or log.known_labels()[~shown].any():
        what = "has feedback on rows without a place" if shown.any() else "is null in all rows"
        raise DataError(
            f"Position column '{log.schema.position}' {what}; a row without a place is one that "
            "was not shown. Fill in where rows were shown."
        )
    part = corrected(log.take(np.flatnonzero(shown)))
    inverse = np.zeros(log.rows)
    inverse[shown] = part.inverse
    return log.corrected(inverse, part.schema.examination)


def inverse_weights(answered: np.ndarray, chance: np.ndarray, rho: np.ndarray) -> np.ndarray:
    """Return P(looked at | feedback, x, place)/θ of each row.

    >>> inverse_weights(np.array([True, False]), np.array([0.5, 0.5]), np.array([0.2, 0.2]))
    array([2.        , 0.88888889])

    Args:
        answered: (rows,) whether there was any feedback.
        chance: θ, (rows,) the chance that the place of each row is looked at.
        rho: ρ, (rows,) the chance of any feedback on the row if it is looked at, below 1.
    """
    return np.where(answered, 1 / chance, (1 - rho) / (1 - chance * rho))


def estimated_curve(log: Log) -> dict[int, float]:
    """Return the examination curve that the feedback of a log tells, its largest chance 1.

    Feedback alone cannot tell rarely looked at from rarely wanted, so the curve is relative.

    Raises:
        DataError: All rows are at one place, or there is too little feedback.
    """
    assert log.position is not None
    name = log.schema.position
    answered = _answered(log)
    places = np.unique(log.position)
    if len(places) < 2:
        raise DataError(
            f"Position column '{name}' is {places[0]} in all {log.rows:,} rows, so no curve can be "
            "estimated; leave `position` out, or give `examination`."
        )
    pool, first = _pools(log.position, answered, places)
    if len(first) < 2:
        raise DataError(
            f"{int(answered.sum()):,} rows with feedback are too few to estimate how often each "
            f"place of '{name}' is looked at; expected at least {2 * _FEWEST_ANSWERED}. Give "
            "`examination`, or more rows."
        )
    rows = log.drawn(_CURVE_ROWS)
    part = log.take(rows)
    found = ClickModel.fit(
        relevance_features(part)(part), pool[rows], answered[rows], _weight(part)
    )
    chance = np.exp(found.log_chance - found.log_chance.max())
    return dict(zip(first.tolist(), chance.tolist(), strict=True))


def _pools(
    position: np.ndarray, answered: np.ndarray, places: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the pool of each row, and the first place of each pool, so that all are answered."""
    at = np.searchsorted(places, position)
    counts = np.bincount(at, answered, len(places))
    fewest = max(_FEWEST_ANSWERED, counts.sum() / _MOST_PLACES)
    number, total = np.zeros(len(places), np.int64), 0.0
    for place in range(1, len(places)):
        total += counts[place - 1]
        opens = total >= fewest and counts[place:].sum() >= fewest
        number[place] = number[place - 1] + opens
        total = 0.0 if opens else total
    return number[at], places[np.r_[True, np.diff(number) > 0]]


def _relevance(log: Log, answered: np.ndarray, chance: np.ndarray) -> np.ndarray:
    """Return ρ, the chance of any feedback if a row is looked at, given the examination curve."""
    known, code = np.unique(chance, return_inverse=True)
    rows = log.drawn(_RELEVANCE_ROWS)
    part = log.take(rows)
    features = relevance_features(part)
    found = ClickModel.fit(features(part), code[rows], answered[rows], _weight(part), np.log(known))
    # Labels are not looked at, and a block of rows is copied at a time.
    bare = replace(log, labels=None, truth=None, request=None)
    return found.relevance(lambda b: features(bare.take(np.arange(b.start, b.stop))), log.rows)


def _answered(log: Log) -> np.ndarray:
    found: np.ndarray = log.known_labels().max(axis=1) > 0
    return found


def _weight(log: Log) -> np.ndarray:
    return np.ones(log.rows) if log.own_weight is None else log.own_weight / log.own_weight.mean()
