"""Clustering: how much more labels say the same within requests than independent rows would.

Rows of one request share what no column tells: the mood of a user, an error of upstream. What few
requests share then looks like an effect of the context values that these requests have. With r the
residuals of heads, the sum of r over the rows of a request that have a context value varies by

    d = Σ (Σ r)² / Σ r²

as much as if rows were independent, and so does the gradient of that value's coefficient. Evidence
is divided by d (Moulton, 1990): the precision of the context group counts d times.
"""

__all__ = ["context_clustering"]

import numpy as np

from harmonrank.model.fit_rows import FitRows
from harmonrank.model.linear.heads import Heads
from harmonrank.support.logistic import sigmoid

_PROVEN = 2.0  # Standard errors above 1, from which on requests are believed to matter.


def context_clustering(heads: Heads, rows: FitRows) -> np.ndarray:
    """Return d of each head, (M,); 1 where no more is proven or no column names requests.

    Args:
        heads: Fitted to rows of this log, context effects included: these are no clustering.
        rows: Whole requests.
    """
    effects = np.ones(len(heads.theta))
    whole = np.flatnonzero(~np.isnan(rows.scores).any(axis=1))
    if rows.request is None or not rows.codes.shape[1] or not len(whole):
        return effects
    some = rows.taken(whole)
    assert some.request is not None
    request = np.unique(some.request, return_inverse=True)[1].reshape(-1)
    r = some.labels - sigmoid(heads.logits(some.logits(), some.codes))
    counts = some.counts()
    if counts is not None:
        r *= counts.reshape(some.rows, -1)
    alone, excess, noise = np.zeros((3, len(effects)))
    for code, slots in zip(some.codes.T, heads.slots, strict=True):
        cell = np.unique(request * slots + code, return_inverse=True)[1].reshape(-1)
        for m, column in enumerate(r.T):
            more = np.bincount(cell, column) ** 2 - np.bincount(cell, column**2)
            excess[m] += more.sum()
            noise[m] += (more**2).sum()
        alone += (r**2).sum(axis=0)
    proven = excess > _PROVEN * np.sqrt(noise)
    effects[proven] += excess[proven] / alone[proven]
    return effects
