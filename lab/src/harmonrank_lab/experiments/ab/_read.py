"""UserSums: an experiment's log, added up by user, with memory for the users alone."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from harmonrank.data import Source
from harmonrank.data import reading as files_of
from harmonrank.data.reading import TableFiles, describe
from harmonrank.support import DataError, UsageError

_PIECE_ROWS = 2_000_000

_ROWS, _COUNT = "rows", "count"


Query = Callable[[pl.LazyFrame], pl.LazyFrame]
"""From the lazy columns of some rows to a row per user and arm, of their sums."""


def _sums(source: Source, columns: list[str], query: Query) -> pl.DataFrame:
    """Return the sums of users and arms; memory grows with the users, not with the rows."""
    files_of.check_columns(source, files_of.column_names(source), columns)
    if not files_of.is_paths(source):
        return query(files_of.open_table(source, columns).lazy()).collect(engine="streaming")
    files = TableFiles.of(source)
    with files_of.reading(files.paths[0], files.kind):
        # User and arm are text, whatever a csv file has in them.
        parts = files.scans(columns, columns[:2])
        if files.kind == "csv":
            return query(pl.concat(parts, how="vertical_relaxed")).collect(engine="streaming")
        return _piecewise(parts, query)


def _piecewise(files: list[pl.LazyFrame], query: Query) -> pl.DataFrame:
    """Sum up piece by piece: the engine alone reads far ahead of what it has summed up."""

    def added(parts: list[pl.DataFrame]) -> pl.DataFrame:
        return pl.concat(parts).group_by("user", "arm").agg(pl.all().sum())

    parts = [query(files[0].head(0)).collect()]
    for lazy in files:
        rows = int(lazy.select(pl.len()).collect().item())
        for first in range(0, rows, _PIECE_ROWS):
            parts.append(query(lazy.slice(first, _PIECE_ROWS)).collect(engine="streaming"))
            if sum(part.height for part in parts) > _PIECE_ROWS:
                parts = [added(parts)]
    return added(parts)


@dataclass(frozen=True)
class UserSums:
    """What each user did, of users who saw one arm only, in the order of their ids.

    Attributes:
        arms: Names, sorted.
        arm: (users,), the place of the user's arm in `arms`.
        count: (users,), impressions.
        sums: (users, outcomes).
        rows: Of the log.
        crossed_users: Seen in more than one arm and left out.
        skipped_rows: Without a user or an arm, and left out.
    """

    arms: tuple[str, ...]
    arm: np.ndarray
    count: np.ndarray
    sums: np.ndarray
    rows: int
    crossed_users: int
    skipped_rows: int


def read_users(
    source: Source, *, user: str, arm: str, outcomes: Sequence[str], impressions: str | None = None
) -> UserSums:
    """Add up a log by user; memory grows with the number of users, not of rows.

    Args:
        source: A path or table with a row per impression, or per many with their number.
        user: Column of the unit that was split.
        arm: Column of what the user was given.
        outcomes: Columns to compare: 0 and 1, or any number.
        impressions: Column of how many impressions a row stands for; 1 each if left out.
    """
    columns = [user, arm, *outcomes, *([impressions] if impressions else [])]
    if not outcomes or len(set(columns)) < len(columns):
        raise UsageError(
            "Name a user column, an arm column and at least one outcome, each another column. "
            f"Got {', '.join(columns)}."
        )
    name = describe(source)

    def query(lazy: pl.LazyFrame) -> pl.LazyFrame:
        _check_numbers(name, lazy.collect_schema(), columns[2:])
        # What is missing must not pass for 0, so a null becomes a nan, which a sum keeps.
        value = {c: pl.col(c).cast(pl.Float64).fill_null(float("nan")).sum() for c in columns[2:]}
        count = value[impressions] if impressions else pl.len().cast(pl.Float64)
        named = [value[c].alias(f"{i}") for i, c in enumerate(outcomes)]
        keys = [pl.col(user).alias("user"), pl.col(arm).cast(pl.String).alias("arm")]
        return lazy.group_by(keys).agg(pl.len().alias(_ROWS), count.alias(_COUNT), *named)

    frame = _sums(source, columns, query)
    _check_values(name, frame, dict(zip(map(str, range(len(outcomes))), outcomes, strict=True)))
    if impressions and not (frame[_COUNT].is_finite() & (frame[_COUNT] >= 0)).all():
        raise DataError(f"{name}: '{impressions}' must be numbers from 0 up; repair those rows.")
    return _users(name, frame, len(outcomes))


def _check_numbers(name: str, schema: pl.Schema, columns: Sequence[str]) -> None:
    for column in columns:
        kind = schema[column]
        if not (kind.is_numeric() or kind == pl.Boolean):
            raise DataError(
                f"{name}: '{column}' must be a number or true/false. Got type {kind}; convert it "
                "or name another column."
            )


def _check_values(name: str, frame: pl.DataFrame, outcomes: dict[str, str]) -> None:
    for column, outcome in outcomes.items():
        bad = frame.height - frame[column].is_finite().sum()
        if bad:
            raise DataError(
                f"{name}: outcome '{outcome}' is null, nan or infinite for {bad:,} "
                f"user{'s' * (bad > 1)}; write 0 where nothing happened, or drop those rows."
            )


def _users(name: str, frame: pl.DataFrame, outcomes: int) -> UserSums:
    known = frame.drop_nulls(["user", "arm"])
    if known.height == 0:
        raise DataError(f"{name} has no row with a user and an arm; expected at least one.")
    single = known.filter(pl.len().over("user") == 1).sort("user")
    crossed = known["user"].n_unique() - single.height
    arms = sorted(single["arm"].unique().to_list())
    if len(arms) < 2:
        seen = ", ".join(sorted(known["arm"].unique().to_list()))
        raise DataError(
            f"{name} must hold users of at least two arms, each user in one. Got {seen}"
            + (f", and {crossed:,} users in more than one." if crossed else ".")
        )
    rows = int(frame[_ROWS].sum())
    return UserSums(
        tuple(arms),
        np.searchsorted(arms, single["arm"].to_numpy()),
        single[_COUNT].to_numpy().astype(np.float64),
        single.select(map(str, range(outcomes))).to_numpy(),
        rows,
        crossed,
        rows - int(known[_ROWS].sum()),
    )
