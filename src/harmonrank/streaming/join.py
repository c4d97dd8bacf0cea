"""Join: from exposures and feedback to labelled rows, as the watermark passes."""

__all__ = ["Batch", "Exposures", "Join"]

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import polars as pl

from harmonrank.data import Schema
from harmonrank.data.clock import clock_part
from harmonrank.data.files import read_json, write_json
from harmonrank.streaming.windows import Windows

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Exposures:
    """What was shown in an interval that is complete: without labels, which are still awaited.

    Attributes:
        start: The interval's first moment.
        end: The first moment after it.
        rows: Score, context and truth columns as the schema names them, with `item`, `user`,
            `position`, the request and the time; in order of arrival.
    """

    start: datetime
    end: datetime
    rows: pl.DataFrame


@dataclass(frozen=True)
class Batch:
    """The labelled rows of an interval that is closed: those of `Exposures`, and the labels.

    Exposures that came after the interval was complete, but before it was closed, are here too.
    """

    start: datetime
    end: datetime
    rows: pl.DataFrame


class Join:
    """Takes events, in any chunks, and gives complete and closed intervals back, each once."""

    def __init__(self, schema: Schema, windows: Windows) -> None:
        self._schema, self._windows = schema, windows
        self._longest = windows.longest(schema.names)
        self._events: list[pl.DataFrame] = []
        self._newest: datetime | None = None
        self._open: dict[tuple[str, str], dict[str, Any]] = {}
        self._held: list[dict[str, Any]] = []
        self._ready: list[Exposures | Batch] = []
        self._aside: list[dict[str, Any]] = []
        self._reached: datetime | None = None
        self._given = [0, 0]
        self.counts: dict[str, int] = Counter()

    @property
    def watermark(self) -> datetime | None:
        """The newest event's time, less the allowed lateness; None before the first event."""
        return None if self._newest is None else self._newest - self._windows.lateness

    def add(self, events: pl.DataFrame) -> None:
        """Take events of the canonical frame, the next ones in order."""
        self._events.append(events)
        for row in events.iter_rows(named=True):
            self._take(row)

    def _take(self, row: dict[str, Any]) -> None:
        before = self.watermark
        if row.get("fault"):
            return self._put_aside(row, "malformed", row["fault"])
        self.counts[row["event"]] += 1
        if row["event"] == "exposure":
            self._expose(row, before)
        elif row["value"] == 0:
            self.counts["zero"] += 1
        else:
            row["before"] = before
            self._feed(row)
        self._newest = row["time"] if self._newest is None else max(self._newest, row["time"])
        self._pass()
        return None

    def _expose(self, row: dict[str, Any], before: datetime | None) -> None:
        key = (row["request"], row["item"])
        if self._is_closed(row["time"], before):
            return self._put_aside(row, "late", "its interval had closed")
        if key in self._open:
            return self._put_aside(row, "duplicate", "the exposure had come before")
        self._open[key] = row | dict.fromkeys(self._schema.names, 0)
        held, self._held = self._held, []
        for feedback in held:
            if (feedback["request"], feedback["item"]) == key:
                self._feed(feedback)
            else:
                self._held.append(feedback)
        return None

    def _feed(self, row: dict[str, Any]) -> None:
        shown = self._open.get((row["request"], row["item"]))
        before, name = row["before"], row["objective"]
        if shown is None:
            if self._is_closed(row["time"], before):
                return self._put_aside(row, "late", "its interval had closed")
            return self._held.append(row)
        end = shown["time"] + self._windows.of(name)
        if row["time"] < shown["time"]:
            return self._put_aside(row, "late", "it is before its exposure")
        if row["time"] > end or (before is not None and before >= end):
            return self._put_aside(row, "late", "its window had closed")
        if shown[name]:
            return self._put_aside(row, "duplicate", "the feedback had come before")
        shown[name] = 1
        self.counts["counted"] += 1
        return None

    def _interval(self, time: datetime) -> datetime:
        return _EPOCH + (time - _EPOCH) // self._windows.every * self._windows.every

    def _is_closed(self, time: datetime, watermark: datetime | None) -> bool:
        end = self._interval(time) + self._windows.every + self._longest
        return watermark is not None and watermark >= end

    def _pass(self) -> None:
        watermark, every = self.watermark, self._windows.every
        assert watermark is not None
        due: list[tuple[datetime, int, datetime]] = []
        for start in {self._interval(row["time"]) for row in (*self._open.values(), *self._held)}:
            due.append((start + every, 0, start))
            due.append((start + every + self._longest, 1, start))
        for moment, closes, start in sorted(due):
            if moment > watermark:
                break
            if closes:
                self._close(start)
            elif self._reached is None or self._reached < moment:
                self._complete(start)
        self._reached = watermark

    def _rows(self, start: datetime) -> list[dict[str, Any]]:
        return [row for row in self._open.values() if self._interval(row["time"]) == start]

    def _complete(self, start: datetime) -> None:
        if rows := self._rows(start):
            self._ready.append(Exposures(start, start + self._windows.every, self._frame(rows)))

    def _close(self, start: datetime) -> None:
        if rows := self._rows(start):
            frame = self._frame(rows, *self._schema.names)
            self._ready.append(Batch(start, start + self._windows.every, frame))
            self.counts["rows"] += len(rows)
        self._open = {k: row for k, row in self._open.items() if row not in rows}
        held, self._held = self._held, []
        for row in held:
            if self._interval(row["time"]) == start:
                self._put_aside(row, "unmatched", "no exposure came")
            else:
                self._held.append(row)

    def _frame(self, rows: list[dict[str, Any]], *labels: str) -> pl.DataFrame:
        schema = self._schema
        kinds = {name: kind for frame in self._events for name, kind in frame.schema.items()}
        context = [name if (p := clock_part(name)) is None else p[0] for name in schema.context]
        names = ["item", "user", "position", *context, *schema.score_columns]
        names += [*schema.truth.values(), *labels]
        taken = [n for n in dict.fromkeys(names) if n in rows[0] and n != "time"]
        found = {schema.request or "request": [row["request"] for row in rows]}
        found[schema.time or "time"] = [row["time"] for row in rows]
        types: dict[str, Any] = {(schema.time or "time"): pl.Datetime("us", "UTC")}
        for name in taken:
            found[name] = [row[name] for row in rows]
            types[name] = pl.UInt8 if name in labels else kinds[name]
        return pl.DataFrame(found, schema_overrides=types)

    def _put_aside(self, row: dict[str, Any], reason: str, detail: str) -> None:
        self.counts[reason] += 1
        self._aside.append({"reason": reason, "detail": detail} | row)

    def ready(self) -> list[Exposures | Batch]:
        """Return what has become complete or closed, each once, in the order of the watermark.

        An interval that is complete comes before one that is closed at the same moment. The order
        does not depend on chunks, so what is done in this order does not either.
        """
        found, self._ready = self._ready, []
        self._given[0] += len(found)
        return found

    def take_aside(self) -> pl.DataFrame:
        """Return what was set aside since the last call: its `reason`, a `detail`, the event."""
        found, self._aside = self._aside, []
        self._given[1] += len(found)
        return pl.DataFrame(found, infer_schema_length=None)

    def save(self, folder: Path, *, before: Path | None = None) -> None:  # noqa: ARG002
        """Write all state to a folder that is not there yet.

        Args:
            folder: Where.
            before: What this join was saved to, or loaded from, the last time; what has not
                changed since is linked to it, not written again.
        """
        folder.mkdir(parents=True)
        if self._events:
            pl.concat(self._events).write_parquet(folder / "events.parquet")
        write_json(folder / "join.json", self._given)

    @classmethod
    def load(cls, folder: Path, schema: Schema, windows: Windows) -> Self:
        """Return the join that was saved to a folder."""
        join = cls(schema, windows)
        if (folder / "events.parquet").exists():
            join.add(pl.read_parquet(folder / "events.parquet"))
        join._given = read_json(folder / "join.json", list[int])
        del join._ready[: join._given[0]], join._aside[: join._given[1]]
        return join
