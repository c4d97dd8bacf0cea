"""Which columns of many whole numbers are quantities, and not names: the labels tell.

Of more values than a method keeps, hours since a visit are better cut into parts, as fractions
are; the numbers of cities have no order. So both codings of a column are tried on rows with labels.
With g the sum of y − ȳ over the rows of a code, and k that of its variance, a normal prior of
precision λ on the effects of all codes gains

    ½ Σ [g²/(k + λ) − log((k + λ)/λ)]

in log evidence (eq. 8 of docs/default-method.md), and the coding whose best λ gains more is taken.
"""

__all__ = ["ordered_columns"]

from collections.abc import Sequence

import numpy as np

from harmonrank.data import ContextEncoder, Log
from harmonrank.data.context import Counts

_PRECISIONS = np.geomspace(1e-2, 1e6, 25)


def ordered_columns(counts: Sequence[Counts], some: Log, most_values: int) -> tuple[str, ...]:
    """Return the columns of whole numbers whose parts say more of the labels than their values.

    Args:
        counts: Of every context column, how many rows have each value.
        some: Rows with labels.
        most_values: A column with no more values keeps all of them.
    """
    pairs = zip(some.context, counts, strict=True)
    many = [
        (column, known)
        for column, known in pairs
        if known is not None and len(known) > most_values and known["value"].dtype.is_integer()
    ]
    chosen = []
    for column, known in many:
        frame = column.to_frame()
        values, parts = (
            ContextEncoder.of_counts([known], frame, most_values, ordered).encode(frame)[:, 0]
            for ordered in ((), (column.name,))
        )
        if _gain(some, parts, values) > _gain(some, values, values):
            chosen.append(column.name)
    return tuple(chosen)


def _gain(some: Log, codes: np.ndarray, values: np.ndarray) -> float:
    """Return the log evidence that a coding gains, summed over objectives.

    Rows of one user or request and one value are one observation, as far as their labels vary
    together.
    """
    total = 0.0
    for m in range(len(some.schema.names)):
        labels, weight, shown = some.known_labels()[:, m], some.sample_weight, some.shown
        w = np.ones(some.rows) if weight is None else weight
        w = w if shown is None else w * shown[:, m]
        mean = w @ labels / max(w.sum(), 1e-300)
        pull = w * (labels - mean)
        spread = float(w @ (labels - mean) ** 2 / max(w.sum(), 1e-300))
        clustering = 1.0
        if some.units is not None:
            _, group = np.unique(np.stack([some.units, values]), axis=1, return_inverse=True)
            sums = np.bincount(group.reshape(-1), pull)
            clustering = max(1.0, float(sums @ sums / max(pull @ pull, 1e-300)))
        g, k = np.bincount(codes, pull) / clustering, np.bincount(codes, w * spread) / clustering
        below = k[:, None] + _PRECISIONS
        gains = 0.5 * (g[:, None] ** 2 / below - np.log(below / _PRECISIONS)).sum(axis=0)
        total += float(gains.max())
    return total
