"""Simulations whose labels are of other kinds, or whose rows were shown one below the other."""

__all__ = [
    "LATER",
    "POSITION",
    "examination_curve",
    "log_of",
    "logs_of",
    "placed",
    "sample_to_test",
    "simulate",
    "with_places",
]

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from harmonrank.data import Log, Schema, chances_at, lineage, read_log
from harmonrank.fusion import ceiling_of
from harmonrank.worlds import AnyWorld, Sample, Simulation, as_frame, world_schema
from harmonrank_lab.worlds.full_world import World
from harmonrank_lab.worlds.shared_effects import Users

UNIT_SECONDS = 60.0
"""The scale of a graded label."""

_VALUES = 16  # equally likely ones that stand for the density of a graded label

_GLANCE = 0x100C

POSITION = "position"
"""The column of places, where rows are shown one below the other."""

LATER = 40_000_000
"""Where test rows begin in a world's endless stream, whatever the number of the others."""

_PLACES = 30


def with_kinds(
    frame: pl.DataFrame, schema: Schema, truth: np.ndarray, *, seed: list[int], known: bool
) -> pl.DataFrame:
    """Return rows with labels drawn again from their true probabilities, each by itself.

    Given what a fusion sees, labels are independent, so that the truth of each kind is exact: an
    event has the chance p; one given another has its p among the rows that show it, and is null
    elsewhere; a graded label is 0 with chance 1−p, and else exponential with a mean of
    60·(¼ + p), seconds say. The truth column of a graded objective holds 16 equally likely values.

    Args:
        frame: Rows of a world.
        schema: Which objectives are of which kind.
        truth: (rows, M).
        seed: Decides the labels.
        known: Whether truth columns are written.
    """
    u = np.random.default_rng([*seed, 0x1D5]).random(truth.shape)
    columns: dict[str, pl.Series] = {}
    happened = dict(zip(schema.names, (u < truth).T, strict=True))
    for m, name in enumerate(schema.names):
        p, graded = truth[:, m], name in schema.graded
        label: np.ndarray = happened[name].astype(np.uint8)
        if graded:
            # As u is below p here, u/p is even on [0, 1].
            label = np.where(happened[name], _seconds(1 - u[:, m] / p, p), 0.0)
        columns[name] = pl.Series(label)
        if known:
            columns[schema.truth[name]] = pl.Series(_density(p) if graded else p)
    for name in schema.given:
        shown = np.all([happened[parent] for parent in lineage(name, schema.given)], axis=0)
        hidden = pl.Series(~shown)
        columns[name] = pl.select(pl.when(hidden).then(None).otherwise(columns[name])).to_series()
    return frame.with_columns(**columns)


def _seconds(share: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Return the quantile of an exponential label with a mean that grows with p."""
    return np.asarray(-np.log1p(-share) * UNIT_SECONDS * (0.25 + p))


def _density(p: np.ndarray) -> np.ndarray:
    """Return equally likely values, (rows, values): the middles of as many equal shares."""
    share = (np.arange(_VALUES) + 0.5) / _VALUES
    above = share - (1 - p[:, None])
    inside = np.clip(above / p[:, None], 0.0, 1 - 1e-12)
    return np.where(above > 0, _seconds(inside, p[:, None]), 0.0)


@dataclass(frozen=True, eq=False)
class Placed:
    """What a log says of rows that were shown.

    Attributes:
        position: (rows,), from 1 in each request.
        labels: (rows, objectives), 0 wherever a row was not looked at.
        seen: (rows,), whether it was, which no log says.
    """

    position: NDArray[np.int64]
    labels: NDArray[np.uint8]
    seen: NDArray[np.bool_]


def examination_curve(power: float, places: int) -> dict[int, float]:
    """Return the chance 1/log₂(1 + k)^power that place k is looked at, of places 1 … `places`.

    >>> {k: round(chance, 3) for k, chance in examination_curve(1.0, 3).items()}
    {1: 1.0, 2: 0.631, 3: 0.5}
    """
    return {k: float(np.log2(1 + k) ** -power) for k in range(1, places + 1)}


def placed(
    sample: Sample, score: NDArray[np.float64], curve: Mapping[int, float], seed: int
) -> Placed:
    """Show the rows of every request in the order of a score, the largest first.

    Args:
        sample: Rows of a world; their labels are what users would say of what they look at.
        score: (rows,) what ranked them.
        curve: The chance that each place is looked at.
        seed: Decides which rows are looked at; the same for every score.
    """
    order = np.lexsort((-score, sample.request))
    request = sample.request[order]
    starts = np.flatnonzero(np.r_[True, request[1:] != request[:-1]])
    sizes = np.diff(np.r_[starts, len(order)])
    position = np.empty(len(order), np.int64)
    position[order] = np.arange(len(order)) - np.repeat(starts, sizes) + 1
    glance = np.random.default_rng([seed, _GLANCE]).random(len(order))
    seen = glance < chances_at(curve, position)
    return Placed(position, sample.labels * seen[:, None], seen)


@dataclass(frozen=True)
class _Plain(Simulation):
    """Rows also tell their user, where users come back, and their time, where the world drifts."""

    @property
    def schema(self) -> Schema:
        return _schema_of(self.world)

    def table(self, index: int, sample: Sample, *, known: bool) -> pl.DataFrame:
        return _told(super().table(index, sample, known=known), self.world, sample)


@dataclass(frozen=True)
class _WithKinds(_Plain):
    """Labels are drawn again as objectives of other kinds."""

    kinds: Mapping[str, Any] = field(default_factory=dict)
    needs_truth = True

    @property
    def schema(self) -> Schema:
        return replace(super().schema, **self.kinds)

    def table(self, index: int, sample: Sample, *, known: bool) -> pl.DataFrame:
        assert sample.truth is not None
        frame, seed = super().table(index, sample, known=known), [self.seed, index]
        return with_kinds(frame, self.schema, sample.truth, seed=seed, known=known)

    def summary(self, frame: pl.DataFrame, sample: Sample) -> dict[str, Any]:  # noqa: ARG002
        log = read_log(frame, self.schema)
        return {"ceiling": ceiling_of(log, self.schema.weight_vector)}


@dataclass(frozen=True)
class _WithPlaces(_Plain):
    """Rows of a request are shown one below the other, and answered only where looked at."""

    power: float = 1.0

    @property
    def schema(self) -> Schema:
        return replace(super().schema, position=POSITION)

    def table(self, index: int, sample: Sample, *, known: bool) -> pl.DataFrame:
        frame, seed = super().table(index, sample, known=known), (self.seed << 2) + index
        return with_places(frame, self.world, sample, self.power, seed=seed)

    def summary(self, frame: pl.DataFrame, sample: Sample) -> dict[str, Any]:
        curve = examination_curve(self.power, _PLACES)
        told = {str(place): chance for place, chance in curve.items()}
        return {**super().summary(frame, sample), "examination": told}


def simulate(
    world: AnyWorld,
    rows: int,
    path: str | Path,
    *,
    seed: int = 0,
    overwrite: bool = False,
    kinds: Mapping[str, Any] | None = None,
    position_bias: float | None = None,
    on_table: Callable[[str, int], None] | None = None,
) -> dict[str, Any]:
    """Write the log of a world, as `harmonrank.worlds.simulate` does.

    Args:
        world: Where the rows come from.
        rows: Of the training table.
        path: The folder.
        seed: Decides everything that is drawn.
        overwrite: Replace a folder of an earlier simulation.
        kinds: Parts of a schema, `unwanted`, `graded` and `given`, by which labels are drawn again
            as objectives of these kinds.
        position_bias: Rows of a request are shown in the order of the first objective's score, and
            place k is looked at with chance 1/log₂(1 + k) to this power; a row that is not looked
            at has no feedback. None: all rows are looked at.
        on_table: Called with the name and the rows of each table.
    """
    how = _WithKinds(world, seed, kinds) if kinds else _Plain(world, seed)
    if position_bias is not None:
        how.schema.require_plain("A simulation with --position-bias")
        how = _WithPlaces(world, seed, position_bias)
    return how.write(rows, path, overwrite=overwrite, on_table=on_table)


def log_of(
    place: AnyWorld,
    rows: int,
    seed: int,
    start: int = 0,
    *,
    truth: bool = False,
    horizon: int | None = None,
) -> Log:
    """Return rows of a world as methods read them; its time ends with them or at `horizon`."""
    return _read(
        place, place.sample(rows, seed=seed, start=start, horizon=horizon, with_truth=truth)
    )


def logs_of(
    place: AnyWorld, rows: int, seed: int, tested: int | None = None
) -> tuple[Log, Log, Log]:
    """Return rows to learn from, half as many to choose by, and test rows with their truth.

    In a world that drifts they follow each other, and time ends with the last of them.
    """
    end = _test_start(place, rows) + (tested or rows // 2)
    train, valid = (
        place.sample(count, seed=seed, start=start, horizon=end, with_truth=False)
        for count, start in ((rows, 0), (rows // 2, rows))
    )
    test = sample_to_test(place, rows, seed, tested)
    return _read(place, train), _read(place, valid), _read(place, test)


def sample_to_test(place: AnyWorld, rows: int, seed: int, tested: int | None = None) -> Sample:
    """Return the test rows of `logs_of`."""
    return place.sample(tested or rows // 2, seed=seed, start=_test_start(place, rows))


def _test_start(place: AnyWorld, rows: int) -> int:
    return rows + rows // 2 if _drifts(place) else LATER


def _read(place: AnyWorld, sample: Sample) -> Log:
    return read_log(_told(as_frame(place, sample), place, sample), _schema_of(place))


def _schema_of(place: AnyWorld) -> Schema:
    """Return which column is what: a world that drifts tells the time, one of users the user."""
    time, user = "time" if _drifts(place) else None, "user_id" if _users(place) else None
    return replace(world_schema(place), time=time, user=user)


def _told(frame: pl.DataFrame, place: AnyWorld, sample: Sample) -> pl.DataFrame:
    """Return the table with the columns that `_schema_of` names beside those of every world."""
    users = _users(place)
    if users is not None:
        frame = frame.with_columns(user_id=users.of(sample.request))
    return frame.with_columns(time=sample.time) if _drifts(place) else frame


def _users(place: AnyWorld) -> Users | None:
    return place.users if isinstance(place, World) else None


def _drifts(place: AnyWorld) -> bool:
    return isinstance(place, World) and place.drift is not None


def with_places(
    frame: pl.DataFrame, world: AnyWorld, sample: Sample, power: float, *, seed: int
) -> pl.DataFrame:
    """Return the table of rows that were shown, with their places, and feedback as far as seen."""
    curve = examination_curve(power, int(np.bincount(sample.request - sample.request[0]).max()))
    shown = placed(sample, sample.scores[:, 0], curve, seed)
    labels = {name: shown.labels[:, m] for m, name in enumerate(world.objectives)}
    return frame.with_columns(pl.Series(POSITION, shown.position), **labels)
