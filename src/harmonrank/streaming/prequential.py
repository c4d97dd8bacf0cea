"""Prequential evaluation: batches are scored before they are learned, over a sliding window.

Only rows of one batch are compared with each other. They were scored by one model, so that the
scale of a fused score, which another fit may change, has no part in it; and of a batch only a few
numbers are kept, so that all of its rows count and memory is bounded. With A_b the AUC of batch b,

    AUC = Σ_b v_b A_b / Σ_b v_b,   v_b = P_b N_b / (P_b + N_b),

van Elteren's weights of a stratified rank test. P_b and N_b are the positives and negatives of the
batch, so that v_b is about the number of positives where they are rare.
"""

__all__ = ["Prequential", "PrequentialQuality"]

from dataclasses import dataclass, replace
from pathlib import Path
from statistics import NormalDist
from typing import Annotated, Any, Self

import msgspec
import numpy as np
from msgspec import Meta

from harmonrank.data import Log, Schema
from harmonrank.fusion import Method
from harmonrank.metrics import Interval
from harmonrank.streaming.scored_batch import ScoredBatch, scored_batch
from harmonrank.support.errors import DataError
from harmonrank.support.storage.files import read_json, write_json

LEVEL = 0.95
_MOST_BATCHES = 100_000


@dataclass(frozen=True)
class PrequentialQuality:
    """How well the models of a stream ranked rows that they had not learned, over a window.

    Attributes:
        batches: In the window.
        rows: Of them.
        auc: By objective; nan where no batch had both classes.
        auc_sum: Weighted as the schema says; nan if an objective that counts has none.
        exact_auc: By true probabilities, where all batches had them; batches count by their rows.
        exact_auc_sum: Their weighted sum.
        ceiling: The best possible one.
    """

    batches: int
    rows: int
    auc: dict[str, Interval]
    auc_sum: Interval
    exact_auc: dict[str, float] | None = None
    exact_auc_sum: float | None = None
    ceiling: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "batches": self.batches,
            "rows": self.rows,
            "auc": {name: value.estimate for name, value in self.auc.items()},
            "auc_ci": {name: [value.low, value.high] for name, value in self.auc.items()},
            "auc_sum": self.auc_sum.estimate,
            "ci": [self.auc_sum.low, self.auc_sum.high],
            "exact_auc": self.exact_auc,
            "exact_auc_sum": self.exact_auc_sum,
            "ceiling": self.ceiling,
        }


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

    def quality(self, schema: Schema) -> PrequentialQuality | None:
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
        rows = sum(batch.rows for batch in self.batches)
        quality = PrequentialQuality(
            len(self.batches),
            rows,
            {n: _interval(mean[m], variance[m, m], most=1.0) for m, n in enumerate(names)},
            _interval(float(w[used] @ mean[used]), w @ variance @ w),
        )
        return self._with_truth(quality, schema, rows)

    def _with_truth(
        self, quality: PrequentialQuality, schema: Schema, rows: int
    ) -> PrequentialQuality:
        known = [(b.rows, b.exact_auc, b.ceiling) for b in self.batches]
        if any(exact is None or ceiling is None for _, exact, ceiling in known):
            return quality
        share = np.array([n for n, _, _ in known]) / rows
        exact = share @ _numbers([e for _, e, _ in known if e is not None], np.nan)
        return replace(
            quality,
            exact_auc=dict(zip(schema.names, exact.tolist(), strict=True)),
            exact_auc_sum=float(schema.weight_vector @ exact),
            ceiling=float(share @ [c for _, _, c in known if c is not None]),
        )

    def save(self, path: Path) -> None:
        """Write it as a JSON file."""
        write_json(path, {"window": self.window, "batches": msgspec.to_builtins(self.batches)})

    @classmethod
    def load(cls, path: Path, schema: Schema) -> Self:
        """Read what `save` wrote for a schema."""
        stored, M = read_json(path, _Stored), len(schema.names)
        for batch in stored.batches:
            sizes = {len(batch.auc), len(batch.weight), len(batch.covariance)}
            sizes |= {len(row) for row in batch.covariance}
            sizes |= {len(batch.exact_auc or batch.auc)}
            if sizes != {M}:
                raise DataError(f"'{path}' must have {M} numbers per batch, one per objective.")
        return cls(stored.window, tuple(stored.batches[-stored.window :]))


class _Stored(msgspec.Struct, forbid_unknown_fields=True):
    window: Annotated[int, Meta(ge=1, le=_MOST_BATCHES)]
    batches: list[ScoredBatch]


def _numbers(lists: list[list[float | None]], unknown: float) -> np.ndarray:
    """Return (batches, M) numbers, with another for those that are not known."""
    return np.array([[unknown if value is None else value for value in part] for part in lists])


def _interval(estimate: float, variance: float, most: float = np.inf) -> Interval:
    reach = NormalDist().inv_cdf(0.5 + LEVEL / 2) * float(np.sqrt(max(variance, 0.0)))
    low, high = np.clip([estimate - reach, estimate + reach], 0.0, most)
    return Interval(float(estimate), float(low), float(high), LEVEL)
