"""Exporters: which function writes a method's model into a graph, by the method's type."""

__all__ = ["EXPORTED", "exporter_of"]

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from harmonrank.export.graph import Value, count_below, interpolate
from harmonrank.export.heads import head_probabilities
from harmonrank.export.inputs import Inputs, logits_of
from harmonrank.export.networks import network_scores, objective_network_probabilities
from harmonrank.fusion import METHODS, Method, method_class
from harmonrank.fusion.baselines.closed_form import Calibrated
from harmonrank.fusion.baselines.formula import FormulaFit, Scale
from harmonrank.fusion.baselines.logistic import FARTHEST, LogisticFit
from harmonrank.fusion.baselines.prevalence_weights import AsTheyCome
from harmonrank.fusion.harmonrank import DefaultFit
from harmonrank.metrics import SMALLEST_PROBABILITY
from harmonrank.paper.methods.harmonrank_network import HeadsFit
from harmonrank.paper.methods.neural import NetworkFit
from harmonrank.support.errors import UsageError

Exporter = Callable[[Any, Inputs], Value]
"""Probabilities (rows, M) of a model that knows them, fused scores (rows,) of any other."""


def _logistic_probabilities(model: Method, inputs: Inputs) -> Value:
    """Return σ(θ₀ + Σ_k θ_k x_k + Σ_c θ_{c, value}), (rows, M)."""
    fit: LogisticFit = model.state
    M = len(model.schema.names)
    x = (logits_of(inputs.scores, SMALLEST_PROBABILITY) - fit.centre) / fit.spread
    intercept, slopes, effects = np.split(fit.theta, [1, 1 + M])
    logits = x.clip(-FARTHEST, FARTHEST) @ slopes + intercept
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


def _score_probabilities(model: Method, inputs: Inputs) -> Value:
    """Return the scores as they come, (rows, M)."""
    del model
    return inputs.scores


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
    places = np.arange(edges.shape[1], dtype=np.float64)
    low = count_below(scores, edges, strictly=True)
    high = count_below(scores, edges)
    middle = (low + high - 1).cast("float64") / 2.0
    between = interpolate(scores, list(edges), [places] * len(edges))
    tied = graph.op("Greater", high, low + 1)
    return graph.op("Where", tied, middle, between) / float(len(places) - 1)


_EXPORTERS: Mapping[type, Exporter] = {
    DefaultFit: head_probabilities,
    Calibrated: _closed_form_probabilities,
    LogisticFit: _logistic_probabilities,
    AsTheyCome: _score_probabilities,
    FormulaFit: _formula_scores,
    NetworkFit: network_scores,
    HeadsFit: objective_network_probabilities,
}
"""By the type of what the method has learned."""

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
