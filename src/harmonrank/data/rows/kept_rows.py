"""Kept rows: logs put together, written as parquet, and read back exactly as they were."""

__all__ = ["concatenated", "newest", "read_rows", "unlabelled", "write_rows"]

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from harmonrank.data.log import OPTIONAL, Log
from harmonrank.data.reading.logs import read_log
from harmonrank.data.reading.parquet import count_rows, writing
from harmonrank.data.schema import Schema
from harmonrank.support.errors import DataError

_SCORE, _LABEL, _TRUTH, _CONTEXT = "score", "label", "truth", "context"
_REQUEST, _USER, _WEIGHT, _POSITION = "request", "user", "sample_weight", "position"


def concatenated(logs: Sequence[Log]) -> Log:
    """Return the rows of several logs of one schema, in order; some may have none.

    Requests are numbered afresh: each log counts its own, so that the same number in two of them
    does not stand for the same request. A user is the same in all of them.

    Raises:
        DataError: A context column holds text in one and numbers in another, or one log has labels,
            true probabilities or the like and another has not.
    """
    logs = [log for log in logs if log.rows] or logs[:1]
    first = logs[0]
    if len(logs) == 1:
        return first
    arrays_of: dict[str, np.ndarray | None] = {}
    for role in OPTIONAL:
        arrays = [array for log in logs if (array := getattr(log, role)) is not None]
        if 0 < len(arrays) < len(logs) and role != "time":
            raise DataError(f"Some rows have {role.replace('_', ' ')}, and others have not.")
        arrays_of[role] = np.concatenate(arrays) if len(arrays) == len(logs) else None
    if arrays_of["request"] is not None:
        arrays_of["request"] = _renumbered(logs)
    scores = np.concatenate([log.scores for log in logs])
    draws = {name: np.concatenate([log.draws[name] for log in logs]) for name in first.draws}
    context = _contexts([log.context for log in logs])
    changed: Any = {"scores": scores, "context": context, "draws": draws, **arrays_of}
    return replace(first, **changed)


def newest(log: Log, most: int) -> Log:
    """Return the last rows; the log itself if there are no more."""
    return log if log.rows <= most else log.take(np.arange(log.rows - most, log.rows))


def unlabelled(log: Log) -> Log:
    """Return the rows as they are before anything is known of them but scores and context."""
    none: Any = dict.fromkeys(role for role in OPTIONAL if role not in ("sample_weight", "shown"))
    return replace(log, **none)


def _contexts(frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    if not frames[0].width:
        return frames[0]
    plain = [
        frame.with_columns(pl.col(pl.Categorical, pl.Enum).cast(pl.String)) for frame in frames
    ]
    for name in frames[0].columns:
        kinds = {frame[name].dtype for frame in plain} - {pl.Null}
        if pl.String in kinds and len(kinds) > 1:
            raise DataError(
                f"Context column '{name}' holds text in some rows and numbers in others; convert "
                "it to one of them."
            )
    return pl.concat(plain, how="vertical_relaxed")


def _renumbered(logs: Sequence[Log]) -> np.ndarray:
    parts, first = [], 0
    for log in logs:
        assert log.request is not None
        known, request = np.unique(log.request, return_inverse=True)
        parts.append(request.astype(np.int64) + first)
        first += len(known)
    return np.concatenate(parts)


def write_rows(path: Path, log: Log) -> None:
    """Write the rows of a log, of which there is at least one, as parquet; as they were read."""
    log = log.uncorrected()
    numbered = [
        *_columns(_SCORE, log.scores),
        *_columns(_LABEL, log.labels),
        *_columns(_TRUTH, log.truth),
        *(column.alias(f"{_CONTEXT}/{i}") for i, column in enumerate(log.context)),
        *_columns(_REQUEST, log.request),
        *_columns(_USER, log.user),
        *_columns(_WEIGHT, log.sample_weight),
        *_columns(_POSITION, log.position),
    ]
    if log.position is not None:
        # −1 stands for a row that was not shown, which has no place in a table.
        numbered[-1] = numbered[-1].set(numbered[-1] < 0, None)
    with writing():
        pl.DataFrame(numbered).write_parquet(path, compression="uncompressed")


def _columns(role: str, array: np.ndarray | None) -> list[pl.Series]:
    if array is None:
        return []
    if array.ndim == 1:
        return [pl.Series(role, array)]
    return [pl.Series(f"{role}/{i}", column) for i, column in enumerate(array.T)]


def read_rows(path: Path, schema: Schema, most: int) -> Log:
    """Read what `write_rows` wrote for a schema, checked as any table is.

    Raises:
        DataError: There are more rows than `most`, or they are not rows of this schema.
    """
    rows = count_rows(path)
    if not 0 < rows <= most:
        raise DataError(f"'{path}' must have 1 to {most:,} rows. Got {rows:,}.")
    there = pl.read_parquet_schema(path)
    # Numbers in place of names, as one column may have two roles, and scores are probabilities
    # whatever their scale was.
    labels = [f"{_LABEL}/{i}" for i in range(len(schema.names))]
    numbered = Schema(
        objectives={label: f"{_SCORE}/{i}" for i, label in enumerate(labels)},
        context=[f"{_CONTEXT}/{i}" for i in range(len(schema.context))],
        request=_REQUEST if _REQUEST in there else None,
        user=_USER if _USER in there else None,
        sample_weight=_WEIGHT if _WEIGHT in there else None,
        position=_POSITION if _POSITION in there else None,
        truth={label: f"{_TRUTH}/{i}" for i, label in enumerate(labels)},
    )
    log = read_log(path, numbered, labels=labels[0] in there, sample_weight=True)
    names = dict(zip(numbered.context, schema.context, strict=True))
    return replace(log, schema=schema, context=log.context.rename(names))
