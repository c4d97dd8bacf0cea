"""Context density: the density of the scores of each row, where contexts are too many to list."""

__all__ = ["ByFeature"]


import numpy as np

from harmonrank.export.graph import Value
from harmonrank.export.inputs import Inputs
from harmonrank.model.density.density import MOST_EFFECT, SMALLEST_EIGENVALUE
from harmonrank.model.linear.head_columns import INTERCEPT, SHARED, HeadColumns
from harmonrank.model.linear.heads import Heads
from harmonrank.model.terms.residual import NEAR, context_pairs

# The mean of eigenvalues by their 2²⁸-th powers is within 1e-8 of the largest.
_ROUNDS, _SQUARINGS = 7, 4


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
        """Return the logits with all of the residual that does not bend; see `Residual`."""
        found, slots = self._heads.residual, self._heads.slots
        stretch: np.ndarray = 1 + found.linear[:, 1]
        logits = logits * stretch + found.linear[:, 0] + self._sum(found.value.T)
        slope = self._sum(np.moveaxis(found.slope, 2, 0)) + found.linear[:, 2:]  # (rows, M, M)
        logits = logits + (slope * self._standard().new_axis(1)).sum(2)
        start = 0
        for f, g in context_pairs(slots):
            cells = slots[f] * slots[g]
            cell = self._inputs.codes[f] * slots[g] + self._inputs.codes[g]
            logits = logits + cell.of(found.pair[:, start : start + cells].T)
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
