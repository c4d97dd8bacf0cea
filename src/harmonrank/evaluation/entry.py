"""Entry: what one way to fuse reached on the test rows, and how it differs from another."""

__all__ = ["REPLICATES", "Entry", "entry_of"]

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from harmonrank.data import Log
from harmonrank.fusion import Quality
from harmonrank.fusion.quality.outcomes import outcomes_of
from harmonrank.fusion.quality.request_quality import ValueAtK
from harmonrank.metrics import Interval, bootstrap_areas, bootstrap_values, percentiles

REPLICATES = 200
"""How often the test rows are resampled."""

_NONE = np.empty(0)


@dataclass(frozen=True)
class Entry:
    """One method's result: its quality, or the error that kept it from one.

    Attributes:
        fit_seconds: None if it was fitted before, or needs no fit.
        behind: How far its AUC-sum by labels, or its value at k where methods rank by value, is
            behind that of the first of the board, paired bootstrap; negative if ahead of it.
        ahead: How far it is ahead of the baseline, likewise, where there is one.
        as_fitted: Its quality before it was recalibrated on the test rows, where it was.
        resampled: The AUC of each objective on each resampled test log, (replicates, objectives);
            the logs are the same for every method.
        earned: Its value at k on resampled test logs, where events have values.
    """

    name: str
    fit_seconds: float | None
    quality: Quality | None = None
    error: str | None = None
    behind: Interval | None = None
    ahead: Interval | None = None
    as_fitted: Quality | None = None
    resampled: np.ndarray = field(
        default_factory=lambda: np.empty((0, 0)), repr=False, compare=False
    )
    earned: np.ndarray = field(default_factory=lambda: np.empty(0), repr=False, compare=False)

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

    def minus(self, other: "Entry") -> Interval | None:
        """Return its AUC-sum minus another's, by labels; None if one of them failed.

        Where one of them ranks by value, it is the value at k that is compared.
        """
        if self.quality is None or other.quality is None:
            return None
        if (self.by_value or other.by_value) and self.value and other.value:
            mine, theirs = self.value.mean, other.value.mean
            assert mine is not None
            assert theirs is not None
            gaps = self.earned - other.earned if self.earned.size and other.earned.size else _NONE
            return percentiles(mine.estimate - theirs.estimate, gaps, mine.level)
        mine, theirs = self.quality.auc_sum, other.quality.auc_sum
        gap = mine.estimate - theirs.estimate
        return percentiles(gap, self._sums() - other._sums(), mine.level)

    def minus_each(self, other: "Entry") -> dict[str, Interval]:
        """Return the same of each objective's AUC."""
        if self.quality is None or other.quality is None:
            return {}
        mine, theirs = self.quality.auc, other.quality.auc
        gaps = self.resampled - other.resampled
        return {
            name: percentiles(
                mine[name].estimate - theirs[name].estimate,
                gaps[:, m] if gaps.size else np.empty(0),
                mine[name].level,
            )
            for m, name in enumerate(mine)
        }

    def _sums(self) -> np.ndarray:
        """Return the AUC-sum on each resampled log."""
        if self.quality is None or not self.resampled.size:
            return np.empty(0)
        weights = np.array(list(self.quality.weights.values()))
        used = weights != 0
        sums: np.ndarray = self.resampled[:, used] @ weights[used]
        return sums

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form that other programs read."""
        empty = dict.fromkeys(("auc", "auc_sum", "ci", "regret"))
        quality = empty if self.quality is None else self.quality.to_dict()
        behind, ahead = self.behind, self.ahead
        return {
            "name": self.name,
            **quality,
            "behind_best": None if behind is None else behind.estimate,
            "behind_best_ci": None if behind is None else [behind.low, behind.high],
            "tied_with_best": self.tied if behind is not None else None,
            "ahead_of_baseline": None if ahead is None else ahead.estimate,
            "ahead_of_baseline_ci": None if ahead is None else [ahead.low, ahead.high],
            "as_fitted": self.as_fitted and self.as_fitted.to_dict(),
            "fit_seconds": self.fit_seconds,
            "error": self.error,
        }


def entry_of(
    name: str,
    fused: np.ndarray,
    log: Log,
    quality: Quality,
    fit_seconds: float | None = None,
    as_fitted: Quality | None = None,
) -> Entry:
    """Return the entry of a fused score whose quality on rows that all count is known."""
    resampled = bootstrap_areas(
        fused,
        outcomes_of(log),
        groups=log.request,
        sample_weight=log.sample_weight,
        replicates=REPLICATES,
    )
    entry = Entry(name, fit_seconds, quality, as_fitted=as_fitted, resampled=resampled)
    if entry.value is None or log.request is None:
        return entry
    worth, k = list(entry.value.value.values()), entry.value.k
    earned = bootstrap_values(
        fused,
        outcomes_of(log),
        log.request,
        k,
        value=worth,
        event_weight=log.inverse,
        replicates=REPLICATES,
    )
    return replace(entry, earned=earned)
