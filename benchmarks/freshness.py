"""What a stream is worth: fresh against frozen under drift, and after an upstream swap.

    python benchmarks/freshness.py --json benchmarks/results/freshness.json

A world drifts over some days, and two of its upstream models are replaced at a given hour. The
real stream learns its events, joined after an hour's wait, and publishes through the guardrails of
a registry. Every hour is then scored by the version that was current when it began and, for
comparison, by the one that was current after the first day; results are exact AUC-sums by true
probabilities.
"""

import tempfile
from argparse import Namespace
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from store import ceiling, exact, options, write

from harmonrank.data import Log, read_log
from harmonrank.registry import Registry
from harmonrank.streaming import (
    BatchLearned,
    IntervalCompleted,
    LoopConfig,
    StreamConfig,
    open_sink,
    stream,
)
from harmonrank.worlds import world
from harmonrank_lab.worlds import Swap
from harmonrank_lab.worlds.stream import SimulatedStream

HOUR = timedelta(hours=1)


def written(events: SimulatedStream, folder: Path) -> pl.DataFrame:
    """Write all events, and return the exposures."""
    sink, shown = open_sink(str(folder)), []
    for chunk in events.chunks():
        sink.write(chunk)
        shown.append(chunk.filter(pl.col("event") == "exposure"))
    sink.close()
    return pl.concat(shown)


class Versions:
    """The published versions, and when each became current in the time of the events."""

    def __init__(self, happened: list[Any], config: StreamConfig, registry: Path) -> None:
        late, wait = timedelta(seconds=config.lateness), timedelta(seconds=config.window)
        made = [e for e in happened if e.version is not None]
        self.refused = [e.version.refused for e in made if e.version.refused is not None]
        self.made = [
            (e.end + late + (wait if isinstance(e, BatchLearned) else 0 * wait), e.version.version)
            for e in made
            if e.version.refused is None
        ]
        self.load = cache(Registry(registry).load)

    def at(self, when: datetime) -> int | None:
        """Return the version that was current at a time."""
        return next((number for ready, number in reversed(self.made) if ready <= when), None)


def mean_and_error(values: list[float]) -> dict[str, float]:
    error = float(np.std(values, ddof=1) / len(values) ** 0.5)
    return {"mean": float(np.mean(values)), "error": error}


def measured(
    events: SimulatedStream, shown: pl.DataFrame, versions: Versions, given: Namespace
) -> dict[str, Any]:
    schema = replace(events.schema, request=None)

    @cache
    def log_of(hour: int) -> Log:
        start = events.start + hour * HOUR
        part = shown.filter((pl.col("time") >= start) & (pl.col("time") < start + HOUR))
        return read_log(part.with_columns(pl.lit(0).alias(n) for n in schema.names), schema)

    @cache
    def reached(version: int, hour: int) -> float:
        return exact(versions.load(version).score(log_of(hour)), log_of(hour))

    frozen = versions.at(events.start + given.frozen * HOUR)
    assert frozen is not None, "no version was published before the frozen one"
    rows, gains = {}, []
    for hour in range(given.hours):
        start = events.start + hour * HOUR
        if (number := versions.at(start)) is None:
            continue
        of_hour = {"ceiling": ceiling(log_of(hour)), "streamed": reached(number, hour)}
        rows[hour] = {"hour": hour, "version": number, **of_hour, "frozen": reached(frozen, hour)}
        # Versions that became current since the last hour, each beside the one before it.
        for (_, before), (ready, new) in pairwise(versions.made):
            if start - HOUR < ready <= start:
                gains.append({"version": new, "gain": reached(new, hour) - reached(before, hour)})
    # The last day before the swap, which would make anything frozen look bad.
    day = [rows[h] for h in range(given.swap - 24, given.swap) if h in rows]
    lost = {h: r["ceiling"] - r["streamed"] for h, r in rows.items()}
    base = float(np.mean([lost[h] for h in range(given.swap - 6, given.swap)]))
    before = versions.at(events.start + given.swap * HOUR)
    after = range(given.swap, min(given.swap + 6, given.hours))
    stale = {h: rows[h]["ceiling"] - reached(before, h) for h in after}
    return {
        "last_day": {
            "streamed": mean_and_error([r["streamed"] for r in day]),
            "frozen": mean_and_error([r["frozen"] for r in day]),
            "gain": mean_and_error([r["streamed"] - r["frozen"] for r in day]),
        },
        "before_swap_regret": base,
        "swap_regret_without": stale,
        "swap_regret": {h: lost[h] for h in stale},
        "recovered": {h: 1 - (lost[h] - base) / (s - base) for h, s in stale.items() if s > base},
        "least_gain_of_a_version": min((one["gain"] for one in gains), default=None),
        "gains": gains,
        "hours": list(rows.values()),
        "published": len(versions.made),
        "refused": versions.refused,
    }


if __name__ == "__main__":
    given = options(
        __doc__, world="elive", hours=72, rows=25_000, drift=0.5, swap=66, frozen=24, seed=1
    )
    place = world(given.world)
    change = Swap(given.swap / given.hours, place.objectives[1:3], a=1.5, b=-1.0)
    moving = place.drifting(mu_amplitude=given.drift, swap=change)
    events = SimulatedStream(moving, given.rows * given.hours, given.hours, given.seed)
    with tempfile.TemporaryDirectory() as folder:
        at, config, happened = Path(folder), StreamConfig(), []
        shown = written(events, at / "events")
        for event in stream(
            str(at / "events"), events.schema, config, at / "state",
            registry=at / "registry", loop=LoopConfig(once=True),
        ):  # fmt: skip
            if isinstance(event, BatchLearned | IntervalCompleted):
                happened.append(event)
                print(type(event).__name__, f"{event.start:%d %H}h", event.version, flush=True)
        figures = measured(events, shown, Versions(happened, config, at / "registry"), given)
    settings = {k: v for k, v in vars(given).items() if k != "json"}
    write(given.json, {"settings": settings, **figures})
