"""Formulas by three searches.

By grid: a coarse grid over all weights, then finer lines through the best point. By the
cross-entropy method: draw, keep the best, move towards them. By Optuna's tree-structured Parzen
estimator.
"""

__all__ = ["FormulaCem", "FormulaGrid", "FormulaTpe"]

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from harmonrank.fusion.baselines.formula import (
    FORMULA_TRAITS,
    Form,
    Formula,
    FormulaConfig,
    SearchObjective,
)
from harmonrank.fusion.method import Method
from harmonrank.fusion.protocol import Traits
from harmonrank.support.extras import import_extra

_STEPS = (2.0, 1.0, 0.5, 0.25)
_LEVELS = (-4.0, -2.0, 0.0, 2.0)
_OFFSETS = (-4.0, -2.0, 0.0)

_ROUND, _ELITE = 25, 6
_KEPT = 0.2
_SPREAD = 2.0

_WIDEST = 5.0


@dataclass(frozen=True)
class FormulaGridConfig(FormulaConfig):
    """Half of the trials on a grid of log a, the others up and down one axis at a time.

    The lines through the best point get finer, from a factor of e² to e^¼, as long as trials are
    left.
    """

    name: ClassVar[str] = "formula-grid"

    def search(
        self, form: Form, objectives: int, evaluate: SearchObjective, rng: np.random.Generator
    ) -> Iterator[tuple[float, Formula]]:
        """Try formulas and yield them with their value."""
        coarse = max(self.trials // 2, 1)
        best: tuple[float, np.ndarray] | None = None
        points = _grid(form, objectives, coarse, rng)
        formulas = [_formula(form, point, objectives) for point in points]
        for value, formula, point in zip(evaluate.each(formulas), formulas, points, strict=True):
            yield value, formula
            if best is None or value > best[0]:
                best = value, point
        assert best is not None
        left = self.trials - coarse
        for step in _STEPS:
            moved = True
            while moved and left > 0:
                moved = False
                for axis in range(len(best[1]) * 2):
                    point = best[1].copy()
                    point[axis // 2] += step if axis % 2 else -step
                    formula = _formula(form, point, objectives)
                    value = evaluate(formula)
                    left -= 1
                    yield value, formula
                    if value > best[0]:
                        best, moved = (value, point), True


class FormulaGrid(Method):
    """The formula with the best AUC-sum: see `FormulaGridConfig` for the search."""

    Config = FormulaGridConfig


def _grid(form: Form, objectives: int, points: int, rng: np.random.Generator) -> np.ndarray:
    """Return the grid, a point per row; where it has more points than may be tried, some of them.

    The axes are log a of each objective and, for a product, one log b for all.
    """
    axes = [_LEVELS] * objectives + ([_OFFSETS] if form == "product" else [])
    sizes = [len(axis) for axis in axes]
    total = float(np.prod(np.array(sizes, dtype=np.float64)))
    if total <= 2**22:
        which = np.arange(int(total))
        corner = np.stack(np.unravel_index(which, sizes), axis=1)
        # Only ratios count: a point whose largest a is not the top level is another one's twin.
        top = corner[:, :objectives].max(axis=1) == len(_LEVELS) - 1
        corner = corner[top]
        if len(corner) > points:
            corner = corner[np.sort(rng.choice(len(corner), points, replace=False))]
    else:
        corner = rng.integers(0, sizes, size=(points, len(sizes)))
    grid = np.stack([np.array(axis)[corner[:, i]] for i, axis in enumerate(axes)], axis=1)
    even = np.zeros((1, len(axes)))
    return np.concatenate([even, grid[: max(points - 1, 0)]])


def _formula(form: Form, point: np.ndarray, objectives: int) -> Formula:
    """Return the formula of a point: log a of each objective; of a product log b, one or each."""
    log_b = np.clip(point[objectives:], -12, 6) if form == "product" else 0.0
    return Formula(form, point[:objectives], np.full(objectives, log_b))


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
            yield from zip(values.tolist(), formulas, strict=True)
            left -= len(points)
            elite = points[np.argsort(-values, kind="stable")[:_ELITE]]
            mean, spread = elite.mean(axis=0), elite.std(axis=0) + _KEPT * spread


class FormulaCem(Method):
    """The formula with the best AUC-sum: see `FormulaCemConfig` for the search."""

    Config = FormulaCemConfig


@dataclass(frozen=True)
class FormulaTpeConfig(FormulaConfig):
    """One Optuna study per form over log a and log b; needs the extra `search`."""

    name: ClassVar[str] = "formula-tpe"
    traits: ClassVar[Traits] = replace(FORMULA_TRAITS, needs="optuna")

    def search(
        self, form: Form, objectives: int, evaluate: SearchObjective, rng: np.random.Generator
    ) -> Iterator[tuple[float, Formula]]:
        """Try formulas and yield them with their value."""
        optuna = import_extra("optuna", who=self.name)
        sampler = optuna.samplers.TPESampler(seed=int(rng.integers(2**31)), multivariate=True)
        with _quiet(optuna):
            study = optuna.create_study(direction="maximize", sampler=sampler)
        ranges = {f"a{m}": (-_WIDEST, _WIDEST) for m in range(objectives)}
        if form == "product":
            ranges |= {f"b{m}": (-8.0, 3.0) for m in range(objectives)}
        study.enqueue_trial({name: 0.0 if name[0] == "a" else -2.0 for name in ranges})
        for _ in range(self.trials):
            trial = study.ask()
            point = [trial.suggest_float(name, *ends) for name, ends in ranges.items()]
            formula = _formula(form, np.array(point), objectives)
            value = evaluate(formula)
            with _quiet(optuna):
                study.tell(trial, value)
            yield value, formula


class FormulaTpe(Method):
    """The formula with the best AUC-sum: see `FormulaTpeConfig` for the search."""

    Config = FormulaTpeConfig


@contextmanager
def _quiet(optuna: Any) -> Iterator[None]:
    """Keep Optuna from logging every trial, and leave its setting as it was."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)
