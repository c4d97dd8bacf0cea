"""Head columns: which number of a head, and which column of `Heads.theta`, is which."""

__all__ = [
    "BY_CONTEXT",
    "GROUPS",
    "INTERCEPT",
    "MEAN",
    "OTHERS",
    "OWN",
    "SHARED",
    "SURPRISE",
    "HeadColumns",
]

from dataclasses import dataclass

import numpy as np

GROUPS = ("own", "by context", "surprise", "mean", "others", "context")
"""The groups of coefficients after the intercept, in order; `Heads` explains them."""

# Plain numbers, as kernels take them too.
INTERCEPT, OWN, BY_CONTEXT, SURPRISE, MEAN, OTHERS = range(6)

SHARED = slice(OWN, OTHERS)
"""The groups of one coefficient each, whose means the objectives share."""


@dataclass(frozen=True)
class HeadColumns:
    """The columns of the heads of so many objectives.

    >>> columns = HeadColumns(3)
    >>> columns.width, columns.others, columns.context
    (7, slice(5, 7, None), slice(7, None, None))
    """

    objectives: int

    @property
    def width(self) -> int:
        """How many columns there are before those of the context."""
        return OTHERS + self.objectives - 1

    @property
    def numbers(self) -> slice:
        """All columns before those of the context."""
        return slice(self.width)

    @property
    def others(self) -> slice:
        """One column for each other score, in the order of `other_than`."""
        return slice(OTHERS, self.width)

    @property
    def context(self) -> slice:
        """One column for each context value."""
        return slice(self.width, None)

    def other_than(self, m: int) -> list[int]:
        """Return which scores the columns `others` of head m are about.

        >>> HeadColumns(3).other_than(1)
        [0, 2]
        """
        return [j for j in range(self.objectives) if j != m]

    def total(self, slots: tuple[int, ...]) -> int:
        """Return how many columns there are with those of the context."""
        return self.width + sum(slots)

    def groups(self, slots: tuple[int, ...]) -> np.ndarray:
        """Return the place in `GROUPS` of each column; −1 for the intercept, which is free.

        >>> HeadColumns(3).groups((2,))
        array([-1,  0,  1,  2,  3,  4,  4,  5,  5])
        """
        found = np.full(self.total(slots), GROUPS.index("context"))
        found[self.others] = GROUPS.index("others")
        found[SHARED] = np.arange(OTHERS - OWN)
        found[INTERCEPT] = -1
        return found
