"""SumTree: sums of blocks, added in an order that the numbers of the blocks decide, nothing else.

Four neighbouring blocks are added up in order, then four neighbouring sums of that kind, and so
on. Workers add up the blocks that they keep as far as that order allows. The few sums that each has
left are added up by whoever gets them: to the same bits.
"""

__all__ = ["PartSum", "SumTree"]

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

_FAN = 4  # Few sums wait at a time, one per level, and few are left of a share of the blocks.


@dataclass
class PartSum:
    """The sum of neighbouring blocks.

    Attributes:
        first: The number of the first one.
        end: That of the last one, plus 1.
        values: What can be added.
        own: Whether nobody else holds the arrays, so that they can be added to in place.
    """

    first: int
    end: int
    values: tuple[Any, ...]
    own: bool = False

    def take(self, later: "PartSum") -> None:
        """Add the sum of the blocks that follow."""
        pairs = zip(self.values, later.values, strict=True)
        self.values = tuple(_plus(a, b) if self.own else a + b for a, b in pairs)
        self.end, self.own = later.end, True


class SumTree:
    """Sums of blocks that come in their order, from any block on.

    >>> tree = SumTree(PartSum(number, number + 1, (number,)) for number in range(3, 9))
    >>> [(part.first, part.end, part.values) for part in tree.parts]
    [(3, 4, (3,)), (4, 8, (22,)), (8, 9, (8,))]
    """

    def __init__(self, parts: Iterable[PartSum] = ()) -> None:
        self.parts: list[PartSum] = []
        for part in parts:
            self.add(part)

    def add(self, part: PartSum) -> None:
        """Add the sum of the blocks that follow."""
        parts = self.parts
        parts.append(part)
        while len(parts) > 1 and _belong(parts[-2], parts[-1]):
            parts[-2].take(parts.pop())

    def total(self) -> tuple[Any, ...]:
        """Return the sum of all blocks, once they are all there; none have the sum ()."""
        while len(self.parts) > 1:
            self.parts[-2].take(self.parts.pop())
        return self.parts[0].values if self.parts else ()


def _belong(before: PartSum, part: PartSum) -> bool:
    """Return whether a whole sum of a level follows others of its four, from the first one on.

    >>> one, two = PartSum(4, 6, ()), PartSum(5, 6, ())
    >>> _belong(one, PartSum(6, 7, ())), _belong(two, PartSum(6, 7, ()))
    (True, False)
    """
    size, held = part.end - part.first, before.end - before.first
    four = _FAN * size
    return _is_whole(size) and before.first % four == 0 and held < four and held % size == 0


def _is_whole(size: int) -> bool:
    while size % _FAN == 0:
        size //= _FAN
    return size == 1


def _plus(a: Any, b: Any) -> Any:
    """Return a + b, written into a if it is an array that may be written to."""
    arrays = isinstance(a, np.ndarray) and isinstance(b, np.ndarray)
    if arrays and a.shape == b.shape and a.dtype == b.dtype and a.flags.writeable:
        np.add(a, b, out=a)
        return a
    return a + b
