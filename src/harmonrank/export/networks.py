"""Both networks in a graph: the paper's with every switch of its config, and the one of heads."""

__all__ = ["attended", "dots", "network_scores", "objective_network_probabilities"]

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from harmonrank.export.graph import Value, count_below, look_up
from harmonrank.export.inputs import Inputs, logits_of
from harmonrank.fusion import Method
from harmonrank.paper.config import FARTHEST, REACH, SMALLEST_SCORE, NetworkConfig
from harmonrank.paper.fused import Relation, Weights

Arrays = Mapping[str, np.ndarray]


def dots(a: Value, b: Value) -> Value:
    """Return a_i · b_j of each row, (rows, i, j), of (rows, i, d) and (rows, j, d).

    By products and sums: ONNX Runtime fuses a transposition with the product that follows, and
    then refuses no rows.
    """
    return (a.new_axis(2) * b.new_axis(1)).sum(3)


def attended(x: Value, W: np.ndarray) -> Value:
    """Return softmax(x W xᵀ) x of each row, (rows, M, d)."""
    A = dots(x @ W, x).softmax()  # (rows, M, M)
    return (A.new_axis(3) * x.new_axis(1)).sum(2)


def network_scores(model: Method, inputs: Inputs) -> Value:
    """Return s1 + s2 + s3, (rows,); see `Network`."""
    config, weights = model.state.config, model.state.weights
    arrays = {name: np.asarray(array, np.float64) for name, array in weights.items()}
    x = _embedded(inputs.scores, config, weights)  # (rows, M, d)
    context = None
    if config.context_features:
        context = [code.of(part) for code, part in _numbers(inputs, arrays)]
    total = _relation_aware(x, context, config, arrays)
    if config.gate:
        gate, bias = arrays["gated.gate.weight"], arrays["gated.gate.bias"]
        g = ((x * gate).sum(2) + bias).sigmoid().new_axis(2)  # (rows, M, 1)
        total = total + _dot(g * x, "gated.output", config, arrays)
    if config.linear:
        total = total + _dot(x, "linear", config, arrays)
    return total


def _numbers(inputs: Inputs, arrays: Arrays) -> list[tuple[Value, Any]]:
    """Return the code of each context feature, and the number that each code stands for."""
    edges = np.cumsum(inputs.encoder.slots)[:-1]
    parts = np.split(arrays["context.table"], edges)  # (slots, 1) each
    return list(zip(inputs.codes, parts, strict=True))


def _embedded(scores: Value, config: NetworkConfig, arrays: Arrays) -> Value:
    """Return the embedding of each score, (rows, M, d); buckets are told apart in float32."""
    M, d = config.objectives, config.width
    s = scores.cast("float32")
    table = arrays["scores.table"].astype(np.float64).reshape(M, -1, d)
    if config.buckets is None:
        return s.cast("float64").new_axis(2) * table[:, 0]
    knots = arrays["scores.knots"]
    if not config.interpolate:
        return look_up(count_below(s, knots), table)
    below = count_below(s, knots[:, 1:-1])
    knots = knots.astype(np.float64)
    share = (s.cast("float64") - look_up(below, knots)) / look_up(below, np.diff(knots))
    step = look_up(below, np.diff(table, axis=1))
    return look_up(below, table) + share.clip(0.0, 1.0).new_axis(2) * step


def _relation_aware(
    x: Value, context: list[Value] | None, config: NetworkConfig, arrays: Arrays
) -> Value:
    """Return s1, (rows,), by the folded projections of `Relation`."""
    folded, graph = Relation(Weights(arrays), config), x.graph
    x_r = attended(x, folded.G) if config.self_attention else x  # (rows, M, d)
    bias = arrays["relation_aware.output.bias"]
    P = None if context is None else graph.concat(context)  # (rows, features)
    if not config.cross_attention:
        own = (x_r * folded.V.T).sum(2).sum(1) + bias
        return own if P is None else own + (P * folded.U[0]).sum(1)
    u = graph.constant(folded.U.T) if P is None else P @ folded.U.T  # (rows or 1, d)
    A_p = (x_r * u.new_axis(1)).sum(2).softmax()  # (rows, M)
    return (A_p * (x_r * folded.V[:, 0]).sum(2)).sum(1) + bias


def _dot(x: Value, name: str, config: NetworkConfig, arrays: Arrays) -> Value:
    weight = arrays[f"{name}.weight"].reshape(config.objectives, config.width)
    return (x * weight).sum(2).sum(1) + arrays[f"{name}.bias"]


def objective_network_probabilities(model: Method, inputs: Inputs) -> Value:
    """Return the probability of each objective, (rows, M), by the matrices of its scorer."""
    centre, spread, slope, intercept, share = _double(model.state.scorer.prior)
    table, W_r, output, gate, gate_bias, gated, linear = _double(model.state.scorer.paths)
    M, _, d = table.shape
    # Scores are told apart as far as float32 does.
    single = inputs.scores.cast("float32").cast("float64")
    low, high = np.float32(SMALLEST_SCORE), np.float32(1 - SMALLEST_SCORE)
    logits = logits_of(single, float(low), float(high))  # (rows, M)
    x = _mixed(((logits - centre) / spread).clip(-FARTHEST, FARTHEST), table)  # (rows, M, d)
    query, offset, slopes = _asked(model, inputs, M, d)
    g = ((x * gate).sum(2) + gate_bias).sigmoid().new_axis(2)  # (rows, M, 1)
    first = x.graph.op("Gather", x, np.array(0), axis=2).new_axis(1)  # (rows, 1, M)
    residual = offset + (slopes * first).sum(2)
    residual = residual + _flat(x, M * d) @ linear.T + _flat(g * x, M * d) @ gated.T
    residual = residual + _relations(x, query, W_r, output)
    return (logits * slope + intercept + residual * share).sigmoid()


def _double(arrays: Iterable[np.ndarray]) -> list[np.ndarray]:
    return [array.astype(np.float64) for array in arrays]


def _mixed(u: Value, table: np.ndarray) -> Value:
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
