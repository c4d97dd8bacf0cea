"""Warnings that tell something, a line each."""

import numpy as np
import polars as pl
import pytest

import harmonrank as hr
from harmonrank.data import read_log
from harmonrank.evaluation import cautions_of, unseen_shares
from harmonrank.fusion.quality.upstream import upstream_of
from logs import small_table

SCHEMA = hr.Schema({"buy": "p_buy", "like": "p_like"}, context=["hour", "age"])


def said(test, train=None, schema=SCHEMA, **options):
    log = read_log(test, schema)
    before = None if train is None else read_log(train, schema)
    return cautions_of(log, upstream_of(log, np.ones(2)), train=before, **options)


@pytest.fixture
def train():
    return small_table(4000, seed=1)


@pytest.fixture
def test():
    return small_table(2000, seed=2)


def test_rows_like_those_of_training_need_no_warning(train, test):
    assert said(test, train) == said(test) == ()


def test_a_score_that_knows_the_label_is_named(train, test):
    leaked = test.with_columns(p_buy=0.5 * pl.col("buy") + 0.1 * pl.col("p_buy"))
    (line,) = said(leaked)
    assert line == (
        "Too good to be true: p_buy ('buy', AUC 1.0000); was the label known when the score was "
        "made?"
    )


def test_values_that_nothing_can_be_measured_by_are_told(train, test):
    schema = hr.Schema({"buy": "p_buy", "like": "p_like"}, value={"buy": 10})
    board = hr.compare(train, schema, ["closed-form"], test=test).board
    assert board.criterion == "all rows"
    assert "with one, the order" not in str(board.to_table())
    assert board.warnings == (
        "Value at K needs requests, so AUC-sum decides; name the request column in the schema.",
    )


def test_a_constant_score_is_named_where_it_is_constant(train, test):
    flat = pl.lit(0.25).alias("p_like")
    assert said(test.with_columns(flat), train)[0] == (
        "p_like has one value in all test rows, which ranks nothing."
    )
    lines = said(test, train.with_columns(flat))
    assert lines[0] == "p_like has one value in all training rows, which ranks nothing."
    assert lines[1] == "Test rows outside the training range: p_like in 100%."


def test_contexts_that_training_did_not_see_are_told_with_their_share(train, test):
    strange = test.with_columns(
        age=pl.lit("ageless"), hour=pl.when(pl.int_range(pl.len()) < 400).then(99).otherwise("hour")
    )
    assert said(strange, train) == (
        "Values that training did not see: hour in 20% of the test rows, age in all test rows.",
    )


def test_a_rare_value_that_is_pooled_has_been_seen(schema):
    names = [f"item {i}" for i in range(3000)]
    rows = small_table(3000).with_columns(age=pl.Series(names))
    before, now = (read_log(part, SCHEMA) for part in (rows, rows.reverse()))
    assert unseen_shares(before, now) == {"hour": 0.0, "age": 0.0}
    missing = read_log(rows.with_columns(age=pl.lit(None, pl.String)), SCHEMA)
    assert unseen_shares(before, missing)["age"] == 0


def test_without_the_training_rows_a_model_knows_its_values(train, test):
    model = hr.ClosedForm().fit(train, SCHEMA)
    strange = test.with_columns(age=pl.lit("ageless"))
    assert said(strange, encoder=model.fitted.encoder) == (
        "No row has a value that the fit knew of age.",
    )
    assert said(test, encoder=model.fitted.encoder) == ()


def test_numbers_beyond_those_of_training_are_told(train, test):
    schema = hr.Schema({"buy": "p_buy", "like": "p_like"}, context=["price"])
    priced = train.with_columns(price=pl.col("p_buy") * 10)
    dear = test.with_columns(price=pl.when(pl.int_range(pl.len()) % 4 == 0).then(99.0))
    assert said(dear, priced, schema) == ("Test rows outside the training range: price in 25%.",)


def test_few_positives_are_one_line(train):
    rare = train.head(300).with_columns(buy=(pl.int_range(pl.len()) % 50 == 0).cast(pl.Int8))
    (line,) = said(rare)
    assert line.startswith("Few positives among the test rows: buy 6, like ")
    assert line.endswith("; see their intervals.")


def test_they_are_part_of_the_result(train, test):
    flat = test.with_columns(p_like=pl.lit(0.25))
    board = hr.compare(train, SCHEMA, ["closed-form"], test=flat).board
    assert board.to_dict()["warnings"] == list(board.warnings)
    assert "p_like has one value in all test rows" in board.warnings[0]
