"""The network with one head per objective in a graph."""

__all__ = ["objective_network_probabilities"]

from collections.abc import Iterable

import numpy as np

from harmonrank.export.graph import Value
from harmonrank.export.inputs import Inputs, logits_of
from harmonrank.export.lookups import look_up
from harmonrank.export.networks import attended, dots
from harmonrank.fusion import Method
from harmonrank.paper.objective_config import FARTHEST, REACH, SMALLEST_SCORE


def objective_network_probabilities(model: Method, inputs: Inputs) -> Value:
    """Return the probability of each objective, (rows, M), by the matrices of its scorer."""
    centre, spread, slope, intercept, share = _double(model.state.scorer.prior)
    table, W_r, output, gate, gate_bias, gated, linear = _double(model.state.scorer.paths)
    M, _, d = table.shape
    # Scores are told apart as far as float32 does.
    single = inputs.scores.cast("float32").cast("float64")
    low, high = np.float32(SMALLEST_SCORE), np.float32(1 - SMALLEST_SCORE)
    logits = logits_of(single, float(low), float(high))  # (rows, M)
    x = _embedded(((logits - centre) / spread).clip(-FARTHEST, FARTHEST), table)  # (rows, M, d)
    query, offset, slopes = _asked(model, inputs, M, d)
    g = ((x * gate).sum(2) + gate_bias).sigmoid().new_axis(2)  # (rows, M, 1)
    first = x.graph.op("Gather", x, np.array(0), axis=2).new_axis(1)  # (rows, 1, M)
    residual = offset + (slopes * first).sum(2)
    residual = residual + _flat(x, M * d) @ linear.T + _flat(g * x, M * d) @ gated.T
    residual = residual + _relations(x, query, W_r, output)
    return (logits * slope + intercept + residual * share).sigmoid()


def _double(arrays: Iterable[np.ndarray]) -> list[np.ndarray]:
    return [array.astype(np.float64) for array in arrays]


def _embedded(u: Value, table: np.ndarray) -> Value:
    """Return the embedding of each score, (rows, M, d); see `SmoothBuckets`."""
    _, B, d = table.shape
    inside = u.clip(-REACH, REACH)
    place = (inside + REACH) * float((B - 1) / (2 * REACH))
    cell = u.graph.op("Floor", place.clip(0.0, B - 2.0))
    part, cell = (place - cell).new_axis(2), cell.cast("int64")
    x = look_up(cell, table) + part * look_up(cell, np.diff(table, axis=1))
    first: np.ndarray = np.eye(1, d)
    return x + (u - inside).new_axis(2) * first


def _asked(model: Method, inputs: Inputs, M: int, d: int) -> list[Value]:
    """Return what the context asks for: queries (rows, M, d), offsets, slopes (rows, M, M)."""
    table = model.state.scorer.context.astype(np.float64)
    parts = np.split(table, [M * d, M * d + M], axis=1)
    shapes = ((M, d), (M,), (M, M))
    shaped = [part.reshape(-1, *shape) for part, shape in zip(parts, shapes, strict=True)]
    return [inputs.sum_of(part[1:]) + part[:1] for part in shaped]


def _relations(x: Value, query: Value, W_r: np.ndarray, output: np.ndarray) -> Value:
    """Return s1 of every head: self-attention, then what each head asks of its result."""
    x_r = attended(x, W_r)  # (rows, M, d)
    A_p = dots(query, x_r).softmax()  # (rows, heads, M)
    return (A_p * dots(x.graph.constant(output[None]), x_r)).sum(2)


def _flat(x: Value, width: int) -> Value:
    return x.graph.op("Reshape", x, np.array([0, width]))
