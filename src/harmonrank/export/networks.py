"""The paper's network in a graph, with every switch of its config."""

__all__ = ["attended", "dots", "network_scores"]

from collections.abc import Mapping
from typing import Any

import numpy as np

from harmonrank.export.graph import Value
from harmonrank.export.inputs import Inputs
from harmonrank.export.lookups import count_below, look_up
from harmonrank.fusion import Method
from harmonrank.paper.config import NetworkConfig
from harmonrank.paper.fused import NetworkWeights, Relation

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
    folded, graph = Relation(NetworkWeights(arrays), config), x.graph
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
