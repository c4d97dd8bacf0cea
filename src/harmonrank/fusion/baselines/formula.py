"""Formulas that engineers tune by hand, here by search."""

__all__ = [
    "FORMS",
    "Form",
    "Formula",
    "FormulaConfig",
    "FormulaFit",
    "SearchObjective",
    "best_formula",
    "thinned",
]

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from msgspec import Meta

from harmonrank.data.context import QUANTILE_ROWS
from harmonrank.data.rows.blocks import Blocks
from harmonrank.engine import current_engine, in_order
from harmonrank.fusion.protocol import TrainingRows, Traits
from harmonrank.fusion.quality.outcomes import outcomes_of_rows
from harmonrank.fusion.weights import weighted_sum
from harmonrank.metrics import auc
from harmonrank.model.fit_rows import FitRows, drawn_from, joined
from harmonrank.support.options import Count
from harmonrank.support.storage.arrays import Array

Form = Literal["sum", "product", "rank"]
FORMS: tuple[Form, ...] = ("sum", "product", "rank")
"""Σ a·p, Π (p+b)^a and Σ a·rank."""

_QUANTILES = 1025
_FINALISTS = 8
# With more validation rows, the best few formulas are compared on all of them, in blocks.
_VALID_ROWS = 1_000_000

_EXACT = 4  # How many formulas are compared on all validation rows.


@dataclass(frozen=True, eq=False)
class Scale:
    """Mean and quantiles of each score, which make formulas free of units."""

    mean: Annotated[np.ndarray, Array(("M",), low=1e-300, high=1.0)]
    quantiles: Annotated[np.ndarray, Array(("M", _QUANTILES), low=0.0, high=1.0, rising=True)]

    @classmethod
    def of(cls, blocks: Blocks[FitRows], rows: int) -> Self:
        """Measure the scores of so many training rows; quantiles of `QUANTILE_ROWS` drawn ones."""
        mass, total = blocks.total(_score_sums)
        mean = total / mass
        some = drawn_from(blocks, rows, QUANTILE_ROWS).scores.astype(np.float64, copy=False)
        quantiles = np.quantile(some, np.linspace(0, 1, _QUANTILES), axis=0)
        return cls(np.where(mean > 0, mean, 1.0), np.ascontiguousarray(quantiles.T))

    def rank(self, scores: np.ndarray) -> np.ndarray:
        """Return the share of training rows below each score, (rows, objectives)."""
        ranks = np.empty(scores.shape)
        for m, edges in enumerate(self.quantiles):
            # A score that many rows share fills several quantiles and ranks in their middle.
            low, high = (
                np.searchsorted(edges, scores[:, m]),
                np.searchsorted(edges, scores[:, m], side="right"),
            )
            between = np.interp(scores[:, m], edges, np.arange(_QUANTILES, dtype=np.float64))
            ranks[:, m] = np.where(high > low + 1, (low + high - 1) / 2, between)
        return ranks / (_QUANTILES - 1)


def _score_sums(rows: FitRows) -> tuple[float, np.ndarray]:
    w = rows.weights()
    return float(w.sum()), (w[:, None] * rows.scores.astype(np.float64, copy=False)).sum(axis=0)


@dataclass(frozen=True, eq=False)
class Formula:
    """One formula: its form, the logarithm of each a, and of each b in units of the mean score.

    Only the ratios of the a count, and scores are taken in units of their mean, so the numbers
    mean the same whatever the prevalence: all zeros is a sensible formula.
    """

    form: Form
    log_a: Annotated[np.ndarray, Array(("M",), low=-1e3, high=1e3)]
    log_b: Annotated[np.ndarray, Array(("M",), low=-700.0, high=700.0)]

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
class SearchObjective:
    """The AUC-sum of a formula on the rows of a search.

    Attributes:
        scores, ranks: (rows, objectives), and the share of training rows below each score.
        labels: (rows, objectives), or outcomes.
        sample_weight: (rows,) or None.
        weights: (objectives,) the weight of each AUC.
        scale: Makes formulas free of units.
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
        # An objective that is absent from the rows does not count.
        areas = auc(fused, self.labels, sample_weight=self.sample_weight)
        return float(np.nansum(self.weights * areas))

    def each(self, formulas: Sequence[Formula]) -> list[float]:
        """Return the values of independent formulas, computed by all workers."""
        engine = current_engine()
        if engine.workers == 1:
            return _values(formulas, self)
        parts = np.array_split(np.arange(len(formulas)), engine.workers)
        jobs = [[formulas[i] for i in part] for part in parts if len(part)]
        return [value for part in in_order(engine, _values, jobs, self) for value in part]


def _values(formulas: Sequence[Formula], objective: SearchObjective) -> list[float]:
    return [objective(formula) for formula in formulas]


@dataclass(frozen=True, eq=False)
class FormulaFit:
    """The formula that won the search.

    Attributes:
        formula: The one with the best AUC-sum on the validation rows.
        scale: Makes it free of units.
        signs: (M,) −1 of an unwanted objective, 1 of others.
    """

    formula: Formula
    scale: Scale
    signs: Annotated[np.ndarray, Array(("M",), low=-1.0, high=1.0)]

    def scores(self, scores: np.ndarray, codes: np.ndarray | None = None) -> np.ndarray:  # noqa: ARG002
        """Return the fused score of each row."""
        scores = scores.astype(np.float64, copy=False)
        ranks = self.scale.rank(scores) if self.formula.form == "rank" else scores
        return self.formula(scores, ranks, self.scale, self.signs)


FORMULA_TRAITS = Traits(probabilities=False)


@dataclass(frozen=True)
class FormulaConfig:
    """How formulas are searched.

    Attributes:
        forms: Which forms are tried: 'sum', 'product', 'rank'.
        trials: How many formulas of each form are tried.
        search_rows: The search sees at most this many training rows.
    """

    name: ClassVar[str]
    traits: ClassVar[Traits] = FORMULA_TRAITS
    state: ClassVar[type] = FormulaFit

    forms: Annotated[tuple[Form, ...], Meta(min_length=1, max_length=3)] = FORMS
    trials: Count = 200
    search_rows: Count = 100_000

    def search(
        self, form: Form, objectives: int, evaluate: SearchObjective, rng: np.random.Generator
    ) -> Iterator[tuple[float, Formula]]:
        """Try formulas of a form and yield them with their value, in the order they were tried."""
        raise NotImplementedError

    def fit(self, rows: TrainingRows) -> FormulaFit:
        """Search on training rows, and choose on validation rows."""
        scale, signs = Scale.of(rows.train, rows.rows), _signs(rows.weights)
        rng, wanted = np.random.default_rng([rows.seed, 0xF0]), self.search_rows
        if rows.rows <= wanted:
            some = rows.sample()
        else:
            some = thinned(rows.train, rows.rows, rows.prevalence, wanted, rng)
        finalists = self._finalists(_objective(rows, scale, some), rng)
        valid = rows.valid_sample(_VALID_ROWS)
        values = _objective(rows, scale, valid).each(finalists)
        best = int(np.argmax(values))
        if rows.valid_rows > valid.rows and rows.schema.plain:
            fits = [FormulaFit(formula, scale, signs).scores for formula in finalists]
            best = best_formula(fits, values, rows.valid, rows.weights)
        return FormulaFit(finalists[best], scale, signs)

    def _finalists(self, evaluate: SearchObjective, rng: np.random.Generator) -> list[Formula]:
        """Return the best few formulas of every form."""
        finalists: list[Formula] = []
        for form in self.forms:
            tried = list(self.search(form, len(evaluate.weights), evaluate, rng))
            tried.sort(key=lambda pair: -pair[0])
            finalists += [formula for _, formula in tried[:_FINALISTS]]
        return finalists


def _objective(rows: TrainingRows, scale: Scale, some: FitRows) -> SearchObjective:
    """Return the objective of a search on some rows."""
    scores = some.scores.astype(np.float64, copy=False)
    labels = outcomes_of_rows(some, rows.schema)
    return SearchObjective(scores, scale.rank(scores), labels, some.weight, rows.weights, scale)


def _signs(weights: np.ndarray) -> np.ndarray:
    return np.where(weights < 0, -1.0, 1.0)


def thinned(
    blocks: Blocks[FitRows], rows: int, pi: np.ndarray, wanted: int, rng: np.random.Generator
) -> FitRows:
    """Draw about `wanted` rows, more of rare positives, and weight them to stay unbiased.

    The chance of a row is in proportion to 1 + Σ_m y_m/π_m, so that each objective's positives get
    the same share of the sample. A row is weighted by one over its chance, so AUCs are unbiased.

    Args:
        blocks: The rows.
        rows: How many there are.
        pi: (objectives,) prevalence.
        wanted: About how many are to be drawn.
        rng: Draws them.
    """
    rare = 1 / np.maximum(pi, 1 / rows)
    share = wanted / (rows + float(blocks.total(_positives)[0] @ rare))
    parts = []
    for number in range(len(blocks)):
        block = blocks[number]
        chance = np.minimum((1.0 + block.labels @ rare) * share, 1.0)
        # A generator gives the same numbers in parts as at once.
        some = np.flatnonzero(rng.random(block.rows) < chance)
        part = block.taken(some)
        parts.append(replace(part, weight=part.weights() / chance[some]))
    return joined(parts)


def _positives(rows: FitRows) -> tuple[np.ndarray]:
    return (rows.labels.sum(axis=0, dtype=np.float64),)


def best_formula(
    formulas: Sequence[Callable[[np.ndarray], np.ndarray]],
    values: Sequence[float],
    blocks: Blocks[FitRows],
    weights: np.ndarray,
) -> int:
    """Return which formula has the best AUC-sum on all rows, of the few that are best on some.

    Args:
        formulas: Each gives the fused scores of (rows, M) scores.
        values: What each formula reached on some rows.
        blocks: All rows.
        weights: (M,) the weight of each AUC.
    """
    few = np.argsort(-np.asarray(values), kind="stable")[:_EXACT]

    parts = []
    for number in range(len(blocks)):
        block = blocks[number]
        fused = np.stack([formulas[int(k)](block.scores) for k in few], axis=1)
        parts.append((fused, block.labels, block.weights()))
    fused, labels, weight = (np.concatenate(column) for column in zip(*parts, strict=True))
    areas = [auc(column, labels, sample_weight=weight) for column in fused.T]
    # An objective that the rows do not show cannot vote.
    return int(few[int(np.argmax([np.nansum(weights * area) for area in areas]))])
