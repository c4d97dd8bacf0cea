"""Formula by Optuna's tree-structured Parzen estimator."""

__all__ = ["FormulaTpe"]

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

_WIDEST = 5.0


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
        even = {f"a{m}": 0.0 for m in range(objectives)}
        if form == "product":
            even |= {f"b{m}": -2.0 for m in range(objectives)}
        study.enqueue_trial(even)
        for _ in range(self.trials):
            trial = study.ask()
            formula = _formula(form, trial, objectives)
            value = evaluate(formula)
            with _quiet(optuna):
                study.tell(trial, value)
            yield value, formula


class FormulaTpe(Method):
    """The formula with the best AUC-sum: see `FormulaTpeConfig` for the search."""

    Config = FormulaTpeConfig


def _formula(form: Form, trial: Any, objectives: int) -> Formula:
    log_a = [trial.suggest_float(f"a{m}", -_WIDEST, _WIDEST) for m in range(objectives)]
    log_b = [0.0] * objectives
    if form == "product":
        log_b = [trial.suggest_float(f"b{m}", -8.0, 3.0) for m in range(objectives)]
    return Formula(form, np.array(log_a), np.array(log_b))


@contextmanager
def _quiet(optuna: Any) -> Iterator[None]:
    """Keep Optuna from logging every trial, and leave its setting as it was."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)
