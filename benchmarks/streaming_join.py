"""The part `join` of benchmarks/streaming.py: events a second, and memory over a long run."""

import argparse
import resource
import shutil
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl

from harmonrank.data import Schema
from harmonrank.streaming.join.join import Batch, Join
from harmonrank.streaming.join.windows import Windows
from harmonrank.streaming.sources.source import open_sink, open_source
from harmonrank.support.storage.files import flush
from harmonrank.worlds import world
from harmonrank_lab.worlds.stream import SimulatedStream

HOUR = timedelta(hours=1)


def resident() -> float:
    """Return the resident memory of this process, in megabytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return round(pages * resource.getpagesize() / 1e6, 1)


class Traffic:
    """Writes the same hour of events again and again, each time an hour later."""

    def __init__(self, folder: Path, rows: int, disorder: float) -> None:
        stream = SimulatedStream(
            world("elive"),
            rows,
            hours=1,
            disorder=disorder,
            start=datetime(2020, 1, 1, tzinfo=UTC),
        )
        self.schema = stream.schema
        events = pl.concat(stream.chunks())
        # Feedback may come hours after its exposure, between the events of a later hour.
        events = events.with_columns(arrived=pl.col("time").cum_max())
        since = events["arrived"] - stream.start
        hours = since.dt.total_hours()
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

    def __init__(self, place: Path, schema: Schema, most: int) -> None:
        self._place, self._most = place, most
        self._source = open_source(str(place / "events"), schema)
        self.join = Join(schema, Windows())
        self._offset, self._commits = None, 0
        self.events = self.rows = 0
        self.seconds = self.cpu = self.commit_seconds = 0.0

    def hour(self) -> None:
        """Take all that is there, and commit."""
        begun, cpu = time.perf_counter(), time.process_time()
        while (chunk := self._source.read(self._offset, self._most)) is not None:
            self._offset = chunk.offset
            self.join.add(chunk.events)
            self.events += chunk.events.height
            for one in self.join.ready():
                self.rows += one.rows.height if isinstance(one, Batch) else 0
            self.join.take_aside()
        self.seconds += time.perf_counter() - begun
        self.cpu += time.process_time() - cpu
        begun = time.perf_counter()
        self._commit()
        self.commit_seconds += time.perf_counter() - begun
        for path in (self._place / "events").glob("*.parquet"):
            path.unlink()

    def _commit(self) -> None:
        before = self._place / str(self._commits)
        self._commits += 1
        made = self._place / str(self._commits)
        self.join.save(made, before=before if before.exists() else None)
        flush(made)
        shutil.rmtree(before, ignore_errors=True)


def measure_join(options: argparse.Namespace) -> dict[str, Any]:
    """Write, read, join and commit hour after hour."""
    with TemporaryDirectory(dir=options.place) as folder:
        place = Path(folder)
        traffic = Traffic(place / "events", options.hour_rows, options.disorder)
        reader = Reader(place, traffic.schema, options.most)
        over_time = []
        while reader.events < options.events:
            count, seconds = traffic.write(len(over_time)), reader.seconds
            reader.hour()
            over_time.append(
                {
                    "events": reader.events,
                    "resident_mb": resident(),
                    "events_per_second": round(count / (reader.seconds - seconds)),
                }
            )
            print(over_time[-1], flush=True)
    later = over_time[len(over_time) // 4 :]
    millions, memory = zip(*[(x["events"] / 1e6, x["resident_mb"]) for x in later], strict=True)
    slope = np.polyfit(millions, memory, 1)[0] if len(later) > 2 else np.nan
    return {
        "events": reader.events,
        "labelled_rows": reader.rows,
        "counts": reader.join.counts,
        "open_rows": reader.join.waiting["exposures"],
        "events_per_second": round(reader.events / reader.seconds),
        "events_per_cpu_second": round(reader.events / reader.cpu),
        "events_per_second_with_commits": round(
            reader.events / (reader.seconds + reader.commit_seconds)
        ),
        "commit_seconds_each": round(reader.commit_seconds / len(over_time), 3),
        "memory_slope_mb_per_million_events": round(float(slope), 3),
        "over_time": over_time,
    }
