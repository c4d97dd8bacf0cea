"""Entry: what one way to fuse reached on the test rows, and how it differs from another."""

__all__ = ["REPLICATES", "Criterion", "Entry", "drawn_of", "entry_of"]

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from harmonrank.data import Log
from harmonrank.fusion import Quality
from harmonrank.fusion.quality.areas import DECIDING, LEVEL, exactly_known, values_of
from harmonrank.fusion.quality.outcomes import outcomes_of
from harmonrank.fusion.quality.value_at_k import ValueAtK
from harmonrank.metrics import (
    Interval,
    bootstrap_areas,
    bootstrap_request_areas,
    bootstrap_values,
    events_at_k,
    percentiles,
)

REPLICATES = 200
"""How often the test rows are resampled."""

_MOST_EMPTY = 0.1  # Of the draws; of two requests a seventh have neither.

Criterion = Literal["within requests", "all rows", "value"]
"""What decides: AUC within requests, AUC over all rows, or value at k."""


@dataclass(frozen=True)
class Entry:
    """One method's result: its quality, or the error that kept it from one.

    Attributes:
        fit_seconds: None if it was fitted before, or needs no fit.
        behind: How far it is behind the first of the board in what decides, paired bootstrap;
            negative if ahead of it.
        ahead: How far it is ahead of the baseline, likewise, where there is one.
        lifted: Its events in the first k relative to the baseline's, −1.
        as_fitted: Its quality before it was recalibrated on the test rows, where it was.
        drawn: AUCs over "all rows" and "within requests", and "events" per request among its first
            k: of each objective, on the test rows and then on resampled ones, (1 + replicates, M).
            These are the same for every method.
        k: Events among how many of a request.
    """

    name: str
    fit_seconds: float | None
    quality: Quality | None = None
    error: str | None = None
    behind: Interval | None = None
    ahead: Interval | None = None
    lifted: Mapping[str, Interval] = field(default_factory=dict)
    as_fitted: Quality | None = None
    drawn: Mapping[str, np.ndarray] = field(default_factory=dict, repr=False, compare=False)
    k: int = 10

    @property
    def value(self) -> ValueAtK | None:
        """What its first k of a request are worth, where that was measured."""
        value = None if self.quality is None else self.quality.value
        return None if value is None or value.mean is None else value

    @property
    def by_value(self) -> bool:
        """Whether it ranks by expected value, and so is to be judged by it."""
        return self.value is not None and self.value.ranked

    @property
    def tied(self) -> bool:
        """Whether the test rows cannot tell it from the first of the board."""
        return self.behind is not None and self.behind.low <= 0

    @property
    def intervals(self) -> dict[str, Interval]:
        """Intervals of each area that decides, and of their 'sum'; of the truth where known."""
        if self.quality is None:
            return {}
        best, by = self.quality.decisive, self.quality.criterion
        if best.exact_auc is None or by not in self.drawn:
            return {**best.auc, "sum": best.auc_sum}
        return {**self._each(self.drawn[by]), "sum": _interval(self._sums(by))}

    @property
    def events(self) -> dict[str, Interval]:
        """Events per request among its first k, by objective; empty without requests."""
        return self._each(self.drawn["events"]) if "events" in self.drawn else {}

    def minus(self, other: "Entry", by: Criterion | None = None) -> Interval | None:
        """Return its sum minus another's by what decides, or by another measure.

        It is None if one of them failed or was not resampled.
        """
        by = by or self._criterion(other)
        mine, theirs = self._sums(by), other._sums(by)
        return _interval(mine - theirs) if mine.size and theirs.size else None

    def minus_each(self, other: "Entry") -> dict[str, Interval]:
        """Return the same of each objective's AUC, within requests where those decide."""
        by = "all rows" if self.quality is None else self.quality.criterion
        if by not in self.drawn or by not in other.drawn:
            return {}
        return self._each(self.drawn[by] - other.drawn[by])

    def lifts(self, other: "Entry") -> dict[str, Interval]:
        """Return its events in the first k relative to another's, −1; empty if none differ.

        An objective of which the other has none is left out.
        """
        mine, theirs = (entry.drawn.get("events", np.empty(0)) for entry in (self, other))
        if not (mine.size and theirs.size) or np.allclose(mine, theirs, rtol=1e-9):
            return {}
        ratio = np.full(mine.shape, np.nan)
        np.divide(mine, theirs, out=ratio, where=theirs > 0)
        each = self._each(ratio - 1)
        return {name: lift for name, lift in each.items() if np.isfinite(lift.estimate)}

    def _each(self, drawn: np.ndarray) -> dict[str, Interval]:
        """Return the interval of each objective of what was drawn."""
        assert self.quality is not None, "what has no quality was not resampled"
        return {n: _interval(c) for n, c in zip(self.quality.auc, drawn.T, strict=True)}

    def _criterion(self, other: "Entry") -> Criterion:
        if (self.by_value or other.by_value) and self.value and other.value:
            return "value"
        return "all rows" if self.quality is None else self.quality.criterion

    def _sums(self, by: Criterion) -> np.ndarray:
        """Return what a measure comes to on the test rows, and on each resampled log."""
        drawn = self.drawn.get("events" if by == "value" else by, np.empty(0))
        if self.quality is None or not drawn.size:
            return np.empty(0)
        worth = self.quality.weights if self.value is None or by != "value" else self.value.value
        weights = np.array(list(worth.values()))
        used = weights != 0
        sums: np.ndarray = drawn[:, used] @ weights[used]
        return sums

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form that other programs read."""
        empty = {f"{of}{key}": None for of in ("", "request_") for key in DECIDING}
        quality = empty if self.quality is None else self.quality.to_dict()
        gaps: dict[str, Any] = {}
        for name, gap in (("behind_best", self.behind), ("ahead_of_baseline", self.ahead)):
            gaps[name], gaps[f"{name}_ci"] = (None, None) if gap is None else gap.parts
        return {
            "name": self.name,
            **quality,
            "events_at_k": self.events_dict(),
            **gaps,
            "tied_with_best": self.tied if self.behind is not None else None,
            "as_fitted": self.as_fitted and self.as_fitted.to_dict(),
            "fit_seconds": self.fit_seconds,
            "error": self.error,
        }

    def events_dict(self) -> dict[str, Any] | None:
        """Return the JSON form of its events in the first k."""
        told: dict[str, Any] = {"k": self.k}
        for key, each in (("mean", self.events), ("vs_baseline", self.lifted)):
            told[key] = {name: interval.parts[0] for name, interval in each.items()}
            ends = "ci" if key == "mean" else f"{key}_ci"
            told[ends] = {name: interval.parts[1] for name, interval in each.items()}
        return told if self.events else None


def _interval(drawn: np.ndarray) -> Interval:
    """Return what the test rows give with the spread of what resampled ones do.

    Where a request or two alone have both labels, many draws have none, and others tell of no
    spread.
    """
    few = np.isnan(drawn[1:]).mean() > _MOST_EMPTY if len(drawn) > 1 else False
    return percentiles(float(drawn[0]), drawn[:0] if few else drawn[1:], LEVEL)


def entry_of(
    name: str,
    fused: np.ndarray,
    log: Log,
    quality: Quality,
    fit_seconds: float | None = None,
    as_fitted: Quality | None = None,
    *,
    k: int = 10,
) -> Entry:
    """Return the entry of a fused score whose quality on rows that all count is known."""
    drawn = drawn_of(fused, log, k)
    return Entry(name, fit_seconds, quality, as_fitted=as_fitted, drawn=drawn, k=k)


def drawn_of(
    fused: np.ndarray, log: Log, k: int, *, only_events: bool = False
) -> dict[str, np.ndarray]:
    """Return what `Entry.drawn` holds, by true probabilities where they stand for labels."""
    exact, requests = exactly_known(log), log.request
    labels: Any = log.truth if exact else outcomes_of(log)
    weight, counts = (None, None) if exact else (log.sample_weight, log.inverse)
    more: dict[str, Any] = {"sample_weight": weight, "replicates": REPLICATES}
    drawn: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    if not only_events:
        resampled = bootstrap_areas(fused, labels, groups=log.units, **more)
        drawn["all rows"] = values_of(fused, log), resampled
    if requests is not None and not only_events:
        more["units"] = log.user
        resampled = bootstrap_request_areas(fused, labels, requests, expected=exact, **more)
        drawn["within requests"] = values_of(fused, log, within=True), resampled
    if requests is not None:
        each = np.eye(len(log.schema.names))
        drawn["events"] = (
            events_at_k(fused, labels, requests, k, event_weight=counts),
            bootstrap_values(
                *(fused, labels, requests, k),
                value=each,
                event_weight=counts,
                units=log.user,
                replicates=REPLICATES,
            ),
        )
    return {by: np.vstack(parts) for by, parts in drawn.items()}
