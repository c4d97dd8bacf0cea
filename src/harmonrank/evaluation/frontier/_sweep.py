"""Sweep: the calibrated heads of one fit on labelled rows, measured at any weights."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from math import comb
from typing import Any, Self

import numpy as np

from harmonrank.data import Log, Source, read_log
from harmonrank.data.hashing import hashed
from harmonrank.data.kinds import lineage
from harmonrank.evaluation.baseline import Baseline
from harmonrank.fusion import Method
from harmonrank.fusion.fit import evaluation_log
from harmonrank.fusion.position import corrected
from harmonrank.fusion.quality.areas import exactly_known, values_of
from harmonrank.fusion.quality.outcomes import best_terms, outcomes_of, true_outcomes
from harmonrank.fusion.weights import weighted_sum
from harmonrank.metrics import (
    Outcomes,
    auc,
    auc_influence,
    expected_requests,
    grouped_auc_influence,
    place_gains,
    request_gains,
    request_influence,
)
from harmonrank.support.errors import UsageError

MOST_ROWS = 100_000
"""Rows that are measured at every point, in whole requests."""

_MOST_KNOWN_ROWS = 30_000  # An AUC within requests by true probabilities takes longer.
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
        most = _MOST_KNOWN_ROWS if exactly_known(log) and log.request is not None else rows
        kept = _whole_requests(log, min(rows, most))
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
        """Whether what decides is by true probabilities."""
        return exactly_known(self.log) if self.within else self.log.truth is not None

    @property
    def row_weight(self) -> np.ndarray | None:
        """What each row counts: true probabilities do not depend on the place of a row."""
        return self.log.sample_weight if self.log.truth is None else self.log.own_weight

    @cached_property
    def best(self) -> Self | None:
        """The same rows with the true probabilities as heads, where what decides is by these."""
        if self.log.truth is None or not self.exact:
            return None
        if self.within:
            gains = request_gains(self.log.truth, self._requests) * self.log.truth
            return replace(self, parts=np.asfortranarray(gains * self.signs))
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
        areas = self.request_areas(weights) if self.within else None
        return self.areas(weights) if areas is None else areas

    def areas(self, weights: np.ndarray | None) -> np.ndarray:
        """Return the AUC of each objective over all rows, (M,)."""
        return auc(self.fused(weights), self.labels, sample_weight=self.row_weight)

    def influence(self, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """Return `decisive` AUCs and the influence of each user, request or row on them.

        A request without an AUC has nan.
        """
        fused, log = self.fused(weights), self.log
        if self.within and log.truth is not None and exactly_known(log):
            total, usable = expected_requests(fused, log.truth, self._requests)
            area = total.sum(axis=0) / usable.sum(axis=0)
            return area, (total - area * usable) / usable.sum(axis=0)
        if self.within:
            given = fused, outcomes_of(log), self._requests
            return grouped_auc_influence(*given, sample_weight=log.sample_weight, units=log.user)
        area, influence = auc_influence(fused, self.labels, sample_weight=self.row_weight)
        if log.units is not None:
            influence = request_influence(influence, log.units)
        return area, influence / log.rows

    @cached_property
    def _requests(self) -> np.ndarray:
        assert self.log.request is not None, "there are requests"
        return np.unique(self.log.request, return_inverse=True)[1]

    def request_areas(self, weights: np.ndarray | None) -> np.ndarray | None:
        """Return AUC within requests of each objective, as `evaluate` does; None without them."""
        if self.log.request is None:
            return None
        return values_of(self.fused(weights), self.log, within=True)

    def events(self, fused: np.ndarray, k: int) -> np.ndarray | None:
        """Return the events of each objective among the first k of a request, by any score."""
        each = None if self.log.request is None else self._request_events(fused, k)
        return None if each is None else np.asarray(each.mean(axis=0))

    def event_influence(
        self, weights: np.ndarray | None, m: int, k: int
    ) -> tuple[float, np.ndarray]:
        """Return the events of an objective among the first k, and each request's influence."""
        if self.log.request is None:
            raise UsageError("Events in the first k need requests; name the request column.")
        each = self._request_events(self.fused(weights), k)[:, m]
        mean = float(each.mean())
        return mean, (each - mean) / len(each)

    def _request_events(self, fused: np.ndarray, k: int) -> np.ndarray:
        """Return the events of each objective among the first k of every request."""
        shown = place_gains(fused, self._requests, np.ones(min(k, self.log.rows)))
        if self.log.truth is None and self.log.inverse is not None:
            shown = shown * self.log.inverse
        labels = self.labels.events() if isinstance(self.labels, Outcomes) else self.labels
        each = [np.bincount(self._requests, shown * column) for column in labels.T]
        return np.stack(each, axis=1)


def _whole_requests(log: Log, most: int) -> np.ndarray:
    """Return the rows of requests drawn at random until there are so many, in their order."""
    if log.rows <= most or log.request is None:
        return log.drawn(most)
    # The same requests each time: the number of a point must not change its meaning.
    chance = hashed(log.request)
    limit = np.partition(chance, most)[most]
    return np.flatnonzero(chance < limit if chance.min() < limit else chance == limit)


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
