"""Times of every kind: their instants, and their hour and weekday as context."""

from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import polars as pl
import pytest

import harmonrank as hr
from harmonrank.data import read_log
from harmonrank.data.clock import clock_value, instants, request_clock, with_clock
from harmonrank.support import DataError
from logs import small_table

# A Sunday, 18:30 in UTC.
MOMENT = datetime(2026, 11, 1, 18, 30, tzinfo=UTC)
SECONDS = int(MOMENT.timestamp())
FORMS = {
    "datetime": [MOMENT.replace(tzinfo=None)],
    "aware": [MOMENT],
    "text": ["2026-11-01T18:30:00"],
    "text with Z": ["2026-11-01 18:30:00.000Z"],
    "minutes": ["2026-11-01 18:30"],
    "seconds": [SECONDS],
    "fractions": [SECONDS + 0.25],
    "milliseconds": [SECONDS * 10**3],
    "microseconds": [SECONDS * 10**6],
    "nanoseconds": [SECONDS * 10**9],
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_time_has_the_same_instant_hour_and_weekday(form):
    series = pl.Series("t", FORMS[form])
    assert instants(series)[0] // 10**6 == SECONDS
    hour, weekday = with_clock(series.to_frame(), ["t:hour", "t:weekday"])
    assert (hour[0], weekday[0]) == (18, 7)
    assert clock_value(FORMS[form][0], "hour") == 18
    assert clock_value(FORMS[form][0], "weekday") == 7


def test_a_column_and_a_single_time_agree_over_many_years():
    rng = np.random.default_rng(0)
    seconds = pl.Series("t", rng.integers(-(2**31), 2**32, 500))
    hour, weekday = with_clock(seconds.to_frame(), ["t:hour", "t:weekday"])
    for row, time in enumerate(seconds.to_list()):
        assert (hour[row], weekday[row]) == (
            clock_value(time, "hour"),
            clock_value(time, "weekday"),
        )


def test_the_hour_is_that_of_the_clock_on_the_wall_and_the_instant_is_not():
    east = timezone(timedelta(hours=8))
    texts = pl.Series("t", ["2026-11-02T02:30:00+08:00", "2026-11-01 13:00:00-0530"])
    assert [micros // 10**6 for micros in instants(texts)] == [SECONDS, SECONDS]
    assert with_clock(texts.to_frame(), ["t:hour"])[0].to_list() == [2, 13]
    assert clock_value(MOMENT.astimezone(east), "hour") == clock_value(texts[0], "hour") == 2
    aware = pl.Series("t", [MOMENT]).dt.convert_time_zone("Asia/Shanghai")
    assert with_clock(aware.to_frame(), ["t:hour", "t:weekday"])[0][0] == 2


def test_a_date_has_a_weekday():
    assert clock_value(date(2026, 11, 1), "weekday") == 7
    assert instants(pl.Series([date(1970, 1, 2)]))[0] == 86_400_000_000


@pytest.mark.parametrize("form", [20261101, 20261101.0, "20261101", "2026-11-01"])
def test_a_date_may_be_a_whole_number(form):
    assert instants(pl.Series([form]))[0] == SECONDS // 86_400 * 86_400 * 10**6
    hour, weekday = with_clock(pl.DataFrame({"d": [form]}), ["d:hour", "d:weekday"])
    assert (hour[0], weekday[0]) == (clock_value(form, "hour"), clock_value(form, "weekday"))
    assert (hour[0], weekday[0]) == (0, 7)
    # No date, so seconds.
    assert instants(pl.Series([20261399]))[0] == 20_261_399 * 10**6
    assert clock_value(20261399, "hour") == 20_261_399 // 3600 % 24


def test_what_is_missing_or_no_time_is_unknown_or_refused():
    assert instants(pl.Series(["soon", None]))[0] is None
    assert clock_value(None, "hour") is None
    for value in ("soon", True, [1], float("nan"), 1e300):
        with pytest.raises(DataError, match="A time must be one of dates, times, ISO text"):
            clock_value(value, "hour")
    with pytest.raises(DataError, match=r"A time column must hold .* Got type Boolean"):
        instants(pl.Series([True]))


def test_a_request_gives_its_time_or_the_hour_itself():
    columns = ["age", "at:hour", "at:weekday"]
    result = {"age": 1, "at:hour": 18, "at:weekday": 7}
    assert request_clock({"age": 1, "at": MOMENT}, columns) == result
    assert request_clock({"age": 1, "at:hour": 18, "at": MOMENT}, columns) == result
    assert request_clock(result, columns) == result
    assert request_clock({"at": [MOMENT, None]}, ["at:hour"]) == {"at:hour": [18, None]}


@pytest.fixture
def timed():
    """Return a log with a time that decides one label, and its schema."""
    rng = np.random.default_rng(0)
    seconds = rng.integers(0, 10**6, 600)
    table = small_table().with_columns(
        at=pl.from_epoch(pl.Series(seconds)), buy=pl.Series((seconds // 3600) % 24 >= 12).cast(int)
    )
    parts = {"objectives": {"buy": "p_buy", "like": "p_like"}, "context": ["age", "at:hour"]}
    return table, hr.Schema.of(parts)


def test_a_model_learns_from_the_hour_and_scores_requests_the_same(timed, tmp_path):
    table, schema = timed
    hr.HarmonRank().fit(table, schema).save(tmp_path / "m")
    model = hr.load(tmp_path / "m")
    assert model.evaluate(table).auc["buy"].estimate > 0.9
    fused = model.score(table)
    for row in range(3):
        line = table.row(row, named=True)
        context = {"age": line["age"], "at": line["at"]}
        assert model.score_request([[line["p_buy"], line["p_like"]]], context)[0] == fused[row]
    derived = table.with_columns(pl.col("at").dt.hour().alias("at:hour")).drop("at")
    assert (model.score(derived) == fused).all()
    table.write_parquet(tmp_path / "t.parquet")
    from harmonrank.fusion import score_file

    score_file(model, tmp_path / "t.parquet", tmp_path / "s.parquet")
    assert (pl.read_parquet(tmp_path / "s.parquet")["fused"].to_numpy() == fused).all()


def test_a_time_as_it_is_is_refused_with_the_remedy(timed):
    table, _ = timed
    schema = {"objectives": {"buy": "p_buy"}, "context": ["at"]}
    with pytest.raises(DataError, match=r"Got type Datetime.*; name 'at:hour' or 'at:weekday'"):
        read_log(table, schema)
    with pytest.raises(DataError, match="has no column 'when'"):
        read_log(table, {**schema, "context": ["when:hour"]})
    text = table.with_columns(at=pl.lit("soon"))
    with pytest.raises(DataError, match=r"for context 'at:hour' of the table must hold times. Got"):
        read_log(text, {**schema, "context": ["at:hour"]})
