"""Recent rows: the last rows that a service scored, a few of each request, to measure drift on."""

__all__ = ["RecentRows"]

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from harmonrank.data import ContextEncoder, Schema
from harmonrank.serving.runtime import Candidates

_EACH = 32
"""Rows that a request adds at most."""


class RecentRows:
    """A ring of rows per worker in files that all processes of a service see.

    A category is stored by its code, so that every row has the same size; a value that the model
    does not know is not kept.

    Args:
        folder: Where the files are.
        schema: Of the model.
        encoder: Of its context, the same one in all processes.
        workers: How many rings; the files are made if it is given.
        rows: Of all rings together.
    """

    def __init__(
        self,
        folder: Path,
        schema: Schema,
        encoder: ContextEncoder,
        workers: int | None = None,
        rows: int = 0,
    ) -> None:
        row = np.dtype(
            [("scores", "f4", (len(schema.names),)), ("context", "f8", (len(encoder.names),))]
        )
        files = folder / "sample.rows", folder / "sample.counts"
        if workers is None:
            counts = np.memmap(files[1], "i8", mode="r+")
            kept = np.memmap(files[0], row, mode="r+").reshape(len(counts), -1)
        else:
            each = max(rows // workers, 1)
            counts = np.memmap(files[1], "i8", mode="w+", shape=(workers,))
            kept = np.memmap(files[0], row, mode="w+", shape=(workers, each))
        # As plain arrays: a part of a mapped file takes ten times as long to make.
        self._counts, self._rows = np.asarray(counts), np.asarray(kept)
        self._scores, self._context = self._rows["scores"], self._rows["context"]
        self._schema, self._encoder = schema, encoder
        self._rng = np.random.default_rng()

    @property
    def seen(self) -> int:
        """How many rows were ever added."""
        return int(self._counts.sum())

    def add(self, worker: int, candidates: Candidates) -> None:
        """Keep a few rows of a request, in place of the oldest ones."""
        size = self._rows.shape[1]
        few = min(candidates.rows, _EACH, size)
        picked = self._rng.integers(0, candidates.rows, few)
        places = (int(self._counts[worker]) + np.arange(few)) % size
        self._scores[worker][places] = candidates.scores[picked]
        context = self._context[worker]
        for column, feature in enumerate(self._encoder.features):
            if feature.name in candidates.own:
                series = candidates.own[feature.name].gather(picked).alias("value")
                value: Any = feature.encode(series)
                if feature.kind == "number":
                    value = series.cast(pl.Float64).to_numpy()
            else:
                value = candidates.shared[feature.name]
                if feature.kind != "number":
                    value = feature.encode_value(value)
            context[places, column] = np.nan if value is None else value
        self._counts[worker] += few

    def frame(self) -> pl.DataFrame:
        """Return the rows as a table, of each worker the oldest first."""
        kept = []
        for ring, count in zip(self._rows, self._counts.tolist(), strict=True):
            kept.append(ring[:count] if count < len(ring) else np.roll(ring, -(count % len(ring))))
        rows = np.concatenate(kept)
        scores = zip(self._schema.score_columns, rows["scores"].T, strict=True)
        columns = [pl.Series(name, values) for name, values in scores]
        for values, feature in zip(rows["context"].T, self._encoder.features, strict=True):
            if feature.kind == "number":
                columns.append(pl.Series(feature.name, values, nan_to_null=True))
            else:
                known = pl.Series(feature.name, [None, *feature.values])
                columns.append(known.gather(values.astype(np.int64)))
        return pl.DataFrame(columns)
