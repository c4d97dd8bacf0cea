"""KuaiRand's files of user and video features."""

__all__ = ["user_table", "video_table"]

from collections.abc import Callable
from pathlib import Path

import polars as pl

from harmonrank.data.logs._columns import FeatureTable
from harmonrank.data.logs._source import TableSource, columns_of

_USER_TEXT = (
    *("user_active_degree", "follow_user_num_range", "fans_user_num_range"),
    *("friend_user_num_range", "register_days_range"),
)
_USER_CODES = (
    *("is_lowactive_period", "is_live_streamer", "is_video_author"),
    *(f"onehot_feat{k}" for k in range(18)),
)
_USER_NUMBERS = ("follow_user_num", "fans_user_num", "friend_user_num", "register_days")
_VIDEO_TEXT = ("video_type", "upload_type")
_VIDEO_CODES = ("author_id", "visible_status", "music_id", "music_type")
_VIDEO_NUMBERS = ("video_duration", "server_width", "server_height")


def _codes(names: tuple[str, ...]) -> dict[str, pl.Expr]:
    # Where a column has nulls, the official file has 3.0 for 3.
    number = pl.Float64
    return {c: pl.col(c).cast(number, strict=False).cast(pl.Int64, strict=False) for c in names}


def _numbers(names: tuple[str, ...]) -> dict[str, pl.Expr]:
    return {c: pl.col(c).cast(pl.Float32, strict=False) for c in names}


def user_table(path: Path) -> TableSource:
    """Return how user_features_* is read; −124 in is_live_streamer becomes null."""
    # Some copies call the number of those a user follows by another table's name.
    names = _renamed(path, "user_id", {"follow_user_num": "follow_user_num1"})
    codes = _codes(_USER_CODES)
    streamer = codes["is_live_streamer"]
    codes["is_live_streamer"] = pl.when(streamer >= 0).then(streamer)
    categorical = {**{c: pl.col(c) for c in _USER_TEXT}, **codes}

    def count(frame: pl.DataFrame) -> dict[str, int]:
        odd = {}
        if "is_live_streamer" in frame.columns:
            value = frame["is_live_streamer"].cast(pl.Float64, strict=False)
            odd["is_live_streamer below 0: null"] = int((value < 0).sum())
        onehot = [c for c in frame.columns if c.startswith("onehot_feat")]
        odd["onehot_feat missing: null"] = sum(frame[c].null_count() for c in onehot)
        return odd

    return _table(path, "users.parquet", "user_id", names, categorical, _USER_NUMBERS, count)


def video_table(path: Path) -> TableSource:
    """Return how video_features_basic_* is read; of the list of tags the first two are kept."""
    names = _renamed(path, "video_id", {})
    tags = pl.col("tag").str.split(",")
    categorical = {
        **_codes(_VIDEO_CODES),
        **{c: pl.col(c) for c in _VIDEO_TEXT},
        "tag": tags.list.get(0, null_on_oob=True).cast(pl.Int64, strict=False),
        "tag_2": tags.list.get(1, null_on_oob=True).cast(pl.Int64, strict=False),
    }
    if "tag" in names:
        names["tag_2"] = names["tag"]

    def count(frame: pl.DataFrame) -> dict[str, int]:
        if "video_duration" not in frame.columns:
            return {}
        return {"video_duration missing: null": frame["video_duration"].null_count()}

    numbers = (*_VIDEO_NUMBERS, "upload_day")
    if "upload_dt" in names:
        names["upload_day"] = names["upload_dt"]
    return _table(path, "items.parquet", "video_id", names, categorical, numbers, count)


def _renamed(path: Path, key: str, other: dict[str, str]) -> dict[str, str]:
    """Return each column's name in the file, by our name."""
    there = columns_of([path], (key,))
    names = {c: c for c in there}
    for ours, theirs in other.items():
        if ours not in names and theirs in names:
            names[ours] = theirs
    return names


def _table(
    path: Path,
    file: str,
    key: str,
    names: dict[str, str],
    categorical: dict[str, pl.Expr],
    numeric: tuple[str, ...],
    count: Callable[[pl.DataFrame], dict[str, int]],
) -> TableSource:
    categorical = {c: e for c, e in categorical.items() if c in names}
    numbers = _numbers(tuple(c for c in numeric if c in names))
    if "upload_day" in numbers:
        day = pl.col("upload_day").str.to_date("%Y-%m-%d", strict=False)
        numbers["upload_day"] = day.cast(pl.Int32).cast(pl.Float32)

    def clean(frame: pl.DataFrame) -> pl.DataFrame:
        return frame.select(**_codes((key,)), **categorical, **numbers)

    table = FeatureTable(file, key, tuple(categorical), tuple(numbers))
    wanted = {c: names[c] for c in (key, *categorical, *numbers)}
    return TableSource(path, table, wanted, clean, count)
