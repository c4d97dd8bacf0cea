"""Simulation: a world's log as files, with the best possible result beside it."""

__all__ = [
    "FEWEST_ROWS",
    "POSITION",
    "SCHEMA",
    "as_frame",
    "simulate",
    "with_places",
    "world_schema",
]

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from harmonrank.data import Schema, read_log
from harmonrank.data.reading.forks import require_polars_threads
from harmonrank.data.reading.parquet import writing
from harmonrank.fusion import ceiling_of
from harmonrank.metrics import auc, best_score
from harmonrank.support.errors import UsageError
from harmonrank.support.storage.files import new_folder, write_json
from harmonrank.worlds import Sample, examination_curve, placed
from harmonrank.worlds.every import AnyWorld
from harmonrank.worlds.kinds import with_kinds

SCHEMA = "schema.toml"
"""The file that tells a simulated log from any other folder."""

POSITION = "position"
"""The column of places, where rows are shown one below the other."""

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
    kinds: Mapping[str, Any] | None = None,
    position_bias: float | None = None,
    on_table: Callable[[str, int], None] | None = None,
) -> dict[str, Any]:
    """Write train.parquet (`rows`), valid.parquet and test.parquet (half as many each).

    Beside them stand schema.toml and ceiling.json, whose parts are returned. Valid and test
    also hold the true probabilities, which no method may read.

    Args:
        world: Where the rows come from.
        rows: Of the training table.
        path: The folder.
        seed: Decides everything that is drawn.
        overwrite: Replace a folder of an earlier simulation.
        kinds: Parts of a schema, `unwanted`, `graded` and `given`, by which labels are drawn again
            as objectives of these kinds (see `simulated_kinds`).
        position_bias: Rows of a request are shown in the order of the first objective's score, and
            place k is looked at with chance 1/log₂(1 + k) to this power; a row that is not looked
            at has no feedback. None: all rows are looked at.
        on_table: Called with the name and the rows of each table.
    """
    require_polars_threads("A simulation")
    if rows < FEWEST_ROWS:
        raise UsageError(f"`rows` must be at least {FEWEST_ROWS}. Got {rows}.")
    half = rows // 2
    start, horizon = 0, rows + 2 * half
    schema = replace(world_schema(world), **(kinds or {}))
    if position_bias is not None:
        schema.require_plain("A simulation with --position-bias")
    summary: dict[str, Any] = {}
    with new_folder(path, holds=SCHEMA, overwrite=overwrite) as folder:
        for index, (name, count) in enumerate((("train", rows), ("valid", half), ("test", half))):
            truth = name != "train"
            sample = world.sample(
                count, seed=seed, start=start, horizon=horizon, with_truth=truth or bool(kinds)
            )
            frame = as_frame(world, sample if truth else replace(sample, truth=None))
            if kinds:
                assert sample.truth is not None
                frame = with_kinds(frame, schema, sample.truth, seed=[seed, index], known=truth)
            if position_bias is not None:
                frame = with_places(frame, world, sample, position_bias, seed=(seed << 2) + index)
            with writing():
                frame.write_parquet(folder / f"{name}.parquet", statistics=False)
            start += count
            if on_table is not None:
                on_table(name, count)
            if name == "test":
                summary = _ceiling(world, sample)
                if kinds:
                    log = read_log(frame, schema)
                    summary = {"ceiling": ceiling_of(log, schema.weight_vector)}
        summary = {"world": world.name, "rows": rows, "seed": seed, **summary}
        if position_bias is not None:
            schema, curve = replace(schema, position=POSITION), examination_curve(position_bias, 30)
            summary["examination"] = {str(place): chance for place, chance in curve.items()}
        write_json(folder / "ceiling.json", summary)
        (folder / SCHEMA).write_text(schema.to_toml(), encoding="utf-8")
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


def with_places(
    frame: pl.DataFrame, world: AnyWorld, sample: Sample, power: float, *, seed: int
) -> pl.DataFrame:
    """Return the table of rows that were shown, with their places, and feedback as far as seen."""
    curve = examination_curve(power, int(np.bincount(sample.request - sample.request[0]).max()))
    shown = placed(sample, sample.scores[:, 0], curve, seed)
    labels = {name: shown.labels[:, m] for m, name in enumerate(world.objectives)}
    return frame.with_columns(pl.Series(POSITION, shown.position), **labels)


def _ceiling(world: AnyWorld, sample: Sample) -> dict[str, Any]:
    assert sample.truth is not None
    best = auc(best_score(sample.truth), sample.truth)
    return {
        "ceiling": float(best.sum()),
        "ceiling_auc": dict(zip(world.objectives, best.tolist(), strict=True)),
        "prevalence": dict(zip(world.objectives, sample.truth.mean(axis=0).tolist(), strict=True)),
    }
