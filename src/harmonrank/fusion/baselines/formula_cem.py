"""Formula by the cross-entropy method: draw, keep the best, move towards them."""

__all__ = ["FormulaCem"]

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from harmonrank.fusion.baselines.formula import Form, Formula, FormulaConfig, SearchObjective
from harmonrank.fusion.method import Method

_ROUND, _ELITE = 25, 6
_KEPT = 0.2
_SPREAD = 2.0


@dataclass(frozen=True)
class FormulaCemConfig(FormulaConfig):
    """Formulas drawn from a normal density of log a and log b, fitted to the best of each round.

    A round has 25 trials, of which the best 6 move the mean and the spread; a fifth of the old
    spread is kept, so that the search does not freeze early.
    """

    name: ClassVar[str] = "formula-cem"

    def search(
        self, form: Form, objectives: int, evaluate: SearchObjective, rng: np.random.Generator
    ) -> Iterator[tuple[float, Formula]]:
        """Try formulas and yield them with their value."""
        size = objectives * (2 if form == "product" else 1)
        mean, spread = np.zeros(size), np.full(size, _SPREAD)
        mean[objectives:] = -2.0
        left = self.trials
        while left > 0:
            points = mean + spread * rng.standard_normal((min(_ROUND, left), size))
            # The middle of the density is a candidate of its own.
            points[0] = mean
            # Only ratios of the a count: without this their common factor would wander.
            points[:, :objectives] -= points[:, :objectives].mean(axis=1, keepdims=True)
            formulas = [_formula(form, point, objectives) for point in points]
            values = np.array(evaluate.each(formulas))
            for value, point in zip(values, points, strict=True):
                yield float(value), _formula(form, point, objectives)
            left -= len(points)
            elite = points[np.argsort(-values, kind="stable")[:_ELITE]]
            mean, spread = elite.mean(axis=0), elite.std(axis=0) + _KEPT * spread


class FormulaCem(Method):
    """The formula with the best AUC-sum: see `FormulaCemConfig` for the search."""

    Config = FormulaCemConfig


def _formula(form: Form, point: np.ndarray, objectives: int) -> Formula:
    log_b = np.zeros(objectives) if form != "product" else np.clip(point[objectives:], -12, 6)
    return Formula(form, point[:objectives], log_b)
