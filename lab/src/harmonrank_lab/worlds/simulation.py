"""Simulations whose labels are of other kinds, or whose rows were shown one below the other."""

__all__ = ["POSITION", "simulate", "with_places"]

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from harmonrank.data import Schema, read_log
from harmonrank.fusion import ceiling_of
from harmonrank.worlds import AnyWorld, Sample, Simulation, world_schema
from harmonrank_lab.worlds.kinds import with_kinds
from harmonrank_lab.worlds.places import examination_curve, placed

POSITION = "position"
"""The column of places, where rows are shown one below the other."""

_PLACES = 30


@dataclass(frozen=True)
class _WithKinds(Simulation):
    """Labels are drawn again as objectives of other kinds."""

    kinds: Mapping[str, Any] = field(default_factory=dict)
    needs_truth = True

    @property
    def schema(self) -> Schema:
        return replace(world_schema(self.world), **self.kinds)

    def table(self, index: int, sample: Sample, *, known: bool) -> pl.DataFrame:
        assert sample.truth is not None
        frame, seed = super().table(index, sample, known=known), [self.seed, index]
        return with_kinds(frame, self.schema, sample.truth, seed=seed, known=known)

    def summary(self, frame: pl.DataFrame, sample: Sample) -> dict[str, Any]:  # noqa: ARG002
        log = read_log(frame, self.schema)
        return {"ceiling": ceiling_of(log, self.schema.weight_vector)}


@dataclass(frozen=True)
class _WithPlaces(Simulation):
    """Rows of a request are shown one below the other, and answered only where looked at."""

    power: float = 1.0

    @property
    def schema(self) -> Schema:
        return replace(world_schema(self.world), position=POSITION)

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
    how = _WithKinds(world, seed, kinds) if kinds else Simulation(world, seed)
    if position_bias is not None:
        how.schema.require_plain("A simulation with --position-bias")
        how = _WithPlaces(world, seed, position_bias)
    return how.write(rows, path, overwrite=overwrite, on_table=on_table)


def with_places(
    frame: pl.DataFrame, world: AnyWorld, sample: Sample, power: float, *, seed: int
) -> pl.DataFrame:
    """Return the table of rows that were shown, with their places, and feedback as far as seen."""
    curve = examination_curve(power, int(np.bincount(sample.request - sample.request[0]).max()))
    shown = placed(sample, sample.scores[:, 0], curve, seed)
    labels = {name: shown.labels[:, m] for m, name in enumerate(world.objectives)}
    return frame.with_columns(pl.Series(POSITION, shown.position), **labels)
