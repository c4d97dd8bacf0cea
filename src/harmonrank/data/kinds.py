"""Kinds of objectives: which are graded, which are shown only after another, and their labels."""

__all__ = ["MOST_LEVELS", "LabelLevels", "check_kinds", "lineage"]

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from harmonrank.data.values import known_objective
from harmonrank.support.errors import UsageError

MOST_LEVELS = 1 << 24
"""Most different values of a label that are counted in a log in blocks: they take some 400 MB, and
a few times that while they are merged."""


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

    def mid_distribution(self) -> np.ndarray:
        """Return F(y) of each value, (levels,): the share of smaller labels, and half of its own.

        >>> LabelLevels.of(np.array([3.0, 1.0, 3.0, 7.0]), None).mid_distribution()
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

    def prevalence(self) -> float:
        """Return the share of positives that events with as many pairs have, ½ without ties.

        π(1−π) = (1 − P(tie))/4: eq. 8 of docs/objectives.md.
        """
        return float(0.5 - 0.5 * np.sqrt(self.ties()))


def check_kinds(
    names: Sequence[str], graded: Sequence[str], given: Mapping[str, str], position: str | None
) -> None:
    """Refuse kinds that no objective can have.

    Raises:
        UsageError: An objective is unknown, given itself or given a graded one; or feedback is to
            be corrected for positions, which is known for plain events only.
    """
    for name in (*given, *given.values()):
        known_objective("given", name, names)
    for name, parent in given.items():
        if parent in graded:
            raise UsageError(
                f"'{name}' cannot be given '{parent}', which is graded: what is shown or not must "
                "be 0 or 1; add a label such as clicked."
            )
        lineage(name, given)
    if position is not None and (graded or given):
        raise UsageError(
            "Feedback cannot be corrected for `position` where objectives are graded or given "
            "others; leave out `position`, or those objectives."
        )


def lineage(name: str, given: Mapping[str, str]) -> tuple[str, ...]:
    """Return the objectives that must have happened for one to be shown, the nearest first.

    >>> lineage("pay", {"pay": "order", "order": "click"})
    ('order', 'click')

    Raises:
        UsageError: It goes round in a circle.
    """
    parents: list[str] = []
    while name in given:
        name = given[name]
        if name in parents or len(parents) > len(given):
            raise UsageError(
                f"`given` goes round in a circle: '{name}' is given itself in the end."
            )
        parents.append(name)
    return tuple(parents)
