"""What `init` guesses of a log's columns, and what it leaves to its owner."""

import tomllib
from datetime import datetime, timedelta

import numpy as np
import polars as pl
import pytest

from harmonrank import Schema
from harmonrank.data.guess import commented_toml, guess_schema
from harmonrank.data.guess_columns import auc_of
from harmonrank.support import DataError
from logs import small_table

ROWS = 2000


def log(**columns):
    """Return a log of requests with a user's age, and the columns that are given."""
    rng = np.random.default_rng(0)
    request = np.arange(ROWS) // 10
    p = rng.beta(2, 5, (ROWS, 3))
    values = {f"p{m}": p[:, m] for m in range(3)}
    values |= {f"y{m}": (rng.random(ROWS) < p[:, m]).astype(int) for m in range(3)}
    frame = pl.DataFrame({"request": request, "age": rng.integers(0, 7, 200)[request]})
    named = {name: values.get(str(value), value) for name, value in columns.items()}
    return frame.with_columns(
        **{n: v if isinstance(v, pl.Expr) else pl.Series(v) for n, v in named.items()}
    )


@pytest.mark.parametrize(
    ("label", "score"),
    [
        ("like", "p_like"),
        ("like", "like_score"),
        ("like", "score_like"),
        ("like", "pLike"),
        ("like", "plike"),
        ("is_like", "pred_like"),
        ("liked", "like_prob"),
        ("click", "ctr"),
        ("click", "pctr"),
        ("purchase", "p_cvr"),
        ("long_view", "pLongView"),
        ("label_1", "score_1"),
        ("y1", "s1"),
    ],
)
def test_a_score_goes_with_the_label_that_it_is_named_like(label, score):
    table = log(**{label: "y0", "other": "y1", score: "p1", "p_other": "p0"})
    guess = guess_schema(table)  # the AUCs say the contrary
    assert guess.schema.objectives == {label: score, "other": "p_other"}


def test_where_names_do_not_tell_the_auc_does():
    table = log(a="y0", b="y1", u="p1", v="p0", w="p2")
    assert guess_schema(table).schema.objectives == {"a": "v", "b": "u"}


def test_of_two_scores_with_the_name_of_a_label_the_better_is_taken():
    table = log(like="y0", p_like="p1", like_score="p0")
    assert guess_schema(table).schema.objectives == {"like": "like_score"}


def test_every_role_is_found():
    start = datetime(2026, 11, 1)
    table = log(
        buy="y0",
        p_buy="p0",
        like="y1",
        p_like=pl.Series(np.random.default_rng(1).normal(size=ROWS)),
        shown_at=[start + timedelta(seconds=row) for row in range(ROWS)],
        item_id=np.random.default_rng(2).integers(0, 10**6, ROWS),
        user_id=pl.col("request") // 2,
        position=np.arange(ROWS) % 10,
        sample_weight=np.random.default_rng(3).random(ROWS),
        region=pl.when(pl.col("age") > 3).then(pl.lit("north")).otherwise(pl.lit("south")),
        new_user=pl.col("age") > 5,
        prod_score="p2",
    )
    guess = guess_schema(table)
    assert guess.schema == Schema(
        {"buy": "p_buy", "like": "p_like"},
        ["age", "region", "new_user"],
        "request",
        sample_weight="sample_weight",
        time="shown_at",
        scale={"p_like": "logit"},
        user="user_id",
    )
    assert guess.baseline == "prod_score"
    assert list(guess.reasons) == table.columns
    assert guess.reasons["position"] == (
        "left out",
        "may be where a row was shown: position = 'position' would correct feedback for it",
    )
    assert guess.reasons["user_id"] == ("user", "named so; 20.0 rows each")
    assert guess.reasons["new_user"] == ("context", "2 values, the same within a request")


@pytest.mark.parametrize(
    "column",
    [
        {"user_kind": pl.col("request") // 2},
        {"user": pl.col("request") % 2},
        {"user_id": pl.int_range(pl.len()) % 100},
    ],
    ids=["a feature of users", "a kind of user", "other users within a request"],
)
def test_what_is_no_id_of_who_asked_is_no_user(column):
    assert guess_schema(log(buy="y0", p_buy="p0", **column)).schema.user is None


@pytest.mark.parametrize(
    ("values", "scale"),
    [(lambda p: p * 100, "percent"), (lambda p: np.log(p / (1 - p)), "logit"), (lambda p: p, None)],
)
def test_scales_are_guessed_by_the_range(values, scale):
    table = log(buy="y0", p_buy="p0").with_columns(pl.col("p_buy").map_batches(values))
    assert guess_schema(table).schema.scale.get("p_buy") == scale


def test_a_name_tells_percent_where_all_are_below_one():
    table = log(buy="y0", buy_pct="p0").with_columns(pl.col("buy_pct") / 10)
    assert guess_schema(table).schema.scale == {"buy_pct": "percent"}


@pytest.mark.parametrize("form", ["text", "seconds", "milliseconds", "days"])
def test_times_are_found_in_every_form(form):
    seconds = 1_793_500_000 + np.arange(ROWS)
    times = {
        "text": pl.Series(pl.from_epoch(pl.Series(seconds))).dt.to_string("%Y-%m-%d %H:%M:%S"),
        "seconds": seconds,
        "milliseconds": seconds * 1000,
        "days": 20261101 + np.arange(ROWS) // 200,
    }
    assert guess_schema(log(buy="y0", p_buy="p0", ts=times[form])).schema.time == "ts"


def test_without_a_request_only_text_and_few_whole_numbers_are_context():
    table = log(buy="y0", p_buy="p0", price="p2").drop("request")
    schema = guess_schema(table).schema
    assert (schema.request, list(schema.context)) == (None, ["age"])


def test_a_rare_label_is_no_context_and_a_rare_kind_of_user_is():
    rng, rows = np.random.default_rng(0), 60_000
    p, request = rng.beta(2, 500, rows), np.arange(rows) // 10
    report = np.isin(np.arange(rows), rng.choice(rows, 20, replace=False))
    table = pl.DataFrame(
        {
            "request": request,
            "buy": (rng.random(rows) < 0.2).astype(int),
            "p_buy": rng.random(rows),
            "report": report,
            "p_report": p + 0.01 * report,
            "rare": rng.permutation(report),
            "staff": request % 300 == 0,
        }
    )
    guess = guess_schema(table)
    assert guess.schema.objectives == {"buy": "p_buy", "report": "p_report"}
    assert list(guess.schema.context) == ["staff"]
    assert guess.reasons["rare"] == ("left out", "0 and 1, but no score goes with it")


def test_true_probabilities_of_a_world_are_no_scores(world_folder):
    guess = guess_schema(world_folder / "test.parquet")
    assert guess.schema == Schema.read(world_folder / "schema.toml")


def test_a_log_without_labels_or_scores_is_refused_with_what_there_is():
    with pytest.raises(DataError, match=r"columns of 0 and 1 are none; of scores p_buy. Name them"):
        guess_schema(log(p_buy="p0"))
    with pytest.raises(DataError, match=r"columns of 0 and 1 are buy; of scores none"):
        guess_schema(log(buy="y0"))


def test_the_commented_file_is_the_guess():
    odd = 'a "b"\n# c'
    table = log(buy="y0", p_buy="p0", **{odd: pl.col("age").cast(pl.String), "x\ny": "p2"})
    guess = guess_schema(table)
    text = commented_toml(guess, "'a\nb'")
    assert Schema.from_dict(tomllib.loads(text)) == guess.schema
    assert "buy: 0 and 1, " in text
    world = guess_schema(small_table())
    assert Schema.from_dict(tomllib.loads(commented_toml(world, "t"))) == world.schema


def test_a_score_is_judged_by_its_auc_with_ties_and_gaps():
    scores = pl.Series([0.1, 0.2, 0.2, None, 0.9])
    assert auc_of(scores, pl.Series([0, 1, 0, 1, 1])) == pytest.approx((1 + 0.5 + 1 + 1) / 4)
    assert auc_of(scores, pl.Series([0] * 5)) == 0.5


def test_numbers_that_a_score_is_named_after_are_graded_and_nulls_tell_what_is_given():
    rng = np.random.default_rng(0)
    p = rng.random((400, 3))
    click = (rng.random(400) < p[:, 0]).astype(int)
    order = [int(x) if c else None for x, c in zip(rng.random(400) < p[:, 1], click, strict=True)]
    table = pl.DataFrame(
        {
            "request_id": np.arange(400) // 8,
            "p_click": p[:, 0],
            "p_order": p[:, 1],
            "p_watch": 100 * p[:, 2],
            "click": click,
            "order": order,
            "watch": rng.exponential(60 * p[:, 2]),
        }
    )
    guess = guess_schema(table)
    assert guess.schema.graded == ("watch",)
    assert guess.schema.given == {"order": "click"}
    objectives = {"click": "p_click", "order": "p_order", "watch": "p_watch"}
    assert guess.schema.objectives == objectives
    assert guess.reasons["order"][1].endswith("null where click is 0, so given it")
