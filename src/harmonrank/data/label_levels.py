"""Label levels: the values that a graded label has, and the weight of the rows with each."""

__all__ = ["MOST_LEVELS", "LabelLevels"]

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

    def __add__(self, others: "LabelLevels") -> "LabelLevels":
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
