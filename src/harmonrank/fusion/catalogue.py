"""The catalogue of methods: a name to the class that does it, imported when asked for."""

__all__ = ["METHODS", "installed_methods", "method_class"]

import logging
from importlib import import_module
from typing import TYPE_CHECKING

from harmonrank.support.errors import UsageError, did_you_mean
from harmonrank.support.extras import is_installed, remedy

if TYPE_CHECKING:
    from harmonrank.fusion.method import Method

_PLACES = {
    "harmonrank": ("fusion.harmonrank", "HarmonRank"),
    "harmonrank-paper": ("paper.methods.neural_methods", "HarmonRankPaper"),
    "mbce": ("paper.methods.neural_methods", "Mbce"),
    "label-aggregation": ("paper.methods.neural_methods", "LabelAggregation"),
    "label-aggregation-optimal": ("paper.methods.neural_methods", "LabelAggregationOptimal"),
    "reinforce": ("paper.methods.neural_methods", "Reinforce"),
    "pairwise-square": ("paper.methods.neural_methods", "PairwiseSquare"),
    "pairwise-logistic": ("paper.methods.neural_methods", "PairwiseLogistic"),
    "aucm": ("paper.methods.neural_methods", "Aucm"),
    "closed-form": ("fusion.baselines.closed_form", "ClosedForm"),
    "prevalence-weights": ("fusion.baselines.closed_form", "PrevalenceWeights"),
    "logistic": ("fusion.baselines.logistic", "Logistic"),
    "lightgbm": ("fusion.baselines.lightgbm", "LightGBM"),
    "formula-grid": ("fusion.baselines.formula_search", "FormulaGrid"),
    "formula-tpe": ("fusion.baselines.formula_search", "FormulaTpe"),
    "formula-cem": ("fusion.baselines.formula_search", "FormulaCem"),
}

METHODS = tuple(_PLACES)
"""The names of all methods, the default first."""


def method_class(name: str) -> "type[Method]":
    """Return the class of a method.

    >>> method_class("closed-form").__name__
    'ClosedForm'
    """
    if name not in _PLACES:
        hint, known = did_you_mean(name, METHODS), f"Known: {', '.join(METHODS)}."
        said = hint if hint == known else f"{hint} {known}"
        raise UsageError(f"There is no method '{name}'. {said}")
    module, attribute = _PLACES[name]
    kind: type[Method] = getattr(import_module(f"harmonrank.{module}"), attribute)
    return kind


def installed_methods() -> tuple[str, ...]:
    """Return the methods whose packages are there; the log tells which are left out, and why."""
    absent: dict[str, list[str]] = {}
    for name in METHODS:
        package = method_class(name).traits.needs
        if package is not None and not is_installed(package):
            absent.setdefault(package, []).append(name)
    for package, names in absent.items():
        logging.getLogger("harmonrank").warning(
            "Left out, as the package '%s' is missing: %s; %s.",
            package,
            ", ".join(names),
            remedy(package),
        )
    return tuple(name for name in METHODS if not any(name in names for names in absent.values()))
