"""RequestQuality: how well a fused score orders each request, as part of a quality."""

__all__ = ["RequestQuality", "RequestQualityForm", "request_quality_of"]

from dataclasses import dataclass, replace
from typing import Annotated, Any, Self

import msgspec
import numpy as np
from msgspec import Meta

from harmonrank.data import Log
from harmonrank.fusion.quality.outcomes import outcomes_of
from harmonrank.metrics import (
    Interval,
    best_request_score,
    expected_grouped_auc,
    grouped_auc_intervals,
)


@dataclass(frozen=True)
class RequestQuality:
    """AUC within requests, a mean by rows over the requests that have one.

    Attributes:
        auc: Of each objective, with an interval whose sampling unit is the request.
        auc_sum: Σ_m w_m of them, likewise.
        exact_auc: In a world, what it is on average over labels, by true probabilities.
        exact_auc_sum: Its weighted sum.
        ceiling: The best possible `exact_auc_sum` on these rows (docs/per-request.md).
    """

    auc: dict[str, Interval]
    auc_sum: Interval
    exact_auc: dict[str, float] | None = None
    exact_auc_sum: float | None = None
    ceiling: float | None = None

    @property
    def total(self) -> float:
        """The weighted sum by true probabilities where they are known, else by labels."""
        return self.auc_sum.estimate if self.exact_auc_sum is None else self.exact_auc_sum

    @property
    def regret(self) -> float | None:
        """How far below the best possible sum it is, where that is known."""
        if self.ceiling is None or self.exact_auc_sum is None:
            return None
        return self.ceiling - self.exact_auc_sum

    def words(self) -> str:
        """Return the sum in a sentence or two."""
        text = f"Within requests: AUC-sum {self.auc_sum.estimate:.4f} ({self.auc_sum})."
        if self.regret is None:
            return text
        return (
            f"{text} Ceiling {self.ceiling:.4f}, reached {self.exact_auc_sum:.4f} by true "
            f"probabilities: regret {self.regret:.4f}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as JSON parts; one that is not known is null."""
        return {
            "auc": {name: _known(value.estimate) for name, value in self.auc.items()},
            "auc_ci": {name: _ends(value) for name, value in self.auc.items()},
            "auc_sum": _known(self.auc_sum.estimate),
            "ci": _ends(self.auc_sum),
            "exact_auc": self.exact_auc
            and {name: _known(value) for name, value in self.exact_auc.items()},
            "exact_auc_sum": _known(self.exact_auc_sum),
            "ceiling": _known(self.ceiling),
            "regret": _known(self.regret),
        }

    @classmethod
    def of_form(cls, form: "RequestQualityForm", level: float) -> Self:
        """Build what `to_dict` returned and decoding has checked."""
        each = {n: _interval(v, form.auc_ci[n], level) for n, v in form.auc.items()}
        exact = None
        if form.exact_auc is not None:
            exact = {name: _number(value) for name, value in form.exact_auc.items()}
        total = _interval(form.auc_sum, form.ci, level)
        return cls(each, total, exact, form.exact_auc_sum, form.ceiling)


Ends = tuple[float | None, float | None]


class RequestQualityForm(msgspec.Struct):
    """What `RequestQuality.to_dict` returns, as the type that reading decodes it to."""

    auc: Annotated[dict[str, float | None], Meta(min_length=1)]
    auc_ci: dict[str, Ends]
    auc_sum: float | None
    ci: Ends
    exact_auc: dict[str, float | None] | None
    exact_auc_sum: float | None
    ceiling: float | None

    def __post_init__(self) -> None:
        """Refuse parts that are not of the same objectives."""
        for part in (self.auc_ci, self.exact_auc):
            if part is not None and set(part) != set(self.auc):
                raise ValueError("expected numbers of the same objectives in every part")


def request_quality_of(fused: np.ndarray, log: Log, weights: np.ndarray) -> RequestQuality | None:
    """Measure how a fused score orders each request; None without requests."""
    if log.request is None:
        return None
    names, labels = log.schema.names, outcomes_of(log)
    each, total = grouped_auc_intervals(
        fused, labels, log.request, objective_weights=weights, sample_weight=log.sample_weight
    )
    found = RequestQuality(dict(zip(names, each, strict=True)), total)
    # The average over labels is known in closed form only where all rows count the same.
    if log.truth is None or log.own_weight is not None or not log.schema.plain:
        return found
    counted = weights != 0
    exact = expected_grouped_auc(fused, log.truth, log.request)
    best = best_request_score(log.truth, log.request, weights)
    top = expected_grouped_auc(best, log.truth, log.request)
    return replace(
        found,
        exact_auc=dict(zip(names, exact.tolist(), strict=True)),
        exact_auc_sum=float(weights[counted] @ exact[counted]),
        ceiling=float(weights[counted] @ top[counted]),
    )


def _known(value: float | None) -> float | None:
    """Return a number, or None for the nan for which JSON has no word."""
    return None if value is None or np.isnan(value) else value


def _number(value: float | None) -> float:
    return float("nan") if value is None else value


def _ends(interval: Interval) -> list[float | None]:
    return [_known(interval.low), _known(interval.high)]


def _interval(estimate: float | None, ends: Ends, level: float) -> Interval:
    return Interval(_number(estimate), _number(ends[0]), _number(ends[1]), level)
