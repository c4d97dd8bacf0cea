"""Sweep: the calibrated heads of one fit on labelled rows, measured at any weights."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from math import comb
from typing import Any, Self

import numpy as np

from harmonrank.data import Log, Source, read_log
from harmonrank.data.kinds import lineage
from harmonrank.evaluation.baseline import Baseline
from harmonrank.fusion import Method
from harmonrank.fusion.fit import evaluation_log
from harmonrank.fusion.position import corrected
from harmonrank.fusion.quality.outcomes import best_terms, outcomes_of, true_outcomes
from harmonrank.fusion.weights import weighted_sum
from harmonrank.metrics import (
    auc,
    auc_influence,
    events_at_k,
    grouped_auc,
    grouped_auc_influence,
    request_influence,
)
from harmonrank.support.errors import UsageError

MOST_ROWS = 100_000
"""Rows that are measured at every point, in whole requests."""

_PAIR_STEPS = 15
_MOST_OF_TWO = 101  # more do not make a line smoother


@dataclass(frozen=True, eq=False)
class Sweep:
    """What it takes to measure s = Σ_m w_m p_m/(π_m(1−π_m)) for many w.

    Where weights are None, it is what ranks today that is measured.

    Attributes:
        model: A fitted method with probabilities.
        log: The rows, in whole requests.
        parts: (rows, M) p_m/(π_m(1−π_m)), with the π of the fit; minus that of an unwanted one.
        labels: (rows, M), or outcomes; in a world the true ones, so that nothing is label noise.
        weights: (M,) those of the model, the current ones.
        count: (M,) what the AUC of each objective counts in the sum; the same, unless told.
        same: (rows, M) parts for weights that count only objectives which the same rows show;
            None where every row shows all.
        signs: (M,) −1 for an unwanted objective, of which less is better. Its weights are from 0 up
            here, like all others, and its parts are turned.
        today: What ranks today, with the score of each row, if it was named.
    """

    model: Method
    log: Log
    parts: np.ndarray
    labels: Any
    weights: np.ndarray
    count: np.ndarray
    signs: np.ndarray
    same: np.ndarray | None = None
    today: Baseline | None = None

    @classmethod
    def of(
        cls,
        model: Method,
        table: Source,
        *,
        count: Mapping[str, float] | None = None,
        rows: int = MOST_ROWS,
        baseline: str | Baseline | None = None,
    ) -> Self:
        """Read labelled rows, at most so many of them, and score them once.

        Raises:
            UsageError: The method has no probabilities, or there is nothing to trade.
        """
        if not model.traits.probabilities:
            raise UsageError(
                f"{model.name} gives no probability of an objective, so its weights cannot move "
                "after the fit and it has no frontier; use a method such as harmonrank."
            )
        if len(model.schema.names) < 2:
            raise UsageError("A frontier needs at least two objectives. Got one.")
        log, today = evaluation_log(table, model.schema), Baseline.of(baseline, table)
        kept = _whole_requests(log, rows)
        if today is not None:
            scores = today.counted(corrected(read_log(table, model.schema)))
            today = replace(today, scores=scores[kept])
        log = log.take(kept)
        log.require_both_classes("evaluated")
        labels = outcomes_of(log) if log.truth is None else true_outcomes(log)
        signs, same = model.schema.signs, None
        parts = np.asfortranarray(model.fuser.gains(log, np.ones(len(signs))) * signs)
        if model.schema.given:
            same = np.asfortranarray(model.fuser.gains(log, np.eye(len(signs))[0]) * signs)
        now = model.fuser.weights().counted
        counted = now if count is None else model.schema.weights_with(count)
        return cls(model, log, parts, labels, now * signs, counted * signs, signs, same, today)

    @property
    def names(self) -> tuple[str, ...]:
        """The objectives."""
        return self.log.schema.names

    @property
    def unwanted(self) -> tuple[str, ...]:
        """The objectives of which less is better."""
        return tuple(name for name, sign in zip(self.names, self.signs, strict=True) if sign < 0)

    @property
    def exact(self) -> bool:
        """Whether figures are by true probabilities."""
        return self.log.truth is not None

    @property
    def row_weight(self) -> np.ndarray | None:
        """What each row counts: true probabilities do not depend on the place of a row."""
        return self.log.own_weight if self.exact else self.log.sample_weight

    @cached_property
    def best(self) -> Self | None:
        """The same rows with the true probabilities as heads, in a world."""
        if self.log.truth is None:
            return None
        if not self.log.schema.plain:
            M = len(self.signs)
            parts, same = (
                np.asfortranarray(best_terms(self.log, weights) / self.signs)
                for weights in (np.ones(M), np.eye(M)[0])
            )
            return replace(self, parts=parts, same=same)
        pi = np.average(self.log.truth, axis=0, weights=self.row_weight)
        parts = np.asfortranarray(self.log.truth / (self.signs * pi * (1 - pi)))
        return replace(self, parts=parts)

    @cached_property
    def within(self) -> bool:
        """Whether every objective has an AUC within requests, so that this is what decides."""
        areas = self.request_areas(self.weights)
        return areas is not None and bool(np.isfinite(areas).all())

    def fused(self, weights: np.ndarray | None) -> np.ndarray:
        """Return the fused score of each row."""
        if weights is None:
            if self.today is None:
                raise UsageError("What ranks today is not known; name it by --baseline COLUMN.")
            return self.today.scores
        schema, parts = self.log.schema, self.parts
        if self.same is not None:
            counted = [n for n, w in zip(self.names, weights, strict=True) if w]
            if len({lineage(name, schema.given) for name in counted}) <= 1:
                parts = self.same
        return weighted_sum(parts, weights)

    def decisive(self, weights: np.ndarray | None) -> np.ndarray:
        """Return the AUC of each objective that decides, (M,): within requests if they have one."""
        found = self.request_areas(weights) if self.within else None
        return self.areas(weights) if found is None else found

    def areas(self, weights: np.ndarray | None) -> np.ndarray:
        """Return the AUC of each objective over all rows, (M,)."""
        return auc(self.fused(weights), self.labels, sample_weight=self.row_weight)

    def influence(self, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """Return `decisive` AUCs and the influence of each user, request or row on them.

        A request without an AUC has nan.
        """
        fused, weight = self.fused(weights), self.row_weight
        if self.within:
            given = fused, self.labels, self._requests
            return grouped_auc_influence(*given, sample_weight=weight, units=self.log.user)
        area, influence = auc_influence(fused, self.labels, sample_weight=weight)
        if self.log.units is not None:
            influence = request_influence(influence, self.log.units)
        return area, influence / self.log.rows

    @cached_property
    def _requests(self) -> np.ndarray:
        assert self.log.request is not None
        return np.unique(self.log.request, return_inverse=True)[1]

    def request_areas(self, weights: np.ndarray | None) -> np.ndarray | None:
        """Return the per-request AUC of each objective; None without requests."""
        if self.log.request is None:
            return None
        weight = self.row_weight
        fused = self.fused(weights)
        return grouped_auc(fused, self.labels, self._requests, sample_weight=weight).auc

    def events(self, weights: np.ndarray | None, k: int) -> np.ndarray | None:
        """Return how many events of each objective the first k of a request hold."""
        return None if self.log.request is None else self._events(self.fused(weights), k)

    def random_events(self, k: int) -> np.ndarray | None:
        """Return the same of a random order."""
        return None if self.log.request is None else self._events(np.zeros(self.log.rows), k)

    def _events(self, fused: np.ndarray, k: int) -> np.ndarray:
        looked = None if self.exact else self.log.inverse
        return events_at_k(fused, self.labels, self._requests, k, event_weight=looked)


def _whole_requests(log: Log, most: int) -> np.ndarray:
    """Return the rows of requests drawn at random until there are so many, in their order."""
    if log.rows <= most or log.request is None:
        return log.drawn(most)
    _, codes, sizes = np.unique(log.request, return_inverse=True, return_counts=True)
    # The same requests each time: the number of a point must not change its meaning.
    order = np.random.default_rng(0).permutation(len(sizes))
    kept = np.zeros(len(sizes), dtype=bool)
    kept[order[np.cumsum(sizes[order]) <= most]] = True
    kept[order[0]] = True
    return np.flatnonzero(kept[codes])


def weights_to_try(objectives: int, most: int) -> np.ndarray:
    """Return weights that add up to 1: a grid of all trade-offs, finer between any two objectives.

    >>> len(weights_to_try(2, 40)), len(weights_to_try(5, 300))
    (40, 276)
    """
    pairs = comb(objectives, 2)
    steps = min(most // (2 * pairs), _PAIR_STEPS) if objectives > 2 else 0
    grid = simplex_grid(
        objectives, min(most, _MOST_OF_TWO) if objectives == 2 else most - pairs * steps
    )
    shares = np.arange(1, steps + 1) / (steps + 1)
    edges = [
        share * np.eye(objectives)[a] + (1 - share) * np.eye(objectives)[b]
        for a, b in combinations(range(objectives), 2)
        for share in shares
    ]
    both = np.concatenate([grid, np.reshape(edges, (-1, objectives))]).round(12)
    # What is in both is tried once, where it comes first.
    return both[np.sort(np.unique(both, axis=0, return_index=True)[1])]


def simplex_grid(objectives: int, most: int) -> np.ndarray:
    """Return all weights that are multiples of 1/h and add up to 1, h as fine as fits in `most`.

    >>> simplex_grid(2, 3)
    array([[0. , 1. ],
           [0.5, 0.5],
           [1. , 0. ]])
    """
    h = 1
    while comb(h + objectives, objectives - 1) <= most:
        h += 1
    # Where the bars are among stars says how many stars lie between them.
    bars = np.array(list(combinations(range(h + objectives - 1), objectives - 1)))
    ends = np.full((len(bars), 1), h + objectives - 1)
    edges = np.concatenate([np.full((len(bars), 1), -1), bars, ends], axis=1)
    grid: np.ndarray = (np.diff(edges, axis=1) - 1) / h
    return grid
