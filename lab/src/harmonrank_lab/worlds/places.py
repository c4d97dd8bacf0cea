"""Places: rows of a world shown in an order, and answered only where they were looked at."""

__all__ = ["Placed", "examination_curve", "placed"]

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harmonrank.data import chances_at
from harmonrank.worlds import Sample

_GLANCE = 0x100C


@dataclass(frozen=True, eq=False)
class Placed:
    """What a log says of rows that were shown.

    Attributes:
        position: (rows,), from 1 in each request.
        labels: (rows, objectives), 0 wherever a row was not looked at.
        seen: (rows,), whether it was, which no log says.
    """

    position: NDArray[np.int64]
    labels: NDArray[np.uint8]
    seen: NDArray[np.bool_]


def examination_curve(power: float, places: int) -> dict[int, float]:
    """Return the chance 1/log₂(1 + k)^power that place k is looked at, of places 1 … `places`.

    >>> {k: round(chance, 3) for k, chance in examination_curve(1.0, 3).items()}
    {1: 1.0, 2: 0.631, 3: 0.5}
    """
    return {k: float(np.log2(1 + k) ** -power) for k in range(1, places + 1)}


def placed(
    sample: Sample, score: NDArray[np.float64], curve: Mapping[int, float], seed: int
) -> Placed:
    """Show the rows of every request in the order of a score, the largest first.

    Args:
        sample: Rows of a world; their labels are what users would say of what they look at.
        score: (rows,) what ranked them.
        curve: The chance that each place is looked at.
        seed: Decides which rows are looked at; the same for every score.
    """
    order = np.lexsort((-score, sample.request))
    request = sample.request[order]
    starts = np.flatnonzero(np.r_[True, request[1:] != request[:-1]])
    sizes = np.diff(np.r_[starts, len(order)])
    position = np.empty(len(order), np.int64)
    position[order] = np.arange(len(order)) - np.repeat(starts, sizes) + 1
    glance = np.random.default_rng([seed, _GLANCE]).random(len(order))
    seen = glance < chances_at(curve, position)
    return Placed(position, sample.labels * seen[:, None], seen)
