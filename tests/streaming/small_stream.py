"""Events of a small world in memory, and a source that hands them out."""

from pathlib import Path

import msgspec
import numpy as np
import polars as pl

from harmonrank.registry import Guardrails, Registry
from harmonrank.streaming import (
    EventChunk,
    LearnerSettings,
    LoopConfig,
    StreamConfig,
    read_history,
    stream,
)
from harmonrank.worlds import as_frame, world_schema
from harmonrank_lab.worlds import lab_world as world

WORLD = world("conflict").subset(["like", "long_view"])
SWAPPED = WORLD.with_upstream(("like",), a=1.6, b=-1.0)
SCHEMA = world_schema(WORLD)
HOUR = 3600
CONFIG = StreamConfig(method="closed-form", learner=LearnerSettings(first_rows=200))
ROOMY = Guardrails(tolerance=0.2, calibration=None)
"""Guardrails for batches of some hundred rows."""
PASSING = ("lag_seconds", "rows_per_second", "aside")
"""What a line of the history says of the moment at which it was written."""


def events_of(hours=6, rows=1200, *, seed=0, swap=None, delay=1200, start=1_700_000_000 // HOUR):
    """Return the events of some hours, in order of arrival, as the canonical frame.

    The upstream model of like is swapped at the hour `swap`. Feedback comes within `delay` seconds.
    """
    rng, parts = np.random.default_rng(seed), []
    for hour in range(hours):
        frame = as_frame(WORLD, WORLD.sample(rows, seed=1000 * seed + hour))
        at = np.sort(rng.uniform(0, HOUR, rows // 10)).repeat(10)[: len(frame)]
        if swap is not None:
            # The same rows, with the scores of another upstream model from some moment on.
            other = as_frame(SWAPPED, SWAPPED.sample(rows, seed=1000 * seed + hour))
            new = pl.Series(hour + at / HOUR >= swap)
            like = pl.when(new).then(other["p_like"]).otherwise(pl.col("p_like"))
            frame = frame.with_columns(p_like=like)
        micros = ((start + hour) * HOUR + at) * 1e6
        exposures = frame.with_columns(
            event=pl.lit("exposure"),
            request=pl.Series([f"{hour}-{i // 10}" for i in range(len(frame))]),
            item=pl.Series([str(i % 10) for i in range(len(frame))]),
            time=pl.Series(micros.astype(np.int64)),
            user=pl.lit(None, pl.String),
            position=pl.Series(np.arange(len(frame)) % 10),
        ).drop(SCHEMA.names)
        parts.append(exposures)
        for name in SCHEMA.names:
            rated = exposures.filter(frame[name].cast(bool))
            later = (rng.uniform(1, delay, len(rated)) * 1e6).astype(np.int64)
            parts.append(
                rated.select(
                    "request",
                    "item",
                    event=pl.lit("feedback"),
                    time=pl.col("time") + pl.Series(later),
                    objective=pl.lit(name),
                    value=pl.lit(1.0),
                )
            )
    events = pl.concat(parts, how="diagonal_relaxed").sort("time", maintain_order=True)
    first = [*("event", "request", "item", "time", "user", "position"), *SCHEMA.score_columns]
    notes = [pl.lit(None, pl.String).alias(name) for name in ("fault", "raw")]
    times = pl.from_epoch("time", "us").dt.replace_time_zone("UTC")
    return events.select(*first, pl.exclude(*first)).with_columns(*notes, time=times)


class ListSource:
    """Hands out the events of a frame; a position is a row."""

    def __init__(self, events, most=None):
        self.events, self.most, self.acknowledged = events, most, None

    def read(self, after, most):
        first = 0 if after is None else after["row"]
        result = self.events[first : first + min(most, self.most or most)]
        return EventChunk(result, {"row": first + len(result)}) if len(result) else None

    def committed(self, offset):
        self.acknowledged = offset["row"]

    def waiting(self):
        return None

    def close(self):
        pass


class Place:
    """The folders of a stream, and how it is run there."""

    def __init__(self, folder, events, *, config=CONFIG, rules=ROOMY, most=None):
        self.state, self.registry = Path(folder) / "state", Path(folder) / "registry"
        self.config, self.source = config, ListSource(events, most)
        if rules is not None and not self.registry.exists():
            Registry.create(self.registry, rules)

    def run(self, *, registry=True, stop=None, source=None, period=None, **loop):
        """Yield what happens until nothing is left."""
        return stream(
            "list://",
            SCHEMA,
            self.config,
            self.state,
            registry=self.registry if registry else None,
            loop=LoopConfig(once=True, first_pause=0.001, longest_pause=0.002, **loop),
            period=period,
            stop=stop,
            connect=lambda: source or self.source,
        )

    def told(self, kind, **options):
        """Return all events of a kind."""
        return [event for event in self.run(**options) if isinstance(event, kind)]

    def content(self):
        """Return all that must not depend on chunks and kills: state, history and versions."""
        (commit,) = (self.state / "commits").iterdir()
        files = {
            file.relative_to(commit).as_posix(): file.read_bytes()
            for file in sorted(commit.rglob("*"))
            if file.is_file() and file.name not in ("checksums.json", "commit.json")
        }
        # How a join lays out its files depends on when it was saved; what it gives does not.
        files = {name: raw for name, raw in files.items() if not name.startswith("join-")}
        record = msgspec.json.decode((commit / "commit.json").read_bytes())
        del record["history"], record["join"]["intervals"]
        for part in (record["offset"] or {}).values():
            if isinstance(part, list):
                part.sort()  # of a set
        history = [
            {k: v for k, v in msgspec.to_builtins(line).items() if k not in PASSING}
            for line in read_history(self.state)
        ]
        registry = Registry(self.registry)
        versions = [
            (v.number, v.parent, v.refused, v.window, v.recalibrated, v.checksums)
            for v in registry.versions()
        ]
        moves = [move.version for move in registry.history()]
        return {"record": record, "files": files, "history": history, "aside": self.aside()} | {
            "versions": versions,
            "moves": moves,
        }

    def aside(self):
        """Return what was set aside, in order."""
        files = sorted((self.state / "aside").glob("*.parquet"), key=lambda f: int(f.stem))
        if not files:
            return []
        return pl.concat(map(pl.read_parquet, files), how="diagonal_relaxed").rows(named=True)
