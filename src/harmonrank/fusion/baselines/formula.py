"""Formulas: what engineers tune by hand, searched instead."""

__all__ = ["FORMS", "Form", "Formula", "FormulaConfig", "FormulaMethod", "SearchObjective"]

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, Self

import msgspec
import numpy as np
from msgspec import Meta

from harmonrank.data import Log
from harmonrank.data.context import QUANTILE_ROWS
from harmonrank.data.rows.blocks import Blocks
from harmonrank.engine import current_engine, in_order
from harmonrank.fusion.base import Method
from harmonrank.fusion.baselines.formula_blocks import best_formula, chance_of, thinned_blocks
from harmonrank.fusion.fitting.coded_log import CodedLog
from harmonrank.fusion.fitting.fit import Fit
from harmonrank.fusion.fitting.row_blocks import RowsInBlocks, row_blocks
from harmonrank.fusion.probability import weighted_sum
from harmonrank.fusion.quality.outcomes import outcomes_of
from harmonrank.metrics import auc
from harmonrank.model.fit_rows import FitRows, drawn_from
from harmonrank.support.options import Count
from harmonrank.support.storage.arrays import Array

Form = Literal["sum", "product", "rank"]
FORMS: tuple[Form, ...] = ("sum", "product", "rank")
"""Σ a·p, Π (p+b)^a and Σ a·rank."""

_QUANTILES = 1025
_FINALISTS = 8
_EXAM_ROWS = 1_000_000  # Beyond that the best few are told apart on all validation rows, in blocks.


@dataclass(frozen=True)
class Scale:
    """What makes a formula free of units: the mean and the quantiles of each score."""

    mean: np.ndarray
    quantiles: np.ndarray

    @classmethod
    def of(cls, log: Log) -> Self:
        """Measure the scores of the training rows."""
        return cls.of_blocks(row_blocks(log, workers=False), log.rows)

    @classmethod
    def of_blocks(cls, blocks: Blocks[FitRows], rows: int) -> Self:
        """Measure the scores of so many training rows; quantiles of `QUANTILE_ROWS` drawn ones."""
        mass, total = blocks.total(_score_sums)
        mean = total / mass
        some = drawn_from(blocks, rows, QUANTILE_ROWS).scores.astype(np.float64, copy=False)
        quantiles = np.quantile(some, np.linspace(0, 1, _QUANTILES), axis=0)
        return cls(np.where(mean > 0, mean, 1.0), np.ascontiguousarray(quantiles.T))

    def rank(self, scores: np.ndarray) -> np.ndarray:
        """Return the share of training rows below each score, (rows, objectives)."""
        shares = np.empty(scores.shape)
        for m, edges in enumerate(self.quantiles):
            # Equal quantiles are one score that many rows share: it ranks in their middle.
            low, high = (
                np.searchsorted(edges, scores[:, m]),
                np.searchsorted(edges, scores[:, m], side="right"),
            )
            between = np.interp(scores[:, m], edges, np.arange(_QUANTILES, dtype=np.float64))
            shares[:, m] = np.where(high > low + 1, (low + high - 1) / 2, between)
        return shares / (_QUANTILES - 1)


def _score_sums(rows: FitRows) -> tuple[float, np.ndarray]:
    w = rows.weights()
    return float(w.sum()), (w[:, None] * rows.scores.astype(np.float64, copy=False)).sum(axis=0)


@dataclass(frozen=True)
class Formula:
    """One formula: its form, the logarithm of each a, and of each b in units of the mean score.

    Only the ratios of the a count, and scores are taken in units of their mean, so the numbers
    mean the same whatever the prevalence: all zeros is a sensible formula.
    """

    form: Form
    log_a: np.ndarray
    log_b: np.ndarray

    def __call__(
        self, scores: np.ndarray, ranks: np.ndarray, scale: Scale, signs: np.ndarray | float = 1.0
    ) -> np.ndarray:
        """Fuse scores; the product is taken as a sum of logarithms, which ranks the same.

        With the sign −1, for an unwanted objective, a counts below 0.
        """
        a = signs * np.exp(self.log_a - self.log_a.max())
        if self.form == "rank":
            return weighted_sum(ranks, a)
        if self.form == "sum":
            return weighted_sum(scores, a / scale.mean)
        return weighted_sum(np.log(scores / scale.mean + np.exp(self.log_b)), a)


@dataclass(frozen=True)
class FormulaConfig:
    """How formulas are searched.

    Attributes:
        forms: Which forms are tried: 'sum', 'product', 'rank'.
        trials: How many formulas of each form are tried.
        search_rows: The search sees at most this many training rows.
    """

    forms: Annotated[tuple[Form, ...], Meta(min_length=1, max_length=3)] = FORMS
    trials: Count = 200
    search_rows: Count = 100_000


class FormulaState(msgspec.Struct, forbid_unknown_fields=True):
    """The form that was found; its numbers are in the arrays."""

    form: Form


@dataclass(frozen=True)
class SearchObjective:
    """The AUC-sum of a formula on the rows of a search.

    Attributes:
        scores, ranks: (rows, objectives), and the share of training rows below each score.
        labels: (rows, objectives), or outcomes.
        sample_weight: (rows,) or None.
        weights: (objectives,) what each AUC counts.
        scale: What makes formulas free of units.
    """

    scores: np.ndarray
    ranks: np.ndarray
    labels: Any
    sample_weight: np.ndarray | None
    weights: np.ndarray
    scale: Scale

    def __call__(self, formula: Formula) -> float:
        """Return the value of one formula."""
        fused = formula(self.scores, self.ranks, self.scale, _signs(self.weights))
        # An objective that the rows do not show cannot vote.
        areas = auc(fused, self.labels, sample_weight=self.sample_weight)
        return float(np.nansum(self.weights * areas))

    def each(self, formulas: Sequence[Formula]) -> list[float]:
        """Return the values of formulas that do not depend on one another, by all workers."""
        engine = current_engine()
        if engine.workers == 1:
            return _values(formulas, self)
        parts = np.array_split(np.arange(len(formulas)), engine.workers)
        jobs = [[formulas[i] for i in part] for part in parts if len(part)]
        return [value for part in in_order(engine, _values, jobs, self) for value in part]


def _values(formulas: Sequence[Formula], objective: SearchObjective) -> list[float]:
    return [objective(formula) for formula in formulas]


class FormulaMethod(Method):
    """The formula with the best AUC-sum: searched on training rows, chosen on validation rows."""

    Config = FormulaConfig
    State = FormulaState
    takes = ("graded", "given")

    _scale: Scale
    formula: Formula

    @abstractmethod
    def _search(
        self, form: Form, objectives: int, evaluate: SearchObjective, rng: np.random.Generator
    ) -> Iterator[tuple[float, Formula]]:
        """Try formulas of a form and yield them with their value, in the order they were tried."""

    def _fit(self, fit: Fit) -> None:
        self._scale = Scale.of(fit.train)
        rng = np.random.default_rng([fit.seed, 0xF0])
        finalists = self._searched(
            self._objective(_thinned(fit.train, self.config.search_rows, rng), fit.weights), rng
        )
        values = self._objective(fit.valid, fit.weights).each(finalists)
        self.formula = finalists[int(np.argmax(values))]

    fits_blocks = True

    def _fit_blocks(self, fit: RowsInBlocks) -> None:
        self._scale = Scale.of_blocks(fit.train, fit.rows)
        rng, wanted = np.random.default_rng([fit.seed, 0xF0]), self.config.search_rows
        if fit.rows <= wanted:
            some = drawn_from(fit.train, fit.rows, wanted)
        else:
            some = thinned_blocks(fit.train, fit.rows, fit.prevalence, wanted, rng)
        finalists = self._searched(self._objective_of(some, fit), rng)
        exam = drawn_from(fit.valid, fit.valid_rows, _EXAM_ROWS)
        values = self._objective_of(exam, fit).each(finalists)
        best = int(np.argmax(values))
        if fit.valid_rows > exam.rows and fit.schema.plain:

            def score(number: int, scores: np.ndarray) -> np.ndarray:
                return self._fused_by(finalists[number], scores, fit.weights)

            best = best_formula(score, values, fit.valid, fit.valid_rows, fit.weights)
        self.formula = finalists[best]

    def _searched(self, evaluate: SearchObjective, rng: np.random.Generator) -> list[Formula]:
        """Return the best few formulas of every form."""
        finalists: list[Formula] = []
        for form in self.config.forms:
            tried = list(self._search(form, len(evaluate.weights), evaluate, rng))
            tried.sort(key=lambda pair: -pair[0])
            finalists += [formula for _, formula in tried[:_FINALISTS]]
        return finalists

    def _objective(self, log: Log, weights: np.ndarray) -> SearchObjective:
        scores = log.scores.astype(np.float64, copy=False)
        ranks, labels = self._scale.rank(scores), outcomes_of(log)
        return SearchObjective(scores, ranks, labels, log.sample_weight, weights, self._scale)

    def _objective_of(self, rows: FitRows, fit: RowsInBlocks) -> SearchObjective:
        return self._objective(CodedLog.of(rows, fit.schema, fit.prevalence), fit.weights)

    def _fused_by(self, formula: Formula, scores: np.ndarray, weights: np.ndarray) -> np.ndarray:
        scores = scores.astype(np.float64, copy=False)
        ranks = self._scale.rank(scores) if formula.form == "rank" else scores
        return formula(scores, ranks, self._scale, _signs(weights))

    def _score(self, log: Log) -> np.ndarray:
        return self._fused_by(self.formula, log.scores, self.schema.weight_vector)

    def _state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        arrays = {"mean": self._scale.mean, "quantiles": self._scale.quantiles}
        arrays |= {"log_a": self.formula.log_a, "log_b": self.formula.log_b}
        return {"form": self.formula.form}, arrays

    def _declare(self, state: FormulaState) -> dict[str, Array]:  # noqa: ARG002
        M = len(self.schema.names)
        return {
            "mean": Array((M,), low=1e-300, high=1.0),
            "quantiles": Array((M, _QUANTILES), low=0.0, high=1.0, rising=True),
            "log_a": Array((M,), low=-1e3, high=1e3),
            "log_b": Array((M,), low=-700.0, high=700.0),
        }

    def _restore(self, state: FormulaState, arrays: dict[str, np.ndarray]) -> None:
        self._scale = Scale(arrays["mean"], arrays["quantiles"])
        self.formula = Formula(state.form, arrays["log_a"], arrays["log_b"])


def _signs(weights: np.ndarray) -> np.ndarray:
    return np.where(weights < 0, -1.0, 1.0)


def _thinned(log: Log, rows: int, rng: np.random.Generator) -> Log:
    """Draw about this many rows, positives of rare objectives first, and weigh them to make up.

    Each objective's positives get the same share of the sample (`chance_of`), and a row counts for
    one over its chance: AUCs are not biased.
    """
    if log.rows <= rows:
        return log
    labels = log.known_labels()
    positives = labels.sum(axis=0, dtype=np.float64)
    chance = chance_of(labels, positives, log.prevalence(), log.rows, rows)
    some = np.flatnonzero(rng.random(log.rows) < chance)
    drawn = log.take(some)
    own = 1.0 if drawn.sample_weight is None else drawn.sample_weight
    return replace(drawn, sample_weight=own / chance[some])
