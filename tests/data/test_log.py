from dataclasses import replace
from decimal import Decimal

import numpy as np
import polars as pl
import pytest

from harmonrank import Schema
from harmonrank.data import ContextEncoder, read_log
from harmonrank.fusion import method_class
from harmonrank.support import DataError


def test_columns_become_arrays_by_their_role(table, schema):
    log = read_log(table, schema)
    assert log.rows == 600
    np.testing.assert_array_equal(log.scores, table.select("p_buy", "p_like").to_numpy())
    np.testing.assert_array_equal(log.labels, table.select("buy", "like").to_numpy())
    np.testing.assert_array_equal(log.request, table["request_id"].to_numpy())
    assert log.context.columns == ["hour", "age"]
    assert log.sample_weight is None
    assert log.truth is None


def test_float32_scores_stay_float32(table, schema):
    frame = table.with_columns(pl.col("p_buy", "p_like").cast(pl.Float32))
    assert read_log(frame, schema).scores.dtype == np.float32


@pytest.mark.parametrize("kind", [pl.Boolean, pl.Int64, pl.Float64, pl.UInt8])
def test_labels_may_be_true_and_false_or_any_numbers_that_are_0_and_1(table, schema, kind):
    frame = table.with_columns(pl.col("buy", "like").cast(kind))
    np.testing.assert_array_equal(read_log(frame, schema).labels, read_log(table, schema).labels)


def test_a_log_without_context_still_knows_its_rows(table):
    log = read_log(table, Schema({"buy": "p_buy"}))
    encoder = ContextEncoder.fit(log.context)
    assert log.codes(encoder).shape == (600, 0)
    assert log.take(np.arange(5)).codes(encoder).shape == (5, 0)


def test_take_picks_the_same_rows_of_everything(table):
    table = table.with_columns(w=pl.int_range(600), t=pl.col("p_buy"))
    schema = Schema({"buy": "p_buy"}, ["hour"], "request_id", {}, "w", {"buy": "t"})
    log, index = read_log(table, schema), np.array([5, 2, 2])
    taken = log.take(index)
    for name in ("scores", "labels", "request", "sample_weight", "truth"):
        np.testing.assert_array_equal(getattr(taken, name), getattr(log, name)[index])
    assert taken.context["hour"].to_list() == table["hour"].gather(index.tolist()).to_list()


@pytest.mark.parametrize(
    "ids",
    [
        pl.Series([3, 3, 7]),
        pl.Series(["b", "b", "a"]),
        pl.Series([2**63 + 5, 2**63 + 5, 1], dtype=pl.UInt64),
        pl.Series(["b", "b", "a"], dtype=pl.Categorical),
        pl.Series([0.5, 0.5, 0.1]),
        pl.Series([1, 1, None]),
    ],
    ids=["whole", "text", "hash beyond int64", "categorical", "fraction", "null"],
)
def test_requests_of_any_type_keep_together_what_was_together(ids):
    table = pl.DataFrame({"r": ids, "p": [0.1, 0.2, 0.3], "y": [0, 1, 0]})
    request = read_log(table, Schema({"y": "p"}, request="r")).request
    assert request[0] == request[1] != request[2]


@pytest.mark.parametrize("ids", [[None, "a", None, "a"], [None, 7, None, 7], [np.nan, 7.0] * 2])
def test_rows_without_a_request_were_not_shown_together(ids):
    table = pl.DataFrame({"r": ids, "p": [0.1] * 4, "y": [0, 1, 0, 1]})
    request = read_log(table, Schema({"y": "p"}, request="r")).request
    assert len(np.unique(request)) == 3
    assert request[1] == request[3]


def test_truth_is_read_only_where_every_objective_has_it(table):
    schema = Schema({"buy": "p_buy", "like": "p_like"}, truth={"buy": "t_buy", "like": "t_like"})
    assert read_log(table, schema).truth is None
    half = table.with_columns(t_buy=0.5)
    assert read_log(half, schema).truth is None
    assert read_log(half.with_columns(t_like=0.25), schema).truth[0].tolist() == [0.5, 0.25]


def test_an_unnamed_index_column_of_a_csv_is_not_taken_for_truth(tmp_path, table, schema):
    path = tmp_path / "t.csv"
    table.to_pandas().to_csv(path)  # pandas writes its index under the name ''
    assert read_log(path, schema).truth is None


def strict(schema):
    return replace(schema, missing="error")


P, Y = [0.1, 0.2, 0.3], [0, 1, 0]


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"p": [0.1, 1.5, 2]}, r"Score column 'p' .* must lie in \[0, 1\]. Got 1.5 in row 1 "
         r"\(counted from 0\), and 2 such rows in all; p looks like percent: .*=percent.$"),
        ({"p": [0.1, np.inf, 0.2]}, "must lie in .* Got inf in row 1 "),
        ({"p": [0.1, 0.2, np.nan]}, "must lie in .* Got nan in row 2 "),
        ({"p": [0.1, 0.2, None]}, "must lie in .* Got null in row 2 .*, and 1 such row in all"),
        ({"p": ["a", "b", "c"]}, r"'p' .* must hold numbers in \[0, 1\]. Got type String"),
        ({"y": [0, 2, 1]}, "Label column 'y' .* must be 0 or 1. Got 2 in row 1 "),
        ({"y": [0, 0.5, 1]}, "must be 0 or 1. Got 0.5 in row 1 "),
        ({"y": [0, np.nan, 1]}, "must be 0 or 1. Got nan in row 1 "),
        ({"y": [0, None, True]}, "must be 0 or 1. Got null in row 1 "),
        ({"y": ["0", "1", "0"]}, "Label column 'y' .* must hold 0 and 1. Got type String"),
        ({"w": [1, -0.5, 1]}, "Weight column 'w' .* must be finite and 0 or more. Got -0.5"),
        ({"w": [1, np.inf, np.nan]}, "must be finite and 0 or more. Got inf .* 2 such rows"),
        ({"w": ["1", "2", "3"]}, "must hold numbers from 0 up. Got type String"),
        ({"w": [1e308] * 3}, "has an infinite sum; divide all weights by the largest"),
        ({"w": [Decimal("-1")] * 3}, "must be finite and 0 or more"),
        ({"r": [[1], [2], [3]]}, "Request column 'r' .* must hold numbers or text. Got type"),
    ],
)  # fmt: skip
def test_a_value_that_its_role_does_not_allow_is_named(changed, sentence):
    frame = pl.DataFrame({"p": P, "y": Y, "w": [1.0] * 3, "r": [1, 1, 2], **changed}, strict=False)
    schema = Schema({"y": "p"}, request="r", sample_weight="w", missing="error")
    with pytest.raises(DataError, match=sentence):
        read_log(frame, schema)


def test_rows_are_counted_from_where_a_piece_begins():
    frame = pl.DataFrame({"p": [0.1, 2.0], "y": [0, 1]})
    with pytest.raises(DataError, match=r"of 'big.parquet' .* in row 1,000,001 "):
        read_log(frame, Schema({"y": "p"}), first_row=1_000_000, name="'big.parquet'")


def test_a_missing_score_becomes_nan_where_the_schema_allows_it(table, schema):
    lost = [None if row == 5 else float("nan") if row == 7 else 0.25 for row in range(600)]
    for kind in (pl.Float64, pl.Float32):
        log = read_log(table.with_columns(p_buy=pl.Series(lost, dtype=kind)), schema)
        assert np.flatnonzero(np.isnan(log.scores[:, 0])).tolist() == [5, 7]
        assert log.missing().tolist() == [2, 0]
    whole = pl.Series([None if row == 5 else 1 for row in range(600)])
    assert np.isnan(read_log(table.with_columns(p_buy=whole), schema).scores[5, 0])


@pytest.mark.parametrize("kind", [pl.Null, pl.String, pl.Float64])
def test_a_column_that_is_wholly_missing_can_be_scored_but_not_learned_from(table, schema, kind):
    log = read_log(table.with_columns(p_buy=pl.lit(None, kind)), schema)
    assert np.isnan(log.scores).sum(axis=0).tolist() == [600, 0]
    with pytest.raises(DataError, match="'p_buy' is missing in all 600 training rows; leave its"):
        log.require_scores("training")


def test_a_log_with_missing_scores_is_refused_by_a_strict_schema(table, schema):
    log = read_log(table.with_columns(p_buy=pl.when(pl.int_range(600) > 4).then("p_buy")), schema)
    with pytest.raises(DataError, match=r"'p_buy' of the log .* Got null in row 0 .*, and 5 such"):
        read_log(log, strict(schema))


@pytest.mark.parametrize(("value", "missing"), [(0, "positive"), (1, "negative")])
def test_an_objective_of_one_class_is_refused(table, schema, value, missing):
    log = read_log(table.with_columns(like=pl.lit(value)), schema)
    with pytest.raises(
        DataError, match=f"Objective 'like' has no {missing} label among the 600 training rows"
    ):
        log.require_both_classes("training")


def test_a_positive_without_weight_does_not_count_as_one(table):
    frame = table.with_columns(w=1.0 - pl.col("buy"))
    log = read_log(frame, Schema({"buy": "p_buy"}, sample_weight="w"))
    with pytest.raises(DataError, match="'buy' has no positive label"):
        log.require_both_classes("training")


def test_prevalence_is_by_sample_weight(table):
    frame = table.with_columns(w=1.0 + 2 * pl.col("buy"))
    log = read_log(frame, Schema({"buy": "p_buy"}, sample_weight="w"))
    share = table["buy"].mean()
    np.testing.assert_allclose(log.prevalence(), 3 * share / (1 + 2 * share))


def same_rows(one, other):
    for name in ("scores", "labels", "request", "sample_weight", "truth"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert one.context.equals(other.context)
    assert one.schema == other.schema
    assert one.schema.names == other.schema.names


OTHER_ORDER = Schema(
    {"like": "p_like", "buy": "p_buy"}, context=["age", "hour"], request="request_id"
)


def test_a_log_with_columns_in_another_order_is_put_in_order(table, schema):
    log = read_log(table, OTHER_ORDER)
    same_rows(read_log(log, schema), read_log(table, schema))
    assert read_log(log, OTHER_ORDER) is log


def test_a_model_scores_a_log_of_another_order_like_its_table(table, schema):
    for name in ("closed-form", "logistic", "harmonrank"):
        model = method_class(name)().fit(table, schema)
        log = read_log(table, OTHER_ORDER)
        np.testing.assert_array_equal(model.score(log), model.score(table))
        assert model.evaluate(log) == model.evaluate(table)
        assert model.drift(log) == model.drift(table)
        again = method_class(name)().fit(log, schema)
        np.testing.assert_array_equal(again.score(table), model.score(table))


def test_a_log_keeps_what_a_schema_names_and_leaves_out_the_rest(table):
    frame = table.with_columns(v=pl.lit(2.0), q_buy=pl.col("p_buy"), q_like=pl.col("p_like"))
    truth = {"buy": "q_buy", "like": "q_like"}
    objectives = {"buy": "p_buy", "like": "p_like"}
    wide = Schema(objectives, ["hour", "age"], "request_id", sample_weight="v", truth=truth)
    for narrow in (
        Schema({"like": "p_like"}, truth={"like": "q_like"}),
        Schema({"like": "p_like"}, ["age"], "request_id"),
        Schema({"like": "p_like", "buy": "p_buy"}, ["age"], sample_weight="v", truth=truth),
        Schema(objectives, ["hour", "age"], "request_id", {"buy": 2}, "v", truth),
    ):
        same_rows(read_log(read_log(frame, wide), narrow), read_log(frame, narrow))


@pytest.mark.parametrize(
    ("wanted", "sentence"),
    [
        (Schema({"buy": "p_buy", "share": "p_share"}), "without score column 'p_share'"),
        (Schema({"purchase": "p_buy"}), "without label column 'purchase'"),
        (Schema({"buy": "p_buy"}, ["region"]), "without context column 'region'"),
        (Schema({"buy": "p_buy"}, request="session"), "without request column 'session'"),
        (Schema({"buy": "p_buy"}, sample_weight="v"), "without sample weight column 'v'"),
    ],
)
def test_a_log_that_lacks_a_column_is_refused(table, schema, wanted, sentence):
    with pytest.raises(DataError, match=f"The log was read {sentence}; read its table again"):
        read_log(read_log(table, schema), wanted)


def test_labels_matter_only_where_they_are_needed(table, schema):
    blind = read_log(table, schema, labels=False)
    assert read_log(blind, schema, labels=False) is blind
    renamed = Schema({"purchase": "p_buy"}, ["hour"], request="session")
    assert read_log(read_log(table, schema), renamed, labels=False).labels is None
    with pytest.raises(DataError, match="was read without labels; read it with `labels=True`"):
        read_log(blind, schema)


def test_rows_of_weight_0_do_not_count(table):
    schema = Schema({"buy": "p_buy"}, sample_weight="v")
    log = read_log(table.with_columns(v=pl.int_range(pl.len()) % 3), schema)
    assert log.counted().rows == 400
    assert log.counted().sample_weight.min() == 1
    with pytest.raises(DataError, match="All 600 rows have sample weight 0"):
        read_log(table.with_columns(v=pl.lit(0)), schema).counted()


def test_weights_of_rows_without_labels_are_read_where_they_are_there(table):
    schema = Schema({"buy": "p_buy"}, sample_weight="v")
    frame = table.with_columns(v=pl.lit(2.0)).drop("buy")
    result = read_log(frame, schema, labels=False, sample_weight=True)
    assert (result.sample_weight == 2).all()
    assert read_log(frame, schema, labels=False).sample_weight is None
    without = read_log(frame.drop("v"), schema, labels=False, sample_weight=True)
    assert without.sample_weight is None


def test_columns_named_like_patterns_are_plain_names(tmp_path):
    frame = pl.DataFrame({"*": [0.1, 0.2], "^b.*$": [0, 1], "buy": [1, 1], "c": ["x", "y"]})
    frame.write_parquet(tmp_path / "t.parquet")
    frame.write_csv(tmp_path / "t.csv")
    frame.write_ipc(tmp_path / "t.arrow")
    schema = Schema({"^b.*$": "*"}, context=["c"])
    tables = [
        frame,
        frame.lazy(),
        *(tmp_path / f"t.{kind}" for kind in ("parquet", "csv", "arrow")),
    ]
    for source in tables:
        log = read_log(source, schema)
        assert log.scores.ravel().tolist() == [0.1, 0.2]
        assert log.known_labels().ravel().tolist() == [0, 1]
        assert log.context.columns == ["c"]


def test_decimal_sample_weights_are_numbers():
    frame = pl.DataFrame({"p": [0.1, 0.2], "y": [0, 1], "w": [Decimal("1.5"), Decimal(2)]})
    log = read_log(frame, Schema({"y": "p"}, sample_weight="w"))
    assert log.sample_weight.tolist() == [1.5, 2.0]


def test_all_faults_of_a_table_are_said_at_once(table, schema):
    frame = table.drop("age").with_columns(
        p_buy=pl.col("p_buy") * 100,
        p_like=pl.lit("x"),
        buy=pl.lit(7),
    )
    with pytest.raises(DataError) as caught:
        read_log(frame, schema)
    said = str(caught.value).splitlines()
    assert said[0] == "The table has 4 faults:"
    assert said[1].startswith("- It has no column 'age'. Known: request_id, hour")
    assert "- Score column 'p_buy' must lie in [0, 1]. Got " in said[2]
    assert said[2].endswith("add scale p_buy=percent.")
    assert said[3].startswith(
        "- Score column 'p_like' must hold numbers in [0, 1]. Got type String"
    )
    assert "'buy' must be 0 or 1. Got 7 in row 0 (counted from 0), and 600 such rows" in said[4]


def test_of_very_many_faults_the_first_are_said(table):
    names = [f"p{m}" for m in range(30)]
    with pytest.raises(DataError, match=r"(?s)has 60 faults:.*- It has no column 'p19'.*40 more.$"):
        read_log(table, Schema({f"y{m}": name for m, name in enumerate(names)}))


def test_a_time_is_read_where_it_is_known_and_refused_where_it_is_none(table, schema):
    timed = replace(schema, time="shown_at")
    when = [f"2026-11-{1 + k % 28:02d}" if k else None for k in range(table.height)]
    log = read_log(table.with_columns(shown_at=pl.Series(when)), timed)
    assert np.isnan(log.time[0])
    assert (np.diff(log.time[1:28]) > 0).all()
    assert read_log(table, timed).time is None
    with pytest.raises(DataError, match="Time column 'shown_at' of the table is no time"):
        read_log(table.with_columns(shown_at=table[:, 0] > 0), timed)


USERS = Schema({"buy": "p_buy"}, request="request_id", user="user_id")


def test_rows_without_a_user_are_kept_together_by_their_request(table):
    asked = pl.col("request_id") % 50
    rows = table.sort("request_id").with_columns(user_id=pl.when(asked > 9).then(asked))
    log = read_log(rows, USERS)
    known = rows["user_id"].is_not_null().to_numpy()
    np.testing.assert_array_equal(log.user[known], rows["user_id"].drop_nulls().to_numpy())
    pairs = {*zip(log.user[~known].tolist(), log.request[~known].tolist(), strict=True)}
    assert len(pairs) == len({user for user, _ in pairs}) == len({request for _, request in pairs})
    assert not np.isin(log.user[~known], log.user[known]).any()
    np.testing.assert_array_equal(log.units, log.user)


def test_two_users_of_one_request_are_refused(table):
    rows = table.sort("request_id").with_columns(user_id=pl.int_range(600) // 7)
    with pytest.raises(DataError, match=r"User column 'user_id' must be the same .* two users"):
        read_log(rows, USERS)


def test_a_log_that_was_read_without_users_has_none_to_give(table):
    log = read_log(table, replace(USERS, user=None))
    assert log.units is log.request
    with pytest.raises(DataError, match="read without user column 'user_id'"):
        log.aligned(USERS)


def test_a_schema_without_a_user_is_written_as_ever():
    plain = replace(USERS, user=None)
    assert plain.to_dict() == {"objectives": {"buy": "p_buy"}, "request": "request_id"}
    assert Schema.from_dict(USERS.to_dict()) == USERS
