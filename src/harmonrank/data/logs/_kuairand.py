"""The official files of KuaiRand: Pure, 1K and 27K."""

__all__ = ["find_kuairand"]

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from harmonrank.data.logs._columns import LogColumns
from harmonrank.data.logs._kuairand_tables import user_table, video_table
from harmonrank.data.logs._source import LogSource, check_folder, columns_of, missing_files
from harmonrank.errors import DataError, UsageError

_HOUR_MS = 3_600_000
_CHINA = 8
"""Hours from UTC to the time that `hourmin` and `date` are in."""

_COLUMNS = LogColumns(
    kind="kuairand",
    user="user_id",
    item="video_id",
    time="time_ms",
    request="request",
    objectives=("is_click", "long_view", "is_like", "is_comment", "is_follow", "is_forward"),
    categorical=("hour", "tab", "is_rand"),
    numeric=("duration_ms",),
    feedback=(
        *("is_hate", "play_time_ms", "profile_stay_time", "comment_stay_time"),
        "is_profile_enter",
    ),
)
_NARROW = ("tab", "is_rand", "is_hate", "is_profile_enter", *_COLUMNS.objectives)
_OFFICIAL = (
    *("user_id", "video_id", "time_ms", "hourmin", *_COLUMNS.objectives, "tab", "is_rand"),
    *(*_COLUMNS.numeric, *_COLUMNS.feedback),
)

_SLICE_NOTES = (
    "The log has `label` (1 like, 0 hate) for is_like and is_hate: both are taken from it.",
    "It keeps only rows with a like or a hate, so it is no log of showings: rates do not "
    "transfer, and no result on it is a KuaiRand benchmark number.",
    "It keeps only users with both and at least 15 likes, and the video features cover only part "
    "of its videos: the others have none.",
)


def find_kuairand(folder: str | Path, *, random: bool = True) -> LogSource:
    """Find the files of one version of KuaiRand in a folder or in its folder `data`.

    Args:
        folder: Where the download was unpacked.
        random: Also read log_random_*, whose videos were shown at random.

    Raises:
        DataError: A file or a column is missing.
    """
    folder = check_folder(folder)
    home = next((p for p in (folder, folder / "data") if _logs(p)), None)
    if home is None:
        raise _missing(folder, "log_standard_*.csv")
    files = _logs(home) if random else [f for f in _logs(home) if "log_random" not in f.name]
    if not files:
        raise _missing(folder, "log_standard_*.csv")
    there = columns_of(files, ("user_id", "video_id", "time_ms"), _COLUMNS.objectives)
    liked = "label" in there and "is_like" not in there
    known = {*there, *(("is_like", "is_hate") if liked else ()), "hour"}
    columns = _COLUMNS.having(known)
    if not columns.objectives:
        expected = ", ".join(_COLUMNS.objectives)
        raise DataError(f"'{files[0]}' has none of the objectives; expected one of {expected}.")
    users = user_table(_features(folder, files, "user_features"))
    videos = video_table(_features(folder, files, "video_features_basic"))
    lacking = [c for c in _OFFICIAL if c not in known and c != "hourmin"]
    left_out = f"The log has no {', '.join(lacking)}: left out of the rows and of log.toml."
    truth = folder / "truth.parquet"
    return LogSource(
        files=tuple(files),
        columns=columns,
        reads=tuple(c for c in (*_OFFICIAL, "label") if c in there),
        key_column="time_ms",
        key=_second,
        split_by="time_ms, by whole seconds",
        clean=_clean,
        count=_count,
        notes=((left_out,) if lacking else ()) + (_SLICE_NOTES if liked else ()),
        tables=(users, videos),
        truth=truth if truth.is_file() else None,
        settings={"random": random},
    )


def _logs(home: Path) -> list[Path]:
    """Return the log files: standard ones by name, then random ones, or the one of a slice."""
    found = [*sorted(home.glob("log_standard*.csv")), *sorted(home.glob("log_random*.csv"))]
    _one_version(found)
    return found or [p for p in [home / "log.parquet"] if p.is_file()]


def _features(folder: Path, logs: Sequence[Path], name: str) -> Path:
    home = logs[0].parent
    found = [*sorted(home.glob(f"{name}*.csv")), *home.glob(f"{name}.parquet")]
    if not found:
        raise _missing(folder, f"{name}_*.csv")
    _one_version([*logs, *found])
    return found[0]


def _one_version(files: Iterable[Path]) -> None:
    matches = [re.search(r"_(pure|1k|27k)(_part\d+)?$", file.stem) for file in files]
    found = {match[1] for match in matches if match}
    if len(found) > 1:
        raise UsageError(
            f"The folder holds files of more than one version: {', '.join(sorted(found))}; "
            "keep each in a folder of its own, since they number users and videos differently."
        )


def _missing(folder: Path, name: str) -> DataError:
    return missing_files(
        folder,
        "KuaiRand",
        f"{name} in it or in its folder 'data'",
        "KuaiRand-Pure, KuaiRand-1K or KuaiRand-27K",
        "https://kuairand.com",
    )


def _second(time_ms: np.ndarray) -> np.ndarray:
    return np.asarray(time_ms // 1000)


def _clock() -> pl.Expr:
    return (pl.col("time_ms") // _HOUR_MS + _CHINA) % 24


def _past_midnight() -> pl.Expr:
    return (_clock() == 0) & (pl.col("time_ms") // 60_000 % 60 == pl.col("hourmin"))


def _hour() -> pl.Expr:
    """Return the hour of `hourmin`: 1530 is 15, 900 is 9, and 5, which has no minutes, is 5.

    But 5 is 0 where the clock itself says five past midnight. Where the value is missing or
    none of a day, the clock decides.
    """
    value = pl.col("hourmin")
    written = (
        pl.when(value >= 24).then(value // 100).when(_past_midnight()).then(0).otherwise(value)
    )
    return pl.when(written.is_between(0, 23)).then(written).otherwise(_clock()).cast(pl.UInt8)


def _clean(frame: pl.DataFrame) -> pl.DataFrame:
    there = frame.columns
    if "hourmin" not in there:
        frame = frame.with_columns(hourmin=pl.lit(None, pl.Int64))
    if "label" in there and "is_like" not in there:
        frame = frame.with_columns(is_like="label", is_hate=1 - pl.col("label"))
    hours = pl.col("time_ms") // _HOUR_MS
    made = {
        "request": pl.col("user_id") * 2_000_000 + hours,
        "hour": _hour(),
        # A video cannot last no time at all: its length was not known.
        "duration_ms": pl.when(pl.col("duration_ms") > 0).then("duration_ms"),
    }
    roles = _COLUMNS.having({*frame.columns, "hour"})
    order = (roles.user, roles.item, "time_ms", "request", *roles.categorical, *roles.numeric)
    return frame.select(
        made[c].alias(c)
        if c in made
        else pl.col(c).cast(pl.UInt8, strict=False)
        if c in _NARROW
        else pl.col(c)
        for c in (*order, *roles.objectives, *roles.feedback)
    )


def _count(frame: pl.DataFrame) -> dict[str, int]:
    bare = pl.col("hourmin").is_between(1, 23) & ~_past_midnight()
    odd = {
        "duration_ms": ("duration_ms is 0: null", pl.col("duration_ms") <= 0),
        "hourmin": ("hourmin without minutes: taken as the hour", bare),
    }
    there = [what for column, what in odd.items() if column in frame.columns]
    return {name: int(frame.select(rule.sum()).item()) for name, rule in there}
