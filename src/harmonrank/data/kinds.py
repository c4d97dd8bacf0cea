"""Kinds of objectives: which are graded, which are shown only after another, and in what order."""

__all__ = ["check_kinds", "lineage", "tie_share"]

from collections.abc import Mapping, Sequence

import numpy as np

from harmonrank.data.label_levels import LabelLevels
from harmonrank.data.values import known_objective
from harmonrank.support.errors import UsageError


def check_kinds(
    names: Sequence[str],
    graded: Sequence[str],
    given: Mapping[str, str],
    position: str | None,
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
    found: list[str] = []
    while name in given:
        name = given[name]
        if name in found or len(found) > len(given):
            raise UsageError(
                f"`given` goes round in a circle: '{name}' is given itself in the end."
            )
        found.append(name)
    return tuple(found)


def tie_share(labels: np.ndarray, weight: np.ndarray | None = None) -> float:
    """Return the chance that two rows, drawn with replacement, have the same label.

    >>> tie_share(np.array([1.0, 2.0, 2.0, 5.0]))
    0.375
    """
    return LabelLevels.of(labels, weight).ties()
