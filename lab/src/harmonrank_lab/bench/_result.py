"""Result: how long something takes us, and how long the same takes others."""

__all__ = ["Accuracy", "Case", "Result", "Work", "interleaved", "measure", "rounds"]

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from statistics import median
from time import perf_counter
from typing import Any

Work = Callable[[], object]

_OURS = "ours"
_TURN_SECONDS = 0.1


@dataclass(frozen=True)
class Result:
    """Median seconds of one piece of work.

    Attributes:
        group: The part of the benchmark: rank, metrics, train, score, growth or serve.
        name: What was done.
        rows: On how many rows.
        peers: Seconds of those who do the same; who is not installed is not there.
        memory_mb: Peak memory of the process, where it was measured.
        note: What a reader must know to judge the number.
    """

    group: str
    name: str
    rows: int
    ours_seconds: float
    peers: Mapping[str, float] = field(default_factory=dict)
    memory_mb: float | None = None
    note: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form that other programs read."""
        parts = asdict(self)
        return {key: value for key, value in parts.items() if value is not None}


@dataclass(frozen=True)
class Accuracy:
    """Largest error of soft ranks, in ranks, against extended precision.

    Attributes:
        rounding_ranks: What the exact ranks lose when they are merely stored in the same type.
    """

    name: str
    rows: int
    ours_ranks: float
    rounding_ranks: float
    peers: Mapping[str, float]

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form that other programs read."""
        return asdict(self)


@dataclass(frozen=True)
class Case:
    """Something to measure, and how."""

    name: str
    run: Callable[[], Result | Accuracy]


def interleaved(
    work: Mapping[str, Work], seconds: float, *, least: int = 3, most: int = 1000
) -> dict[str, float]:
    """Return the median seconds of each piece of work, all run in turn.

    What disturbs the machine then disturbs all of them alike. A turn is some calls of the same
    work, and its first call is not counted, since threads of the one before may keep a core for a
    while after it. Before all, one call of each warms up; rounds end when the time is used up.

    >>> sorted(interleaved({"ours": list, "theirs": dict}, seconds=0.0))
    ['ours', 'theirs']
    """
    for run in work.values():
        run()
    turns = {
        name: max(1, min(most, int(_TURN_SECONDS / _timed(run)))) for name, run in work.items()
    }
    times: dict[str, list[float]] = {name: [] for name in work}
    for _ in rounds(seconds, least, most):
        for name, run in work.items():
            run()
            times[name] += [_timed(run) for _ in range(turns[name])]
    return {name: median(values) for name, values in times.items()}


def rounds(seconds: float, least: int, most: int) -> Iterator[int]:
    """Count rounds until the time is used up.

    >>> list(rounds(0.0, least=3, most=9))
    [0, 1, 2]
    """
    started = perf_counter()
    for number in range(most):
        if number >= least and perf_counter() - started > seconds:
            return
        yield number


def _timed(run: Work) -> float:
    started = perf_counter()
    run()
    return perf_counter() - started


def measure(
    group: str,
    name: str,
    rows: int,
    work: Mapping[str, Work],
    seconds: float,
    *,
    least: int = 3,
    note: str | None = None,
) -> Result:
    """Time our work, under 'ours', and that of the peers beside it."""
    medians = interleaved(work, seconds, least=least)
    ours = medians.pop(_OURS)
    return Result(group, name, rows, ours, medians, note=note)
