"""Recent rows: the last rows that a service scored, a few of each request, to measure drift on."""

__all__ = ["RecentRows"]

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from harmonrank.data import ContextEncoder, Schema
from harmonrank.serving.runtime import Candidates
from harmonrank.serving.shared import new_array

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
            counts: np.ndarray = np.memmap(files[1], "i8", mode="r+")
            kept: np.ndarray = np.memmap(files[0], row, mode="r+").reshape(len(counts), -1)
        else:
            each = max(rows // workers, 1)
            counts = new_array(files[1], "i8", (workers,))
            kept = new_array(files[0], row, (workers, each))
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
        start = int(self._counts[worker]) % size
        places: Any = slice(start, start + few)
        if start + few > size:  # The ring begins again.
            places = (start + np.arange(few)) % size
        self._scores[worker][places] = candidates.scores[picked]
        if self._encoder.features:
            self._add_context(self._context[worker], places, picked, candidates)
        self._counts[worker] += few

    def _add_context(
        self, ring: np.ndarray, places: Any, picked: np.ndarray, candidates: Candidates
    ) -> None:
        features, own = self._encoder.features, candidates.own
        # What all candidates share is one row; only columns in which they differ come one by one.
        ring[places] = [
            np.nan if feature.name in own else _shared(feature, candidates.shared[feature.name])
            for feature in features
        ]
        for column, feature in enumerate(features):
            if feature.name in own:
                series = own[feature.name].gather(picked).alias("value")
                number = feature.kind == "number"
                value = series.cast(pl.Float64).to_numpy() if number else feature.encode(series)
                ring[places, column] = value

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


def _shared(feature: Any, value: Any) -> Any:
    """Return a context value as it is stored: a number, or the code of a category."""
    if feature.kind != "number":
        return feature.encode_value(value)
    return np.nan if value is None else value
