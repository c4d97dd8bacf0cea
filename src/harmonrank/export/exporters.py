"""Exporters: which function writes a method's model into a graph, by the method's type."""

__all__ = ["EXPORTED", "exporter_of"]

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from harmonrank.export.graph import Value
from harmonrank.export.heads import head_probabilities
from harmonrank.export.inputs import Inputs, logits_of
from harmonrank.export.lookups import count_below, interpolate
from harmonrank.export.networks import network_scores
from harmonrank.export.objective_networks import objective_network_probabilities
from harmonrank.fusion import METHODS, Method, method_class
from harmonrank.fusion.baselines.closed_form import ClosedForm
from harmonrank.fusion.baselines.formula import FormulaMethod, Scale
from harmonrank.fusion.baselines.logistic import FARTHEST, Logistic
from harmonrank.fusion.baselines.prevalence_weights import PrevalenceWeights
from harmonrank.fusion.harmonrank import HarmonRank
from harmonrank.metrics import SMALLEST_PROBABILITY
from harmonrank.paper.methods.harmonrank_network import HarmonRankNetwork
from harmonrank.paper.methods.neural import NeuralMethod
from harmonrank.support.errors import UsageError

Exporter = Callable[[Any, Inputs], Value]
"""Probabilities (rows, M) of a `ProbabilityMethod`, fused scores (rows,) of any other."""


def _logistic_probabilities(model: Logistic, inputs: Inputs) -> Value:
    """Return σ(θ₀ + Σ_k θ_k x_k + Σ_c θ_{c, value}), (rows, M)."""
    M = len(model.schema.names)
    x = (logits_of(inputs.scores, SMALLEST_PROBABILITY) - model._centre) / model._spread
    intercept, slopes, effects = np.split(model._theta, [1, 1 + M])
    logits = x.clip(-FARTHEST, FARTHEST) @ slopes + intercept
    codes = inputs.codes(model._encoder)
    return (logits + inputs.sum_of(codes, model._encoder, effects)).sigmoid()


def _closed_form_probabilities(model: ClosedForm, inputs: Inputs) -> Value:
    """Return each score calibrated on its own, (rows, M)."""
    first, second = zip(*model._curves, strict=True)
    if model.config.calibration == "isotonic":
        return interpolate(inputs.scores, first, second)
    slope, intercept = np.concatenate(first), np.concatenate(second)
    return (logits_of(inputs.scores, SMALLEST_PROBABILITY) * slope + intercept).sigmoid()


def _score_probabilities(model: PrevalenceWeights, inputs: Inputs) -> Value:
    """Return the scores as they come, (rows, M)."""
    del model
    return inputs.scores


def _formula_scores(model: FormulaMethod, inputs: Inputs) -> Value:
    """Return the fused scores of a formula, (rows,): Σ a·p, Σ a·log(p + b) or Σ a·rank."""
    formula, scale, scores = model.formula, model._scale, inputs.scores
    a: np.ndarray = np.exp(formula.log_a - formula.log_a.max())
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
    HarmonRank: head_probabilities,
    HarmonRankNetwork: objective_network_probabilities,
    NeuralMethod: network_scores,
    ClosedForm: _closed_form_probabilities,
    Logistic: _logistic_probabilities,
    PrevalenceWeights: _score_probabilities,
    FormulaMethod: _formula_scores,
}

EXPORTED = tuple(name for name in METHODS if issubclass(method_class(name), tuple(_EXPORTERS)))
"""The methods that can be exported."""


def exporter_of(model: Method) -> Exporter:
    """Return what exports a model.

    Raises:
        UsageError: Its method has no exporter.
    """
    for kind in type(model).__mro__:
        if kind in _EXPORTERS:
            return _EXPORTERS[kind]
    raise UsageError(
        f"{model.name} cannot be exported to ONNX; serve it with `harmonrank serve`, or fit one of "
        f"{', '.join(EXPORTED)}."
    )
