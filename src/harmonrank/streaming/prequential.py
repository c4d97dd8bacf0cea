"""Prequential evaluation: batches are scored before they are learned, over a sliding window.

Only rows of one batch are compared with each other. They were scored by one model, so that the
scale of a fused score, which another fit may change, has no part in it; and of a batch only a few
numbers are kept, so that all of its rows count and memory is bounded. With A_b the AUC of batch b,

    AUC = Σ_b v_b A_b / Σ_b v_b,   v_b = P_b N_b / (P_b + N_b),

van Elteren's weights of a stratified rank test. P_b and N_b are the positives and negatives of the
batch, so that v_b is about the number of positives where they are rare.
"""

__all__ = ["Prequential"]

from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Self

import numpy as np

from harmonrank.data import Log, Schema
from harmonrank.fusion import Method
from harmonrank.streaming.loop_events import QualityFacts
from harmonrank.streaming.scored_batch import ScoredBatch, known_or_none, scored_batch
from harmonrank.support.errors import DataError

LEVEL = 0.95


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
