"""Splitting a table by time or by request, so that no request is on both sides."""

__all__ = ["PARTS", "Cut", "Split", "split_rows"]

from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Literal

import numpy as np
import polars as pl

from harmonrank.data.clock import instants
from harmonrank.data.reading.checking import is_lost
from harmonrank.data.reading.logs import request_ids
from harmonrank.data.reading.tables import Faults, Source, describe, offence, open_table
from harmonrank.support.errors import DataError, UsageError

PARTS = ("train", "valid", "test")


@dataclass(frozen=True)
class Cut:
    """How a table is cut.

    Attributes:
        by: Test on the newest rows, or on requests that a hash of their ids chooses.
        test_share: Share of rows, or of requests, to test on; 0.2 if there is no `test_from`.
        test_from: Test on the rows from this time on, such as 2026-11-01.
        valid_share: Share of rows to validate on, the newest before those, or of requests.
        seed: Decides the hash.
    """

    by: Literal["time", "request"]
    test_share: float | None = None
    test_from: str | None = None
    valid_share: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.test_from is not None and (self.by != "time" or self.test_share is not None):
            raise UsageError(
                "`test_from` cuts by time, so it goes with neither a share of test rows nor a "
                "split by request."
            )
        test = self.share
        if not (0 < test < 1 and 0 <= self.valid_share < 1 and test + self.valid_share < 1):
            raise UsageError(
                "Shares of test and validation rows must lie between 0 and 1 and leave some for "
                f"training. Got {test:g} and {self.valid_share:g}."
            )

    @property
    def share(self) -> float:
        """The share of test rows or requests that is aimed at."""
        return 0.2 if self.test_share is None else self.test_share


@dataclass(frozen=True)
class Split:
    """Which row goes where.

    Attributes:
        cut: How it was made.
        part: (rows,) 0 to train on, 1 to validate, 2 to test.
        requests: How many requests each part has; of rows where there is no request column.
        crossing: Requests that cross a boundary in time; they are whole in the later part.
        boundaries: Where validation and test rows begin, in microseconds since 1970.
    """

    cut: Cut
    part: np.ndarray = field(repr=False)
    requests: tuple[int, int, int]
    crossing: int = 0
    boundaries: tuple[int | None, int | None] = (None, None)

    def rows(self, name: str) -> np.ndarray:
        """Return the numbers of the rows of a part."""
        return np.flatnonzero(self.part == PARTS.index(name))

    @property
    def counts(self) -> dict[str, int]:
        """How many rows each part has."""
        counted = np.bincount(self.part, minlength=len(PARTS)).tolist()
        return dict(zip(PARTS, counted, strict=True))

    def words(self) -> str:
        """Return a sentence on how it was cut."""
        counted = ", ".join(f"{n:,} {name}" for name, n in self.counts.items() if n)
        if self.cut.by == "request":
            return f"Split by request: {counted} rows."
        crossing = ""
        if self.crossing:
            requests = f"{self.crossing:,} request{'s' * (self.crossing > 1)}"
            crossing = f"; {requests} across a boundary went whole to the later part"
        begin = shown_time(self.boundaries[1])
        return f"Split by time, test rows from {begin}: {counted} rows{crossing}."

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON says of it."""
        begin = dict(zip(PARTS[1:], map(shown_time, self.boundaries), strict=True))
        return {
            "by": self.cut.by,
            "seed": self.cut.seed if self.cut.by == "request" else None,
            "rows": self.counts,
            "requests": dict(zip(PARTS, self.requests, strict=True)),
            "crossing": self.crossing,
            "from": {name: time for name, time in begin.items() if time},
        }


def shown_time(micros: int | None) -> str | None:
    """Return a time as text; midnight is a date.

    >>> shown_time(1_793_500_000_000_000), shown_time(86_400_000_000)
    ('2026-11-01 02:26:40', '1970-01-02')
    """
    if micros is None:
        return None
    text = pl.Series([micros]).cast(pl.Datetime("us")).dt.to_string("%Y-%m-%d %H:%M:%S%.f")[0]
    return str(text).removesuffix(" 00:00:00")


def split_rows(source: Source, cut: Cut, *, time: str | None, request: str | None) -> Split:
    """Split the rows of a table; those of one request stay together.

    Args:
        source: A path, a list of paths or a table.
        cut: How.
        time: The column of times.
        request: The column of requests; each row is its own if there is none, and so is a row
            without a value.

    Raises:
        UsageError: A cut by time lacks its column.
        DataError: The column holds no times, or a part would be empty.
    """
    if cut.by == "request":
        time = None
    elif time is None:
        raise UsageError(
            "A split by time needs the column of times: --time COLUMN, or `time` in the schema."
        )
    columns = [name for name in (time, request) if name]
    if not columns:
        raise UsageError(
            "A split by request needs the column of requests: --request COLUMN, or `request` in "
            "the schema."
        )
    frame, name = open_table(source, columns), describe(source)
    if time is not None:
        split = _by_time(cut, frame[time], None if request is None else frame[request], name)
    else:
        split = _by_request(cut, frame[columns[0]])
    for part, rows in split.counts.items():
        if rows == 0 and (part != "valid" or cut.valid_share):
            raise DataError(
                f"No row of {name} is left for the {part} part; choose other shares or another "
                "time."
            )
    return split


def _by_request(cut: Cut, series: pl.Series) -> Split:
    _, first, ids = np.unique(request_ids(series), return_index=True, return_inverse=True)
    asked = series.gather(first)
    known = zip(asked.cast(pl.String), is_lost(asked), first, strict=True)
    names = [f"row {row}" if lost else text for text, lost, row in known]
    chance = np.array([_chance(name, cut.seed) for name in names])
    part = np.where(chance < cut.share, 2, np.where(chance < cut.share + cut.valid_share, 1, 0))
    return Split(cut, part[ids].astype(np.int8), _counted(part))


def _chance(text: str, seed: int) -> float:
    """Return a number in [0, 1) that an id always has, in whatever table it is."""
    digest = blake2b(text.encode(), digest_size=8, salt=seed.to_bytes(8, "little")).digest()
    return int.from_bytes(digest, "little") / 2**64


def _counted(part: np.ndarray) -> tuple[int, int, int]:
    train, valid, test = np.bincount(part, minlength=3).tolist()
    return train, valid, test


def _by_time(cut: Cut, series: pl.Series, request: pl.Series | None, name: str) -> Split:
    times = _known_times(series, name)
    ids = np.arange(len(times))
    if request is not None:
        ids = np.unique(request_ids(request), return_inverse=True)[1]
    first, last = _extremes(times, ids)
    # A request is placed by its last row: what is learned from is then older than the test rows.
    newest = last[ids]
    if cut.test_from is None:
        boundary = _boundary(times, newest, round(cut.share * len(times)))
    else:
        boundary = _moment(cut.test_from, series.dtype)
    part, begin = np.where(last >= boundary, 2, 0), None
    crossed = (first < boundary) & (last >= boundary)
    if cut.valid_share:
        older = newest < boundary
        begin = _boundary(times[older], newest[older], round(cut.valid_share * len(times)))
        part[(last >= begin) & (last < boundary)] = 1
        crossed |= (first < begin) & (last >= begin)
    boundaries = begin, boundary
    return Split(cut, part[ids].astype(np.int8), _counted(part), int(crossed.sum()), boundaries)


def _known_times(series: pl.Series, name: str) -> np.ndarray:
    faults, times = Faults(name), instants(series)
    if times.null_count():
        wrong = offence(series, times.is_null().arg_true())
        faults.add(f"Time column '{series.name}'", f"must hold a time in every row. {wrong}")
    faults.refuse()
    return times.to_numpy()


def _extremes(times: np.ndarray, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the first and the last time of each request."""
    order = np.argsort(ids, kind="stable")
    starts = np.flatnonzero(np.diff(ids[order], prepend=-1))
    ordered = times[order]
    return np.minimum.reduceat(ordered, starts), np.maximum.reduceat(ordered, starts)


def _boundary(times: np.ndarray, newest: np.ndarray, rows: int) -> int:
    """Return the time from which on there are about so many rows, and some before it.

    Args:
        times: Of the rows.
        newest: Of each row, the last time of its request, which decides where it goes.
        rows: How many.
    """
    known, counts = np.unique(newest, return_counts=True)
    if len(known) < 2:
        raise DataError(
            "A split by time needs requests of two times at least on its older side; give a column "
            "that tells them apart, a smaller share, or split by request."
        )
    later = np.cumsum(counts[::-1])[::-1]  # rows from each time on
    first_later = 1 + int(np.argmin(np.abs(later[1:] - rows)))
    # Of all times that cut alike, the first one after the older side: the fewest requests cross.
    inside = (newest >= known[first_later]) & (times > known[first_later - 1])
    return int(times[inside].min())


def _moment(text: str, kind: pl.DataType) -> int:
    """Return a time that a person gave, in the zone of the column if it has one."""
    given = instants(pl.Series([text]))
    if given[0] is None:
        raise UsageError(f"--test-from must be a date or a time, such as 2026-11-01. Got '{text}'.")
    zone = getattr(kind, "time_zone", None)
    if zone and text.strip()[-1] != "Z" and "+" not in text and text.count("-") < 3:
        given = given.cast(pl.Datetime("us")).dt.replace_time_zone(zone).dt.timestamp("us")
    return int(given[0])
