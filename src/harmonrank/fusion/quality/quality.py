"""Quality: how well one fused score ranks the rows of a log."""

__all__ = ["Quality", "QualityForm", "ceiling_of", "quality_of"]

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal, Self

import msgspec
import numpy as np
from msgspec import Meta

from harmonrank.data import Log
from harmonrank.fusion.quality.outcomes import best_terms, outcomes_of, true_outcomes
from harmonrank.fusion.quality.position_quality import PositionCorrection, PositionForm
from harmonrank.fusion.quality.request_quality import (
    Ends,
    RequestQuality,
    RequestQualityForm,
    ValueAtK,
    ValueForm,
    request_quality_of,
    with_nan,
)
from harmonrank.metrics import Interval, auc, auc_interval, auc_sum_interval, best_score
from harmonrank.support.storage.decoding import decode
from harmonrank.support.table import Cell, Column, Table, Tabular

Rows = Annotated[int, Meta(ge=0, le=2**53)]
Named = Annotated[dict[str, float], Meta(min_length=1)]

LEVEL = 0.95
"""The level of every interval."""


class QualityForm(msgspec.Struct):
    """What `Quality.to_dict` returns; an end of an interval that is not known is null."""

    rows: Rows
    weights: Named
    auc: Named
    auc_ci: dict[str, Ends]
    auc_sum: float
    ci: Ends
    request_auc: dict[str, float | None] | None
    prevalence: Named
    effective_weights: Named
    exact_auc: Named | None
    exact_auc_sum: float | None
    ceiling: float | None
    value: ValueForm | None = None
    position: PositionForm | None = None
    kinds: dict[str, str] = msgspec.field(default_factory=dict)
    requests: RequestQualityForm | None = None
    optimises: Literal["all", "requests"] = "all"

    def __post_init__(self) -> None:
        """Refuse parts that are not of the same objectives."""
        parts: list[Mapping[str, Any] | None] = [
            self.auc,
            self.auc_ci,
            self.prevalence,
            self.effective_weights,
            self.request_auc,
            self.exact_auc,
            None if self.value is None else self.value.value,
            None if self.position is None else self.position.positives,
            None if self.position is None else self.position.effective_positives,
            None if self.requests is None else self.requests.auc,
        ]
        if any(part is not None and set(part) != set(self.weights) for part in parts):
            raise ValueError("expected numbers of the same objectives in every part")
        if (self.exact_auc is None) != (self.exact_auc_sum is None):
            raise ValueError("expected exact_auc and exact_auc_sum, or neither")


@dataclass(frozen=True, repr=False)
class Quality(Tabular):
    """Metrics of a fused score.

    Attributes:
        auc: AUC of each objective with its interval; requests are the sampling unit if known.
        kinds: What objectives are beside events, such as 'graded' or 'given click'; the AUC of a
            graded one is its concordance.
        weights: What each AUC counts; below 0 for an unwanted objective.
        auc_sum: Σ_m w_m AUC_m with its interval.
        request_auc: AUC within requests, mean by rows; None without requests.
        prevalence: Share of positives of each objective.
        effective_weights: What a unit of probability counts, w/(π(1−π)), as shares of 1.
        exact_auc: In a world, AUC by true probabilities, without label noise.
        exact_auc_sum: Its weighted sum.
        ceiling: The best possible `exact_auc_sum` on these rows.
        value: What the first of every request are worth, where values are given.
        position: How feedback was corrected for the places of the rows, where they are known.
        requests: How each request is ordered, with intervals; None without requests.
        optimises: Which AUC the fit was for: over "all" rows, or within "requests".
    """

    rows: int
    weights: dict[str, float]
    auc: dict[str, Interval]
    auc_sum: Interval
    request_auc: dict[str, float] | None
    prevalence: dict[str, float]
    effective_weights: dict[str, float]
    exact_auc: dict[str, float] | None = None
    exact_auc_sum: float | None = None
    ceiling: float | None = None
    value: ValueAtK | None = None
    position: PositionCorrection | None = None
    requests: RequestQuality | None = None
    optimises: str = "all"
    kinds: dict[str, str] = field(default_factory=dict)

    def title(self, name: str) -> str:
        """Return an objective's name, and in brackets what it is beside a wanted event."""
        words = [word for word in (self.kinds.get(name),) if word]
        words += ["unwanted"] * (self.weights[name] < 0)
        return f"{name} ({', '.join(words)})" if words else name

    def kind_words(self) -> str | None:
        """Say what objectives are beside wanted events, in a sentence; None if all are those."""
        parts = []
        for name, weight in self.weights.items():
            kind = self.kinds.get(name, "")
            words = ["graded (AUC is concordance)"] * kind.startswith("graded")
            words += [kind[kind.index("given") :]] if "given" in kind else []
            words += ["unwanted (less is better)"] * (weight < 0)
            parts += [f"{name} is {' and '.join(words)}"] if words else []
        return f"Of other kinds: {'; '.join(parts)}." if parts else None

    @property
    def total(self) -> float:
        """The AUC-sum by true probabilities where they are known, else by labels."""
        return self.auc_sum.estimate if self.exact_auc_sum is None else self.exact_auc_sum

    @property
    def areas(self) -> dict[str, float]:
        """The AUC of each objective, likewise."""
        return self.exact_auc or {name: value.estimate for name, value in self.auc.items()}

    @property
    def regret(self) -> float | None:
        """How far below the best possible AUC-sum it is, where that is known."""
        if self.ceiling is None or self.exact_auc_sum is None:
            return None
        return self.ceiling - self.exact_auc_sum

    def to_table(self, beside: Mapping[str, Mapping[str, float]] | None = None) -> Table:
        """Return a row per objective, then the sum.

        Args:
            beside: Other AUCs by a column's title and by objective, perhaps with one of 'sum'.
        """
        within = {} if self.request_auc is None else self.request_auc
        by_value = self.value is not None and self.value.ranked
        counts = self.value.value if self.value is not None and by_value else self.weights
        others = beside or {}
        columns = (
            Column("objective"),
            Column("AUC", ".4f"),
            Column("95 % interval", align="right", spare=len(others) > 1),
            *(Column(title, ".4f") for title in others),
            *[Column("in request", ".4f")] * bool(within),
            Column("positives", ".3%"),
            Column("value" if by_value else "weight", "g"),
            Column("effective", ".1%"),
        )
        rows = [
            (name + " ↓" * (self.weights[name] < 0), value.estimate, str(value))
            + tuple(areas[name] for areas in others.values())
            + ((within[name],) if within else ())
            + (self._positives(name), counts[name], self.effective_weights[name])
            for name, value in self.auc.items()
        ]
        sums = (areas.get("sum", "") for areas in others.values())
        inside = (self.requests.auc_sum.estimate if self.requests else "",) * bool(within)
        rows.append(("sum", self.auc_sum.estimate, str(self.auc_sum), *sums, *inside, "", "", ""))
        effective = "w/(π(1−π)), the rarer the heavier"
        if by_value:
            effective = "what an event is worth; ranked by expected value"
        elif self.optimises == "requests":
            effective = "of a usual row; the fit is for AUC within requests"
        notes = [f"{self.rows:,} rows. Effective weight: {effective}."]
        notes += [words] if (words := self.kind_words()) else []
        if self.regret is not None and not by_value:
            notes.append(
                f"Ceiling {self.ceiling:.4f}, reached {self.exact_auc_sum:.4f} by true "
                f"probabilities: regret {self.regret:.4f}."
            )
        if self.requests is not None and not by_value:
            notes.append(self.requests.words())
        if self.value is not None:
            notes.append(self.value.words())
        if self.position is not None:
            notes.append(self.position.words())
        last = len(rows) - 1
        return Table(columns, tuple(rows), emphasis={last: "bold"}, notes=tuple(notes))

    def _positives(self, name: str) -> float | Cell:
        """Return the share of positives, of which a graded objective has none."""
        graded = self.kinds.get(name, "").startswith("graded")
        return Cell(None, "–") if graded else self.prevalence[name]

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as JSON parts; one that is not known is null."""
        return {
            **({"kinds": self.kinds} if self.kinds else {}),
            "rows": self.rows,
            "weights": self.weights,
            "auc": {name: value.estimate for name, value in self.auc.items()},
            "auc_ci": {name: [value.low, value.high] for name, value in self.auc.items()},
            "auc_sum": self.auc_sum.estimate,
            "ci": [self.auc_sum.low, self.auc_sum.high],
            "request_auc": self.request_auc
            and {name: None if np.isnan(v) else v for name, v in self.request_auc.items()},
            "prevalence": self.prevalence,
            "effective_weights": self.effective_weights,
            "exact_auc": self.exact_auc,
            "exact_auc_sum": self.exact_auc_sum,
            "ceiling": self.ceiling,
            "regret": self.regret,
            "value": None if self.value is None else self.value.to_dict(),
            "position": None if self.position is None else self.position.to_dict(),
            "requests": None if self.requests is None else self.requests.to_dict(),
            "optimises": self.optimises,
        }

    @classmethod
    def from_dict(cls, parts: Mapping[str, Any]) -> Self:
        """Build what `to_dict` returned; refuse anything else in one sentence."""
        form = decode(parts, QualityForm, "A quality")
        within = form.request_auc
        return cls(
            rows=form.rows,
            weights=form.weights,
            auc={n: Interval.of_parts(v, form.auc_ci[n], LEVEL) for n, v in form.auc.items()},
            auc_sum=Interval.of_parts(form.auc_sum, form.ci, LEVEL),
            request_auc=None if within is None else with_nan(within),
            prevalence=form.prevalence,
            effective_weights=form.effective_weights,
            exact_auc=form.exact_auc,
            exact_auc_sum=form.exact_auc_sum,
            ceiling=form.ceiling,
            value=None if form.value is None else ValueAtK.of_form(form.value, LEVEL),
            position=None if form.position is None else PositionCorrection.of_form(form.position),
            requests=None
            if form.requests is None
            else RequestQuality.of_form(form.requests, LEVEL),
            optimises=form.optimises,
            kinds=form.kinds,
        )


def quality_of(
    fused: np.ndarray, log: Log, weights: np.ndarray, fitted_prevalence: np.ndarray | None = None
) -> Quality:
    """Measure a fused score on rows whose labels are known.

    Effective weights are those of the fit, whose prevalence they use, where it is given.
    """
    names, labels = log.schema.names, outcomes_of(log)
    per_objective = auc_interval(fused, labels, groups=log.request, sample_weight=log.sample_weight)
    within = request_quality_of(fused, log, weights)
    pi = log.prevalence()
    base = pi if fitted_prevalence is None else fitted_prevalence
    effective = weights / (base * (1 - base))

    def named(values: np.ndarray) -> dict[str, float]:
        return dict(zip(names, values.tolist(), strict=True))

    quality = Quality(
        rows=log.rows,
        weights=named(weights),
        auc=dict(zip(names, per_objective, strict=True)),
        auc_sum=auc_sum_interval(
            fused,
            labels,
            objective_weights=weights,
            groups=log.request,
            sample_weight=log.sample_weight,
        ),
        request_auc=None
        if within is None
        else {name: value.estimate for name, value in within.auc.items()},
        prevalence=named(pi),
        effective_weights=named(effective / np.abs(effective).sum()),
        position=PositionCorrection.of(log),
        requests=within,
        kinds={name: kind for name in names if (kind := log.schema.kind(name))},
    )
    return quality if log.truth is None else _with_truth(quality, fused, log, weights)


def _with_truth(quality: Quality, fused: np.ndarray, log: Log, weights: np.ndarray) -> Quality:
    assert log.truth is not None
    exact = auc(fused, true_outcomes(log), sample_weight=log.own_weight)
    return replace(
        quality,
        exact_auc=dict(zip(log.schema.names, exact.tolist(), strict=True)),
        exact_auc_sum=float(weights @ exact),
        ceiling=ceiling_of(log, weights),
    )


def ceiling_of(log: Log, weights: np.ndarray) -> float | None:
    """Return the best possible Σ_m w_m AUC_m on these rows, which only a world tells."""
    if log.truth is None:
        return None
    if not log.schema.plain:
        best = best_terms(log, weights) @ weights
    else:
        best = best_score(log.truth, weights.tolist())
    return float(weights @ auc(best, true_outcomes(log), sample_weight=log.own_weight))
