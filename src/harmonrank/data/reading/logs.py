"""Reading a log: the columns that a schema names, checked."""

__all__ = ["named_columns", "read_log", "request_ids"]

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import polars as pl

from harmonrank.data.clock import instants, table_columns, with_clock
from harmonrank.data.hashing import mixed
from harmonrank.data.kinds import lineage
from harmonrank.data.log import Log
from harmonrank.data.reading.checking import TableCheck, is_lost
from harmonrank.data.reading.forks import require_polars_threads
from harmonrank.data.reading.tables import Faults, Source, column_names, describe, open_table
from harmonrank.data.scales import to_probabilities
from harmonrank.data.schema import Schema
from harmonrank.support.errors import DataError

_IN_64_BITS = (pl.Int8, pl.Int16, pl.Int32, pl.Int64)
_TILE_ROWS = 4096
# Rows without a request count up from the lowest number, which no id of a request comes near.
_FIRST_ALONE = np.iinfo(np.int64).min


def read_log(
    source: Source,
    schema: Schema | Mapping[str, Any],
    *,
    labels: bool = True,
    sample_weight: bool = False,
    first_row: int = 0,
    name: str | None = None,
    empty: bool = False,
) -> Log:
    """Read and check the columns that a schema names.

    Args:
        source: A path, a list of paths, a polars, pandas or pyarrow table, or a log that was read
            before, whose columns are put in the order of the schema (see `Log.aligned`).
        schema: Which column is what; a dict of its parts will do.
        labels: Also read labels, requests, users, sample weights, positions and, where there, true
            probabilities.
        sample_weight: Without labels: also read sample weights, where the table has them.
        first_row: Where the source begins in a larger table, so that errors name the right row.
        name: What errors call the source; its path if left out.
        empty: A table without rows gives a log without rows; else it is refused.

    Raises:
        DataError: Columns are missing, of the wrong type, or hold values that their roles do not
            allow; all of them are named, with the first offending row and the number of rows. A
            score that is null or NaN becomes NaN, unless the schema's `missing` is 'error'.
    """
    schema = Schema.of(schema)
    if isinstance(source, Log):
        return source.aligned(schema, labels=labels)
    there = column_names(source)
    named = named_columns(schema, there, labels=labels, sample_weight=sample_weight)
    faults = Faults(name or describe(source))
    frame = open_table(source, faults.present(there, chain(*named.values())), empty=empty)
    truth = named.get("truth", [])
    weight, request, user, position, time = (
        next(iter(named.get(role, ())), None)
        for role in ("sample_weight", "request", "user", "position", "time")
    )
    if not frame.height:
        # A csv file without rows has columns without types, so there is nothing to check.
        faults.refuse()
        none = pl.DataFrame([pl.Series(name, [], pl.String) for name in schema.context])
        return Log(schema, np.empty((0, len(schema.names))), none)
    check = TableCheck(faults, first_row, frame)
    check.scores(schema)
    check.contexts(schema.context)
    shown = _shown(check, schema) if labels else None
    draws = [(n, c) for n, c in zip(schema.names, truth, strict=False) if n in schema.graded]
    check.draws([column for _, column in draws])
    check.probabilities([column for column in truth if column not in dict(draws).values()])
    check.ids("Request", request)
    check.ids("User", user)
    check.sample_weight(weight)
    check.position(position)
    check.time(time)
    faults.refuse()
    requests = request_ids(frame[request], first_row) if request else None
    return Log(
        schema,
        to_probabilities(_floats(frame, schema.score_columns), schema.scales),
        pl.DataFrame(with_clock(frame, schema.context)),
        _labels(frame, schema, shown) if labels else None,
        requests,
        frame[weight].cast(pl.Float64).to_numpy() if weight else None,
        _truths(frame, truth, [column for _, column in draws]) if truth else None,
        _places(frame[position]) if position else None,
        shown=shown,
        draws={name: _density(frame[column]) for name, column in draws},
        time=instants(frame[time]).cast(pl.Float64).to_numpy() if time else None,
        user=_user_ids(frame[user], requests, first_row) if user else None,
    )


def named_columns(
    schema: Schema, there: Sequence[str], *, labels: bool = True, sample_weight: bool = False
) -> dict[str, list[str]]:
    """Return the columns of a table that a schema asks for, by their roles.

    Args:
        schema: Which column is what.
        there: The columns that the table has.
        labels: Also what is known once rows were shown; else the columns to score by.
        sample_weight: Without labels: also sample weights, where the table has them.
    """
    weighted = labels or (sample_weight and schema.sample_weight in there)
    columns: dict[str, Iterable[str | None]] = {
        "score": schema.score_columns,
        "context": table_columns(schema.context, there),
        "sample_weight": (schema.sample_weight,) if weighted else (),
    }
    if labels:
        columns |= {"request": (schema.request,), "user": (schema.user,)}
        columns |= {"position": (schema.position,)}
        columns |= {"time": (schema.time if schema.time in there else None,)}
        columns |= {"label": schema.names, "truth": _truth_columns(there, schema)}
    return {role: [name for name in names if name] for role, names in columns.items()}


def _shown(check: TableCheck, schema: Schema) -> np.ndarray | None:
    """Check labels, parents first, and return which rows show each objective."""
    if not schema.given:
        check.labels([name for name in schema.names if name not in schema.graded])
        check.grades(schema.graded)
        return None
    shown: dict[str, np.ndarray] = {}
    rows = check.frame.height
    for name in sorted(schema.names, key=lambda name: len(lineage(name, schema.given))):
        parent = schema.given.get(name)
        there = np.ones(rows, dtype=bool)
        if parent is not None:
            there = shown[parent] & _ones(check.frame, parent)
        shown[name] = there
        known = check.grades if name in schema.graded else check.labels
        known([name], None if parent is None else there)
    return np.stack([shown[name] for name in schema.names], axis=1)


def _ones(frame: pl.DataFrame, name: str) -> np.ndarray:
    """Return where a label is 1, whatever is wrong with it elsewhere."""
    if name not in frame.columns or not (
        frame.schema[name].is_numeric() or frame.schema[name] == pl.Boolean
    ):
        return np.zeros(frame.height, dtype=bool)
    ones: np.ndarray = frame[name].cast(pl.Float64).to_numpy() == 1  # null becomes NaN
    return ones


def _labels(frame: pl.DataFrame, schema: Schema, shown: np.ndarray | None) -> np.ndarray:
    """Return labels side by side, 0 where a row does not show one."""
    if schema.plain:
        return _stacked(frame, schema.names, np.uint8)
    values = np.empty((frame.height, len(schema.names)), np.float64 if schema.graded else np.uint8)
    for m, name in enumerate(schema.names):
        column = frame[name].cast(pl.Float64).to_numpy()
        values[:, m] = column if shown is None else np.where(shown[:, m], column, 0.0)
    return values


def _truths(frame: pl.DataFrame, truth: Sequence[str], draws: Sequence[str]) -> np.ndarray:
    """Return true chances side by side; of a density its mean."""
    if not draws:
        return _floats(frame, truth)
    columns = [
        _density(frame[c]).mean(axis=1) if c in draws else frame[c].to_numpy() for c in truth
    ]
    return np.stack(columns, axis=1).astype(np.float64)


def _density(series: pl.Series) -> np.ndarray:
    """Return lists of equally likely values as an array, (rows, values)."""
    inner = series.cast(pl.List(pl.Float64)).explode().to_numpy()
    return np.ascontiguousarray(inner.reshape(len(series), -1))


def _places(series: pl.Series) -> np.ndarray:
    """Return places as whole numbers, −1 for a row that was not shown."""
    places = series.cast(pl.Float64).to_numpy()  # null becomes NaN
    return np.where(np.isnan(places), -1, places).astype(np.int64)


def _truth_columns(there: Sequence[str], schema: Schema) -> list[str]:
    """Return the truth columns if the schema and the table have one for each objective."""
    columns = [schema.truth[name] for name in schema.names if name in schema.truth]
    known = len(columns) == len(schema.names) and set(columns) <= set(there)
    return columns if known else []


def _floats(frame: pl.DataFrame, columns: Sequence[str]) -> np.ndarray:
    single = all(frame.schema[name] == pl.Float32 for name in columns)
    return _stacked(frame, columns, np.float32 if single else np.float64)


def _stacked(frame: pl.DataFrame, columns: Sequence[str], kind: type[np.generic]) -> np.ndarray:
    """Return columns side by side, (rows, columns), with none of Polars' threads."""
    values = np.empty((frame.height, len(columns)), kind)
    series = [frame[name].to_numpy() for name in columns]
    # A few rows of all columns at a time, so that what is written to stays in the cache.
    for low in range(0, frame.height, _TILE_ROWS):
        tile = slice(low, low + _TILE_ROWS)
        for number, column in enumerate(series):
            values[tile, number] = column[tile]
    return values


def request_ids(series: pl.Series, first_row: int = 0) -> np.ndarray:
    """Return a whole number per row, the same within a request; a row without one has its own.

    Text becomes 64 bits of a hash, so that a part of a table has the numbers of the whole: of 100M
    requests two share theirs once in three thousand tables.

    Args:
        series: The request column.
        first_row: Where it begins in a larger table.
    """
    series = series.alias("")
    if series.dtype in _IN_64_BITS and not series.null_count():
        return series.cast(pl.Int64).to_numpy()
    require_polars_threads(f"A request column of type {series.dtype}")
    known = series if series.dtype in (*_IN_64_BITS, pl.UInt64) else series.hash(seed=0)
    whole = known.reinterpret(signed=True) if known.dtype == pl.UInt64 else known.cast(pl.Int64)
    ids = whole.fill_null(0).to_numpy().copy()
    alone = np.flatnonzero(is_lost(series).to_numpy())
    ids[alone] = _FIRST_ALONE + first_row + alone
    return ids


def _user_ids(series: pl.Series, request: np.ndarray | None, first_row: int) -> np.ndarray:
    """Return the same of users; rows without one are kept together by their request.

    Raises:
        DataError: Neighbouring rows of a request have two users.
    """
    ids = request_ids(series, first_row)
    if request is None:
        return ids
    lost = is_lost(series).to_numpy()
    if lost.any():
        # Mixed bits, as numbers of requests may be those of users.
        ids = np.where(lost, mixed(request.view(np.uint64)).view(np.int64), ids)
    two = np.flatnonzero((np.diff(request) == 0) & (np.diff(ids) != 0))
    if len(two):
        raise DataError(
            f"User column '{series.name}' must be the same in all rows of a request. Got two users "
            f"in rows {first_row + two[0]:,} and {first_row + two[0] + 1:,}; name who asked."
        )
    return ids
