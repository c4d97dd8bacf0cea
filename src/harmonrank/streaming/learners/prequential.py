"""Prequential evaluation: batches are scored before they are learned, over a sliding window.

Only rows of one batch are compared with each other. They were scored by one model, so that the
scale of a fused score, which another fit may change, has no part in it; and of a batch only a few
numbers are kept, so that all of its rows count and memory is bounded. With A_b the AUC of batch b,

    AUC = Σ_b v_b A_b / Σ_b v_b,   v_b = P_b N_b / (P_b + N_b),

van Elteren's weights of a stratified rank test. P_b and N_b are the positives and negatives of the
batch, so that v_b is about the number of positives where they are rare.
"""

__all__ = ["Prequential", "ScoredBatch"]

from collections.abc import Iterable
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Annotated, Self

import msgspec
import numpy as np
from msgspec import Meta

from harmonrank.data import Log, Schema
from harmonrank.fusion import Method
from harmonrank.metrics import auc, auc_influence, best_score
from harmonrank.streaming.loop_events import QualityFacts
from harmonrank.support.errors import DataError

_MOST_ROWS = 1_000_000  # the influences of more would take more memory than they are worth

Area = Annotated[float, Meta(ge=0, le=1)]
Weight = Annotated[float, Meta(ge=0, le=1e15)]
LEVEL = 0.95


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


@dataclass(frozen=True)
class Prequential:
    """The newest scored batches.

    Attributes:
        window: At most so many are kept.
        batches: Oldest first.
    """

    window: int = 24
    batches: tuple[ScoredBatch, ...] = ()

    def scored(self, model: Method, rows: Log) -> Self:
        """Return the window after a batch, which this model has not learned, was scored."""
        if not rows.rows:
            return self
        batch = scored_batch(model.score(rows), rows)
        return replace(self, batches=(*self.batches, batch)[-self.window :])

    def quality(self, schema: Schema) -> QualityFacts | None:
        """Return what the window says; None before the first batch."""
        if not self.batches:
            return None
        w, names = schema.weight_vector, schema.names
        v = np.array([batch.weight for batch in self.batches])  # (batches, M)
        areas = _numbers([batch.auc for batch in self.batches], 0.0)
        total = v.sum(axis=0)
        share = np.divide(v, total, out=np.zeros_like(v), where=total > 0)
        mean = np.where(total > 0, (share * areas).sum(axis=0), np.nan)
        covariance = np.array([batch.covariance for batch in self.batches])
        # Batches are independent: what each adds to the sum has a variance of its own.
        variance = np.einsum("bm,bmk,bk->mk", share, covariance, share)
        used = w > 0
        auc_sum = float(w[used] @ mean[used])
        ends = [_interval(mean[m], variance[m, m], most=1.0) for m in range(len(names))]
        exact, exact_sum, ceiling = self._exact(schema)
        return QualityFacts(
            batches=len(self.batches),
            rows=sum(batch.rows for batch in self.batches),
            auc=dict(zip(names, known_or_none(mean), strict=True)),
            auc_ci=dict(zip(names, ends, strict=True)),
            auc_sum=known_or_none([auc_sum])[0],
            ci=_interval(auc_sum, w @ variance @ w),
            exact_auc=exact,
            exact_auc_sum=exact_sum,
            ceiling=ceiling,
        )

    def _exact(
        self, schema: Schema
    ) -> tuple[dict[str, float | None] | None, float | None, float | None]:
        """Return AUCs by true probabilities, where all batches had them; they count by rows."""
        batches = self.batches
        if any(batch.exact_auc is None or batch.ceiling is None for batch in batches):
            return None, None, None
        rows = np.array([batch.rows for batch in batches])
        share = rows / rows.sum()
        exact = share @ _numbers([batch.exact_auc or [] for batch in batches], np.nan)
        areas = dict(zip(schema.names, known_or_none(exact), strict=True))
        (total,) = known_or_none([float(schema.weight_vector @ exact)])
        return areas, total, float(share @ np.array([batch.ceiling for batch in batches], float))

    def check(self, schema: Schema) -> Self:
        """Refuse stored batches that are not of a schema."""
        M = len(schema.names)
        for batch in self.batches:
            sizes = {len(batch.auc), len(batch.weight), len(batch.covariance)}
            sizes |= {len(row) for row in batch.covariance}
            sizes |= {len(batch.exact_auc or batch.auc)}
            if sizes != {M}:
                raise DataError(f"A scored batch must have {M} numbers, one per objective.")
        return self


def _numbers(lists: list[list[float | None]], unknown: float) -> np.ndarray:
    """Return (batches, M) numbers, with another for those that are not known."""
    return np.array([[unknown if value is None else value for value in part] for part in lists])


def _interval(
    estimate: float, variance: float, most: float = np.inf
) -> tuple[float | None, float | None]:
    reach = NormalDist().inv_cdf(0.5 + LEVEL / 2) * float(np.sqrt(max(variance, 0.0)))
    low, high = known_or_none(np.clip([estimate - reach, estimate + reach], 0.0, most))
    return low, high
