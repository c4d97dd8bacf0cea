"""Areas: the AUC of each objective and their weighted sum, over all rows or within requests."""

__all__ = [
    "DECIDING",
    "LEVEL",
    "Areas",
    "AreasForm",
    "Ends",
    "areas_of",
    "ceiling_of",
    "exactly_known",
    "known",
    "values_of",
]

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta

from harmonrank.data import Log
from harmonrank.fusion.quality.outcomes import best_terms, outcomes_of, true_outcomes
from harmonrank.metrics import (
    Interval,
    auc,
    auc_intervals,
    best_request_score,
    best_score,
    expected_grouped_auc,
    grouped_auc,
    grouped_auc_intervals,
)

LEVEL = 0.95
"""The level of every interval."""

DECIDING = ("auc", "auc_sum", "ci", "regret")
"""What JSON says of all rows, and with `request_` before it within requests."""

Ends = tuple[float | None, float | None]
"""The ends of an interval; one that is not known is null."""


class AreasForm(msgspec.Struct, kw_only=True):
    """What `Areas.to_dict` returns, as the type that reading decodes it to."""

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

    def parts(self) -> dict[str, Any]:
        """Return the arguments of the `Areas` that it is of."""
        exact = self.exact_auc
        return {
            "auc": {n: Interval.of_parts(v, self.auc_ci[n], LEVEL) for n, v in self.auc.items()},
            "auc_sum": Interval.of_parts(self.auc_sum, self.ci, LEVEL),
            "exact_auc": exact
            and {n: float("nan") if value is None else value for n, value in exact.items()},
            "exact_auc_sum": self.exact_auc_sum,
            "ceiling": self.ceiling,
        }


@dataclass(frozen=True, kw_only=True, repr=False)
class Areas:
    """How well a fused score ranks each objective.

    Attributes:
        auc: Of each objective with its interval; users, else requests, are the sampling unit.
        auc_sum: Σ_m w_m AUC_m, likewise.
        exact_auc: In a world, AUC by true probabilities, without label noise.
        exact_auc_sum: Its weighted sum.
        ceiling: The best possible `exact_auc_sum` on these rows.
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
    def areas(self) -> dict[str, float]:
        """The AUC of each objective, likewise."""
        return self.exact_auc or {name: value.estimate for name, value in self.auc.items()}

    @property
    def regret(self) -> float | None:
        """How far below the best possible sum it is, where that is known."""
        if self.ceiling is None or self.exact_auc_sum is None:
            return None
        return self.ceiling - self.exact_auc_sum

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as JSON parts; one that is not known is null."""
        exact = self.exact_auc
        return {
            "auc": {name: value.parts[0] for name, value in self.auc.items()},
            "auc_ci": {name: value.parts[1] for name, value in self.auc.items()},
            "auc_sum": self.auc_sum.parts[0],
            "ci": self.auc_sum.parts[1],
            "exact_auc": exact and {name: known(value) for name, value in exact.items()},
            "exact_auc_sum": known(self.exact_auc_sum),
            "ceiling": known(self.ceiling),
            "regret": known(self.regret),
        }


def known(value: float | None) -> float | None:
    """Return a number, or None for the nan for which JSON has no word."""
    return None if value is None or np.isnan(value) else value


def exactly_known(log: Log) -> bool:
    """Return whether true probabilities stand for labels: all rows count the same, all events."""
    return log.truth is not None and log.own_weight is None and log.schema.plain


def values_of(fused: np.ndarray, log: Log, *, within: bool = False) -> np.ndarray:
    """Return the AUC of each objective, by true probabilities where they stand for labels.

    Args:
        fused: A score per row.
        log: With labels.
        within: Within requests, which must be known; else over all rows.
    """
    if exactly_known(log) and (exact := _exact(fused, log, None, within)) is not None:
        return exact
    labels, weight = outcomes_of(log), log.sample_weight
    if not within:
        return auc(fused, labels, sample_weight=weight)
    return grouped_auc(fused, labels, _requests(log), sample_weight=weight)


def areas_of(
    fused: np.ndarray,
    log: Log,
    weights: np.ndarray,
    columns: Sequence[int] | None = None,
    *,
    within: bool = False,
) -> Areas:
    """Measure a fused score.

    Args:
        fused: A score per row.
        log: With labels.
        weights: Of the objectives.
        columns: Some objectives, whose weights these are; all if left out.
        within: Within requests, which must be known; else over all rows.
    """
    labels, names = outcomes_of(log, columns), np.array(log.schema.names)
    names = names if columns is None else names[list(columns)]
    counts: dict[str, Any] = {"objective_weights": weights, "sample_weight": log.sample_weight}
    if within:
        each, total = grouped_auc_intervals(fused, labels, _requests(log), units=log.user, **counts)
    else:
        each, total = auc_intervals(fused, labels, groups=log.units, **counts)
    areas = Areas(auc=dict(zip(names.tolist(), each, strict=True)), auc_sum=total)
    exact, counted = _exact(fused, log, columns, within), weights != 0
    if exact is None:
        return areas
    return replace(
        areas,
        exact_auc=dict(zip(names.tolist(), exact.tolist(), strict=True)),
        exact_auc_sum=float(weights[counted] @ exact[counted]),
    )


def _requests(log: Log) -> np.ndarray:
    assert log.request is not None, "there are requests"
    return log.request


def _exact(
    fused: np.ndarray, log: Log, columns: Sequence[int] | None, within: bool
) -> np.ndarray | None:
    """Return AUCs by true probabilities, where these are known."""
    # Within requests, the average over labels is known only where all rows count the same.
    if log.truth is None or (within and not exactly_known(log)):
        return None
    truth = true_outcomes(log, columns)
    if within:
        return expected_grouped_auc(fused, truth, _requests(log))
    return auc(fused, truth, sample_weight=log.own_weight)


def ceiling_of(log: Log, weights: np.ndarray, *, within: bool = False) -> float | None:
    """Return the best possible Σ_m w_m AUC_m on these rows, which only a world tells.

    Args:
        log: The rows.
        weights: Of the objectives.
        within: That of the AUC within requests (docs/per-request.md).
    """
    if log.truth is None:
        return None
    if within:
        if log.request is None or not exactly_known(log):
            return None
        best = best_request_score(log.truth, log.request, weights)
        exact, counted = expected_grouped_auc(best, log.truth, log.request), weights != 0
        return float(weights[counted] @ exact[counted])
    if not log.schema.plain:
        best = best_terms(log, weights) @ weights
    else:
        best = best_score(log.truth, weights.tolist())
    return float(weights @ auc(best, true_outcomes(log), sample_weight=log.own_weight))
