"""Team: workers that do one computation together, and exchange arrays on the way."""

__all__ = ["Alone", "Team", "in_parallel"]

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

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


def in_parallel(workers: int, function: Callable[..., Any], folder: Path, *given: Any) -> Any:
    """Return what `function(team, *given)` returns on the first of so many workers of Ray.

    All begin again where one is lost, so the function goes on from what it has stored. The folder,
    seen by all, is Ray's own meanwhile and gone at the end.
    """
    with warnings.catch_warnings():
        # Ray Train loads Ray Data, which warns of settings of its own.
        warnings.simplefilter("ignore", DeprecationWarning)
        from harmonrank_lab.upstream.ray_team import run_in_parallel

        return run_in_parallel(workers, function, folder, given)
