"""What is measured, on which rows, and how long it takes us and others."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from harmonrank.data import Log, Schema
from harmonrank.data.reading import ParquetWriter
from harmonrank.fusion import Method, method_class
from harmonrank.support.storage import decode, read_toml
from harmonrank.worlds import world
from harmonrank_lab.worlds import log_of

Work = Callable[[], object]

_TURN_SECONDS = 0.1

_PIECE = 500_000
_REQUEST_ROWS = 20
_SLOTS = {"hour": 24, "app_version": 10, "age": 8, "gender": 3}


@dataclass(frozen=True)
class Size:
    """Rows of every part.

    Attributes:
        seconds: How long each case is repeated.
        compile: Whether torch.compile takes part; to compile takes longer than all the rest.
        file_rows: Of the file that is scored from parquet to parquet.
        objective_rows: Rows of the fits with few and many objectives.
        serve_seconds: How long a service is asked.
        serve_rows: Candidates of a request by binary tensors.
    """

    seconds: float = 2.0
    compile: bool = True
    batch_rows: int = 10_240
    rank_rows: tuple[int, ...] = (10_240, 1_024_000)
    metric_rows: int = 500_000
    train_rows: int = 1_000_000
    head_rows: int = 200_000
    score_rows: int = 1_000_000
    request_rows: int = 1000
    file_rows: int = 20_000_000
    growth_rows: tuple[int, ...] = (10_000, 100_000, 1_000_000, 10_000_000)
    growth_objectives: tuple[int, ...] = (2, 5, 10, 20)
    objective_rows: int = 100_000
    serve_seconds: float = 10.0
    serve_rows: int = 10_000


FULL = Size()
_QUICK = read_toml(Path(__file__).parent / "quick.toml", "sizes of a bench")
QUICK = decode(_QUICK, Size, "quick.toml")


class Timing(NamedTuple):
    """Median seconds of one piece of work.

    Attributes:
        rows: On how many rows.
        peers: Seconds of those who do the same; who is not installed is not there.
        memory_mb: Peak memory of the process, where it was measured.
        note: What a reader must know to judge the number.
    """

    rows: int
    ours_seconds: float
    peers: Mapping[str, float] = {}
    memory_mb: float | None = None
    note: str | None = None


@dataclass(frozen=True)
class Result:
    """A timing, as `Timing` describes it, with its name.

    Attributes:
        group: The part of the benchmark: rank, metrics, train, score, growth or serve.
        name: What was done.
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


class Case(NamedTuple):
    """Something to measure, and how."""

    name: str
    run: Callable[[], Timing | Accuracy]


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
    calls = {name: int(_TURN_SECONDS / _timed(run)) for name, run in work.items()}
    times: dict[str, list[float]] = {name: [] for name in work}
    for _ in rounds(seconds, least, most):
        for name, run in work.items():
            run()
            times[name] += [_timed(run) for _ in range(max(1, min(most, calls[name])))]
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
    rows: int, work: Mapping[str, Work], seconds: float, *, least: int = 3, note: str | None = None
) -> Timing:
    """Time our work, under 'ours', and that of the peers beside it."""
    medians = interleaved(work, seconds, least=least)
    return Timing(rows, medians.pop("ours"), medians, note=note)


@cache
def world_log(rows: int, name: str = "elive") -> Log:
    """Return rows of a world: in 'elive' five objectives and four context features."""
    return log_of(world(name), rows, 0)


@cache
def fitted(name: str, rows: int, world_name: str = "elive") -> Method:
    """Return a method that was fitted on rows of a world, a network by one pass."""
    options = {"epochs": 1} if name == "harmonrank-paper" else {}
    log = world_log(rows, world_name)
    return method_class(name)(**options).fit(log, log.schema, valid=log)


def schema_of(objectives: int) -> Schema:
    """Return the schema of `table_of`."""
    names = {f"y{m}": f"p{m}" for m in range(objectives)}
    return Schema(names, context=tuple(_SLOTS), request="request_id")


def table_of(rows: int, objectives: int, seed: int = 0) -> pl.DataFrame:
    """Draw a plain log: a shared and an own part of each logit, labels by the probabilities."""
    rng = np.random.default_rng(seed)
    columns: dict[str, np.ndarray] = {"request_id": np.arange(rows) // _REQUEST_ROWS}
    for name, slots in _SLOTS.items():
        columns[name] = rng.integers(0, slots, rows, dtype=np.int16)
    shared = rng.normal(size=rows)
    for m in range(objectives):
        logit = shared + rng.normal(size=rows) - 3.0
        seen = logit + 0.5 * rng.normal(size=rows)
        columns[f"p{m}"] = 1 / (1 + np.exp(-seen))
        columns[f"y{m}"] = (rng.random(rows) < 1 / (1 + np.exp(-logit))).astype(np.uint8)
    return pl.DataFrame(columns)


def write_repeated(path: Path, rows: int, objectives: int = 5, *, labels: bool = True) -> int:
    """Write such a log of any length by repeating its first rows; return its bytes in memory."""
    piece = table_of(min(rows, _PIECE), objectives)
    if not labels:
        piece = piece.drop(schema_of(objectives).names)
    total = 0
    with ParquetWriter(path) as writer:
        for start in range(0, rows, _PIECE):
            part = piece.head(rows - start)
            writer.put(part.with_columns(pl.col("request_id") + start // _REQUEST_ROWS))
            total += int(part.estimated_size())
    return total
