"""Kinds: what a fit keeps of graded and conditional objectives, and how they are fused."""

__all__ = ["Kinds", "LabelTargets", "MeanCurve", "chances", "expected_of", "kinds_of", "terms_of"]

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import numpy as np

from harmonrank.data import Log, Schema
from harmonrank.data.kinds import LabelLevels, lineage
from harmonrank.metrics import fit_isotonic
from harmonrank.support.errors import DataError
from harmonrank.support.storage.arrays import Array

_MOST_KNOTS = 64


@dataclass(frozen=True, eq=False)
class MeanCurve:
    """The expected label of a graded objective by what its head says.

    Attributes:
        place: (knots,) of the head.
        mean: (knots,) in the label's own units.
    """

    place: Annotated[np.ndarray, Array(("knots",), strictly=True)]
    mean: Annotated[np.ndarray, Array(("knots",))]


@dataclass(frozen=True, eq=False)
class Kinds:
    """What scoring must know of objectives that are no plain events.

    Attributes:
        shown: (M,) the share of training rows that show each objective.
        means: By graded objective.
    """

    shown: Annotated[np.ndarray, Array(("M",), low=1e-300, high=1.0)]
    means: Mapping[str, MeanCurve] = field(default_factory=dict)

    def check(self, schema: Schema) -> None:
        """Refuse the kinds of other objectives."""
        if not set(self.means) <= set(schema.graded):
            raise DataError("'kinds' must have a curve for graded objectives, and for no others")

    def amounts(self, schema: Schema, heads: np.ndarray) -> np.ndarray:
        """Return heads as people read them: graded objectives by their mean, in own units."""
        return self._mapped(schema, heads, lambda curve: (curve.place, curve.mean))

    def heads(self, schema: Schema, amounts: np.ndarray) -> np.ndarray:
        """Return the heads that amounts were made of; beyond the last knots the nearest."""
        return self._mapped(schema, amounts, lambda curve: (curve.mean, curve.place))

    def _mapped(
        self, schema: Schema, values: np.ndarray, knots: Callable[[MeanCurve], tuple[Any, Any]]
    ) -> np.ndarray:
        mapped = values.astype(np.float64, copy=True)
        for name, curve in self.means.items():
            m = schema.names.index(name)
            mapped[:, m] = np.interp(values[:, m], *knots(curve))
        return mapped


@dataclass(frozen=True, eq=False)
class LabelTargets:
    """What heads learn in place of graded labels: by objective, its values and F of each.

    u = F(y), the mid-distribution function of the training rows that show the objective: the share
    of them with a smaller label and half of those with the same (eq. 6 of docs/objectives.md). It
    has the order of the labels, so every metric of pairs is the same.
    """

    known: Mapping[str, tuple[np.ndarray, np.ndarray]]

    @classmethod
    def of(cls, levels: Mapping[str, LabelLevels]) -> "LabelTargets":
        """Return the targets of labels that are distributed so."""
        return cls({name: (each.values, each.mid_distribution()) for name, each in levels.items()})

    def of_log(self, log: Log) -> Log:
        """Return rows with F(y) as labels; the log itself where nothing is graded."""
        if not self.known:
            return log
        labels = log.known_labels().astype(np.float64, copy=True)
        for name, (values, shares) in self.known.items():
            m = log.schema.names.index(name)
            labels[:, m] = np.interp(labels[:, m], values, shares)
        if log.shown is not None:
            labels[~log.shown] = 0.0
        return replace(log, labels=labels)


def kinds_of(train: Log, heads: np.ndarray | None, shown: np.ndarray | None = None) -> Kinds | None:
    """Return what a fit keeps; None where all objectives are plain events.

    Args:
        train: Rows with labels in their own units.
        heads: (rows, M) what the fitted heads say of them; None if the method has none.
        shown: (M,) the share of rows that show each objective; of these rows if left out.
    """
    schema = train.schema
    if schema.plain:
        return None
    if shown is None:
        shown = np.ones(len(schema.names))
        if train.shown is not None:
            shown = np.average(train.shown, axis=0, weights=train.sample_weight)
    means = {}
    if heads is not None:
        for name in schema.graded:
            m = schema.names.index(name)
            there = slice(None) if train.shown is None else train.shown[:, m]
            labels, weight = train.shown_labels(m)
            means[name] = MeanCurve(*_mean_curve(heads[there, m], labels, weight))
    # A weighted share of all rows may be 1 and a rounding more, which no saved model may have.
    return Kinds(np.minimum(shown, 1.0), means)


def _mean_curve(
    heads: np.ndarray, labels: np.ndarray, weight: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return knots of the best rising curve from a head to the mean label, thinned to a few."""
    place, mean = fit_isotonic(heads, labels, weight)
    if len(place) > _MOST_KNOTS:
        # By rows, so that there are as many knots where heads are dense as where they are not.
        wanted = np.quantile(heads, np.linspace(0, 1, _MOST_KNOTS))
        kept = np.unique(np.clip(np.searchsorted(place, wanted), 0, len(place) - 1))
        kept = np.unique([0, *kept.tolist(), len(place) - 1])[-_MOST_KNOTS:]
        place, mean = place[kept], mean[kept]
    rising = np.concatenate([[True], np.diff(place) > 0])
    return place[rising], mean[rising]


def chances(schema: Schema, heads: np.ndarray) -> np.ndarray:
    """Return the chance that each row shows each objective, (rows, M): 1 of most."""
    shown = np.ones(heads.shape)
    for m, name in enumerate(schema.names):
        for parent in lineage(name, schema.given):
            shown[:, m] *= heads[:, schema.names.index(parent)]
    return shown


def terms_of(
    schema: Schema, heads: np.ndarray, prevalence: np.ndarray, kinds: Kinds, weights: np.ndarray
) -> np.ndarray:
    """Return t (rows, M) so that Σ_m w_m t_m/(π_m(1−π_m)) is the fused score.

    Of a plain or graded objective it is the head itself. Of one that is shown with chance c(x), by
    eqs. 10 and 11 of docs/objectives.md, c(x)/C times the head less its mean; unless all that
    counts is shown in the same rows, where the head itself is best.
    """
    conditions = {lineage(n, schema.given) for n, w in zip(schema.names, weights, strict=True) if w}
    if len(conditions) <= 1:
        return heads
    terms = heads.astype(np.float64, copy=True)
    shown = chances(schema, heads)
    for m, name in enumerate(schema.names):
        if name in schema.given:
            middle = 0.5 if name in schema.graded else prevalence[m]
            terms[:, m] = shown[:, m] / kinds.shown[m] * (heads[:, m] - middle)
    return terms


def expected_of(schema: Schema, heads: np.ndarray, kinds: Kinds) -> np.ndarray:
    """Return what is expected of a row, which values multiply: eq. 9 of docs/objectives.md."""
    expected: np.ndarray = kinds.amounts(schema, heads) * chances(schema, heads)
    return expected
