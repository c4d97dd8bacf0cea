"""Context maps: what the default's heads are in each context, looked up or computed.

Given its context a head is linear in the coordinates but for curves and surfaces. Where all
combinations of context values fit into a table, a row looks its linear map up (`Tabulated`).
Where they are too many, the law of the scores is evaluated for each row (`ByFeature`).
"""

__all__ = ["ContextMap", "Tabulated", "tabulated_numbers"]

from typing import Protocol

import numpy as np

from harmonrank.model.heads import Heads
from harmonrank.model.heads_tables import HeadTables
from harmonrank.model.residual import NEAR
from harmonrank.serving.onnx.graph import Value


class ContextMap(Protocol):
    """What heads need to know of a row's context."""

    def logits(self) -> Value:
        """Return the logits without curves and surfaces, (rows, M)."""
        ...

    def inputs(self) -> Value:
        """Return the inputs of curves and surfaces, (rows, V): u, and r and d where needed."""
        ...


def tabulated_numbers(heads: Heads, tables: HeadTables) -> float:
    """Return how many numbers the tables of all contexts hold."""
    return float(np.prod(np.array(heads.slots, np.float64))) * tables.record


class Tabulated:
    """Looks up the record of a context; see `HeadTables.of_contexts`.

    Args:
        x: (rows, M) coordinates.
        heads: Fitted ones.
        tables: Of these heads.
        number: Which context each row has, (rows,); None if there is but one.
    """

    def __init__(self, x: Value, heads: Heads, tables: HeadTables, number: Value | None) -> None:
        size = int(np.prod(np.array(heads.slots, np.int64)))
        every = np.stack(np.unravel_index(np.arange(size), heads.slots or (1,)), axis=1)
        flat = tables.of_contexts(every[:, : len(heads.slots)])
        self._records = flat[: size * tables.record].reshape(size, tables.record)
        self._M, self._width = len(heads.theta), tables.width
        self._unit: np.ndarray = tables.bends[0]
        self._x, self._graph, self._number = x, x.graph, number

    def logits(self) -> Value:
        """Return the logits without curves and surfaces."""
        return self._linear(0)

    def inputs(self) -> Value:
        """Return the inputs of curves and surfaces; surprises only if some of them use them."""
        u = self._x * self._unit + self._rest(0)
        if self._width == self._M:
            return u
        surprise = self._linear(self._M)
        distance = ((u - self._rest(1)) * surprise).sum(1).new_axis(1) / float(self._M) + NEAR
        return self._graph.concat([u, surprise * self._rest(2), distance.log()])

    def _linear(self, first: int) -> Value:
        """Return a linear map of coordinates: some columns of the record's."""
        maps = self._records[:, : (1 + self._M) * self._width]
        maps = maps.reshape(-1, 1 + self._M, self._width)[:, :, first : first + self._M]
        return self._of(maps[:, 0]) + (self._x.new_axis(2) * self._of(maps[:, 1:])).sum(1)

    def _rest(self, part: int) -> Value:
        """Return shift (0), mean (1) or one over the surprise's deviation (2), (rows, M)."""
        start = (1 + self._M) * self._width + part * self._M
        return self._of(self._records[:, start : start + self._M])

    def _of(self, table: np.ndarray) -> Value:
        return self._graph.constant(table) if self._number is None else self._number.of(table)
