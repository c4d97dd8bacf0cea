"""Scored batch: the few numbers that are kept of a batch and the scores that a model gave it."""

__all__ = ["ScoredBatch", "known_or_none", "scored_batch"]

from collections.abc import Iterable
from typing import Annotated

import msgspec
import numpy as np
from msgspec import Meta

from harmonrank.data import Log
from harmonrank.metrics import auc, auc_influence, best_score

_MOST_ROWS = 1_000_000  # the influences of more would take more memory than they are worth

Area = Annotated[float, Meta(ge=0, le=1)]
Weight = Annotated[float, Meta(ge=0, le=1e15)]


class ScoredBatch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is kept of a batch; lists are in the order of the objectives.

    Attributes:
        rows: How many were scored.
        auc: None for an objective that has one class only.
        weight: P N / (P + N) of each objective; 0 where there is no AUC, and where all rows are of
            one request, which tells nothing of chance.
        covariance: Of the AUCs, rows of one request taken together; 0 where there is none.
        exact_auc: By true probabilities, where they are known.
        ceiling: The best possible weighted sum of them on these rows.
    """

    rows: Annotated[int, Meta(ge=1)]
    auc: list[Area | None]
    weight: list[Weight]
    covariance: list[list[Annotated[float, Meta(ge=-1e6, le=1e6)]]]
    exact_auc: list[Area | None] | None = None
    ceiling: Annotated[float, Meta(ge=0, le=1e100)] | None = None


def scored_batch(fused: np.ndarray, log: Log) -> ScoredBatch:
    """Return what is kept of a batch and its fused scores."""
    drawn = log.drawn(_MOST_ROWS)
    if len(drawn) < log.rows:
        fused, log = fused[drawn], log.take(drawn)
    labels = log.known_labels()
    areas, influence = auc_influence(fused, labels, sample_weight=log.sample_weight)
    known = ~np.isnan(areas) & (log.rows > 1)
    if log.request is not None:
        known &= len(np.unique(log.request)) > 1
    weight = np.ones(log.rows) if log.sample_weight is None else log.sample_weight
    positive = weight @ labels
    negative = weight.sum() - positive
    total = np.maximum(positive + negative, np.finfo(float).tiny)
    exact, ceiling = _exact(fused, log)
    return ScoredBatch(
        log.rows,
        known_or_none(areas),
        np.where(known, positive * negative / total, 0.0).tolist(),
        _covariance(np.where(known, influence, 0.0), log.request).tolist(),
        exact,
        ceiling,
    )


def _covariance(influence: np.ndarray, request: np.ndarray | None) -> np.ndarray:
    """Return that of the AUCs, (M, M): rows of one request are not independent."""
    rows, units = len(influence), influence
    if request is not None:
        known, code = np.unique(request, return_inverse=True)
        units = np.stack([np.bincount(code, column, len(known)) for column in influence.T], axis=1)
    small_sample = len(units) / max(len(units) - 1, 1)
    covariance: np.ndarray = small_sample * (units.T @ units) / rows**2
    return covariance


def _exact(fused: np.ndarray, log: Log) -> tuple[list[float | None] | None, float | None]:
    if log.truth is None:
        return None, None
    w = log.schema.weight_vector
    best = best_score(log.truth, w.tolist())
    # What is true needs no correction for places.
    exact, most = (auc(s, log.truth, sample_weight=log.own_weight) for s in (fused, best))
    ceiling = float(w @ most)
    return known_or_none(exact), None if np.isnan(ceiling) else ceiling


def known_or_none(values: Iterable[float]) -> list[float | None]:
    """Return numbers as JSON has them, where one that is not known is null."""
    return [None if np.isnan(value) else float(value) for value in values]
