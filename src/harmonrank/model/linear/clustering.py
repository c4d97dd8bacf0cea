"""Clustering: how much more alike labels of a user or a request are than those of independent rows.

Rows of one request share what no column tells: the mood of a user, an error of upstream. What few
requests share then looks like an effect of the context values that these requests have. With r the
residuals of heads, the sum of r over the rows of a request that have a context value varies by

    d = Σ (Σ r)² / Σ r²

as much as if rows were independent, and so does the gradient of that value's coefficient. Evidence
is divided by d (Moulton, 1990): the precision of the context group counts d times.

Where users are named they take the place of requests. Of these there may be few with each value,
whose effect has then taken up much of what they share, so that d is Σ (Σ r)² / Σ (1 − ℓ) Σ r²: of
the information on the effect ℓ is the share of the user's own rows.
"""

__all__ = ["context_clustering"]

import numpy as np

from harmonrank.model.fit_rows import FitRows
from harmonrank.model.linear.heads import Heads
from harmonrank.support.logistic import sigmoid

_PROVEN = 2.0  # Standard errors above 1, from which on clusters are believed to matter.


def context_clustering(heads: Heads, rows: FitRows, log_rows: int) -> np.ndarray:
    """Return d of each head, (M,); 1 where no more is proven or no column names users or requests.

    Args:
        heads: Fitted to rows of this log, context effects included: these are no clustering.
        rows: Whole users or requests.
        log_rows: How many rows the log has, of which these are some.
    """
    effects = np.ones(len(heads.theta))
    whole = np.flatnonzero(~np.isnan(rows.scores).any(axis=1))
    if rows.units is None or not rows.codes.shape[1] or not len(whole):
        return effects
    some = rows.taken(whole)
    assert some.units is not None
    unit = np.unique(some.units, return_inverse=True)[1].reshape(-1)
    p = sigmoid(heads.logits(some.logits(), some.codes))
    r, known = some.labels - p, p * (1 - p)
    counts = some.counts()
    if counts is not None:
        r *= counts.reshape(some.rows, -1)
        known *= counts.reshape(some.rows, -1)
    alone, excess, noise = np.zeros((3, len(effects)))
    for code, slots in zip(some.codes.T, heads.slots, strict=True):
        cell = np.unique(unit * slots + code, return_inverse=True)[1].reshape(-1)
        own = r**2
        if some.user is not None:
            decides = heads.precision[:, -1] + _sums(code, known) * (log_rows / rows.rows)
            own *= 1 - _sums(cell, known) / decides
        for m, column in enumerate(r.T):
            more = np.bincount(cell, column) ** 2 - np.bincount(cell, own[:, m])
            excess[m] += more.sum()
            noise[m] += (more**2).sum()
        alone += own.sum(axis=0)
    proven = excess > _PROVEN * np.sqrt(noise)
    effects[proven] += excess[proven] / alone[proven]
    return effects


def _sums(code: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the sum of each column over all rows of the same code, for every row."""
    return np.stack([np.bincount(code, column)[code] for column in values.T], axis=1)
