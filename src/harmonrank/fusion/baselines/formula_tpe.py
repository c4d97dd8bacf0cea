"""Formula by Optuna's tree-structured Parzen estimator."""

__all__ = ["FormulaTpe"]

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from harmonrank.fusion.baselines.formula import Form, Formula, FormulaMethod, SearchObjective
from harmonrank.support.extras import import_extra

_WIDEST = 5.0


class FormulaTpe(FormulaMethod):
    """One Optuna study per form over log a and log b; needs the extra `search`."""

    name = "formula-tpe"
    needs = "optuna"

    def _search(
        self, form: Form, objectives: int, evaluate: SearchObjective, rng: np.random.Generator
    ) -> Iterator[tuple[float, Formula]]:
        optuna = import_extra("optuna", who=self.name)
        sampler = optuna.samplers.TPESampler(seed=int(rng.integers(2**31)), multivariate=True)
        with _quiet(optuna):
            study = optuna.create_study(direction="maximize", sampler=sampler)
        even = {f"a{m}": 0.0 for m in range(objectives)}
        if form == "product":
            even |= {f"b{m}": -2.0 for m in range(objectives)}
        study.enqueue_trial(even)
        for _ in range(self.config.trials):
            trial = study.ask()
            formula = _formula(form, trial, objectives)
            value = evaluate(formula)
            with _quiet(optuna):
                study.tell(trial, value)
            yield value, formula


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
