"""Quality: how well one fused score ranks the rows of a log."""

__all__ = ["Quality", "QualityForm", "quality_of"]

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal, Self

import msgspec
import numpy as np
from msgspec import Meta

from harmonrank.data import Log
from harmonrank.fusion.quality.areas import (
    DECIDING,
    Areas,
    AreasForm,
    areas_of,
    ceiling_of,
)
from harmonrank.fusion.quality.position_quality import PositionCorrection
from harmonrank.fusion.quality.value_at_k import ValueAtK
from harmonrank.metrics import Interval
from harmonrank.support.storage.decoding import decode
from harmonrank.support.table import Cell, Column, Table, Tabular

Rows = Annotated[int, Meta(ge=0, le=2**53)]
Named = Annotated[dict[str, float], Meta(min_length=1)]


class QualityForm(AreasForm, kw_only=True):
    """What `Quality.to_dict` returns; an end of an interval that is not known is null."""

    rows: Rows
    weights: Named
    prevalence: Named
    effective_weights: Named
    value: ValueAtK | None = None
    position: PositionCorrection | None = None
    kinds: dict[str, str] = msgspec.field(default_factory=dict)
    requests: AreasForm | None = None
    optimises: Literal["all", "requests"] = "all"

    def __post_init__(self) -> None:
        """Refuse parts that are not of the same objectives."""
        parts: list[Mapping[str, Any] | None] = [
            self.auc,
            self.auc_ci,
            self.prevalence,
            self.effective_weights,
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


@dataclass(frozen=True, kw_only=True, repr=False)
class Quality(Areas, Tabular):
    """Metrics of a fused score; its own areas are over all rows.

    Attributes:
        kinds: What objectives are beside events, such as 'graded' or 'given click'; the AUC of a
            graded one is its concordance.
        weights: What each AUC counts; below 0 for an unwanted objective.
        prevalence: Share of positives of each objective.
        effective_weights: What a unit of probability counts, w/(π(1−π)), as shares of 1.
        value: What the first of every request are worth, where values are given.
        position: How feedback was corrected for the places of the rows, where they are known.
        requests: Within requests, a mean by rows over those that have an AUC; None without
            requests.
        optimises: Which AUC the fit was for: over "all" rows, or within "requests".
    """

    rows: int
    weights: dict[str, float]
    prevalence: dict[str, float]
    effective_weights: dict[str, float]
    value: ValueAtK | None = None
    position: PositionCorrection | None = None
    requests: Areas | None = None
    optimises: str = "all"
    kinds: dict[str, str] = field(default_factory=dict)

    @property
    def decisive(self) -> Areas:
        """What a ranking earns: areas within requests, or over all rows where those have none.

        A request has none if its rows are all positive, or all negative, or one.
        """
        inside = self.requests
        return self if inside is None or np.isnan(inside.auc_sum.estimate) else inside

    @property
    def criterion(self) -> Literal["within requests", "all rows"]:
        """Of which rows pairs are compared."""
        return "all rows" if self.decisive is self else "within requests"

    @property
    def where(self) -> str:
        """The same as an adverb."""
        return "over all rows" if self.decisive is self else "within requests"

    @property
    def request_auc(self) -> dict[str, float] | None:
        """AUC within requests by labels, mean by rows; None without requests."""
        if self.requests is None:
            return None
        return {name: value.estimate for name, value in self.requests.auc.items()}

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

    def criterion_words(self) -> str | None:
        """Say why all rows decide and not the order within requests; None if that does."""
        if self.criterion == "within requests":
            return None
        if self.requests is None:
            if self.value is not None:
                return None  # which says the same of what it needs
            return "No request column is named; with one, the order within requests would decide."
        bare = ", ".join(n for n, area in self.requests.auc.items() if np.isnan(area.estimate))
        return f"All rows decide: no request has a positive and a negative of {bare}."

    def to_table(
        self,
        beside: Mapping[str, Mapping[str, float]] | None = None,
        behind: Mapping[str, Mapping[str, float]] | None = None,
        intervals: Mapping[str, Interval] | None = None,
    ) -> Table:
        """Return a row per objective, then the sum; what decides comes first.

        Args:
            beside: What compares with it, by a column's title and by objective, perhaps of 'sum'.
            behind: Other figures, likewise, in the columns after all of these.
            intervals: Of the areas and of 'sum'; by labels if left out.
        """
        best, by_value = self.decisive, self.value is not None and self.value.ranked
        counts = self.value.value if self.value is not None and by_value else self.weights
        around = intervals or {**best.auc, "sum": best.auc_sum}
        areas: dict[str, Mapping[str, Any]] = {"all rows": {**self.areas, "sum": self.total}}
        if best is not self:
            areas = {"within requests": {**best.areas, "sum": best.total}, **areas}
        first, *rest = areas
        others = {**(beside or {}), **{title: areas[title] for title in rest}, **(behind or {})}
        columns = (
            Column("objective"),
            Column("AUC" if best is self else first, ".4f", short="within" if rest else ""),
            Column("95 % interval", align="right", spare=len(others) > 1),
            *(Column(title, ".4f") for title in others),
            Column("positives", ".3%"),
            Column("value" if by_value else "weight", "g"),
            Column("effective", ".1%", spare=len(others) > 2),
        )
        rows = [
            (
                name + " ↓" * (self.weights[name] < 0),
                areas[first][name],
                str(around[name]),
                *(values[name] for values in others.values()),
                self._positives(name),
                counts[name],
                self.effective_weights[name],
            )
            for name in self.auc
        ]
        sums = (values.get("sum", "") for values in others.values())
        rows.append(("sum", areas[first]["sum"], str(around["sum"]), *sums, "", "", ""))
        emphasis, notes = {len(rows) - 1: "bold"}, tuple(self._notes(by_value=by_value))
        return Table(columns, tuple(rows), emphasis=emphasis, notes=notes)  # type: ignore[arg-type]

    def _notes(self, *, by_value: bool) -> Iterator[str]:
        effective = "w/(π(1−π)), the rarer the heavier"
        if by_value:
            effective = "what an event is worth; ranked by expected value"
        elif self.optimises == "requests":
            effective = "of a usual row; the fit is for AUC within requests"
        yield f"{self.rows:,} rows. Effective weight: {effective}."
        if self.exact_auc is not None:
            yield "AUCs by true probabilities."
        yield from filter(None, [self.criterion_words(), self.kind_words()])
        parts = {"Within requests": self.requests, "Over all rows": self}
        for where, areas in parts.items():
            if areas is not None and areas.regret is not None and not by_value:
                yield f"{where}: ceiling {areas.ceiling:.4f}, regret {areas.regret:.4f}."
        if self.value is not None:
            yield self.value.words()
        if self.position is not None:
            yield self.position.words()

    def _positives(self, name: str) -> float | Cell:
        """Return the share of positives, of which a graded objective has none."""
        graded = self.kinds.get(name, "").startswith("graded")
        return Cell(None, "–") if graded else self.prevalence[name]

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as JSON parts; one that is not known is null."""
        inside = None if self.requests is None else self.requests.to_dict()
        return {
            **({"kinds": self.kinds} if self.kinds else {}),
            "rows": self.rows,
            "weights": self.weights,
            **super().to_dict(),
            **{f"request_{key}": inside and inside[key] for key in DECIDING},
            "prevalence": self.prevalence,
            "effective_weights": self.effective_weights,
            "value": None if self.value is None else self.value.to_dict(),
            "position": None if self.position is None else self.position.to_dict(),
            "requests": inside,
            "optimises": self.optimises,
        }

    @classmethod
    def from_dict(cls, parts: Mapping[str, Any]) -> Self:
        """Build what `to_dict` returned; refuse anything else in one sentence."""
        form = decode(parts, QualityForm, "A quality")
        return cls(
            **form.parts(),
            rows=form.rows,
            weights=form.weights,
            prevalence=form.prevalence,
            effective_weights=form.effective_weights,
            value=form.value,
            position=form.position,
            requests=None if form.requests is None else Areas(**form.requests.parts()),
            optimises=form.optimises,
            kinds=form.kinds,
        )


def quality_of(
    fused: np.ndarray, log: Log, weights: np.ndarray, fitted_prevalence: np.ndarray | None = None
) -> Quality:
    """Measure a fused score on rows whose labels are known.

    Effective weights are those of the fit, whose prevalence they use, where it is given.
    """
    names = log.schema.names
    pi = log.prevalence()
    base = pi if fitted_prevalence is None else fitted_prevalence
    effective = weights / (base * (1 - base))

    def named(values: np.ndarray) -> dict[str, float]:
        return dict(zip(names, values.tolist(), strict=True))

    def measured(*, within: bool) -> Areas:
        top = ceiling_of(log, weights, within=within)
        return replace(areas_of(fused, log, weights, within=within), ceiling=top)

    return Quality(
        **vars(measured(within=False)),
        rows=log.rows,
        weights=named(weights),
        prevalence=named(pi),
        effective_weights=named(effective / np.abs(effective).sum()),
        position=PositionCorrection.of(log),
        requests=None if log.request is None else measured(within=True),
        kinds={name: kind for name in names if (kind := log.schema.kind(name))},
    )
