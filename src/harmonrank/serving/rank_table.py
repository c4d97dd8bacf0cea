"""Rank a table: an Arrow stream in, an Arrow stream of the best K rows out."""

__all__ = ["rank_table"]

import io
from typing import Any

import numpy as np
import polars as pl

from harmonrank.data.clock import table_columns, with_clock
from harmonrank.serving.arrow_check import check_stream
from harmonrank.serving.http import Request, Response
from harmonrank.serving.rank import ARROW, best
from harmonrank.serving.runtime import Candidates, Runtime, Scored, named_columns
from harmonrank.support.errors import DataError
from harmonrank.support.storage.decoding import decode_json


def rank_table(
    runtime: Runtime, request: Request, max_rows: int
) -> tuple[Response, list[Candidates]]:
    """Rank the rows of an Arrow stream, within requests if it has the schema's request column."""
    check_stream(request.body, max_rows)
    frame = _read(request.body)
    schema, names = runtime.model.schema, dict.fromkeys(frame.columns)
    times = table_columns(schema.context, names)
    named_columns(names, [*schema.score_columns, *times], "Column")
    if frame.height == 0:
        raise DataError("The table has no rows; expected at least one.")
    columns = [_numbers(frame[name]) for name in schema.score_columns]
    single = all(column.dtype == np.float32 for column in columns)
    scores = np.stack(columns, axis=1).astype(np.float32 if single else np.float64, copy=False)
    own = {series.name: series for series in with_clock(frame, schema.context)}
    candidates = Candidates(scores, {}, own)
    shares = request.parameter("shares") in ("1", "true")
    weights = runtime.weights(_by_name(request, "weights"), request.parameter("point"))
    value = _by_name(request, "value")
    scored = runtime.score(candidates, weights, value=value, probabilities=shares)
    p = scored.probabilities
    parts = None if p is None else runtime.shares(p, weights, value)
    groups = frame[schema.request] if schema.request in names else None
    found = _table(runtime, scored, groups, _k(request), parts)
    sink = io.BytesIO()
    found.write_ipc_stream(sink)
    headers = {"x-model-version": runtime.version}
    return Response(200, sink.getvalue(), ARROW, headers, frame.height), [candidates]


def _table(
    runtime: Runtime,
    scored: Scored,
    groups: pl.Series | None,
    k: int | None,
    shares: np.ndarray | None,
) -> pl.DataFrame:
    n = len(scored.fused)
    parts: dict[str, Any] = {"index": np.arange(n), "fused": scored.fused}
    if scored.probabilities is not None and shares is not None:
        for m, name in enumerate(runtime.objectives):
            parts[f"probability_{name}"] = scored.probabilities[:, m]
            parts[f"share_{name}"] = shares[:, m]
    table = pl.DataFrame(parts)
    if groups is None:
        order = best(scored.fused, k)
        return table[order].with_columns(place=np.arange(1, len(order) + 1))
    ids = groups.rank("dense").fill_null(0).to_numpy() if n else np.empty(0)
    order = np.lexsort((np.arange(n), -scored.fused, ids))
    first = np.flatnonzero(np.diff(ids[order], prepend=-1))
    place = np.arange(n) - np.repeat(first, np.diff(first, append=n)) + 1
    kept = place <= (n if k is None else k)
    named = table.insert_column(0, groups.alias("request"))[order[kept]]
    return named.with_columns(place=place[kept])


def _read(body: bytes) -> pl.DataFrame:
    try:
        return pl.read_ipc_stream(body, use_pyarrow=False)
    except Exception as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
        raise DataError(f"The body is no Arrow IPC stream: {reason.rstrip('.')}.") from None
    except pl.exceptions.PanicException:  # It is no Exception.
        raise DataError("The body is no Arrow IPC stream: it is damaged.") from None


def _numbers(series: pl.Series) -> np.ndarray:
    if series.null_count() == len(series):
        return np.full(len(series), np.nan)
    if not series.dtype.is_numeric():
        raise DataError(f"Column '{series.name}' must hold numbers. Got type {series.dtype}.")
    return series.to_numpy()


def _k(request: Request) -> int | None:
    given = request.parameter("k")
    if given is None:
        return 10
    if given == "all":
        return None
    if not (given.isascii() and given.isdigit() and 1 <= int(given) < 2**63):
        raise DataError(f"`k` must be a whole number from 1 up, or all. Got '{given[:20]}'.")
    return int(given)


def _by_name(request: Request, parameter: str) -> dict[str, float] | None:
    given = request.parameter(parameter)
    if given is None:
        return None
    what = f"Parameter `{parameter}`"
    return decode_json(given.encode(errors="replace"), dict[str, float], what)
