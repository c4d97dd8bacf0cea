"""Simulation: a world's log as files, with the best possible result beside it."""

__all__ = ["FEWEST_ROWS", "SCHEMA", "as_frame", "simulate", "world_schema"]

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from harmonrank.data import Schema
from harmonrank.data.files import new_folder, write_json
from harmonrank.data.forks import require_polars_threads
from harmonrank.data.parquet import writing
from harmonrank.data.worlds import Sample, best_score
from harmonrank.errors import UsageError
from harmonrank.evaluation.worlds import AnyWorld
from harmonrank.metrics import auc

SCHEMA = "schema.toml"
"""The file that tells a simulated log from any other folder."""

FEWEST_ROWS = 4
"""So that the test table has two rows, which is what a ranking needs."""


def world_schema(world: AnyWorld) -> Schema:
    """Return the schema of the tables that `simulate` writes."""
    return Schema(
        objectives={name: f"p_{name}" for name in world.objectives},
        context=tuple(world.context),
        request="request_id",
        truth={name: f"true_{name}" for name in world.objectives},
    )


def simulate(
    world: AnyWorld,
    rows: int,
    path: str | Path,
    *,
    seed: int = 0,
    overwrite: bool = False,
    on_table: Callable[[str, int], None] | None = None,
) -> dict[str, Any]:
    """Write train.parquet (`rows`), valid.parquet and test.parquet (half as many each).

    Beside them stand schema.toml and ceiling.json, whose parts are returned. Valid and test
    also hold the true probabilities, which no method may read.
    """
    require_polars_threads("A simulation")
    if rows < FEWEST_ROWS:
        raise UsageError(f"`rows` must be at least {FEWEST_ROWS}. Got {rows}.")
    half = rows // 2
    start, horizon = 0, rows + 2 * half
    summary: dict[str, Any] = {}
    with new_folder(path, holds=SCHEMA, overwrite=overwrite) as folder:
        for name, count in (("train", rows), ("valid", half), ("test", half)):
            sample = world.sample(
                count, seed=seed, start=start, horizon=horizon, with_truth=name != "train"
            )
            with writing():
                as_frame(world, sample).write_parquet(folder / f"{name}.parquet", statistics=False)
            start += count
            if on_table is not None:
                on_table(name, count)
            if name == "test":
                summary = _ceiling(world, sample)
        summary = {"world": world.name, "rows": rows, "seed": seed, **summary}
        write_json(folder / "ceiling.json", summary)
        (folder / SCHEMA).write_text(world_schema(world).to_toml(), encoding="utf-8")
    return summary


def as_frame(world: AnyWorld, sample: Sample) -> pl.DataFrame:
    """Return a sample as the table that `world_schema` describes."""
    schema = world_schema(world)
    columns: dict[str, np.ndarray] = {"request_id": sample.request, **sample.context}
    for m, (label, score) in enumerate(schema.objectives.items()):
        columns[score], columns[label] = sample.scores[:, m], sample.labels[:, m]
        if sample.truth is not None:
            columns[schema.truth[label]] = sample.truth[:, m]
    return pl.DataFrame(columns)


def _ceiling(world: AnyWorld, sample: Sample) -> dict[str, Any]:
    assert sample.truth is not None
    best = auc(best_score(sample.truth), sample.truth)
    return {
        "ceiling": float(best.sum()),
        "ceiling_auc": dict(zip(world.objectives, best.tolist(), strict=True)),
        "prevalence": dict(zip(world.objectives, sample.truth.mean(axis=0).tolist(), strict=True)),
    }
