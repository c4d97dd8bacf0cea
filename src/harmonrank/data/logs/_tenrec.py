"""The official video files of Tenrec."""

__all__ = ["TENREC_FILES", "find_tenrec"]

from pathlib import Path

import numpy as np
import polars as pl

from harmonrank.data.logs._columns import LogColumns
from harmonrank.data.logs._source import LogSource, check_folder, columns_of, missing_files
from harmonrank.errors import UsageError, did_you_mean

TENREC_FILES = ("QK-video.csv", "QB-video.csv", "sbr_data_1M.csv", "ctr_data_1M.csv")

_COLUMNS = LogColumns(
    kind="tenrec",
    user="user_id",
    item="item_id",
    request="user_id",
    objectives=("click", "long_view", "like", "follow", "share"),
    categorical=("video_category", "gender", "age"),
    feedback=("watching_times",),
    history=tuple(f"hist_{k}" for k in range(1, 11)),
)
_LABELS = ("click", "like", "follow", "share")
_BUCKETS = 20
"""Users fall into 2^20 buckets by a hash of their id, and buckets are never divided."""


def find_tenrec(folder: str | Path, *, file: str | None = None, long_view: int = 2) -> LogSource:
    """Find a video file of Tenrec in a folder.

    Args:
        folder: Where the download was unpacked.
        file: Which file; needed only where there is more than one, since they overlap.
        long_view: A view is long if the user entered the video at least so often.

    Raises:
        DataError: The file or a column is missing.
        UsageError: There is more than one file, and none is named.
    """
    if long_view < 1:
        raise UsageError(f"`long_view` must be at least 1. Got {long_view}.")
    folder = check_folder(folder)
    path = _find(folder, file)
    there = columns_of([path], ("user_id", "item_id", *_LABELS, "watching_times"))
    columns = _COLUMNS.having({*there, "long_view"})
    lacking = [c for c in _COLUMNS.categorical if c not in there]
    notes = [
        f"A view is long if watching_times, which counts how often the user entered the video, "
        f"is at least {long_view}.",
        "There is no clock: users are divided by a hash of their id, so that those of valid and "
        "test are new to a model, and a request is all that one user was shown.",
    ]
    if lacking:
        notes.append(f"The log has no {', '.join(lacking)}: left out of the rows and of log.toml.")
    truth = folder / "truth.parquet"
    reads = ("user_id", "item_id", *_LABELS, "watching_times")
    return LogSource(
        files=(path,),
        columns=columns,
        reads=(*reads, *columns.categorical, *columns.history),
        key_column="user_id",
        key=_bucket,
        split_by="a hash of user_id",
        clean=lambda frame: _clean(frame, columns, long_view),
        count=_count,
        notes=tuple(notes),
        truth=truth if truth.is_file() else None,
        settings={"long_view": long_view},
    )


def _find(folder: Path, file: str | None) -> Path:
    if file is not None and file not in TENREC_FILES:
        raise UsageError(f"Tenrec has no video file '{file}'. {did_you_mean(file, TENREC_FILES)}")
    wanted = TENREC_FILES if file is None else (file,)
    found = [folder / name for name in wanted if (folder / name).is_file()]
    if not found:
        expected = f"{' or '.join(wanted)} in it"
        raise missing_files(folder, "Tenrec", expected, "Tenrec", "https://tenrec0.github.io")
    if len(found) > 1:
        names = ", ".join(path.name for path in found)
        raise UsageError(
            f"'{folder}' holds {names}, which overlap; choose one with --file (in Python, file=)."
        )
    return found[0]


def _bucket(user: np.ndarray) -> np.ndarray:
    """Return the top bits of splitmix64, which spreads neighbouring ids evenly."""
    h = user.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray((h ^ (h >> np.uint64(31))) >> np.uint64(64 - _BUCKETS)).astype(np.int64)


def _clean(frame: pl.DataFrame, columns: LogColumns, long_view: int) -> pl.DataFrame:
    watched = pl.col("watching_times")
    made = {"long_view": (watched.fill_null(0) >= long_view).cast(pl.UInt8)}
    return frame.select(
        "user_id",
        "item_id",
        pl.col(columns.categorical).cast(pl.Int16, strict=False),
        *(made.get(c, pl.col(c).cast(pl.UInt8, strict=False)).alias(c) for c in columns.objectives),
        watched.cast(pl.Int32, strict=False),
        *(pl.when(pl.col(c) > 0).then(c).alias(c) for c in columns.history),
    )


def _count(frame: pl.DataFrame) -> dict[str, int]:
    missing = {f"{c} missing: null": frame[c].null_count() for c in frame.columns}
    return {what: count for what, count in missing.items() if count}
