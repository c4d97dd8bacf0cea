"""Shared: numbers that all processes of a service see, each writing its own slot of a file."""

__all__ = ["BUCKETS", "ROUTES", "STATUSES", "Counters", "Slot", "new_array"]

import os
from bisect import bisect_left
from pathlib import Path
from typing import Any

import numpy as np

ROUTES = ("infer", "rank", "other")
STATUSES = (200, 400, 401, 404, 405, 408, 411, 413, 415, 429, 500, 503)
BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)
"""Upper ends of the latency histogram, in seconds; what is above has a bucket of its own."""

_FIELDS = np.dtype(
    [
        ("requests", "i8", (len(ROUTES), len(STATUSES))),
        ("latency", "i8", (len(ROUTES), len(BUCKETS) + 1)),
        ("seconds", "f8", (len(ROUTES),)),
        ("candidates", "i8"),
        ("reloads", "i8"),
        ("refused_reloads", "i8"),
        ("waiting", "i8"),
        ("ready", "i8"),
        ("pid", "i8"),
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
    """The record of one worker, which it alone writes."""

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
        place = ROUTES.index(route)
        known = status if status in STATUSES else 500
        self._requests[place, STATUSES.index(known)] += 1
        self._latency[place, bisect_left(BUCKETS, seconds)] += 1
        self._seconds[place] += seconds
        self._candidates[0] += candidates
