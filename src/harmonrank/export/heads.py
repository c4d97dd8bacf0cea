"""The default in a graph: one linear map per context, plus curves and surfaces.

Given its context a head is linear in the coordinates, apart from curves and surfaces. If all
combinations of context values fit into a table, a row looks up its linear map (`_Tabulated`). If
they are too many, the density of the scores is evaluated for each row (`ByFeature`).
"""

__all__ = ["ByFeature", "head_probabilities"]

from typing import Any

import numpy as np

from harmonrank.export.graph import Value, between, cell_of, look_up
from harmonrank.export.inputs import Inputs, logits_of, numbered
from harmonrank.fusion import Method
from harmonrank.model.coordinate import Coordinate
from harmonrank.model.density.density import MOST_EFFECT, SMALLEST_EIGENVALUE
from harmonrank.model.linear.head_columns import INTERCEPT, SHARED, HeadColumns
from harmonrank.model.linear.heads import Heads
from harmonrank.model.scorer.heads_tables import HeadTables
from harmonrank.model.terms.residual import (
    NEAR,
    SURFACE_KNOTS,
    context_pairs,
    surface_pairs,
)

# The mean of eigenvalues by their 2²⁸-th powers is within 1e-8 of the largest.
_ROUNDS, _SQUARINGS = 7, 4

# Tables of all contexts with more numbers than this, 64 MB, are computed instead.
_MOST_NUMBERS = 8_000_000


class ByFeature:
    """Computes what `Heads.logits` defines from the effects of each context feature.

    Args:
        heads: Fitted ones.
        inputs: Of the graph.
        x: (rows, M) coordinates.
    """

    def __init__(self, heads: Heads, inputs: Inputs, x: Value) -> None:
        self._heads, self._inputs = heads, inputs
        density = heads.density
        self._deviation: np.ndarray = np.exp(density.log_variance / 2)
        self._mean = self._sum(density.mean)  # (rows, M)
        self._away = (x - self._sum(density.centre) - density.centre_base) / density.scale
        rest: np.ndarray = 1 - density.steady
        effect = (self._sum(density.spread) / rest).clip(-MOST_EFFECT, MOST_EFFECT)
        varied = x.graph.op("Log", x.graph.op("Exp", effect) * rest + density.steady)
        effect = (varied + density.excess).clip(-MOST_EFFECT, MOST_EFFECT)
        self._variance = x.graph.op("Exp", effect + density.log_variance)
        precision = self._precision()  # (rows, M, M)
        self._r = (precision * self._away.new_axis(1)).sum(2)
        eye: np.ndarray = np.eye(len(density.base))
        self._own = (precision * eye).sum(2)  # its diagonal, (rows, M)

    def logits(self) -> Value:
        """Return the logits without curves and surfaces, (rows, M)."""
        heads, M = self._heads, len(self._heads.theta)
        columns = HeadColumns(M)
        shared: np.ndarray = heads.theta[:, SHARED].T / self._deviation
        own, by_context, surprise, mean = shared
        base: np.ndarray = self._deviation**2
        others = np.zeros((M, M))  # of the deviation j for head m
        for m in range(M):
            others[columns.other_than(m), m] = heads.theta[m, columns.others]
        mixed: np.ndarray = others / self._deviation[:, None]
        logits = (self._away + self._mean) * own + (self._variance - base) * self._r * by_context
        total: np.ndarray = base * surprise
        logits = logits + self._r * total + self._mean * mean + self._away @ mixed
        logits = logits + heads.theta[:, INTERCEPT] + self._sum(heads.theta[:, columns.context].T)
        return self._with_residual(logits)

    def _with_residual(self, logits: Value) -> Value:
        """Return the logits with the linear part of the residual; see `Residual`."""
        residual, slots = self._heads.residual, self._heads.slots
        stretch: np.ndarray = 1 + residual.linear[:, 1]
        logits = logits * stretch + residual.linear[:, 0] + self._sum(residual.value.T)
        slope = (
            self._sum(np.moveaxis(residual.slope, 2, 0)) + residual.linear[:, 2:]
        )  # (rows, M, M)
        logits = logits + (slope * self._standard().new_axis(1)).sum(2)
        start = 0
        for f, g in context_pairs(slots):
            cells = slots[f] * slots[g]
            cell = self._inputs.codes[f] * slots[g] + self._inputs.codes[g]
            logits = logits + cell.of(residual.pair[:, start : start + cells].T)
            start += cells
        return logits

    def inputs(self) -> Value:
        """Return u, r and d, (rows, 2M + 1); see `inputs_of`."""
        distance = (self._away * self._r).sum(1).new_axis(1) / float(len(self._deviation)) + NEAR
        graph = self._r.graph
        r = self._r / graph.op("Sqrt", self._own)
        return graph.concat([self._standard(), r, distance.log()])

    def _standard(self) -> Value:
        return (self._away + self._mean) / self._deviation

    def _sum(self, table: np.ndarray) -> Value:
        return self._inputs.sum_of(table)

    def _precision(self) -> Value:
        """Return the inverse covariance in each row's context; see `Density.precision_of`."""
        density, graph = self._heads.density, self._variance.graph
        M = len(density.base)
        deviation = graph.op("Sqrt", self._variance)
        scale = deviation.new_axis(2) * deviation.new_axis(1)  # (rows, M, M)
        eye: np.ndarray = np.eye(M)
        off = graph.op("Div", density.covariance * (1 - eye), scale)
        if M > 1:
            most = graph.op("Max", _largest_eigenvalue(graph.op("Neg", off), M), np.array(1e-12))
            keep = graph.op("Div", np.array(1 - SMALLEST_EIGENVALUE), most)
            off = off * graph.op("Min", keep, np.array(1.0))
        return _inverse(off + eye, M) / scale


def _largest_eigenvalue(N: Value, M: int) -> Value:
    """Return the largest eigenvalue of symmetric matrices, (rows, 1, 1), by repeated squaring."""
    graph = N.graph
    # Shifted by a bound of all eigenvalues, none is negative, and scaled, none is above 1.
    bound = graph.op("ReduceMax", graph.op("Abs", N).sum(2), axes=[1], keepdims=1).new_axis(2)
    bound = bound + 1e-12
    eye: np.ndarray = np.eye(M)
    shifted = (N + bound * eye) / (bound * 2.0)
    power = shifted
    for _ in range(_ROUNDS):
        for _ in range(_SQUARINGS):
            power = power @ power
        # A trace of 1 keeps the next powers from vanishing.
        power = power / (power * eye).sum(2).sum(1).new_axis(1).new_axis(2)
    mean = (shifted * power).sum(2).sum(1).new_axis(1).new_axis(2)
    return mean * (bound * 2.0) - bound


def _inverse(A: Value, M: int) -> Value:
    """Return the inverse of positive definite matrices by Gauss–Jordan steps in place."""
    graph = A.graph
    for k in range(M):
        unit: np.ndarray = np.eye(M)[k : k + 1]  # (1, M)
        at = np.array([k])
        column = graph.op("Gather", A, at, axis=2)  # (rows, M, 1)
        row = graph.op("Gather", A, at, axis=1)  # (rows, 1, M)
        pivot = graph.op("Gather", column, at, axis=1)  # (rows, 1, 1)
        A = A - (column - unit.T) * (row + unit) / pivot
    return A


def _tabulated_numbers(heads: Heads, tables: HeadTables) -> float:
    """Return how many numbers the tables of all contexts hold."""
    return float(np.prod(np.array(heads.slots, np.float64))) * tables.record


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


def _context_map(model: Method, inputs: Inputs, x: Value) -> "_Tabulated | ByFeature":
    heads, codes = model.state.heads, inputs.codes
    tables = HeadTables.of(heads)
    if _tabulated_numbers(heads, tables) > _MOST_NUMBERS:
        return ByFeature(heads, inputs, x)
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
