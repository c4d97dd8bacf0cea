"""Fitted: what every model keeps beside the state of its method.

A `ScoreMap` is a rising curve that gives one model's fused scores the distribution of another's. A
new model may rank better and still upset whatever reads its scores: thresholds, blends with other
scores, dashboards. Matching quantiles repairs that without touching the ranking:

    g(s) = F_running⁻¹(F_new(s)),

both distribution functions on the same rows. It is kept as knots at even steps of the logit of the
level, so that both ends are as well known as the middle, with straight lines between and beyond
them. Where the other model gave many rows one score, g still rises by a little: no two rows that
the model tells apart become equal.
"""

__all__ = ["AlignedMap", "Fitted", "ScoreMap"]

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Self

import numpy as np

from harmonrank.data import ContextEncoder, Log, Schema
from harmonrank.fusion.drift.imputation import imputed
from harmonrank.fusion.drift.reference import RECENT_ROWS, Recalibration, Reference
from harmonrank.fusion.kinds import Kinds
from harmonrank.fusion.weights import Points
from harmonrank.support.errors import DataError
from harmonrank.support.logistic import LARGEST_BELOW_ONE, SMALLEST_POSITIVE, sigmoid
from harmonrank.support.storage.arrays import LARGEST, Array

FEWEST = 1000
"""Rows that a distribution is measured on at least."""

_KNOTS = 257
_FARTHEST = 8.0  # logits: the outermost levels are 3 rows in 10,000
_LEAST_SLOPE = 1e-6  # of the mean one


_Knots = Annotated[np.ndarray, Array(("knots",), strictly=True, least=2)]


@dataclass(frozen=True, eq=False)
class ScoreMap:
    """A strictly rising, piecewise linear function.

    Attributes:
        x: (knots,) fused scores of the model, strictly rising.
        y: (knots,) what they become, strictly rising.
    """

    x: _Knots
    y: _Knots

    @classmethod
    def between(cls, new: np.ndarray, running: np.ndarray) -> Self:
        """Return the map after which `new` is distributed like `running`.

        Raises:
            DataError: There are too few rows, or one of them has a single score.
        """
        for scores, whose in ((new, "the new"), (running, "the running")):
            if len(scores) < FEWEST:
                raise DataError(
                    f"Scores are aligned on at least {FEWEST:,} rows that count. Got "
                    f"{len(scores):,}; add rows."
                )
            if not np.isfinite(scores).all() or np.abs(scores).max() > LARGEST / 2:
                raise DataError(f"The scores of {whose} model must be finite and below 1e29.")
            if scores.min() == scores.max():
                raise DataError(
                    f"All rows have one score of {whose} model, so there is nothing to align; use "
                    "other rows."
                )
        levels = sigmoid(np.linspace(-_FARTHEST, _FARTHEST, _KNOTS))
        x, y = np.quantile(new, levels), np.quantile(running, levels)
        # Of a score that many rows share, the middle of what they become.
        knots = np.unique(x)
        y = np.array([y[x == knot].mean() for knot in knots])
        if len(knots) < 2:
            knots = np.array([new.min(), new.max()])
            y = np.array([running.min(), running.max()])
        return cls(knots, _rising(knots, y))

    def __call__(self, fused: np.ndarray) -> np.ndarray:
        """Return what scores become; each depends on itself alone."""
        first, last = self.slopes
        inside = np.interp(fused, self.x, self.y)
        below, above = fused - self.x[0], fused - self.x[-1]
        mapped: np.ndarray = inside + np.where(below < 0, first * below, 0.0)
        return mapped + np.where(above > 0, last * above, 0.0)

    @property
    def slopes(self) -> tuple[float, float]:
        """How the map goes on below its first knot and above its last."""
        steep = np.diff(self.y) / np.diff(self.x)
        return float(steep[0]), float(steep[-1])


def _rising(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return y with at least a little slope everywhere."""
    least = _LEAST_SLOPE * (y[-1] - y[0]) / (x[-1] - x[0])
    # Above the line of the least slope it may only rise.
    rising: np.ndarray = np.maximum.accumulate(y - least * x) + least * x
    return rising


@dataclass(frozen=True, eq=False)
class AlignedMap:
    """A map, and the objective weights that it was made with: with others it does not count."""

    weights: Annotated[np.ndarray, Array(("M",), low=-1e100, high=1e100)]
    curve: ScoreMap


@dataclass(frozen=True, eq=False)
class Fitted:
    """Parts that a model holds, whatever its method.

    Attributes:
        encoder: Of the context, as far as the fit saw it.
        prevalence: (M,) π, the share of positives of each objective at the fit.
        reference: What the scores looked like at the fit, or at the last recalibration.
        learned: What they looked like when the method learned, where that was before a
            recalibration that matches moments.
        kinds: Of objectives that are no plain events; None if all are.
        points: Operating points: the weight of every objective, by name.
        maps: What gives fused scores the distribution of another model's.
    """

    encoder: ContextEncoder
    prevalence: Annotated[np.ndarray, Array(("M",), low=SMALLEST_POSITIVE, high=LARGEST_BELOW_ONE)]
    reference: Reference
    learned: Reference | None = None
    kinds: Kinds | None = None
    points: Points = field(default_factory=dict)
    maps: tuple[AlignedMap, ...] = ()

    def codes(self, log: Log) -> np.ndarray:
        """Return the context codes of rows, (rows, features)."""
        return log.codes(self.encoder)

    def expected(self, scores: np.ndarray, codes: np.ndarray, *, missing: bool) -> np.ndarray:
        """Return scores as the method learned to fuse them.

        Args:
            scores: (rows, M).
            codes: (rows, features) of the context; (1, features) where all rows share one.
            missing: Whether the method takes missing scores; they are imputed else.
        """
        if self.recalibration is not None:
            scores = self.recalibration.scores(scores, codes)
        return scores if missing else imputed(self.learned or self.reference, scores, codes)

    def reference_of(self, log: Log) -> Reference:
        """Return what the scores of these rows look like; of very many, some are drawn."""
        some = log.sampled(RECENT_ROWS)
        # Rows that were not looked at have scores too, so places change nothing here.
        return Reference.of(some.scores, self.codes(some), self.encoder.slots, some.own_weight)

    def moved_to(self, log: Log, share: np.ndarray, *, matched: bool) -> Self:
        """Return these parts for upstream scores that look like those of recent rows.

        Args:
            log: The rows.
            share: (M,) how far each score is recalibrated, 0 to 1.
            matched: Whether scores are brought to where the method learned them by their moments;
                a state that recalibrates itself needs no such thing.
        """
        now = self.reference.followed(self.reference_of(log), share)
        learned = (self.learned or self.reference) if matched else None
        return replace(self, reference=now, learned=learned)

    @property
    def recalibration(self) -> Recalibration | None:
        """What is done to scores before the method sees them, if that matches moments."""
        return None if self.learned is None else Recalibration(self.learned, self.reference)

    def referred_to(self, log: Log) -> Self:
        """Return these parts for a model that learned from these rows: they are no drift.

        If scores are matched by moments, they still come to where the method learned them.
        """
        now, learned = self.reference_of(log), None
        if self.recalibration is not None:
            scores = self.recalibration.scores(log.scores, self.codes(log))
            learned = self.reference_of(log.with_scores(scores))
        return replace(self, reference=now, learned=learned)

    def scores_of_now(self, log: Log, before: Self) -> Log:
        """Return older rows with the scores that the upstream models would give them now.

        The opposite of a recalibration, which takes new scores back to those of the fit: rows from
        before a change of upstream models can be learned together with rows from after it.

        Args:
            log: Rows with scores of the upstream models that were there before.
            before: The parts from before the recalibration.
        """
        change = Recalibration(fit=self.reference, now=before.reference)
        return log.with_scores(change.scores(log.scores, self.codes(log)))

    def grown(self, encoder: ContextEncoder, prevalence: np.ndarray) -> Self:
        """Return the parts of a model that went on learning, without points and maps of before.

        Args:
            encoder: Knows the context values of this one, and perhaps more.
            prevalence: (M,) of the rows by now.
        """
        codes, slots = encoder.recoding(self.encoder), encoder.slots
        reference = self.reference.recoded(codes, slots)
        return type(self)(encoder, prevalence, reference, kinds=self.kinds)

    def map_of(self, weights: np.ndarray) -> ScoreMap | None:
        """Return the map that was made with these objective weights."""
        same = (each.curve for each in self.maps if np.array_equal(each.weights, weights))
        return next(same, None)

    def without_map(self, weights: np.ndarray) -> Self:
        """Return these parts without the map of these weights."""
        kept = tuple(each for each in self.maps if not np.array_equal(each.weights, weights))
        return replace(self, maps=kept)

    def check(self, schema: Schema) -> None:
        """Refuse stored parts that are not of a model with this schema."""
        self.encoder.require_columns(schema.context)
        if self.kinds is not None:
            self.kinds.check(schema)

    def with_points(self, points: Mapping[str, Mapping[str, float]]) -> Self:
        """Return these parts with other operating points."""
        return replace(self, points={name: dict(weights) for name, weights in points.items()})
