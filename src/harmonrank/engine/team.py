"""Team: workers that do one computation together, and exchange arrays on the way."""

__all__ = ["Alone", "Team"]

from typing import Protocol

import numpy as np


class Team(Protocol):
    """The workers of one computation, as each of them sees them.

    All call `gathered` at the same places of a computation, and wait there for each other.

    Attributes:
        rank: Which of them this one is, from 0.
        size: How many they are.
    """

    rank: int
    size: int

    def gathered(self, array: np.ndarray) -> list[np.ndarray]:
        """Return the arrays of all, by rank; they may differ in their first dimension alone."""
        ...


class Alone:
    """A team of one.

    >>> Alone().gathered(np.ones(2))
    [array([1., 1.])]
    """

    rank, size = 0, 1

    def gathered(self, array: np.ndarray) -> list[np.ndarray]:
        """Return the array."""
        return [array]
