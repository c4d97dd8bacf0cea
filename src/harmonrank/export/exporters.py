"""Exporters: functions that write a model into a graph, by the type of its fitted state."""

__all__ = ["EXPORTED", "exporter_of"]

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from harmonrank.export.graph import Value, count_below, interpolate, look_up
from harmonrank.export.heads import head_probabilities
from harmonrank.export.inputs import Inputs, logits_of
from harmonrank.fusion import METHODS, Method, method_class
from harmonrank.fusion.baselines import logistic
from harmonrank.fusion.baselines.closed_form import AsTheyCome, Calibrated
from harmonrank.fusion.baselines.formula import FormulaFit, Scale
from harmonrank.fusion.harmonrank import DefaultFit
from harmonrank.metrics import SMALLEST_PROBABILITY
from harmonrank.paper.config import NetworkConfig
from harmonrank.paper.fused import Relation, WeightVector
from harmonrank.paper.methods.neural import NetworkFit
from harmonrank.support.errors import UsageError

Arrays = Mapping[str, np.ndarray]

Exporter = Callable[[Any, Inputs], Value]
"""Returns probabilities (rows, M) if the model has them, else fused scores (rows,)."""


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
        edges = np.cumsum(inputs.encoder.slots)[:-1]
        numbers = np.split(arrays["context.table"], edges)  # (slots, 1) each
        context = [code.of(part) for code, part in zip(inputs.codes, numbers, strict=True)]
    total = _relation_aware(x, context, config, arrays)
    if config.gate:
        gate, bias = arrays["gated.gate.weight"], arrays["gated.gate.bias"]
        g = ((x * gate).sum(2) + bias).sigmoid().new_axis(2)  # (rows, M, 1)
        total = total + _dot(g * x, "gated.output", config, arrays)
    if config.linear:
        total = total + _dot(x, "linear", config, arrays)
    return total


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
    folded, graph = Relation(WeightVector(arrays), config), x.graph
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


def _logistic_probabilities(model: Method, inputs: Inputs) -> Value:
    """Return σ(θ₀ + Σ_k θ_k x_k + Σ_c θ_{c, value}), (rows, M)."""
    fit: logistic.LogisticFit = model.state
    M = len(model.schema.names)
    x = (logits_of(inputs.scores, SMALLEST_PROBABILITY) - fit.centre) / fit.spread
    intercept, slopes, effects = np.split(fit.theta, [1, 1 + M])
    logits = x.clip(-logistic.FARTHEST, logistic.FARTHEST) @ slopes + intercept
    return (logits + inputs.sum_of(effects)).sigmoid()


def _closed_form_probabilities(model: Method, inputs: Inputs) -> Value:
    """Return each score calibrated on its own, (rows, M)."""
    calibrated: Calibrated = model.state
    curves = calibrated.logistic
    if curves is None:
        isotonic = calibrated.isotonic
        return interpolate(inputs.scores, [c.x for c in isotonic], [c.y for c in isotonic])
    logits = logits_of(inputs.scores, SMALLEST_PROBABILITY)
    return (logits * curves.slope + curves.intercept).sigmoid()


def _formula_scores(model: Method, inputs: Inputs) -> Value:
    """Return the fused scores of a formula, (rows,): Σ a·p, Σ a·log(p + b) or Σ a·rank."""
    fit: FormulaFit = model.state
    scores = inputs.scores
    formula, scale = fit.formula, fit.scale
    a: np.ndarray = fit.signs * np.exp(formula.log_a - formula.log_a.max())
    if formula.form == "rank":
        return (_ranks(scores, scale) * a).sum(1)
    if formula.form == "sum":
        return (scores / scale.mean * a).sum(1)
    b: np.ndarray = np.exp(formula.log_b)
    return ((scores / scale.mean + b).log() * a).sum(1)


def _ranks(scores: Value, scale: Scale) -> Value:
    """Return the share of training rows below each score; see `Scale.rank`."""
    edges, graph = scale.quantiles, scores.graph
    ranks = np.arange(edges.shape[1], dtype=np.float64)
    low = count_below(scores, edges, strictly=True)
    high = count_below(scores, edges)
    middle = (low + high - 1).cast("float64") / 2.0
    between = interpolate(scores, list(edges), [ranks] * len(edges))
    tied = graph.op("Greater", high, low + 1)
    return graph.op("Where", tied, middle, between) / float(len(ranks) - 1)


_EXPORTERS: Mapping[type, Exporter] = {
    DefaultFit: head_probabilities,
    Calibrated: _closed_form_probabilities,
    logistic.LogisticFit: _logistic_probabilities,
    AsTheyCome: lambda _, inputs: inputs.scores,
    FormulaFit: _formula_scores,
    NetworkFit: network_scores,
}
"""By the type of the fitted state."""

EXPORTED = tuple(name for name in METHODS if method_class(name).Config.state in _EXPORTERS)
"""The methods that can be exported."""


def exporter_of(model: Method) -> Exporter:
    """Return what exports a model.

    Raises:
        UsageError: Its method has no exporter.
    """
    exporter = _EXPORTERS.get(type(model.state))
    if exporter is None:
        raise UsageError(
            f"{model.name} cannot be exported to ONNX; serve it with `harmonrank serve`, or fit "
            f"one of {', '.join(EXPORTED)}."
        )
    return exporter
