"""Shares: how far each score is recalibrated, 0 to 1, by what proves that it changed.

A score that moved tells that its upstream model was replaced, or that chances moved and it rightly
says so. Without labels only the pattern across scores tells (`measurement`): a score is
recalibrated if its model was surely replaced, and else not at all. Labels of the same rows tell
more. With G the log-likelihood of the score's own objective that another share would gain, and s
its standard error over requests, whose rows are not independent, the share goes

    1 − (2s/G)²

of the way to the best one that was tried; nowhere, if the gain is within two standard errors.
"""

__all__ = ["EVIDENCE_ROWS", "Changed", "named_shares", "proven_shares", "shares_by_pattern"]

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from harmonrank.data import Log
from harmonrank.fusion.drift.drift import Drift
from harmonrank.support.errors import UsageError, did_you_mean
from harmonrank.support.logistic import SMALLEST_SCORE, clipped, log_likelihoods

Changed: TypeAlias = str | Sequence[str] | Mapping[str, float]
"""'proven', 'all', score columns ('p_buy,p_like' or a list), or how far each is recalibrated."""

EVIDENCE_ROWS = 50_000
"""At most so many labelled rows are looked at."""

_TRIED = (0.0, 0.5, 1.0)
_ERRORS = 2.0
_RUN_ROWS = 100  # Of runs that stand for requests where no column names them.


def named_shares(changed: Changed, columns: Sequence[str]) -> np.ndarray | None:
    """Return the shares that a user names, (M,); None if they are to be proven.

    >>> named_shares(["p_like"], ["p_buy", "p_like"])
    array([0., 1.])
    """
    if changed == "proven":
        return None
    if isinstance(changed, str):
        changed = columns if changed == "all" else changed.split(",")
    for name in set(changed) - set(columns):
        hint = did_you_mean(name, [*columns, "all", "proven"])
        raise UsageError(f"There is no score column {name!r} to recalibrate. {hint}")
    shares = changed if isinstance(changed, Mapping) else dict.fromkeys(changed, 1.0)
    return np.array([float(shares.get(name, 0.0)) for name in columns])


def proven_shares(
    log: Log, drift: Drift, chances: Callable[[np.ndarray, int], np.ndarray] | None
) -> np.ndarray:
    """Return the shares, (M,), that the pattern across scores and the labels prove.

    Args:
        log: Rows; labels need not be known.
        drift: Of these rows.
        chances: Returns those of an objective, (rows,), by the model with some shares; None if it
            has no probabilities.
    """
    shares = shares_by_pattern(drift)
    if log.labels is None or chances is None:
        return shares
    events = [name not in {*log.schema.graded, *log.schema.given} for name in log.schema.names]
    for m, column in enumerate(drift.columns):
        if column.moved and not column.constant and events[m]:
            tried = [np.where(np.arange(len(shares)) == m, share, shares) for share in _TRIED]
            likely = [_likelihoods(log, m, chances(share, m)) for share in tried]
            shares[m] = _share(np.stack(likely), shares[m])
    return shares


def shares_by_pattern(drift: Drift) -> np.ndarray:
    """Return 1 for each score whose model was surely replaced, or that lost all its values."""
    sure = [column.column in drift.replaced or column.constant for column in drift.columns]
    return np.array(sure, dtype=np.float64)


def _likelihoods(log: Log, m: int, chance: np.ndarray) -> np.ndarray:
    """Return the log-likelihood of what each request says of objective m, (requests,)."""
    of_row = log_likelihoods(clipped(chance, SMALLEST_SCORE), log.known_labels()[:, m])
    weight = 1.0 if log.sample_weight is None else log.sample_weight
    request = np.arange(log.rows) // _RUN_ROWS if log.request is None else log.request
    return np.bincount(np.unique(request, return_inverse=True)[1].reshape(-1), of_row * weight)


def _share(tried: np.ndarray, before: float) -> float:
    """Return how far a score is recalibrated, by log-likelihoods (shares tried, requests).

    >>> likely = np.linspace(0.0, 2.0, 101)
    >>> round(_share(np.stack([0 * likely, 0.75 * likely, likely]), 0.0), 3)
    0.987
    """
    gains = tried - tried[_TRIED.index(before)]
    best = int(np.argmax(gains.sum(axis=1)))
    gain = gains[best]
    error = np.sqrt(((gain - gain.mean()) ** 2).sum())
    if gain.sum() <= _ERRORS * error:
        return before
    return before + (_TRIED[best] - before) * (1 - (_ERRORS * float(error / gain.sum())) ** 2)
