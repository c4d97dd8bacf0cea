"""RunningHeads: heads that learn hour by hour; what they need of old rows are sums.

A log-likelihood is a sum over rows, and the sums of an hour are added to those of the hours before:
moments for the density (`DensitySums`), quadratics for the linear heads (`HeadQuadratic`), so an
hour costs its own rows only. Each hour is looked at with Newton steps on its own likelihood beside
the quadratic of the past, and is made a quadratic where these end. The error of that is of the
order log n/n, far below what n rows can tell.

Sums fade by a half-life. Several half-lives run side by side, sharing all looks at rows, and the
one under which the labels of each new hour were likeliest before they were learned is chosen.

The residual is not a sum of anything bounded, as its groups are chosen by what rows say together.
It is fitted on a `Reservoir`, whenever enough rows came since it was.
"""

__all__ = ["HALF_LIVES", "FadingSums", "RunningHeads"]

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated

import numpy as np
from msgspec import Meta

from harmonrank.data.rows.blocks import HeldBlocks
from harmonrank.model.density.density import Density
from harmonrank.model.density.density_sums import DensitySums
from harmonrank.model.density.spread import Spread
from harmonrank.model.linear.head_columns import HeadColumns
from harmonrank.model.linear.head_quadratic import HeadQuadratic, Pooled
from harmonrank.model.linear.heads import Heads, Precision, Shared, Theta
from harmonrank.model.linear.heads_fit import fit_linear
from harmonrank.model.linear.heads_sums import HeadSums
from harmonrank.model.missing.completions import Completions
from harmonrank.model.missing.density_fit import incomplete_sums
from harmonrank.model.running.reservoir import Reservoir
from harmonrank.model.scorer.heads_score import HeadScorer
from harmonrank.model.terms.residual import Residual
from harmonrank.model.terms.residual_blocks import ResidualBlocks
from harmonrank.model.terms.residual_fit import fit_residual
from harmonrank.model.terms.residual_sums import ResidualRows
from harmonrank.support.errors import DataError
from harmonrank.support.logistic import SMALLEST_SCORE, clipped, sigmoid
from harmonrank.support.storage.arrays import Array

HALF_LIVES = (None, 192.0, 48.0, 12.0)
"""In hours, the longest first, which is without an end: of equals it is chosen."""

_SAMPLE_HALF_LIFE = 48.0  # Of the reservoir, where several half-lives run.
_SCORE_HALF_LIFE = 72.0  # Of the likelihoods by which a half-life is chosen.
_LOOKS = 2  # Newton steps on the rows of an hour.
_REFIT = 0.1  # The residual is fitted again after rows that count so much of all that count.
_SHORTER = 4.0  # Nats of prior against each next shorter half-life: less is chance.


@dataclass(frozen=True)
class FadingSums:
    """The sums of one half-life, and the linear heads that they give.

    Attributes:
        half_life: In hours; None if nothing fades.
        density: Moments of the coordinates since the last recalibration.
        past: What all rows learned so far say of the linear heads.
        mass, positives: Weight of these rows, and (M,) of the positive ones.
        theta, precision, shared: As in `Heads`.
        likelihood: Of labels before they were learned; recent ones count more.
    """

    half_life: Annotated[float, Meta(gt=0, le=1e9)] | None
    density: DensitySums
    past: HeadQuadratic
    mass: Annotated[float, Meta(gt=0, le=1e15)]
    positives: Annotated[np.ndarray, Array(("M",), low=0.0)]
    theta: Theta
    precision: Precision
    shared: Shared
    likelihood: Annotated[float, Meta(ge=-1e12, le=0)] = 0.0

    def faded(self, hours: float) -> "FadingSums":
        """Return the sums as they count some hours later: eq. 14 of docs/default-method.md."""
        factor = 1.0 if self.half_life is None else 2.0 ** (-hours / self.half_life)
        return replace(
            self,
            density=self.density.faded(factor),
            past=self.past.faded(factor),
            mass=factor * self.mass,
            positives=factor * self.positives,
            likelihood=2.0 ** (-hours / _SCORE_HALF_LIFE) * self.likelihood,
        )

    def on(self, heads: Heads) -> Heads:
        """Return heads with the coefficients of these sums."""
        return replace(heads, theta=self.theta, precision=self.precision, shared=self.shared)


@dataclass(frozen=True)
class RunningHeads:
    """What has been learned by some time, for as many half-lives as run.

    Attributes:
        fitted: Heads of the last batch fit or recalibration; gives coordinates and the units of
            the density, which later draws keep.
        replaced: Whether that was a recalibration.
        members: One for each half-life.
        chosen: Which of them is served.
        reservoir: Rows that the residual is fitted on.
        residual: Of the chosen half-life.
        waiting: Rows that came since the residual was fitted.
        time: In hours.
    """

    fitted: Heads
    replaced: bool
    members: tuple[FadingSums, ...]
    chosen: Annotated[int, Meta(ge=0)]
    reservoir: Reservoir
    residual: Residual
    waiting: Annotated[int, Meta(ge=0)]
    time: Annotated[float, Meta(ge=-1e9, le=1e9)]

    @classmethod
    def of(
        cls,
        heads: Heads,
        logits: np.ndarray,
        codes: np.ndarray,
        labels: np.ndarray,
        weight: np.ndarray | None,
        *,
        time: float,
        half_lives: tuple[float | None, ...] = HALF_LIVES,
        reservoir_rows: int = 300_000,
    ) -> "RunningHeads":
        """Go on from heads that were fitted on these rows."""
        coordinates = heads.coordinate(logits)
        density = _moments(coordinates, codes, heads, weight, None)
        data = _head_sums(heads, coordinates, codes, labels, weight)
        past = HeadQuadratic.at(heads.theta, data)
        w = np.ones(len(labels)) if weight is None else weight
        parts = (
            density,
            past,
            float(w.sum()),
            w @ labels,
            heads.theta,
            heads.precision,
            heads.shared,
        )
        members = tuple(FadingSums(half_life, *parts) for half_life in half_lives)
        empty = Reservoir.empty(reservoir_rows, len(heads.theta), codes.shape[1])
        begun = cls(heads, False, members, 0, empty, heads.residual, 0, time)
        return replace(begun, reservoir=begun._sampled(logits, codes, labels, weight, time))

    @property
    def half_life(self) -> float | None:
        """The half-life that is served, in hours; None if nothing fades."""
        return self.members[self.chosen].half_life

    @property
    def prevalence(self) -> np.ndarray:
        """The share of positives of each objective, (M,)."""
        member = self.members[self.chosen]
        return clipped(member.positives / member.mass, SMALLEST_SCORE)

    @cached_property
    def heads(self) -> Heads:
        """The heads to score with."""
        return replace(self._linear(self.members[self.chosen]), residual=self.residual)

    def _linear(self, member: FadingSums) -> Heads:
        return member.on(
            replace(self.fitted, density=self._density(member.density), residual=self._none())
        )

    def _none(self) -> Residual:
        return Residual.none(len(self.fitted.theta), self.fitted.slots)

    def _density(self, sums: DensitySums) -> Density:
        """Return the density by these moments; after a recalibration in the units before it."""
        if not self.replaced:
            return sums.density(self.fitted.slots)
        now = sums.density(self.fitted.slots, self.fitted.density.steady)
        return self.fitted.density.recalibrated(now, sums.counts(self.fitted.slots))

    def check(self) -> None:
        """Refuse stored parts that do not fit together."""
        if not 0 <= self.chosen < len(self.members):
            raise DataError("the chosen half-life must be one of those that run")
        for codes in (self.reservoir.codes, *(m.density.contexts for m in self.members)):
            if codes.size and (codes.max(axis=0) >= np.array(self.fitted.slots)).any():
                raise DataError("a context code is beyond those of its feature")

    def learned(
        self,
        logits: np.ndarray,
        codes: np.ndarray,
        labels: np.ndarray,
        weight: np.ndarray | None,
        time: float,
    ) -> "RunningHeads":
        """Return what is known after rows of a later time.

        Args:
            logits: (rows, M) of the scores; NaN where one is missing.
            codes: (rows, features) of the context.
            labels: (rows, M) of 0 and 1.
            weight: (rows,).
            time: In hours; an earlier one than before counts as the same.
        """
        hours, time = max(time - self.time, 0.0), max(time, self.time)
        coordinates = self.fitted.coordinate(logits)
        faded = replace(self, members=tuple(m.faded(hours) for m in self.members), time=time)
        # What is missing is filled by the density so far.
        known = _moments(coordinates, codes, self.heads, weight, self.members[0].density.origin)
        moved = tuple(replace(m, density=m.density + known) for m in faded.members)
        now = replace(faded, members=moved)
        plain = now._linear(moved[self.chosen])
        data = _head_sums(plain, coordinates, codes, labels, weight)
        # Scored before they are learned: the rows choose the half-life.
        tried = [m.likelihood + data.likelihood(m.theta).value.sum() for m in moved]
        best = int(np.argmax(tried - _SHORTER * np.arange(len(tried))))
        heads = moved[best].on(plain)
        for _ in range(_LOOKS):
            hour = HeadQuadratic.at(heads.theta, data)
            heads = fit_linear(heads, Pooled((moved[best].past, hour)))
        hour = HeadQuadratic.at(heads.theta, data)
        w = np.ones(len(labels)) if weight is None else weight
        members = []
        for member, likelihood in zip(moved, tried, strict=True):
            past = member.past + hour
            settled = fit_linear(member.on(plain), past)
            members.append(
                replace(
                    member,
                    past=past,
                    mass=member.mass + float(w.sum()),
                    positives=member.positives + w @ labels,
                    theta=settled.theta,
                    precision=settled.precision,
                    shared=settled.shared,
                    likelihood=float(likelihood - max(tried)),
                )
            )
        reservoir = now._sampled(logits, codes, labels, weight, time)
        waiting = self.waiting + len(labels)
        new = replace(
            now, members=tuple(members), chosen=best, reservoir=reservoir, waiting=waiting
        )
        due = waiting >= _REFIT * members[best].mass or best != self.chosen
        return new.with_residual() if due else new

    def with_residual(self) -> "RunningHeads":
        """Return it with the residual fitted on the reservoir again."""
        kept, heads = self.reservoir, self.heads
        weight = kept.weights(self.time, self.half_life)
        coordinates = kept.places.astype(np.float64)
        data = _head_sums(heads, coordinates, kept.codes, kept.labels, weight)
        # What the linear heads of these very rows leave: the served ones have learned from others
        # too, and where they differ is nothing for a curve to mend.
        theta = fit_linear(replace(heads, residual=self._none()), data).theta
        rows = ResidualBlocks.of(HeldBlocks([data]), heads.slots, theta)
        dispersion = _dispersion(rows, data) if kept.thinned else None
        return replace(self, residual=fit_residual(rows, dispersion=dispersion), waiting=0)

    def _sampled(
        self,
        logits: np.ndarray,
        codes: np.ndarray,
        labels: np.ndarray,
        weight: np.ndarray | None,
        time: float,
    ) -> Reservoir:
        lives = [member.half_life for member in self.members]
        half_life = lives[0] if len(lives) == 1 else _SAMPLE_HALF_LIFE
        heads = replace(self.heads, residual=self._none())
        p = HeadScorer(heads).probabilities(sigmoid(logits), codes)
        p, coordinates = np.nan_to_num(p, nan=1.0), heads.coordinate(logits)
        return self.reservoir.with_rows(coordinates, codes, labels, weight, p, time, half_life)

    def recalibrated(
        self, logits: np.ndarray, codes: np.ndarray, weight: np.ndarray | None = None
    ) -> "RunningHeads":
        """Return it for upstream scores that look like these from now on; labels are not needed.

        Coefficients and what old rows say of them stay; the moments of the scores begin anew. Rows
        of the reservoir are moved to where the new scores of such rows would be.
        """
        before = self.heads
        coordinate = before.coordinate.refitted(logits)
        coordinates = coordinate(logits)
        kept = Spread.of(coordinates, weight).clipped(coordinates)
        fitted = replace(before, coordinate=coordinate)
        moments = _moments(kept, codes, fitted, weight, None, anew=True)
        now = moments.density(before.slots, before.density.steady)
        density = before.density.recalibrated(now, moments.counts(before.slots))
        rows = self.reservoir
        contexts = rows.codes.astype(np.int64)
        away = (rows.places - before.density.centre_of(contexts)) / before.density.scale
        moved = density.centre_of(contexts) + density.scale * away
        return replace(
            self,
            fitted=replace(fitted, density=before.density),
            replaced=True,
            members=tuple(replace(m, density=moments) for m in self.members),
            reservoir=replace(rows, places=moved.astype(np.float32)),
        )

    def recoded(self, codes: list[np.ndarray], slots: tuple[int, ...]) -> "RunningHeads":
        """Return it with more context values: `codes[f]` is the new code of each old one."""
        old, M = self.fitted, len(self.fitted.theta)
        width, first = HeadColumns(M).width, np.cumsum([0, *slots])
        new_slots = [first[f] + new for f, new in enumerate(codes)]
        effects = np.concatenate(new_slots) if new_slots else np.empty(0, np.int64)
        columns, size = np.concatenate([np.arange(width), width + effects]), width + first[-1]

        def wide(theta: np.ndarray) -> np.ndarray:
            widened = np.zeros((M, size))
            widened[:, columns] = theta
            return widened

        density = _widened(old.density, effects, slots)
        fitted = replace(
            old,
            slots=slots,
            theta=wide(old.theta),
            density=density,
            residual=Residual.none(M, slots),
        )
        members = tuple(
            replace(
                m,
                density=m.density.recoded(codes),
                past=m.past.widened(columns, size),
                theta=wide(m.theta),
            )
            for m in self.members
        )
        reservoir = self.reservoir.recoded(codes)
        new = replace(self, fitted=fitted, members=members, reservoir=reservoir)
        return replace(new, residual=fitted.residual).with_residual()


def _moments(
    coordinates: np.ndarray,
    codes: np.ndarray,
    heads: Heads,
    weight: np.ndarray | None,
    origin: np.ndarray | None,
    *,
    anew: bool = False,
) -> DensitySums:
    """Return moments of coordinates; what is missing is filled by the density of the heads."""
    if not np.isnan(coordinates).any():
        return DensitySums.of(coordinates, codes, heads.slots, weight, origin=origin)
    density = None if anew else heads.density
    return incomplete_sums(coordinates, codes, heads.slots, weight, density, origin)


def _head_sums(
    heads: Heads,
    coordinates: np.ndarray,
    codes: np.ndarray,
    labels: np.ndarray,
    weight: np.ndarray | None,
) -> HeadSums:
    """Return what linear heads are fitted on; rows with gaps stand for draws of what is missing."""
    if not np.isnan(coordinates).any():
        return HeadSums.of(heads.density, coordinates, codes, heads.slots, labels, weight)
    rows = Completions.of(coordinates, heads.density, codes, heads.slots, weight)
    counts = rows.weights(heads, codes, labels)
    return rows.sums(heads.density, codes, heads.slots, labels, counts)


def _dispersion(blocks: ResidualBlocks, data: HeadSums) -> np.ndarray:
    """Return how much more the gradient of each head varies than weighted rows pretend, from 1 up.

    A row of weight w adds w² g² to the variance and w h to the curvature, with E g² = h: eq. 15 of
    docs/default-method.md.
    """
    rows = ResidualRows.of(data, blocks.slots, blocks.theta, blocks.low, blocks.high)
    w = rows.weight.astype(np.float64)
    p = sigmoid(rows.heads.astype(np.float64))  # (rows, M)
    varies = w**2 @ (rows.labels.T - p) ** 2
    dispersion: np.ndarray = np.maximum(varies / np.maximum(w @ (p * (1 - p)), 1e-12), 1.0)
    return dispersion


def _widened(density: Density, effects: np.ndarray, slots: tuple[int, ...]) -> Density:
    """Return the density with context values that no row of it had."""

    def wide(table: np.ndarray) -> np.ndarray:
        widened = np.zeros((sum(slots), table.shape[1]))
        widened[effects] = table
        return widened

    first = np.cumsum([0, *slots])[:-1].astype(np.int64)
    tables = {name: wide(getattr(density, name)) for name in ("mean", "spread", "centre")}
    return replace(density, first=first, **tables)
