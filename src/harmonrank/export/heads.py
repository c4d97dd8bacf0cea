"""The default in a graph: one linear map per context, plus curves and surfaces.

Given its context a head is linear in the coordinates, apart from curves and surfaces. So a row
looks up the linear map of its combination of context values (`_Tabulated`).
"""

__all__ = ["head_probabilities"]

import math
from typing import Any

import numpy as np

from harmonrank.export.graph import Value, between, cell_of, look_up
from harmonrank.export.inputs import Inputs, logits_of, numbered
from harmonrank.fusion import Method
from harmonrank.model.coordinate import Coordinate
from harmonrank.model.linear.heads import Heads
from harmonrank.model.scorer.heads_tables import HeadTables
from harmonrank.model.terms.residual import NEAR, SURFACE_KNOTS, surface_pairs
from harmonrank.support.errors import UsageError

_MOST_NUMBERS = 16_000_000  # A file of 128 MB; to make it takes some 2 GB.


class _Tabulated:
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
        self._records = tables.of_contexts(every[:, : len(heads.slots)])
        self._M, self._width = len(heads.theta), tables.width
        self._unit: np.ndarray = tables.unit
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


def head_probabilities(model: Method, inputs: Inputs) -> Value:
    """Return the probability of each objective, (rows, M); see `Heads`."""
    heads = model.state.heads
    x = _coordinates(heads.coordinate, logits_of(inputs.scores))  # (rows, M)
    context = _context_map(model, inputs, x)
    logits, residual = context.logits(), heads.residual  # (rows, M)
    curved = residual.curved
    pairs = np.array(surface_pairs(len(heads.theta)), np.int64).reshape(-1, 2)[residual.joined]
    if not curved.size and not len(pairs):
        return logits.sigmoid()
    v = context.inputs()  # (rows, V)
    per_unit = 1 / (residual.high - residual.low)
    if curved.size:
        curves = np.moveaxis(residual.curve[:, curved], 0, -1)  # (curves, knots, M)
        logits = logits + _curves(v, curved, residual.low, per_unit, curves)
    if len(pairs):
        surfaces = np.moveaxis(residual.surface[:, residual.joined], 0, -1)  # (pairs, …, M)
        logits = logits + _surfaces(v, pairs, residual.low, per_unit, surfaces)
    return logits.sigmoid()


def _context_map(model: Method, inputs: Inputs, x: Value) -> _Tabulated:
    heads, codes = model.state.heads, inputs.codes
    tables = HeadTables.of(heads)
    contexts = math.prod(heads.slots)
    if contexts * tables.record > _MOST_NUMBERS:
        raise UsageError(
            f"The {contexts:,} combinations of context values would take "
            f"{contexts * tables.record:,} numbers, more than the {_MOST_NUMBERS:,} that a file "
            "may hold; serve this model with `harmonrank serve`, or fit it with fewer context "
            "columns."
        )
    number = numbered(codes, heads.slots) if codes else None
    return _Tabulated(x, heads, tables, number)


def _coordinates(map_: Coordinate, logits: Value) -> Value:
    """Return the coordinate of each logit; see `Coordinate`."""
    if not map_.normal.any():
        return logits
    graph, last = logits.graph, map_.table.shape[1] - 1
    per_unit: np.ndarray = last / (map_.high - map_.low)
    place = ((logits - map_.low) * per_unit).clip(0.0, last)
    below = graph.op("Min", logits - map_.low, np.array(0.0)) * map_.below
    above = graph.op("Max", logits - map_.high, np.array(0.0)) * map_.above
    return between(place, map_.table) + below + above


def _place(v: Value, low: Any, per_unit: Any, knots: int) -> Value:
    """Return where each input lies between the first knot, 0, and the last."""
    place: Value = ((v - low) * per_unit).clip(0.0, 1.0) * (knots - 1.0)
    return place


def _curves(v: Value, curved: np.ndarray, low: Any, per_unit: Any, table: np.ndarray) -> Value:
    """Return the sum of all curves, (rows, M), of a (curves, knots, M) table."""
    place = _place(v.columns(curved), low[curved], per_unit[curved], table.shape[1])
    return between(place, table).sum(1)


def _surfaces(v: Value, pairs: np.ndarray, low: Any, per_unit: Any, table: np.ndarray) -> Value:
    """Return the sum of all surfaces, (rows, M), of a (pairs, knots, knots, M) table."""
    (i, x), (k, y) = (
        cell_of(_place(v.columns(side), low[side], per_unit[side], SURFACE_KNOTS), SURFACE_KNOTS)
        for side in pairs.T
    )
    corner = i * SURFACE_KNOTS + k
    flat = table.reshape(len(pairs), SURFACE_KNOTS**2, -1)
    corners = [look_up(corner + step, flat) for step in (0, 1, SURFACE_KNOTS, SURFACE_KNOTS + 1)]
    x, y = x.new_axis(2), y.new_axis(2)
    near = corners[0] + y * (corners[1] - corners[0])
    far = corners[2] + y * (corners[3] - corners[2])
    return (near + x * (far - near)).sum(1)
