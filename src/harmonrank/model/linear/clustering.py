"""Clustering: how much more alike labels of a user or a request are than those of independent rows.

Rows of one user, or of one request, share what no column tells: a mood, an error of upstream. What
few users share then looks like an effect of the context values that they have. With r the residuals
of heads, the sum of r over the rows of a user that have a context value varies by

    d = Σ (Σ r)² / Σ (1 − ℓ) Σ r²

as much as if rows were independent, and so does the gradient of that value's coefficient. ℓ is the
share of that coefficient which these rows themselves decide: so much of what they have in common it
has taken up. Evidence is divided by d (Moulton, 1990): the precision of the value counts d times.
"""

__all__ = ["context_clustering"]

import numpy as np

from harmonrank.model.fit_rows import FitRows
from harmonrank.model.linear.heads import Heads
from harmonrank.support.logistic import sigmoid

_PROVEN = 2.0  # Standard errors above 1, from which on users or requests are believed to matter.


def context_clustering(heads: Heads, rows: FitRows, log_rows: int) -> np.ndarray:
    """Return d of each head and context feature, (M, features).

    It is 1 where no more is proven or no column names users or requests.

    Args:
        heads: Fitted to rows of this log, context effects included: these are no clustering.
        rows: Whole users or requests.
        log_rows: How many rows the log has, of which these are some.
    """
    effects = np.ones((len(heads.theta), rows.codes.shape[1]))
    some = rows.taken(~np.isnan(rows.scores).any(axis=1))
    if some.units is None or not some.rows:
        return effects
    unit = np.unique(some.units, return_inverse=True)[1].reshape(-1)
    p = sigmoid(heads.logits(some.logits(), some.codes))
    counts = some.counts()
    w = np.ones((some.rows, 1)) if counts is None else counts.reshape(some.rows, -1)
    r, known = w * (some.labels - p), w * p * (1 - p)
    for f, (code, slots) in enumerate(zip(some.codes.T, heads.slots, strict=True)):
        cell = np.unique(unit * slots + code, return_inverse=True)[1].reshape(-1)
        slot = np.empty(cell.max() + 1, np.int64)
        slot[cell] = code
        for m in range(len(effects)):
            whole = np.bincount(code, known[:, m], slots) * log_rows / rows.rows
            taken_up = np.bincount(cell, known[:, m]) / (heads.precision[m, -1] + whole[slot])
            alone = (1 - taken_up) * np.bincount(cell, r[:, m] ** 2)
            more = np.bincount(cell, r[:, m]) ** 2 - alone
            if more.sum() > _PROVEN * np.sqrt((more**2).sum()):
                effects[m, f] += more.sum() / alone.sum()
    return effects
