"""How fast a stream is.

    python benchmarks/streaming.py network --json benchmarks/results/streaming_network.json
    python benchmarks/streaming.py network --method harmonrank --rows 4000000 --hours 4 \\
        --json benchmarks/results/streaming_default.json
    python benchmarks/streaming.py join --json benchmarks/results/streaming_join.json

`network`: joined events per second and labelled rows per second that a method learns, on the world
elive; a network makes 20 passes over each hourly batch beside as many earlier rows. The events are
in memory before the clock starts; the first fit is timed on its own. Beside seconds there is
processor time, which a busy machine does not stretch as much.

`join`: an hour of a world's exposures is drawn once, with its feedback, which also comes in later
hours. Hour after hour it is written again to a folder of parquet files, later and with other
requests, then read, joined and committed as a stream does, and removed. Writing is not timed;
reading, checking and joining are, and commits by themselves. After each hour the resident memory of
the process is written down. Its slope is that of a straight line through all hours but the first
quarter, in which windows fill and the allocator settles.
"""

import os
from argparse import Namespace
from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl
from store import clocked, options, resident, write

from harmonrank.data import Schema, read_log
from harmonrank.streaming import (
    Batch,
    Join,
    LearnerSettings,
    Windows,
    new_learner,
    open_sink,
    open_source,
)
from harmonrank.streaming.state.commits import Commits
from harmonrank.worlds import world
from harmonrank_lab.worlds.stream import SimulatedStream

HOUR = timedelta(hours=1)


class Stopwatch:
    """Adds up the seconds, and the processor's, of named pieces of work."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.cpu: dict[str, float] = defaultdict(float)

    def __call__(self, name: str, work: Callable[[], Any]) -> Any:
        result, wall, cpu = clocked(work)
        self.seconds[name] += wall
        self.cpu[name] += cpu
        return result


def network(given: Namespace) -> dict[str, Any]:
    """Measure join and learner."""
    platform = SimulatedStream(world("elive"), rows=given.rows, hours=given.hours)
    chunks, schema = list(platform.chunks()), platform.schema
    join = Join(schema, Windows())
    learner = new_learner(given.method, {}, schema, LearnerSettings(passes=given.passes))
    watch, learned = Stopwatch(), 0
    for chunk in chunks:
        watch("join", partial(join.add, chunk))
        for step in watch("join", join.ready):
            if isinstance(step, Batch):
                name, rows = "first fit" if learner.model is None else "learn", step.rows
                learn = partial(learner.learned, seed=learned, at=step.end)
                learner = watch(name, lambda r=rows, f=learn: f(read_log(r, schema)))
                learned += rows.height if name == "learn" else 0
    figures = {"method": given.method, "passes": given.passes, "learned_rows": learned}
    for clock, spent in (("second", watch.seconds), ("cpu_second", watch.cpu)):
        figures[f"events_joined_per_{clock}"] = sum(c.height for c in chunks) / spent["join"]
        figures[f"rows_learned_per_{clock}"] = learned / spent["learn"]
        # Not all rows were learned.
        each = spent["join"] / given.rows + spent["learn"] / learned
        figures[f"rows_per_{clock}"] = 1 / each
    return figures


class Traffic:
    """Writes the same hour of events again and again, each time an hour later."""

    def __init__(self, folder: Path, rows: int, disorder: float) -> None:
        begin = datetime(2020, 1, 1, tzinfo=UTC)
        stream = SimulatedStream(world("elive"), rows, hours=1, disorder=disorder, start=begin)
        self.schema = stream.schema
        events = pl.concat(stream.chunks())
        # Feedback may come hours after its exposure, between the events of a later hour.
        events = events.with_columns(arrived=pl.col("time").cum_max())
        hours = (events["arrived"] - stream.start).dt.total_hours()
        self._parts = [events.filter(hours == hour) for hour in range(hours.max() + 1)]
        self._sink = open_sink(str(folder))

    def write(self, hour: int) -> int:
        """Write the events that arrive in an hour; return how many."""
        parts = [
            part.with_columns(
                pl.col("time", "arrived") + (hour - late) * HOUR,
                pl.concat_str(pl.lit(f"{hour - late}."), "request").alias("request"),
            )
            for late, part in enumerate(self._parts[: hour + 1])
        ]
        events = pl.concat(parts).sort("arrived", maintain_order=True).drop("arrived")
        for part in events.iter_slices(100_000):
            self._sink.write(part)
        return events.height


class Reader:
    """Reads, joins and commits, and measures what that takes."""

    def __init__(self, place: Path, schema: Schema) -> None:
        self._place, self.watch = place, Stopwatch()
        self._source = open_source(str(place / "events"), schema)
        self.join, self._offset = Join(schema, Windows()), None
        self._commits, self.events, self.rows = Commits(place), 0, 0

    def hour(self) -> None:
        """Take all that is there, and commit."""
        self.watch("read", self._read)
        self.watch("commit", self._commit)
        for path in (self._place / "events").glob("*.parquet"):
            path.unlink()

    def _read(self) -> None:
        while (chunk := self._source.read(self._offset, 200_000)) is not None:
            self._offset = chunk.offset
            self.join.add(chunk.events)
            self.events += chunk.events.height
            for one in self.join.ready():
                self.rows += one.rows.height if isinstance(one, Batch) else 0
            self.join.take_aside()

    def _commit(self) -> None:
        frames = {f"{name}.parquet": frame for name, frame in self.join.frames().items()}
        self._commits.commit({"join.json": self.join.record(), **frames})
        os.sync()


def join(given: Namespace) -> dict[str, Any]:
    """Write, read, join and commit hour after hour."""
    with TemporaryDirectory() as folder:
        traffic = Traffic(Path(folder) / "events", given.hour_rows, given.disorder)
        reader, over_time = Reader(Path(folder), traffic.schema), []
        while reader.events < given.events:
            traffic.write(len(over_time))
            reader.hour()
            over_time.append({"events": reader.events, "resident_mb": resident()})
            print(over_time[-1], flush=True)
    later = over_time[len(over_time) // 4 :]
    line = [x["events"] / 1e6 for x in later], [x["resident_mb"] for x in later]
    slope = np.polyfit(*line, 1)[0] if len(later) > 2 else np.nan
    seconds, cpu = reader.watch.seconds, reader.watch.cpu
    return {
        "events": reader.events,
        "labelled_rows": reader.rows,
        "counts": reader.join.counts,
        "events_per_second": round(reader.events / seconds["read"]),
        "events_per_cpu_second": round(reader.events / cpu["read"]),
        "commit_seconds_each": round(seconds["commit"] / len(over_time), 3),
        "memory_slope_mb_per_million_events": round(float(slope), 3),
        "over_time": over_time,
    }


if __name__ == "__main__":
    given = options(
        __doc__, "part", rows=1_000_000, hours=10.0, method="harmonrank-paper", passes=20,
        events=50_000_000, hour_rows=200_000, disorder=0.02,
    )  # fmt: skip
    write(given.json, {"network": network, "join": join}[given.part](given))
