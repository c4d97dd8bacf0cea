"""Exporters: which function writes a method's model into a graph, by the method's type."""

__all__ = ["EXPORTED", "exporter_of"]

from collections.abc import Callable, Mapping
from typing import Any

from harmonrank.errors import UsageError
from harmonrank.methods import METHODS, Method, method_class
from harmonrank.methods.closed_form import ClosedForm
from harmonrank.methods.formula import FormulaMethod
from harmonrank.methods.harmonrank import HarmonRank
from harmonrank.methods.harmonrank_network import HarmonRankNetwork
from harmonrank.methods.logistic import Logistic
from harmonrank.methods.neural import NeuralMethod
from harmonrank.methods.prevalence_weights import PrevalenceWeights
from harmonrank.serving.onnx.formulas import formula_scores
from harmonrank.serving.onnx.graph import Value
from harmonrank.serving.onnx.heads import head_probabilities
from harmonrank.serving.onnx.inputs import Inputs
from harmonrank.serving.onnx.networks import network_scores
from harmonrank.serving.onnx.objective_networks import objective_network_probabilities
from harmonrank.serving.onnx.regressions import (
    closed_form_probabilities,
    logistic_probabilities,
    score_probabilities,
)

Exporter = Callable[[Any, Inputs], Value]
"""Probabilities (rows, M) of a `ProbabilityMethod`, fused scores (rows,) of any other."""

_EXPORTERS: Mapping[type, Exporter] = {
    HarmonRank: head_probabilities,
    HarmonRankNetwork: objective_network_probabilities,
    NeuralMethod: network_scores,
    ClosedForm: closed_form_probabilities,
    Logistic: logistic_probabilities,
    PrevalenceWeights: score_probabilities,
    FormulaMethod: formula_scores,
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
