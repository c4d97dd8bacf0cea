"""The catalogue of methods: a name to the class that does it, imported when asked for."""

__all__ = ["METHODS", "method_class"]

from importlib import import_module
from typing import TYPE_CHECKING

from harmonrank.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from harmonrank.methods.base import Method

_PLACES = {
    "harmonrank": ("harmonrank", "HarmonRank"),
    "harmonrank-network": ("harmonrank_network", "HarmonRankNetwork"),
    "harmonrank-paper": ("harmonrank_paper", "HarmonRankPaper"),
    "mbce": ("other_losses", "Mbce"),
    "label-aggregation": ("other_losses", "LabelAggregation"),
    "label-aggregation-optimal": ("other_losses", "LabelAggregationOptimal"),
    "reinforce": ("other_losses", "Reinforce"),
    "pairwise-square": ("other_losses", "PairwiseSquare"),
    "pairwise-logistic": ("other_losses", "PairwiseLogistic"),
    "aucm": ("other_losses", "Aucm"),
    "closed-form": ("closed_form", "ClosedForm"),
    "prevalence-weights": ("prevalence_weights", "PrevalenceWeights"),
    "logistic": ("logistic", "Logistic"),
    "lightgbm": ("lightgbm", "LightGBM"),
    "formula-grid": ("formula_grid", "FormulaGrid"),
    "formula-tpe": ("formula_tpe", "FormulaTpe"),
    "formula-cem": ("formula_cem", "FormulaCem"),
}

METHODS = tuple(_PLACES)
"""The names of all methods, the default first."""


def method_class(name: str) -> "type[Method]":
    """Return the class of a method.

    >>> method_class("closed-form").__name__
    'ClosedForm'
    """
    if name not in _PLACES:
        raise UsageError(f"There is no method '{name}'. {did_you_mean(name, METHODS)}")
    module, attribute = _PLACES[name]
    found: type[Method] = getattr(import_module(f"harmonrank.methods.{module}"), attribute)
    return found
