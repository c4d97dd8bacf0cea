"""Shift: how far a score column has moved since the fit, and what that tells."""

__all__ = ["Shift", "replaced", "shift_notes"]

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

# A busy hour or another mix of users moves scores a little; a replaced model moves them like this.
_FAR_OFFSET, _FAR_SCALE = 0.3, 1.3
_FEWEST_ROWS = 1000
# Beside scores that stand still, less will do.
_MOVED_OFFSET, _MOVED_SCALE = 0.1, 1.07
_STILL_OFFSET, _STILL_SCALE = 0.05, 1.05
# Rows that were chosen by one score would drag another one along, or widen it, at least so far.
_DRAG, _VARIANCE_DRAG = 0.1, 0.2
_DEAD_SCALE = 1e-3


@dataclass(frozen=True)
class Shift:
    """Where one score column is now, seen from where it was at the fit, given the context.

    Attributes:
        column: The score's column.
        rows: How many were looked at.
        offset: Change of the median, in standard deviations of the fit.
        scale: The range from the 10th to the 90th percentile, over that of the fit; a few broken
            scores change neither.
        first_row: Where in the table the rows begin.
    """

    column: str
    rows: int
    offset: float
    scale: float
    first_row: int = 0

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

    @property
    def dead(self) -> bool:
        """Whether nearly all rows have one value."""
        return self.scale < _DEAD_SCALE

    def _beyond(self, offset: float, scale: float) -> bool:
        return abs(self.offset) > offset or not 1 / scale < self.scale < scale

    def __str__(self) -> str:
        place = f", from row {self.first_row:,} on" if self.first_row else ""
        return (
            f"'{self.column}' has moved since the fit (median {self.offset:+.2f} standard "
            f"deviations, scale × {self.scale:.2f}{place})"
        )


def replaced(shifts: Sequence[Shift], correlation: np.ndarray) -> list[Shift]:
    """Return the scores that moved as if their upstream models were replaced.

    Other rows than those of the fit (the best candidates, another season) move correlated scores
    together: chosen by score i, they drag score j along by ρ_ij times its move. A replaced model
    moves its own score alone. So every score must either have moved or stand still, and each that
    moved must be tied to one that stands still and would have been seen to follow.

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
    for i in moved:
        tie = np.abs(correlation[i, still]).max(initial=0.0)
        drag, widened = tie * abs(shifts[i].offset), tie**2 * abs(shifts[i].scale ** 2 - 1)
        if drag < _DRAG and widened < _VARIANCE_DRAG:
            return []
    return [shifts[i] for i in moved]


def shift_notes(shifts: Sequence[Shift], adapted: Sequence[Shift]) -> list[str]:
    """Return a sentence for each score that has moved far, or is in `adapted`: read anew."""
    guess = "; if its upstream model was replaced, run `harmonrank recalibrate`."
    proof = (
        " and correlated scores have not, as when an upstream model is replaced: it is read on its "
        "new scale, which `harmonrank recalibrate` keeps and --as-is forbids."
    )
    dead = " to one value in nearly all rows: it is taken for no news until it is repaired."
    anew = {shift.column for shift in adapted}
    notes = [f"{shift}{dead if shift.dead else proof}" for shift in adapted]
    return notes + [f"{shift}{guess}" for shift in shifts if shift.far and shift.column not in anew]
