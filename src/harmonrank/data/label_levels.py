"""Label levels: the values that a graded label has, and the weight of the rows with each."""

__all__ = ["MOST_LEVELS", "LabelLevels", "LevelSum"]

from dataclasses import dataclass

import numpy as np

MOST_LEVELS = 1 << 24
"""Of a log in blocks so many values of a label are counted at most: some 400 MB of them, and a few
times that while they are merged."""


@dataclass(frozen=True, eq=False)
class LabelLevels:
    """The distribution of a label.

    Attributes:
        values: (levels,) each value that some row has, ascending.
        mass: (levels,) the weight of the rows with it; their number where all count the same.
    """

    values: np.ndarray
    mass: np.ndarray

    @classmethod
    def of(cls, labels: np.ndarray, weight: np.ndarray | None) -> "LabelLevels":
        """Count the labels of some rows."""
        values, codes = np.unique(labels, return_inverse=True)
        return cls(values, np.bincount(codes.reshape(-1), weight))

    def __len__(self) -> int:
        return len(self.values)

    def merged(self, others: "LabelLevels") -> "LabelLevels":
        """Return the distribution of these rows and others."""
        values, codes = np.unique(np.concatenate([self.values, others.values]), return_inverse=True)
        mass = np.zeros(len(values), np.result_type(self.mass, others.mass))
        mine, theirs = np.split(codes.reshape(-1), [len(self)])
        mass[mine] += self.mass
        mass[theirs] += others.mass
        return LabelLevels(values, mass)

    def places(self) -> np.ndarray:
        """Return F(y) of each value, (levels,): the share of smaller labels, and half of its own.

        >>> LabelLevels.of(np.array([3.0, 1.0, 3.0, 7.0]), None).places()
        array([0.125, 0.5  , 0.875])
        """
        shares: np.ndarray = (np.cumsum(self.mass) - 0.5 * self.mass) / self.mass.sum()
        return shares

    def ties(self) -> float:
        """Return the chance that two rows, drawn with replacement, have the same label.

        >>> LabelLevels.of(np.array([1.0, 2.0, 2.0, 5.0]), None).ties()
        0.375
        """
        if not len(self):
            return 1.0
        # Squares of whole numbers would overflow at some billions of rows.
        mass = self.mass.astype(np.float64)
        return float((mass**2).sum() / mass.sum() ** 2)


class LevelSum:
    """Adds up the distributions of parts of a log, in their order.

    As in the digits of a number each that waits is larger than the next one, so that a value is
    merged a few times and not with every part.
    """

    def __init__(self) -> None:
        self._waiting: list[LabelLevels] = []

    def add(self, part: LabelLevels) -> None:
        """Add a part."""
        self._waiting.append(part)
        while len(self._waiting) > 1 and len(self._waiting[-2]) <= 2 * len(self._waiting[-1]):
            self._merge()

    @property
    def size(self) -> int:
        """How many levels there are at least."""
        return max((len(part) for part in self._waiting), default=0)

    def total(self) -> LabelLevels:
        """Return the distribution of all parts."""
        while len(self._waiting) > 1:
            self._merge()
        return self._waiting[0] if self._waiting else LabelLevels(np.empty(0), np.empty(0))

    def _merge(self) -> None:
        last = self._waiting.pop()
        self._waiting[-1] = self._waiting[-1].merged(last)
