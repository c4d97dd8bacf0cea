"""Shift: how far a score column has moved since the fit."""

__all__ = ["Shift"]

from dataclasses import dataclass

# A busy hour or another mix of users moves scores a little; a replaced model moves them like this.
_FAR_OFFSET = 0.3
_FAR_SCALE = 1.3
_FEWEST_ROWS = 1000


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
        scaled = not 1 / _FAR_SCALE < self.scale < _FAR_SCALE
        return self.rows >= _FEWEST_ROWS and (abs(self.offset) > _FAR_OFFSET or scaled)

    def __str__(self) -> str:
        return (
            f"'{self.column}' has moved since the fit (mean {self.offset:+.2f} standard "
            f"deviations, scale × {self.scale:.2f}); if its upstream model was replaced, run "
            "`harmonrank recalibrate`."
        )
