"""Kinds: what a fit keeps of graded and conditional objectives, and how they are fused."""

__all__ = [
    "Kinds",
    "KindsForm",
    "LabelPlaces",
    "ValueWeights",
    "fused_terms",
    "kinds_of",
    "with_targets",
]

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta

from harmonrank.data import Log, Schema
from harmonrank.data.kinds import lineage
from harmonrank.data.label_levels import LabelLevels
from harmonrank.metrics import fit_isotonic
from harmonrank.support.errors import DataError

_MOST_KNOTS = 64


class ValueWeights(np.ndarray):
    """Weights w_m = v_m π_m(1−π_m) that stand for values v_m per event or per unit.

    Of graded and conditional objectives a value multiplies what is expected (eq. 9 of
    docs/objectives.md without its scale), and a weight on a rank does not; of others both are the
    same score.
    """


@dataclass(frozen=True, eq=False)
class Kinds:
    """What scoring must know of objectives that are no plain events.

    Attributes:
        shown: (M,) the share of training rows that show each objective.
        means: By graded objective, knots of its expected label by what its head says.
    """

    shown: np.ndarray
    means: Mapping[str, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)

    def amounts(self, schema: Schema, heads: np.ndarray) -> np.ndarray:
        """Return heads as people read them: graded objectives by their mean, in own units."""
        found = heads.astype(np.float64, copy=True)
        for name, (place, mean) in self.means.items():
            m = schema.names.index(name)
            found[:, m] = np.interp(heads[:, m], place, mean)
        return found

    def heads(self, schema: Schema, amounts: np.ndarray) -> np.ndarray:
        """Return the heads that amounts were made of; beyond the last knots the nearest."""
        found = amounts.astype(np.float64, copy=True)
        for name, (place, mean) in self.means.items():
            m = schema.names.index(name)
            found[:, m] = np.interp(amounts[:, m], mean, place)
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return JSON parts."""
        means = {k: [x.tolist(), y.tolist()] for k, (x, y) in self.means.items()}
        return {"shown": self.shown.tolist(), "means": means}


Share = Annotated[float, Meta(gt=0, le=1)]
Knots = Annotated[list[float], Meta(min_length=1, max_length=_MOST_KNOTS)]


class KindsForm(msgspec.Struct, forbid_unknown_fields=True):
    """What `Kinds.to_dict` returns, as the type that reading decodes it to."""

    shown: list[Share]
    means: dict[str, tuple[Knots, Knots]]

    def kinds(self, schema: Schema) -> Kinds:
        """Return the kinds of a saved model; refuse those of other objectives."""
        sound = len(self.shown) == len(schema.names) and set(self.means) <= set(schema.graded)
        for place, mean in self.means.values():
            sound &= len(place) == len(mean) and bool((np.diff(place) > 0).all())
            sound &= bool(np.isfinite([*place, *mean]).all())
        if not sound:
            raise DataError("`kinds` must have a share for each objective and rising knots")
        means = {name: (np.array(x), np.array(y)) for name, (x, y) in self.means.items()}
        return Kinds(np.array(self.shown), means)


def with_targets(train: Log, others: Sequence[Log]) -> tuple[Log, ...]:
    """Return training rows and others with what heads learn in place of graded labels.

    u = F(y), the mid-distribution function of the training rows that show the objective: the share
    of them with a smaller label and half of those with the same (eq. 6 of docs/objectives.md). It
    has the order of the labels, so every metric of pairs is the same.
    """
    names = train.schema.names
    levels = {
        name: LabelLevels.of(*train.shown_labels(names.index(name))) for name in train.schema.graded
    }
    places = LabelPlaces.of(levels)
    return (places.targets(train), *(places.targets(log) for log in others))


@dataclass(frozen=True, eq=False)
class LabelPlaces:
    """F(y) of each graded objective: its values, and their places among all labels."""

    known: Mapping[str, tuple[np.ndarray, np.ndarray]]

    @classmethod
    def of(cls, levels: Mapping[str, LabelLevels]) -> "LabelPlaces":
        """Return the places of labels that are distributed so."""
        return cls({name: (found.values, found.places()) for name, found in levels.items()})

    def targets(self, log: Log) -> Log:
        """Return rows with places as labels; the log itself where nothing is graded."""
        if not self.known:
            return log
        labels = log.known_labels().astype(np.float64, copy=True)
        for name, (values, places) in self.known.items():
            m = log.schema.names.index(name)
            labels[:, m] = np.interp(labels[:, m], values, places)
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
            means[name] = _mean_curve(heads[there, m], labels, weight)
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
    found = np.ones(heads.shape)
    for m, name in enumerate(schema.names):
        for parent in lineage(name, schema.given):
            found[:, m] *= heads[:, schema.names.index(parent)]
    return found


def fused_terms(
    schema: Schema,
    heads: np.ndarray,
    prevalence: np.ndarray,
    kinds: Kinds,
    weights: np.ndarray,
) -> np.ndarray:
    """Return t (rows, M) so that Σ_m w_m t_m/(π_m(1−π_m)) is the fused score.

    Of a plain or graded objective it is the head itself. Of one that is shown with chance c(x), by
    eqs. 10 and 11 of docs/objectives.md, c(x)/C times the head less its mean; unless all that
    counts is shown in the same rows, where the head itself is best. With values, what is expected
    of a row.
    """
    if isinstance(weights, ValueWeights):
        return np.asarray(kinds.amounts(schema, heads) * chances(schema, heads))
    conditions = {lineage(n, schema.given) for n, w in zip(schema.names, weights, strict=True) if w}
    if len(conditions) <= 1:
        return heads
    terms = heads.astype(np.float64, copy=True)
    chance = chances(schema, heads)
    for m, name in enumerate(schema.names):
        if name in schema.given:
            middle = 0.5 if name in schema.graded else prevalence[m]
            terms[:, m] = chance[:, m] / kinds.shown[m] * (heads[:, m] - middle)
    return terms
