"""Lookups: tables with a row per objective, searched and interpolated within a graph."""

__all__ = ["count_below", "interpolate", "look_up"]

from collections.abc import Sequence

import numpy as np

from harmonrank.export.graph import Value

_STEEP = 1e300  # In place of one over a width of 0.


def look_up(place: Value, table: np.ndarray) -> Value:
    """Return table[m, place[i, m]] of a (M, K, …) table, (rows, M, …)."""
    M, K = table.shape[:2]
    first: np.ndarray = np.arange(M) * K
    return (place + first).of(table.reshape(M * K, *table.shape[2:]))


def count_below(x: Value, edges: np.ndarray, *, strictly: bool = False) -> Value:
    """Return how many of its (M, K) rising edges are at or below each number, (rows, M) int64.

    By halves, so that a row costs log K comparisons. NaN is above no edge.

    Args:
        x: (rows, M), of the type of the edges.
        edges: NaN where an objective has fewer.
        strictly: Count edges below only.
    """
    graph, (M, K) = x.graph, edges.shape
    width = 1 << K.bit_length()
    padded = np.full((M, width), np.nan, edges.dtype)
    padded[:, :K] = edges
    test, count, step = "Greater" if strictly else "GreaterOrEqual", None, width // 2
    while step:
        ahead = padded[:, step - 1] if count is None else look_up(count + (step - 1), padded)
        taken = graph.op(test, x, ahead).cast("int64") * step
        count = taken if count is None else count + taken
        step //= 2
    return graph.op("Less", x, x).cast("int64") if count is None else count  # no edge: all 0


def interpolate(x: Value, knots: Sequence[np.ndarray], values: Sequence[np.ndarray]) -> Value:
    """Return what `np.interp` does for each objective's own knots and values, (rows, M)."""
    sizes = np.array([max(len(own), 2) for own in knots])
    at, height = np.full((2, len(knots), sizes.max()), np.nan)
    for m, (own, value) in enumerate(zip(knots, values, strict=True)):
        at[m, : sizes[m]] = np.pad(own, (0, sizes[m] - len(own)), mode="edge")
        height[m, : sizes[m]] = np.pad(value, (0, sizes[m] - len(value)), mode="edge")
    graph, width = x.graph, np.diff(at)
    cell = graph.op("Min", count_below(x, at) - 1, sizes - 2)
    cell = graph.op("Max", cell, np.array(0))
    per_unit = np.where(width > 0, 1 / np.where(width > 0, width, 1.0), _STEEP)
    share = ((x - look_up(cell, at)) * look_up(cell, per_unit)).clip(0.0, 1.0)
    return look_up(cell, height) + share * look_up(cell, np.diff(height))
