"""Quality of requests: how well each is ordered, and what the first k of it were worth."""

__all__ = [
    "Ends",
    "RequestQuality",
    "RequestQualityForm",
    "ValueAtK",
    "ValueForm",
    "request_quality_of",
    "value_of",
    "with_nan",
]

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Self

import msgspec
import numpy as np
from msgspec import Meta

from harmonrank.data import Log
from harmonrank.fusion.quality.outcomes import outcomes_of, true_outcomes
from harmonrank.metrics import (
    Interval,
    best_request_score,
    expected_grouped_auc,
    grouped_auc_intervals,
    value_at_k,
    value_interval,
)

Ends = tuple[float | None, float | None]
"""The ends of an interval; one that is not known is null."""


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
            "auc": {name: value.parts[0] for name, value in self.auc.items()},
            "auc_ci": {name: value.parts[1] for name, value in self.auc.items()},
            "auc_sum": self.auc_sum.parts[0],
            "ci": self.auc_sum.parts[1],
            "exact_auc": self.exact_auc
            and {name: _known(value) for name, value in self.exact_auc.items()},
            "exact_auc_sum": _known(self.exact_auc_sum),
            "ceiling": _known(self.ceiling),
            "regret": _known(self.regret),
        }

    @classmethod
    def of_form(cls, form: "RequestQualityForm", level: float) -> Self:
        """Build what `to_dict` returned and decoding has checked."""
        each = {n: Interval.of_parts(v, form.auc_ci[n], level) for n, v in form.auc.items()}
        total = Interval.of_parts(form.auc_sum, form.ci, level)
        exact = None if form.exact_auc is None else with_nan(form.exact_auc)
        return cls(each, total, exact, form.exact_auc_sum, form.ceiling)


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
    quality = RequestQuality(dict(zip(names, each, strict=True)), total)
    # The average over labels is known in closed form only where all rows count the same.
    if log.truth is None or log.own_weight is not None or not log.schema.plain:
        return quality
    counted = weights != 0
    exact = expected_grouped_auc(fused, log.truth, log.request)
    best = best_request_score(log.truth, log.request, weights)
    top = expected_grouped_auc(best, log.truth, log.request)
    return replace(
        quality,
        exact_auc=dict(zip(names, exact.tolist(), strict=True)),
        exact_auc_sum=float(weights[counted] @ exact[counted]),
        ceiling=float(weights[counted] @ top[counted]),
    )


def _known(value: float | None) -> float | None:
    """Return a number, or None for the nan for which JSON has no word."""
    return None if value is None or np.isnan(value) else value


def with_nan(values: Mapping[str, float | None]) -> dict[str, float]:
    """Put back the nan for which JSON has no word."""
    return {name: float("nan") if value is None else value for name, value in values.items()}


@dataclass(frozen=True)
class ValueAtK:
    """The mean over requests of the worth of all events among the first k.

    Attributes:
        value: What an event of each objective is worth.
        ranked: Whether the fused score is the expected value, so that rows are ranked by it.
        mean: By labels, with a bootstrap interval over requests; None without requests.
        exact: In a world, its expectation by true probabilities, without label noise.
        best: The largest possible `exact` on these rows.
    """

    k: int
    value: dict[str, float]
    ranked: bool
    mean: Interval | None = None
    exact: float | None = None
    best: float | None = None

    def words(self) -> str:
        """Return the figure in one sentence."""
        if self.mean is None:
            return f"Value at {self.k} needs requests; name the request column in the schema."
        worth = ", ".join(f"{name} {v:g}" for name, v in self.value.items() if v)
        text = f"Value at {self.k}: {self.mean.estimate:.4f} per request ({self.mean}); {worth}."
        if self.exact is None or self.best is None:
            return text
        return f"{text} By true probabilities {self.exact:.4f} of at best {self.best:.4f}."

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as JSON parts."""
        return {
            "k": self.k,
            "value": self.value,
            "ranked": self.ranked,
            "mean": None if self.mean is None else self.mean.estimate,
            "ci": None if self.mean is None else [self.mean.low, self.mean.high],
            "exact": self.exact,
            "best": self.best,
        }

    @classmethod
    def of_form(cls, form: "ValueForm", level: float) -> Self:
        """Build what `to_dict` returned and decoding has checked."""
        mean = None if form.mean is None else Interval.of_parts(form.mean, form.ci, level)
        return cls(form.k, form.value, form.ranked, mean, form.exact, form.best)


class ValueForm(msgspec.Struct):
    """What `ValueAtK.to_dict` returns, as the type that reading decodes it to."""

    k: Annotated[int, Meta(ge=1)]
    value: Annotated[dict[str, float], Meta(min_length=1)]
    ranked: bool
    mean: float | None
    ci: Ends | None
    exact: float | None
    best: float | None


def value_of(fused: np.ndarray, log: Log, value: np.ndarray, k: int, *, ranked: bool) -> ValueAtK:
    """Measure the value at k of a fused score, for which there must be requests."""
    at_k = ValueAtK(k, dict(zip(log.schema.names, value.tolist(), strict=True)), ranked)
    if log.request is None:
        return at_k
    labels, counts = outcomes_of(log), log.inverse
    mean = value_interval(fused, labels, log.request, k, value=value, event_weight=counts)
    if log.truth is None:
        return replace(at_k, mean=mean)
    truth = true_outcomes(log)
    expected = log.truth if log.schema.plain else truth.events()
    exact = value_at_k(fused, truth, log.request, k, value=value)
    best = value_at_k(expected @ value, truth, log.request, k, value=value)
    return replace(at_k, mean=mean, exact=exact, best=best)
