"""Counters: numbers that all processes of a service see, each writing its own slot of a file."""

__all__ = ["BUCKETS", "COUNTED", "STATUSES", "Counters", "Slot", "metrics_text", "new_array"]

import os
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from harmonrank.support.prometheus import Kind, family, sample

COUNTED = ("infer", "rank", "other")
"""The names under which routes are counted."""

STATUSES = (200, 400, 401, 404, 405, 408, 411, 413, 415, 429, 500, 503)
BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)
"""Upper ends of the latency histogram, in seconds; what is above has a bucket of its own."""

_PLAIN: dict[str, tuple[Kind, str, str]] = {
    "candidates": ("counter", "candidates_total", "Candidates that were scored."),
    "reloads": ("counter", "reloads_total", "Versions that workers moved to."),
    "refused_reloads": ("counter", "refused_reloads_total", "Versions that workers refused."),
    "waiting": ("gauge", "waiting_requests", "Requests that wait for their turn."),
    "ready": ("gauge", "ready_workers", "Workers that answer."),
}
"""Single numbers, and the metrics that they are."""

_FIELDS = np.dtype(
    [
        ("requests", "i8", (len(COUNTED), len(STATUSES))),
        ("latency", "i8", (len(COUNTED), len(BUCKETS) + 1)),
        ("seconds", "f8", (len(COUNTED),)),
        *((name, "i8") for name in _PLAIN),
    ]
)


def new_array(path: Path, kind: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Return an array in a new file that processes share.

    All its room is taken at once: a process that writes to a mapped file on a full disk is ended
    by the system, and nobody is told why.

    Raises:
        OSError: There is no room.
    """
    array = np.memmap(path, kind, mode="w+", shape=shape)
    if hasattr(os, "posix_fallocate"):
        with path.open("r+b") as stream:
            os.posix_fallocate(stream.fileno(), 0, array.nbytes)
    return array


class Counters:
    """A file of one record per worker; a worker that replaces another goes on with its record.

    Args:
        path: The file.
        workers: How many records; the file is made if it is given.
    """

    def __init__(self, path: Path, workers: int | None = None) -> None:
        if workers is None:
            self.records: np.ndarray = np.memmap(path, _FIELDS, mode="r+")
        else:
            self.records = new_array(path, _FIELDS, (workers,))

    def total(self, field: str) -> np.ndarray:
        """Return a field summed over the workers."""
        return np.asarray(self.records[field].sum(axis=0))


class Slot:
    """The record of one worker, which it alone writes while it runs."""

    def __init__(self, counters: Counters, worker: int) -> None:
        # As plain arrays, which are counted up in a fraction of a mapped file's time.
        record = np.asarray(counters.records)[worker : worker + 1]
        self._record = record
        self._requests, self._latency = record["requests"][0], record["latency"][0]
        self._seconds, self._candidates = record["seconds"][0], record["candidates"]

    def set(self, field: str, value: int) -> None:
        """Set a number, such as how many wait."""
        self._record[field][0] = value

    def add(self, field: str, value: int = 1) -> None:
        """Count."""
        self._record[field][0] += value

    def answered(self, route: str, status: int, seconds: float, candidates: int) -> None:
        """Count an answer."""
        number = COUNTED.index(route)
        known = status if status in STATUSES else 500
        self._requests[number, STATUSES.index(known)] += 1
        self._latency[number, bisect_left(BUCKETS, seconds)] += 1
        self._seconds[number] += seconds
        self._candidates[0] += candidates


def metrics_text(counters: Counters, version: str, drift: Mapping[str, Any] | None) -> str:
    """Return all metrics in the text format of Prometheus, summed over the workers."""
    lines = [*_requests(counters), *_latency(counters), *_rest(counters, version, drift), ""]
    return "\n".join(lines)


def _requests(counters: Counters) -> Iterator[str]:
    yield from family("counter", "requests_total", "Answers by route and status.")
    table = counters.total("requests")
    for route, row in zip(COUNTED, table, strict=True):
        for status, count in zip(STATUSES, row.tolist(), strict=True):
            if count or status == STATUSES[0]:
                yield sample("requests_total", count, route=route, status=str(status))


def _latency(counters: Counters) -> Iterator[str]:
    name = "request_seconds"
    yield from family("histogram", name, "Time from the end of a request to its answer.")
    buckets, sums = counters.total("latency"), counters.total("seconds")
    for route, row, seconds in zip(COUNTED, buckets, sums, strict=True):
        counts = np.cumsum(row).tolist()
        for end, count in zip([*map(str, BUCKETS), "+Inf"], counts, strict=True):
            yield sample(f"{name}_bucket", count, route=route, le=end)
        yield sample(f"{name}_sum", f"{float(seconds):.6f}", route=route)
        yield sample(f"{name}_count", counts[-1], route=route)


def _rest(counters: Counters, version: str, drift: Mapping[str, Any] | None) -> Iterator[str]:
    for field, (kind, name, text) in _PLAIN.items():
        yield from family(kind, name, text, [({}, int(counters.total(field)))])
    about = "The version that answered this."
    yield from family("gauge", "version_info", about, [({"version": version}, 1)])
    columns = [] if drift is None else drift["columns"]
    for part, text in (
        ("offset", "Change of a score's median since the fit, in standard deviations."),
        ("scale", "Spread of a score over that of the fit."),
    ):
        moves = [({"score": column["column"]}, f"{column[part]:.6g}") for column in columns]
        yield from family("gauge", f"drift_{part}", text, moves)
    replaced = 0 if drift is None else len(drift["replaced"])
    about = "Scores whose upstream model was replaced."
    yield from family("gauge", "upstream_replaced", about, [({}, replaced)])
