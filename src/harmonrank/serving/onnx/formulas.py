"""Formulas in a graph: Σ a·p, Π (p+b)^a as a sum of logarithms, Σ a·rank."""

__all__ = ["formula_scores"]

import numpy as np

from harmonrank.methods.formula import FormulaMethod, Scale
from harmonrank.serving.onnx.graph import Value
from harmonrank.serving.onnx.inputs import Inputs
from harmonrank.serving.onnx.lookups import count_below, interpolate


def formula_scores(model: FormulaMethod, inputs: Inputs) -> Value:
    """Return the fused scores of a formula, (rows,)."""
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
