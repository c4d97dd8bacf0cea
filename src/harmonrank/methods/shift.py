"""Shift: how far a score column has moved since the fit."""

__all__ = ["Shift", "replaced", "shift_notes"]

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

# A busy hour or another mix of users moves scores a little; a replaced model moves them like this.
_FAR_OFFSET = 0.3
_FAR_SCALE = 1.3
_FEWEST_ROWS = 1000
# Beside scores that stand still, much less is proof.
_MOVED_OFFSET = 0.1
_MOVED_SCALE = 1.07
_STILL_OFFSET = 0.05
_STILL_SCALE = 1.05
# Rows that were chosen by one score drag others along by this much of its own move, or more.
_DRAGGING = 0.2


@dataclass(frozen=True)
class Shift:
    """Where one score column is now, seen from where it was at the fit, given the context.

    Attributes:
        column: The score's column.
        rows: How many were looked at.
        offset: Change of the mean, in standard deviations of the fit.
        scale: Standard deviation now, over that of the fit.
    """

    column: str
    rows: int
    offset: float
    scale: float

    @property
    def far(self) -> bool:
        """Whether it looks like another upstream model, and not like another day.

        >>> Shift("p_buy", 5000, offset=0.1, scale=1.1).far
        False
        >>> Shift("p_buy", 5000, offset=0.1, scale=0.6).far
        True
        """
        return self.rows >= _FEWEST_ROWS and self._beyond(_FAR_OFFSET, _FAR_SCALE)

    @property
    def moved(self) -> bool:
        """Whether it is not where it was at the fit, and that is not chance."""
        return self.rows >= _FEWEST_ROWS and self._beyond(_MOVED_OFFSET, _MOVED_SCALE)

    @property
    def still(self) -> bool:
        """Whether it is where it was at the fit, but for chance."""
        return not self._beyond(_STILL_OFFSET, _STILL_SCALE)

    def _beyond(self, offset: float, scale: float) -> bool:
        return abs(self.offset) > offset or not 1 / scale < self.scale < scale

    def __str__(self) -> str:
        return (
            f"'{self.column}' has moved since the fit (mean {self.offset:+.2f} standard "
            f"deviations, scale × {self.scale:.2f})"
        )


def replaced(shifts: Sequence[Shift], correlation: np.ndarray) -> list[Shift]:
    """Return the columns whose upstream model was replaced, if that is what the shifts prove.

    Other rows than those of the fit (the best candidates, another season) move correlated scores
    together. A replaced model moves its own score alone. So it is proven if every score either
    has moved or stands still, and each that moved is correlated with one that stands still.

    Args:
        shifts: Of all score columns.
        correlation: Between the scores at the fit, given the context.

    >>> moved, still = Shift("p_buy", 5000, 0.9, 1.0), Shift("p_like", 5000, 0.0, 1.0)
    >>> [shift.column for shift in replaced([moved, still], np.array([[1.0, 0.4], [0.4, 1.0]]))]
    ['p_buy']
    >>> replaced([moved, still], np.eye(2))
    []
    """
    moved = [i for i, shift in enumerate(shifts) if shift.moved]
    still = [i for i, shift in enumerate(shifts) if shift.still]
    if not moved or len(moved) + len(still) < len(shifts):
        return []
    tied = np.abs(correlation[np.ix_(moved, still)]) >= _DRAGGING
    return [shifts[i] for i in moved] if tied.any(axis=1).all() else []


def shift_notes(shifts: Sequence[Shift], adapted: Sequence[Shift]) -> list[str]:
    """Return a sentence for each score that has moved far, or is in `adapted`: read anew."""
    guess = "; if its upstream model was replaced, run `harmonrank recalibrate`."
    proof = (
        " and others have not, so its upstream model was replaced: it is read on its new scale, "
        "which `harmonrank recalibrate` keeps and --as-is forbids."
    )
    told = [shift for shift in shifts if shift.far or shift in adapted]
    return [f"{shift}{proof if shift in adapted else guess}" for shift in told]
