"""A split keeps requests whole, old rows before new ones, and is the same every time."""

from datetime import date, datetime, timedelta

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harmonrank.data.splitting import Cut, split_rows
from harmonrank.support import DataError, UsageError

START = datetime(2026, 11, 1)


def log(rows=1000, size=10, seed=0):
    """Return requests of `size` rows that are a minute long and follow each other."""
    times = [START + timedelta(minutes=row // size, seconds=row % size) for row in range(rows)]
    frame = pl.DataFrame({"t": times, "r": [f"r{row // size}" for row in range(rows)]})
    return frame.sample(fraction=1, shuffle=True, seed=seed)


def sides(frame, split, column):
    return [set(frame[column].gather(split.rows(part)).to_list()) for part in ("train", "test")]


def test_a_cut_by_time_tests_on_the_newest_rows():
    frame = log()
    split = split_rows(frame, Cut("time"), time="t", request="r")
    train, test = sides(frame, split, "t")
    assert max(train) < min(test)
    assert split.counts == {"train": 800, "valid": 0, "test": 200}
    assert split.requests == (80, 0, 20)
    said = "Split by time, test rows from 2026-11-01 01:20:00: 800 train, 200 test rows."
    assert split.words() == said


def test_a_cut_from_a_time_on_begins_there_and_validation_rows_come_before():
    frame = log()
    cut = Cut("time", test_from="2026-11-01T01:00", valid_share=0.1)
    split = split_rows(frame, cut, time="t", request="r")
    assert split.counts == {"train": 500, "valid": 100, "test": 400}
    times = {part: frame["t"].gather(split.rows(part)) for part in ("train", "valid", "test")}
    assert times["train"].max() < times["valid"].min()
    assert times["valid"].max() < times["test"].min() == START + timedelta(hours=1)


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 50)), min_size=2, max_size=60),
    st.floats(0.05, 0.6),
    st.floats(0, 0.3),
    st.sampled_from(["time", "request"]),
)
def test_no_request_is_ever_on_two_sides(rows, share, valid, by):
    frame = pl.DataFrame(rows, schema=["r", "t"], orient="row")
    try:
        split = split_rows(frame, Cut(by, share, None, valid), time="t", request="r")
    except DataError:
        return
    assert (
        frame.with_columns(p=split.part).group_by("r").agg(pl.col("p").n_unique())["p"].max() == 1
    )
    assert sum(split.requests) == frame["r"].n_unique()
    if by == "time":
        last = frame.with_columns(p=split.part).group_by("r").agg(pl.max("p"), pl.max("t"))
        ordered = last.sort("t")
        assert (ordered["p"].diff().drop_nulls() >= 0).all()


def test_a_request_across_the_boundary_is_whole_in_the_test_part_and_counted():
    frame = pl.DataFrame({"t": [1, 2, 3, 4, 5, 6], "r": [0, 0, 1, 1, 2, 2]})
    split = split_rows(frame, Cut("time", test_from="1970-01-01T00:00:04"), time="t", request="r")
    assert split.part.tolist() == [0, 0, 2, 2, 2, 2]
    assert split.crossing == 1
    assert "1 request across a boundary went whole to the later part" in split.words()


@pytest.mark.parametrize("by", ["time", "request"])
def test_rows_without_a_request_are_cut_one_by_one(by):
    """As one request they would all be as new as the newest of them."""
    frame = pl.DataFrame({"t": range(2000), "r": [n // 10 if n % 5 else None for n in range(2000)]})
    split = split_rows(frame, Cut(by, 0.25), time="t", request="r")
    alone = split.part[frame["r"].is_null().to_numpy()]
    assert (alone == 2).mean() == pytest.approx(0.25, abs=0.06)
    assert sum(split.requests) == 200 + 400


def test_a_cut_by_request_is_the_same_in_every_table_and_another_with_another_seed():
    frame = log()
    split = split_rows(frame, Cut("request", 0.3, seed=1), time=None, request="r")
    again = split_rows(frame[::-1][:500], Cut("request", 0.3, seed=1), time=None, request="r")
    assert (again.part == split.part[::-1][:500]).all()
    other = split_rows(frame, Cut("request", 0.3, seed=2), time=None, request="r")
    assert (other.part != split.part).any()
    assert 150 < split.counts["test"] < 450
    whole = split_rows(
        frame.with_columns(r=pl.col("r").str.slice(1).cast(pl.Int64)),
        Cut("request"),
        time=None,
        request="r",
    )
    text = split_rows(
        frame.with_columns(r=pl.col("r").str.slice(1)), Cut("request"), time=None, request="r"
    )
    assert (whole.part == text.part).all()


@pytest.mark.parametrize(
    "column",
    [
        pl.col("t"),
        pl.col("t").dt.to_string("%Y-%m-%dT%H:%M:%S"),
        pl.col("t").dt.epoch("s"),
        pl.col("t").dt.epoch("ms"),
        pl.col("t").dt.replace_time_zone("Asia/Tokyo"),
    ],
    ids=["datetime", "text", "seconds", "milliseconds", "zone"],
)
def test_every_kind_of_time_is_cut_at_the_same_place(column):
    frame = log().with_columns(t=column)
    cut = Cut("time", test_from="2026-11-01 01:30")
    assert split_rows(frame, cut, time="t", request="r").counts["test"] == 100


def test_days_are_cut_where_the_share_is_nearest_and_rows_may_have_no_request():
    frame = pl.DataFrame({"t": [date(2026, 11, d) for d in (1, 1, 1, 2, 2, 3)]})
    for share, part in ((0.2, [0] * 5 + [2]), (0.4, [0, 0, 0, 2, 2, 2])):
        split = split_rows(frame, Cut("time", share), time="t", request=None)
        assert split.part.tolist() == part


def test_what_cannot_be_cut_is_refused():
    frame = log(20)
    with pytest.raises(UsageError, match="needs the column of times: --time COLUMN"):
        split_rows(frame, Cut("time"), time=None, request="r")
    with pytest.raises(UsageError, match="needs the column of requests: --request COLUMN"):
        split_rows(frame, Cut("request"), time="t", request=None)
    with pytest.raises(UsageError, match="Shares of test and validation rows must lie between 0"):
        Cut("time", 1.0)
    with pytest.raises(UsageError, match="goes with neither a share of test rows nor"):
        Cut("request", test_from="2026-11-01")
    with pytest.raises(UsageError, match="--test-from must be a date or a time, such as 2026"):
        split_rows(frame, Cut("time", test_from="soon"), time="t", request="r")
    with pytest.raises(DataError, match="No row of The table is left for the test part"):
        split_rows(frame, Cut("time", test_from="2027-01-01"), time="t", request="r")
    with pytest.raises(DataError, match="needs requests of two times at least"):
        split_rows(frame.with_columns(t=1), Cut("time"), time="t", request="r")
    broken = frame.with_columns(t=pl.when(pl.int_range(20) != 7).then("t"))
    with pytest.raises(DataError, match=r"Time column 't' of the table must hold a time .* row 7 "):
        split_rows(broken, Cut("time"), time="t", request="r")
