"""Simulation: the events of a world in order of arrival, over so many hours.

Every row is an exposure, and every positive label becomes feedback after an exponential delay: a
third of an hour on average for the first objective, less for each that follows, so that most but
not all of it comes within the hour. Time runs over the hours as a world's time runs from 0 to 1,
so drift and swaps of upstream models happen on the way.
"""

__all__ = ["SimulatedStream"]

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property

import numpy as np
import polars as pl

from harmonrank.data import Schema
from harmonrank.streaming import AHEAD, EventForm
from harmonrank.support import UsageError
from harmonrank.worlds import AnyWorld, Sample, as_frame, world_schema

_BLOCK = 1 << 16
_HOUR = 3_600_000_000
_LONGEST_DELAY = _HOUR / 3
_MEAN_LATENESS = _HOUR / 30
_DUPLICATES = 0.1
_USERS = 100_003
_SPREAD = 2_654_435_761
_ARRIVAL = "\0arrival"


@dataclass(frozen=True)
class SimulatedStream:
    """The events of a world.

    Attributes:
        world: Which; perhaps one that drifts.
        rows: Exposures in all.
        hours: Over so many hours.
        seed: Draws other rows of the same world, and other delays.
        start: When the first request comes.
        disorder: The share of events that arrive late, by two minutes on average; a tenth as many
            arrive twice.
    """

    world: AnyWorld
    rows: int
    hours: float
    seed: int = 0
    start: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    disorder: float = 0.0

    def __post_init__(self) -> None:
        if not 0 < self.hours <= 1_000_000:
            raise UsageError(f"`hours` must be above 0, up to a million. Got {self.hours:g}.")
        if not 0 <= self.disorder <= 1:
            raise UsageError(f"`disorder` must lie in [0, 1]. Got {self.disorder:g}.")
        end = self.start + timedelta(hours=self.hours)
        if end > datetime.now(UTC) + AHEAD:
            raise UsageError(
                f"The stream would end at {end:%Y-%m-%d %H:%M}, and events from the future are "
                "taken for broken clocks; choose an earlier start."
            )

    @cached_property
    def schema(self) -> Schema:
        """The schema of its exposures, truth columns included."""
        return replace(world_schema(self.world), time="time")

    @cached_property
    def form(self) -> EventForm:
        """What its events look like."""
        return EventForm(self.schema, dict.fromkeys(self.world.context, "integer"))

    def chunks(self) -> Iterator[pl.DataFrame]:
        """Yield all events in order of arrival, some tens of thousands at a time."""
        waiting = self._frame([])
        for first in range(0, self.rows, _BLOCK):
            rows = min(_BLOCK, self.rows - first)
            sample = self.world.sample(rows, seed=self.seed, start=first, horizon=self.rows)
            waiting = self._frame([waiting, *self._drawn(sample, first)])
            # What comes with the next rows comes after their times.
            last = first + rows >= self.rows
            until = waiting[_ARRIVAL].max() if last else int(self._times(sample)[-1]) - 1
            yield waiting.filter(pl.col(_ARRIVAL) <= until).drop(_ARRIVAL)
            waiting = waiting.filter(pl.col(_ARRIVAL) > until)

    def _frame(self, parts: list[pl.DataFrame]) -> pl.DataFrame:
        empty = self.form.empty().drop("fault", "raw").with_columns(pl.lit(0).alias(_ARRIVAL))
        joined = pl.concat([empty, *parts], how="diagonal_relaxed")
        return joined.sort(_ARRIVAL, maintain_order=True)

    def _times(self, sample: Sample) -> np.ndarray:
        start = int(self.start.timestamp() * 1_000_000)
        return np.asarray(start + (sample.time * self.hours * _HOUR).astype(np.int64))

    def _drawn(self, sample: Sample, first: int) -> list[pl.DataFrame]:
        """Return the exposures of some rows, and the feedback on each objective."""
        # Two generators, so that the events stay the same whatever their disorder.
        delays, disorder = (np.random.default_rng([self.seed, first, part]) for part in (0, 1))
        times = self._times(sample)
        rows = as_frame(self.world, sample)
        number = pl.Series(first + np.arange(rows.height))
        own = [pl.col(name).cast(self.form.types[name]) for name in self.form.columns]
        request = rows["request_id"]
        shown = rows.select(
            event=pl.lit("exposure"),
            request=request.cast(pl.String),
            item=number.cast(pl.String),
            time=pl.Series(times).cast(self.form.types["time"]),
            user=((request * _SPREAD) % _USERS).cast(pl.String),
            # A request is numbered by its first row.
            position=number - request + 1,
        ).hstack(rows.select(own))
        parts = [self._arriving(shown, times, disorder)]
        common = shown.select("request", "item", "user")
        objectives = self.schema.names
        for m, name in enumerate(objectives):
            chosen = np.flatnonzero(sample.labels[:, m])
            mean = _LONGEST_DELAY * (len(objectives) - m) / len(objectives)
            given = times[chosen] + delays.exponential(mean, len(chosen)).astype(np.int64)
            told = common[chosen].with_columns(
                event=pl.lit("feedback"), objective=pl.lit(name), value=pl.lit(1.0),
                time=pl.Series(given).cast(self.form.types["time"]),
            )  # fmt: skip
            parts.append(self._arriving(told, given, disorder))
        return parts

    def _arriving(
        self, events: pl.DataFrame, times: np.ndarray, rng: np.random.Generator
    ) -> pl.DataFrame:
        """Return events with their time of arrival; some are late, and some of them come twice."""
        late = rng.random(len(times)) < self.disorder
        wait = np.where(late, rng.exponential(_MEAN_LATENESS, len(times)), 0.0).astype(np.int64)
        arriving = events.with_columns(pl.Series(_ARRIVAL, times + wait))
        twice = np.flatnonzero(rng.random(len(times)) < _DUPLICATES * self.disorder)
        again = rng.exponential(_MEAN_LATENESS, len(twice)).astype(np.int64)
        arrival = pl.Series(_ARRIVAL, times[twice] + again)
        return pl.concat([arriving, events[twice].with_columns(arrival)])
