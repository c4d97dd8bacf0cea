"""What ranks today, beside the methods that would replace it."""

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import harmonrank as hr
from harmonrank.data import read_log
from harmonrank.evaluation import Baseline
from harmonrank.metrics import bootstrap_request_areas, grouped_auc, percentiles
from harmonrank.support import DataError, UsageError

FORMULA = "p_buy * (1 + 3*p_like)**0.5"


@pytest.fixture
def priced(table):
    return table.with_columns(
        prod=(pl.col("p_buy") + 2 * pl.col("p_like")) * 100, city=pl.lit("Rome")
    )


def test_today_stands_in_the_leaderboard_with_paired_differences(table, schema):
    board = hr.compare(
        table, schema, ["closed-form", "logistic"], baseline=FORMULA, test=table
    ).board
    fused = (table["p_buy"] * (1 + 3 * table["p_like"]) ** 0.5).to_numpy()
    labels, groups = table.select("buy", "like").to_numpy(), table["request_id"].to_numpy()
    entries = {entry.name: entry for entry in board.entries}
    assert set(entries) == {"closed-form", "logistic", "today"}
    np.testing.assert_allclose(
        [a.estimate for a in entries["today"].quality.auc.values()], hr.auc(fused, labels)
    )
    ours = hr.ClosedForm().fit(table, schema).score(table)
    once = [grouped_auc(each, labels, groups).sum() for each in (ours, fused)]
    drawn = [bootstrap_request_areas(each, labels, groups).sum(axis=1) for each in (ours, fused)]
    expected = percentiles(once[0] - once[1], drawn[0] - drawn[1], 0.95)
    ahead = entries["closed-form"].ahead
    np.testing.assert_allclose(
        [ahead.estimate, ahead.low, ahead.high], [expected.estimate, expected.low, expected.high]
    )
    numbers = json.loads(json.dumps(board.to_dict(), allow_nan=False))
    assert numbers["baseline"] == {"name": "today", "score": FORMULA, "filled": {}}
    by_name = {method["name"]: method for method in numbers["methods"]}
    assert by_name["today"]["fit_seconds"] is None
    assert by_name["today"]["ahead_of_baseline"] == 0
    assert by_name["today"]["events_at_k"]["vs_baseline"] == {}
    # A request has ten rows, so that the first ten are all of it.
    assert by_name["closed-form"]["events_at_k"]["vs_baseline"] == {}
    few = hr.compare(table, schema, ["closed-form"], baseline=FORMULA, test=table, k=3).to_dict()
    told, today = (
        next(m for m in few["methods"] if m["name"] == name)["events_at_k"]
        for name in ("closed-form", "today")
    )
    for name, ratio in told["vs_baseline"].items():
        assert ratio == pytest.approx(told["mean"][name] / today["mean"][name] - 1)
        low, high = told["vs_baseline_ci"][name]
        assert low <= ratio <= high
    assert by_name["closed-form"]["ahead_of_baseline_ci"] == [ahead.low, ahead.high]
    assert "vs today" in str(board.to_table())


def test_effective_weights_are_by_the_training_rows_of_today_too(table, schema):
    board = hr.compare(table, schema, ["closed-form"], baseline=FORMULA, test=table[:200]).board
    ours, today = (board.qualities[name] for name in ("closed-form", "today"))
    assert today.effective_weights == ours.effective_weights


def test_a_column_wins_over_a_formula_and_only_its_order_counts(priced, schema):
    names = ["closed-form"]
    one = hr.compare(priced, schema, names, baseline="prod", test=priced).board.to_dict()
    other = hr.compare(
        priced, schema, names, baseline="p_buy + 2*p_like", test=priced
    ).board.to_dict()
    assert one["methods"] == [
        {**method, "fit_seconds": mine["fit_seconds"]}
        for method, mine in zip(other["methods"], one["methods"], strict=True)
    ]
    odd = priced.rename({"prod": "p_buy - p_like"})
    text = "p_buy - p_like"
    np.testing.assert_array_equal(Baseline.read(odd, text).scores, odd[text].to_numpy())


def test_of_a_log_the_scores_are_known(table, schema):
    log = read_log(table, schema)
    expected = Baseline.read(table, FORMULA).scores
    np.testing.assert_array_equal(Baseline.read(log, FORMULA).scores, expected)
    with pytest.raises(DataError, match="has no column 'prod'"):
        Baseline.read(log, "prod")


def test_rows_of_weight_0_count_for_nothing(priced, schema):
    schema = replace(schema, sample_weight="v")
    lies = priced.with_columns(v=pl.lit(0.0), prod=-pl.col("prod"))
    both = pl.concat([priced.with_columns(v=pl.lit(1.0)), lies])
    weighted = hr.compare(both, schema, ["closed-form"], baseline="prod", test=both).board
    plain = hr.compare(priced, replace(schema, sample_weight=None), [
        "closed-form"
    ], baseline="prod", test=priced).board  # fmt: skip
    sums = [{e.name: e.quality.auc_sum for e in board.entries} for board in (weighted, plain)]
    assert sums[0]["today"] == sums[1]["today"]


def test_a_missing_value_takes_the_median_and_that_is_said(priced, schema):
    holes = priced.with_columns(prod=pl.when(pl.int_range(pl.len()) % 10 > 0).then("prod"))
    baseline = Baseline.read(holes, "prod")
    assert baseline.filled == {"prod": 60}
    np.testing.assert_array_equal(baseline.scores[::10], holes["prod"].median())
    board = hr.compare(holes, schema, ["closed-form"], baseline="prod", test=holes).board
    assert "no value of prod in 60 rows; the column's median stands in" in str(board.to_table())
    assert board.to_dict()["baseline"]["filled"] == {"prod": 60}


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("p_bux * 2", DataError, "no column 'p_bux', which .* names. Did you mean 'p_buy'?"),
        ("city", DataError, "Column 'city' of .* must hold numbers. Got type String"),
        ("p_buy + city", DataError, "Column 'city'"),
        ("log(p_buy - 1)", DataError, "is nan in row 0 of .* not finite in 600 rows in all"),
        ("1 / (hour - hour)", DataError, "not finite in 600 rows"),
        ("2 + 2", UsageError, "names no column"),
        ("p_buy.mean()", UsageError, "which it may not"),
        (7, UsageError, "`baseline` must be a column's name, a formula"),
    ],
)
def test_a_baseline_that_ranks_nothing_is_refused_before_any_fit(
    priced, schema, text, kind, message
):
    with pytest.raises(kind, match=message):
        hr.compare(priced, schema, ["closed-form"], baseline=text, test=priced)


def test_a_baseline_of_another_table_is_refused(table, schema):
    other = Baseline.read(table.head(5), "p_buy")
    with pytest.raises(DataError, match="one score per test row, 600. Got 5"):
        hr.compare(table, schema, ["closed-form"], baseline=other, test=table)
