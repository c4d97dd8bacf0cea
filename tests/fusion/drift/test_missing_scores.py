"""Missing scores: what stands for them, how many there are, what they cost."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import harmonrank as hr
from check_method import SCHEMA, after_a_swap, planted, quick
from harmonrank.data import ContextEncoder, read_log
from harmonrank.fusion.drift.imputation import imputed
from harmonrank.fusion.drift.reference import Reference
from harmonrank.fusion.quality.upstream import missing_of
from harmonrank.support import DataError


def log_of(logits, seed=0):
    """Return a log with these logits of two scores, which tell their labels."""
    rng, p = np.random.default_rng(seed), 1 / (1 + np.exp(-logits))
    labels = (rng.random(p.shape) < p).astype(np.uint8)
    columns = {"p_buy": p[:, 0], "p_like": p[:, 1], "buy": labels[:, 0], "like": labels[:, 1]}
    rows = np.arange(len(p))
    table = pl.DataFrame(
        {**columns, "request": rows // 10, "hour": rows % 3, "age": ["old"] * len(p)}
    )
    return read_log(table, SCHEMA)


@pytest.fixture(scope="module")
def correlated():
    covariance = np.array([[1.0, 0.8], [0.8, 2.0]])
    return log_of(np.random.default_rng(0).multivariate_normal([-2.0, -1.0], covariance, 40_000))


def without(log, column, rows=slice(None)):
    scores = log.scores.copy()
    scores[rows, column] = np.nan
    return log.with_scores(scores)


def reference_of(log):
    return Reference.of(log.scores, codes_of(log), encoder_of(log).slots)


def encoder_of(log):
    return ContextEncoder.fit(log.context)


def codes_of(log):
    return log.codes(encoder_of(log))


def logit(p):
    return np.log(p) - np.log1p(-p)


def test_a_missing_score_is_imputed_by_the_regression_on_the_others(correlated):
    reference = reference_of(correlated)
    logits = logit(imputed(reference, without(correlated, 1).scores, codes_of(correlated)))
    x, y = logit(correlated.scores).T
    slope, intercept = np.polyfit(x, y, 1)
    np.testing.assert_allclose(logits[:, 0], x)
    # Medians and widths stand for means and deviations, and contexts have means of their own.
    assert np.abs(logits[:, 1] - (intercept + slope * x)).mean() < 0.05


def test_a_row_without_scores_is_imputed_by_the_median_of_its_context(correlated):
    reference = reference_of(correlated)
    codes = codes_of(correlated)[:3]
    filled = imputed(reference, np.full((3, 2), np.nan), codes)
    np.testing.assert_allclose(logit(filled), reference.place(codes)[0])


def test_whole_rows_and_types_are_left_as_they_are(correlated):
    reference = reference_of(correlated)
    codes = codes_of(correlated)
    assert imputed(reference, correlated.scores, codes) is correlated.scores
    single = correlated.with_scores(correlated.scores.astype(np.float32))
    filled = imputed(reference, without(single, 0, slice(5)).scores, codes)
    assert filled.dtype == np.float32
    np.testing.assert_array_equal(filled[5:], single.scores[5:])


def test_a_reference_of_incomplete_rows_is_near_that_of_whole_ones(correlated):
    lost = np.random.default_rng(1).random(correlated.rows) < 0.3
    partial, whole = reference_of(without(correlated, 1, lost)), reference_of(correlated)
    np.testing.assert_allclose(partial.base, whole.base, atol=0.03)
    np.testing.assert_allclose(partial.correlation, whole.correlation, atol=0.02)
    np.testing.assert_allclose(partial.width, whole.width, atol=0.02)


def test_scores_that_are_missing_now_and_then_have_not_drifted():
    model, table = quick("closed-form"), planted(4000, seed=2)
    lost = pl.Series(np.random.default_rng(0).random(4000) < 0.4)
    drift = model.drift(table.with_columns(p_like=pl.when(~lost).then("p_like")))
    assert drift.columns[1].rows == 4000 - lost.sum()
    assert not drift.moved
    nothing = model.drift(table.with_columns(p_like=pl.lit(None)))
    assert (nothing.columns[1].rows, nothing.columns[1].offset, nothing.columns[1].scale) == (
        0,
        0,
        1,
    )


@pytest.mark.parametrize("name", ["harmonrank", "closed-form"])
def test_a_replaced_model_is_recalibrated_by_the_scores_that_arrived(name):
    model, table = quick(name), after_a_swap(planted(5000, seed=2))
    lost = pl.Series(np.random.default_rng(0).random(5000) < 0.2)
    some = model.recalibrated(table.with_columns(p_like=pl.when(~lost).then("p_like")))
    whole = model.recalibrated(table)
    a, b = some.score(table), whole.score(table)
    assert np.corrcoef(a, b)[0, 1] > 0.999


def test_a_score_that_never_arrived_cannot_be_learned_from(table, schema):
    never = table.with_columns(p_buy=pl.lit(None, pl.Float64))
    with pytest.raises(DataError, match="'p_buy' is missing in all 600 training rows"):
        hr.HarmonRank().fit(never, schema)
    with pytest.raises(DataError, match="'p_buy' is missing in all 4,000 recent rows"):
        quick("closed-form").recalibrated(planted(4000).with_columns(p_buy=pl.lit(None)))


def test_gaps_are_counted_by_column_and_row(correlated):
    assert missing_of(correlated) is None
    lost = missing_of(without(without(correlated, 0, slice(40)), 1, slice(30, 50)))
    assert (lost.rows, lost.incomplete, lost.columns) == (40_000, 50, {"p_buy": 40, "p_like": 20})
    assert lost.to_dict()["cost"] is None
    assert str(lost) == (
        "Missing scores: p_buy 40 (0.1%), p_like 20 (0.1%); 50 of 40,000 rows miss one or more."
    )


def test_the_cost_of_gaps_is_what_hiding_scores_of_whole_rows_costs(correlated):
    """More gaps cost more, and an interval tells how well that is known."""
    model = hr.HarmonRank().fit(correlated, SCHEMA)
    rows = np.arange(correlated.rows)
    few, half = (missing_of(without(correlated, 1, rows % n == 0), model) for n in (20, 2))
    assert 0 < few.cost.estimate < half.cost.estimate
    assert half.cost.low > 0
    assert half.to_dict()["cost_ci"] == [half.cost.low, half.cost.high]
    assert "On rows with all scores, hiding as many costs 0." in str(half)
    assert half.auc_sum == pytest.approx(few.auc_sum, abs=0.02)
    # No row is whole, or there are no labels: scores are only counted.
    assert missing_of(without(correlated, 1), model).cost is None
    assert (
        missing_of(replace(without(correlated, 1, rows % 2 == 0), labels=None), model).cost is None
    )
