"""Rows: logs to measure with."""

__all__ = ["schema_of", "table_of", "world_log", "write_repeated"]

from functools import cache
from pathlib import Path

import numpy as np
import polars as pl

from harmonrank.data import Log, Schema, read_log
from harmonrank.data.reading import ParquetWriter
from harmonrank.worlds import as_frame, world, world_schema

_PIECE = 500_000
_REQUEST_ROWS = 20
_SLOTS = {"hour": 24, "app_version": 10, "age": 8, "gender": 3}


@cache
def world_log(rows: int, name: str = "elive") -> Log:
    """Return rows of a world: in 'elive' five objectives and four context features."""
    place = world(name)
    sample = place.sample(rows, seed=0, with_truth=False)
    return read_log(as_frame(place, sample), world_schema(place))


def schema_of(objectives: int) -> Schema:
    """Return the schema of `table_of`."""
    names = {f"y{m}": f"p{m}" for m in range(objectives)}
    return Schema(names, context=tuple(_SLOTS), request="request_id")


def table_of(rows: int, objectives: int, seed: int = 0) -> pl.DataFrame:
    """Draw a plain log: a shared and an own part of each logit, labels by the probabilities."""
    rng = np.random.default_rng(seed)
    columns: dict[str, np.ndarray] = {"request_id": np.arange(rows) // _REQUEST_ROWS}
    for name, slots in _SLOTS.items():
        columns[name] = rng.integers(0, slots, rows, dtype=np.int16)
    shared = rng.normal(size=rows)
    for m in range(objectives):
        logit = shared + rng.normal(size=rows) - 3.0
        seen = logit + 0.5 * rng.normal(size=rows)
        columns[f"p{m}"] = 1 / (1 + np.exp(-seen))
        columns[f"y{m}"] = (rng.random(rows) < 1 / (1 + np.exp(-logit))).astype(np.uint8)
    return pl.DataFrame(columns)


def write_repeated(path: Path, rows: int, objectives: int = 5, *, labels: bool = True) -> int:
    """Write such a log of any length by repeating its first rows; return its bytes in memory."""
    piece = table_of(min(rows, _PIECE), objectives)
    if not labels:
        piece = piece.drop(schema_of(objectives).names)
    total = 0
    with ParquetWriter(path) as writer:
        for start in range(0, rows, _PIECE):
            request = pl.col("request_id") + start // _REQUEST_ROWS
            part = piece.head(rows - start).with_columns(request)
            writer.put(part)
            total += int(part.estimated_size())
    return total
