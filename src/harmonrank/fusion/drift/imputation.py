"""Imputation: what stands for a missing score, in methods that need all of them.

The default averages over what is missing (`harmonrank.model.missing`). Every other method
is given the conditional mean of the missing score's logit: with z the deviation of each logit from
the median of its context, in standard deviations, and R the correlations at the fit (`Reference`,
which every model keeps),

    z_missing = R_mo R_oo⁻¹ z_observed.

A row that has no score at all is taken for the median of its context. Nothing is drawn, so a row
is completed the same way at the fit, in a table and in a request.
"""

__all__ = ["imputed"]

from typing import Any

import numpy as np

from harmonrank.fusion.drift.reference import Reference
from harmonrank.model.density.density import SMALLEST_EIGENVALUE
from harmonrank.model.missing.gaps import MissingDensity, distinct_sets
from harmonrank.support.kernel import kernel
from harmonrank.support.logistic import score_logit, sigmoid_of

_REACH = 6.0  # Standard deviations; what is further away is broken, and tells nothing of others.


def imputed(reference: Reference, scores: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Return scores with a number for every NaN; the scores themselves if there is none.

    Args:
        reference: Of the scores at the fit.
        scores: (rows, M).
        codes: (rows, features) of the context; (1, features) where all rows share one.
    """
    rows = np.flatnonzero(np.isnan(scores).any(axis=1))
    if not len(rows):
        return scores
    complete = scores.copy()
    some = complete[rows]
    _complete(reference, some, codes[rows] if len(codes) == len(scores) else codes)
    complete[rows] = some
    return complete


def _complete(reference: Reference, scores: np.ndarray, codes: np.ndarray) -> None:
    """Write a number for every NaN of rows that each have one."""
    missing = np.isnan(scores)
    centre, deviation = (np.broadcast_to(part, scores.shape) for part in reference.place(codes))
    away = (score_logit(scores) - centre) / np.where(deviation > 0, deviation, 1.0)
    away = np.clip(np.where(missing | (deviation <= 0), 0.0, away), -_REACH, _REACH)
    sets, which = distinct_sets(missing)
    precision = np.linalg.inv(_proper(reference.correlation))
    gain = MissingDensity.of(np.tile(precision, (len(sets), 1, 1)), sets).gain
    _fill(missing, which, gain, away, centre.copy(), deviation.copy(), scores)


def _proper(correlation: np.ndarray) -> np.ndarray:
    """Return correlations shrunk until they are those of some density."""
    eye = np.eye(len(correlation))
    off = correlation * (1 - eye)
    smallest = float(np.linalg.eigvalsh(off + eye)[0])
    keep = min(1.0, (1 - SMALLEST_EIGENVALUE) / max(1 - smallest, 1e-12))
    shrunk: np.ndarray = eye + keep * off
    return shrunk


@kernel
def _fill(
    missing: Any, which: Any, gain: Any, away: Any, centre: Any, deviation: Any, scores: Any
) -> None:
    """Write the score whose logit is the conditional mean."""
    M = scores.shape[1]
    for i in range(len(scores)):
        for m in range(M):
            if missing[i, m]:
                z = 0.0
                for j in range(M):
                    z += gain[which[i], m, j] * away[i, j]
                scores[i, m] = sigmoid_of(centre[i, m] + deviation[i, m] * z)
