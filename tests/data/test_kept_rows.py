from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from harmonrank.data import ContextEncoder, Schema, read_log
from harmonrank.data.rows.kept_rows import concatenated, read_rows, write_rows
from harmonrank.support import DataError
from logs import small_table

SCHEMA = Schema(
    {"buy": "p_buy", "like": "p_like"},
    context=["hour", "age"],
    request="request_id",
    sample_weight="weight",
    truth={"buy": "t_buy", "like": "t_like"},
)


def table(rows=50, seed=0, dtype=pl.Float64):
    rng = np.random.default_rng(seed)
    frame = small_table(rows, seed).with_columns(
        pl.col("p_buy", "p_like").cast(dtype),
        weight=pl.Series(rng.random(rows)),
        t_buy=pl.Series(rng.random(rows)),
        t_like=pl.Series(rng.random(rows)),
        request_id=pl.format("r{}", "request_id"),
    )
    return frame.with_columns(p_buy=pl.when(pl.int_range(pl.len()) % 7 != 0).then("p_buy"))


@pytest.mark.parametrize("dtype", [pl.Float32, pl.Float64])
def test_rows_are_read_back_as_they_were_written(tmp_path, dtype):
    log = read_log(table(dtype=dtype), SCHEMA)
    write_rows(tmp_path / "rows.parquet", log)
    again = read_rows(tmp_path / "rows.parquet", SCHEMA, most=50)
    assert again.fingerprint() == log.fingerprint()
    assert again.scores.dtype == log.scores.dtype
    assert again.context.equals(log.context, null_equal=True)


def test_users_stay_the_same_in_all_logs_and_requests_do_not(tmp_path):
    schema = replace(SCHEMA, user="user_id")
    rows = table().with_columns(user_id=pl.format("u{}", pl.col("request_id").hash() % 5))
    write_rows(tmp_path / "rows.parquet", read_log(rows, schema))
    log = read_rows(tmp_path / "rows.parquet", schema, most=50)
    both = concatenated([log, log])
    np.testing.assert_array_equal(both.user, np.tile(log.user, 2))
    assert len(np.unique(both.request)) == 2 * len(np.unique(log.request))


def test_rows_without_labels_context_request_or_weight_are_read_back_too(tmp_path):
    bare = Schema({"buy": "p_buy", "like": "p_like"})
    for labels in (True, False):
        log = read_log(table(), bare, labels=labels)
        write_rows(tmp_path / "rows.parquet", log)
        again = read_rows(tmp_path / "rows.parquet", bare, most=50)
        assert again.fingerprint() == log.fingerprint()
        assert again.rows == 50
        assert again.codes(ContextEncoder(())).shape == (50, 0)
        assert concatenated([log, again]).codes(ContextEncoder(())).shape == (100, 0)


def test_a_column_may_have_two_roles_and_a_scale(tmp_path):
    schema = Schema(
        {"buy": "p_buy"}, context=["p_buy", "t:hour"], request="t", scale={"p_buy": "percent"}
    )
    frame = pl.DataFrame(
        {"buy": [0, 1], "p_buy": [50.0, 20.0], "t": ["2026-01-01T10:00", "2026-01-02T09:00"]}
    )
    log = read_log(frame, schema)
    write_rows(tmp_path / "rows.parquet", log)
    assert read_rows(tmp_path / "rows.parquet", schema, most=2).fingerprint() == log.fingerprint()


def test_logs_put_together_keep_their_rows_and_their_requests_apart():
    parts = [read_log(table(30, seed), SCHEMA) for seed in range(3)]
    whole = concatenated(parts)
    assert whole.rows == 90
    assert np.array_equal(whole.scores, np.concatenate([p.scores for p in parts]), equal_nan=True)
    assert whole.context.equals(pl.concat([p.context for p in parts]))
    assert len(np.unique(whole.request)) == sum(len(np.unique(p.request)) for p in parts)
    for part, rows in zip(parts, np.split(np.arange(90), 3), strict=True):
        same = part.request[:, None] == part.request
        assert np.array_equal(whole.request[rows][:, None] == whole.request[rows], same)


def test_text_beside_numbers_and_labels_beside_none_are_refused():
    log = read_log(table(), SCHEMA)
    other = replace(log, context=log.context.with_columns(age=pl.lit(3)))
    with pytest.raises(DataError, match="Context column 'age' holds text in some rows"):
        concatenated([log, other])
    with pytest.raises(DataError, match="Some rows have labels, and others have not"):
        concatenated([log, replace(log, labels=None)])


def test_more_rows_than_allowed_and_rows_of_another_schema_are_refused(tmp_path):
    write_rows(tmp_path / "rows.parquet", read_log(table(), SCHEMA))
    with pytest.raises(DataError, match="must have 1 to 49 rows. Got 50"):
        read_rows(tmp_path / "rows.parquet", SCHEMA, most=49)
    wider = Schema({**SCHEMA.objectives, "share": "p_share"})
    with pytest.raises(DataError, match="score/2"):
        read_rows(tmp_path / "rows.parquet", wider, most=50)
    (tmp_path / "rows.parquet").write_bytes(b"PAR1 and nothing else")
    with pytest.raises(DataError, match="cannot be read"):
        read_rows(tmp_path / "rows.parquet", SCHEMA, most=50)


def test_places_are_kept_and_a_correction_for_them_is_not(tmp_path):
    placed = replace(SCHEMA, position="place")
    places = pl.int_range(pl.len()) % 10
    frame = table().with_columns(place=pl.when(places > 0).then(places))
    log = read_log(frame, placed)
    done = log.corrected(np.arange(1.0, 51.0), {1: 1.0})
    assert concatenated([done, done]).inverse.tolist() == [*range(1, 51)] * 2
    write_rows(tmp_path / "rows.parquet", done)
    again = read_rows(tmp_path / "rows.parquet", placed, most=50)
    assert again.position.tolist() == log.position.tolist()
    assert np.allclose(again.sample_weight, log.sample_weight)
