"""Drift: the last rows that a service scored, and what it does when an upstream model changes."""

__all__ = ["DriftWatch", "RecentRows"]

import shlex
from pathlib import Path
from typing import Any, Self

import numpy as np
import polars as pl

from harmonrank.data import ContextEncoder, Schema
from harmonrank.data.reading.parquet import writing
from harmonrank.fusion.drift.drift import Drift
from harmonrank.registry.target import load_target, registry_of
from harmonrank.serving.counters import new_array
from harmonrank.serving.runtime import Candidates
from harmonrank.serving.settings import DRIFT, OnEvent, ServeConfig
from harmonrank.support.errors import HarmonRankError
from harmonrank.support.storage.files import new_file, read_json, write_json

_EACH = 32
"""Most rows that a request adds."""
_FORM, _ROWS, _COUNTS = "sample.json", "sample.rows", "sample.counts"
SAMPLE = "sample.parquet"
_FEWEST = 1000


class RecentRows:
    """A ring of rows per worker in files that all processes of a service see.

    A category is stored by its code, so that every row has the same size; a value that the model
    does not know is not kept.

    Args:
        folder: Where the files are.
        schema: Of the model.
        encoder: Of its context, the same one in all processes.
    """

    def __init__(self, folder: Path, schema: Schema, encoder: ContextEncoder) -> None:
        # As plain arrays: a part of a mapped file takes ten times as long to make.
        self._counts = np.asarray(np.memmap(folder / _COUNTS, "i8", mode="r+"))
        rows: np.ndarray = np.memmap(folder / _ROWS, _row(schema, encoder), mode="r+")
        self._rows = np.asarray(rows).reshape(len(self._counts), -1)
        self._scores, self._context = self._rows["scores"], self._rows["context"]
        self._schema, self._encoder = schema, encoder
        self._rng = np.random.default_rng()

    @classmethod
    def new(
        cls, folder: Path, schema: Schema, encoder: ContextEncoder, workers: int, rows: int
    ) -> Self:
        """Make the files: a ring for each worker, with so many rows together."""
        new_array(folder / _COUNTS, "i8", (workers,))
        new_array(folder / _ROWS, _row(schema, encoder), (workers, max(rows // workers, 1)))
        form = {"schema": schema.to_dict(), "context": encoder.to_dict()}
        write_json(folder / _FORM, form)
        return cls(folder, schema, encoder)

    @classmethod
    def shared(cls, folder: Path) -> Self | None:
        """Return those of a service; None if it keeps none."""
        if not (folder / _FORM).is_file():
            return None
        parts = read_json(folder / _FORM)
        schema = Schema.from_dict(parts["schema"])
        return cls(folder, schema, ContextEncoder.from_dict(parts["context"]))

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
        rows = (start + np.arange(few)) % size  # At the end the ring begins again.
        self._scores[worker][rows] = candidates.scores[picked]
        if self._encoder.features:
            self._add_context(self._context[worker], rows, picked, candidates)
        self._counts[worker] += few

    def _add_context(
        self, ring: np.ndarray, rows: Any, picked: np.ndarray, candidates: Candidates
    ) -> None:
        features, own = self._encoder.features, candidates.own
        # What all candidates share is one row; only columns in which they differ come one by one.
        ring[rows] = [
            np.nan if feature.name in own else _shared(feature, candidates.shared[feature.name])
            for feature in features
        ]
        for column, feature in enumerate(features):
            if feature.name in own:
                series = own[feature.name].gather(picked).alias("value")
                number = feature.kind == "number"
                value = series.cast(pl.Float64).to_numpy() if number else feature.encode(series)
                ring[rows, column] = value

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


def _row(schema: Schema, encoder: ContextEncoder) -> np.dtype[Any]:
    return np.dtype(
        [("scores", "f4", (len(schema.names),)), ("context", "f8", (len(encoder.names),))]
    )


def _shared(feature: Any, value: Any) -> Any:
    """Return a context value as it is stored: a number, or the code of a category."""
    if feature.kind != "number":
        return feature.encode_value(value)
    return np.nan if value is None else value


class DriftWatch:
    """Looks at the sample from time to time; never changes a model by itself, unless told.

    Args:
        config: Of the service.
        folder: What its processes share; here the report appears, and with an alarm the sample.
        sample: What was scored.
        on_event: Called with the name of an event and its facts.
    """

    def __init__(
        self, config: ServeConfig, folder: Path, sample: RecentRows, on_event: OnEvent
    ) -> None:
        self._config, self._folder, self._sample = config, folder, sample
        self._on_event = on_event
        self._seen = 0
        self._alarmed: tuple[str, tuple[str, ...]] | None = None

    @property
    def alarmed(self) -> bool:
        """Whether a sample was kept for the one who is asked to recalibrate."""
        return self._alarmed is not None

    def look(self) -> Drift | None:
        """Measure, report, and raise an alarm or recalibrate if a model was replaced."""
        if self._sample.seen - self._seen < _FEWEST:
            return None
        self._seen = self._sample.seen
        model, version = load_target(self._config.target)
        frame = self._sample.frame()
        drift = model.drift(frame)
        command = None
        if drift.replaced:
            command = self._act(version, drift, frame)
        with new_file(self._folder / DRIFT, overwrite=True) as made:
            write_json(made, {**drift.to_dict(), "version": version, "command": command})
        return drift

    def _act(self, version: str, drift: Drift, frame: pl.DataFrame) -> str | None:
        """Do once, for each version and each set of scores, what the settings say."""
        command = self.command()
        if self._alarmed == (version, drift.replaced):
            return command
        with new_file(self._folder / SAMPLE, overwrite=True) as made, writing():
            frame.write_parquet(made)
        # Only now: what could not be written is tried again at the next look.
        self._alarmed = version, drift.replaced
        facts = {"version": version, "scores": list(drift.replaced), "command": command}
        self._on_event("upstream replaced", facts)
        if self._config.recalibrate == "auto":
            self._recalibrate(version, frame)
        return command

    def command(self) -> str:
        """Return the one command that recalibrates what is served."""
        target, sample = self._config.target, str(self._folder / SAMPLE)
        if registry_of(target) is not None:
            parts = ["harmonrank", "registry", "publish", target, "--recalibrated-on", sample]
        else:
            parts = ["harmonrank", "recalibrate", target, sample, "-o", f"{target}-recalibrated"]
        return shlex.join(parts)

    def _recalibrate(self, version: str, frame: pl.DataFrame) -> None:
        registry = registry_of(self._config.target)
        assert registry is not None, "auto is refused without a registry"
        try:
            note = "Recalibrated by the service, as an upstream model was replaced."
            model = registry.load(int(version)).recalibrated(frame)
            made = registry.publish(model, frame, note=note, recalibrated=True)
        except HarmonRankError as error:
            self._on_event("recalibration refused", {"reason": str(error)})
            return
        if made.refused is None:
            self._on_event("recalibrated", {"version": made.number, "before": version})
        else:
            reason = {"version": made.number, "reason": made.refused}
            self._on_event("recalibration refused", reason)
