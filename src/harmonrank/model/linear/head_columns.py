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
"""The groups of one coefficient each, whose means and precisions the objectives share."""

_SHARED_GROUPS = OTHERS - OWN


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
        """Return which precision each coefficient has, (M, columns); −1 for intercepts, free ones.

        Objectives share the precisions of the first four groups. Of the last two each objective
        has its own: some heads need the other scores or the context, others do not.

        >>> HeadColumns(2).groups((2,))
        array([[-1,  0,  1,  2,  3,  4,  6,  6],
               [-1,  0,  1,  2,  3,  5,  7,  7]])
        """
        M = self.objectives
        group = np.empty((M, self.total(slots)), np.int64)
        group[:, INTERCEPT], group[:, SHARED] = -1, np.arange(_SHARED_GROUPS)
        group[:, self.others] = (_SHARED_GROUPS + np.arange(M))[:, None]
        group[:, self.context] = (_SHARED_GROUPS + M + np.arange(M))[:, None]
        return group

    @property
    def pools(self) -> tuple[slice, slice]:
        """The precisions of `groups` that are alike: of others, and of the context."""
        first, M = _SHARED_GROUPS, self.objectives
        return slice(first, first + M), slice(first + M, first + 2 * M)

    def flat(self, precision: np.ndarray) -> np.ndarray:
        """Return the precisions of `groups` from those by head and group, (M, groups)."""
        own = precision[:, _SHARED_GROUPS:].T.reshape(-1)
        return np.concatenate([precision[0, :_SHARED_GROUPS], own])

    def by_head(self, precision: np.ndarray) -> np.ndarray:
        """Return the precisions by head and group, (M, groups), from those of `groups`."""
        M = self.objectives
        own = precision[_SHARED_GROUPS:].reshape(-1, M).T
        return np.hstack([np.tile(precision[:_SHARED_GROUPS], (M, 1)), own])
