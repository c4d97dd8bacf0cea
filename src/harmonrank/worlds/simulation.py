"""Simulation: a world's log as files, with the best possible result beside it."""

__all__ = ["FEWEST_ROWS", "SCHEMA", "Simulation", "as_frame", "simulate", "world_schema"]

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from harmonrank.data import Schema
from harmonrank.data.reading.forks import require_polars_threads
from harmonrank.data.reading.parquet import writing
from harmonrank.metrics import auc, best_score
from harmonrank.support.errors import UsageError
from harmonrank.support.storage.files import new_folder, write_json
from harmonrank.worlds.presets import AnyWorld
from harmonrank.worlds.sample import Sample

SCHEMA = "schema.toml"
"""The file by which a simulated log is recognised."""

FEWEST_ROWS = 4
"""The fewest rows; the test table then has two, which a ranking needs."""


def world_schema(world: AnyWorld) -> Schema:
    """Return the schema of the tables that `simulate` writes."""
    return Schema(
        objectives={name: f"p_{name}" for name in world.objectives},
        context=tuple(world.context),
        request="request_id",
        truth={name: f"true_{name}" for name in world.objectives},
    )


def as_frame(world: AnyWorld, sample: Sample) -> pl.DataFrame:
    """Return a sample as the table that `world_schema` describes."""
    schema = world_schema(world)
    columns: dict[str, np.ndarray] = {"request_id": sample.request, **sample.context}
    for m, (label, score) in enumerate(schema.objectives.items()):
        columns[score], columns[label] = sample.scores[:, m], sample.labels[:, m]
        if sample.truth is not None:
            columns[schema.truth[label]] = sample.truth[:, m]
    return pl.DataFrame(columns)


@dataclass(frozen=True)
class Simulation:
    """Writes a world's rows to files; subclasses change how rows are answered.

    Attributes:
        world: Where the rows come from.
        seed: Decides everything that is drawn.
    """

    world: AnyWorld
    seed: int = 0

    needs_truth = False
    """Whether the training rows too are made of their true probabilities."""

    @property
    def schema(self) -> Schema:
        """Which column is what."""
        return world_schema(self.world)

    def table(self, index: int, sample: Sample, *, known: bool) -> pl.DataFrame:  # noqa: ARG002
        """Return the table of a part, counted from 0; with its truth, if it may be known."""
        return as_frame(self.world, sample if known else replace(sample, truth=None))

    def summary(self, frame: pl.DataFrame, sample: Sample) -> dict[str, Any]:  # noqa: ARG002
        """Return what is best on the test rows."""
        truth, names = sample.truth, self.world.objectives
        assert truth is not None
        best = auc(best_score(truth), truth)
        return {
            "ceiling": float(best.sum()),
            "ceiling_auc": dict(zip(names, best.tolist(), strict=True)),
            "prevalence": dict(zip(names, truth.mean(axis=0).tolist(), strict=True)),
        }

    def write(
        self,
        rows: int,
        path: str | Path,
        *,
        overwrite: bool = False,
        on_table: Callable[[str, int], None] | None = None,
    ) -> dict[str, Any]:
        """Write train.parquet (`rows`), valid.parquet and test.parquet (half as many each).

        Beside them stand schema.toml and ceiling.json, whose parts are returned. Valid and test
        also hold the true probabilities, which no method may read. `on_table` is called with the
        name and the rows of each table.
        """
        require_polars_threads("A simulation")
        if rows < FEWEST_ROWS:
            raise UsageError(f"`rows` must be at least {FEWEST_ROWS}. Got {rows}.")
        half, start = rows // 2, 0
        about: dict[str, Any] = {"world": self.world.name, "rows": rows, "seed": self.seed}
        with new_folder(path, holds=SCHEMA, overwrite=overwrite) as folder:
            parts = (("train", rows), ("valid", half), ("test", half))
            for index, (name, count) in enumerate(parts):
                known = name != "train"
                sample = self.world.sample(
                    count,
                    seed=self.seed,
                    start=start,
                    horizon=rows + 2 * half,
                    with_truth=known or self.needs_truth,
                )
                frame = self.table(index, sample, known=known)
                with writing():
                    frame.write_parquet(folder / f"{name}.parquet", statistics=False)
                start += count
                if on_table is not None:
                    on_table(name, count)
            about |= self.summary(frame, sample)
            write_json(folder / "ceiling.json", about)
            (folder / SCHEMA).write_text(self.schema.to_toml(), encoding="utf-8")
        return about


def simulate(
    world: AnyWorld,
    rows: int,
    path: str | Path,
    *,
    seed: int = 0,
    overwrite: bool = False,
    on_table: Callable[[str, int], None] | None = None,
) -> dict[str, Any]:
    """Write the log of a world, as `Simulation.write` does."""
    return Simulation(world, seed).write(rows, path, overwrite=overwrite, on_table=on_table)
