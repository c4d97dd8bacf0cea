"""Scores on other scales become probabilities, in tables, requests and exports alike."""

import math

import numpy as np
import polars as pl
import pytest

import harmonrank as hr
from harmonrank.data import read_log
from harmonrank.data.scales import SCALES, guess_scale, raw_scores, to_probabilities
from harmonrank.support import DataError, UsageError
from logs import small_table

SCHEMA = {
    "objectives": {"buy": "p_buy", "like": "p_like"},
    "context": ["hour", "age"],
    "request": "request_id",
}
ON_SCALES = {**SCHEMA, "scale": {"p_buy": "percent", "p_like": "logit"}}


def rescaled(table, **scales):
    """Return a table whose probabilities are written on other scales."""
    columns = {}
    for name, scale in scales.items():
        columns[name] = raw_scores(table.select(name).to_numpy(), [scale])[:, 0]
    return table.with_columns(**{name: pl.Series(name, raw) for name, raw in columns.items()})


def test_each_scale_is_its_formula():
    x = np.array([[0.3, 30.0, -2.0, 5.0]])
    p = 1 / (1 + math.exp(2)), 1 / (1 + math.exp(-math.asinh(5)))
    np.testing.assert_allclose(to_probabilities(x, SCALES), [[0.3, 0.3, *p]], rtol=1e-15)
    assert np.isnan(to_probabilities(np.full((1, 4), np.nan), SCALES)).all()


@pytest.mark.parametrize("scale", SCALES)
def test_raw_scores_and_back_are_the_same_probabilities(scale):
    p = np.random.default_rng(0).random((100, 1))
    np.testing.assert_allclose(to_probabilities(raw_scores(p, [scale]), [scale]), p, rtol=1e-9)


@pytest.mark.parametrize("scale", ["logit", "any"])
def test_any_number_becomes_a_probability_in_the_same_order(scale):
    x = np.array([[-1e300, -1e9, -30.0, -1e-9, 0.0, 1e-9, 20.0, 1e9, 1e300]]).T
    p = to_probabilities(x, [scale])[:, 0]
    assert np.isfinite(p).all()
    assert (np.diff(p) >= 0).all()
    assert p[4] == 0.5
    assert p[0] >= 0
    assert p[-1] <= 1


@pytest.mark.parametrize(
    ("values", "scale"),
    [
        ([0.2, 0.9], "probability"),
        ([0.2, 97.0], "percent"),
        ([-3.0, 0.5], "logit"),
        ([0.0, 1800.0], "any"),
        ([-80.0, 1.0], "any"),
        ([0.5] * 999 + [1.5], "probability"),
        ([np.nan, 0.5], "probability"),
    ],
)
def test_a_scale_is_recognised_by_the_range(values, scale):
    assert guess_scale(np.array(values)) == scale


def test_a_table_on_other_scales_is_the_same_log():
    table = small_table()
    ours = read_log(rescaled(table, p_buy="percent", p_like="logit"), ON_SCALES)
    np.testing.assert_allclose(ours.scores, read_log(table, SCHEMA).scores, rtol=1e-12)
    assert ours.scores.dtype == np.float64


def test_a_schema_refuses_an_unknown_scale_and_a_column_that_is_no_score():
    with pytest.raises(
        UsageError, match="must be one of probability, percent, logit, any. Got 'x'"
    ):
        hr.Schema.of({**SCHEMA, "scale": {"p_buy": "x"}})
    with pytest.raises(UsageError, match=r"`scale` names 'p_bu', .* Did you mean 'p_buy'\?"):
        hr.Schema.of({**SCHEMA, "scale": {"p_bu": "percent"}})


def test_a_log_of_another_scale_is_not_taken_for_this_one():
    log = read_log(small_table(), SCHEMA)
    with pytest.raises(DataError, match="read with another scale of 'p_buy' than percent"):
        read_log(log, ON_SCALES)


@pytest.mark.parametrize("name", ["harmonrank", "closed-form", "lightgbm"])
def test_a_model_scores_tables_and_requests_on_its_scales_alike(name, tmp_path):
    from harmonrank.fusion import method_class

    table = rescaled(small_table(), p_buy="percent", p_like="logit")
    method_class(name)().fit(table, ON_SCALES).save(tmp_path / "m")
    model = hr.load(tmp_path / "m")
    assert model.schema.scales == ("percent", "logit")
    fused = model.score(table)
    for row in range(3):
        context = table.select("hour", "age").row(row, named=True)
        raw = table.select("p_buy", "p_like").row(row)
        assert model.score_request([raw], context)[0] == fused[row]
    with pytest.raises(
        DataError, match=r"'buy', of scale percent, must lie in \[0, 100\]. Got 101"
    ):
        model.score_request([[101.0, 0.0]], context)
    with pytest.raises(DataError, match=r"'like', of scale logit, must be finite. Got inf"):
        model.score_request([[1.0, np.inf]], context)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("kind", ["float64", "float32"])
def test_an_exported_model_takes_the_same_numbers(tmp_path, scale, kind):
    pytest.importorskip("onnxruntime")
    from harmonrank.export import export_onnx

    table = rescaled(small_table(), p_like=scale)
    hr.ClosedForm().fit(table, {**SCHEMA, "scale": {"p_like": scale}}).save(tmp_path / "m")
    made = export_onnx(tmp_path / "m", tmp_path / "m.onnx", score_type=kind)
    assert max(made.agreement.largest.values()) < 1e-6


def test_a_service_takes_the_same_numbers():
    from harmonrank.serving import Candidates, Runtime

    table = rescaled(small_table(), p_buy="percent", p_like="logit")
    model = hr.HarmonRank().fit(table, ON_SCALES)
    runtime, few = Runtime(model, "1"), table[:5]
    scores = few.select("p_buy", "p_like").to_numpy()
    own = {name: few[name] for name in ("hour", "age")}
    scored = runtime.score(Candidates(scores, {}, own), probabilities=True)
    assert (scored.fused == model.score(few)).all()
    shared = runtime.score(Candidates(scores, {"hour": 3, "age": "old"}))
    same = few.with_columns(hour=pl.lit(3), age=pl.lit("old"))
    assert (shared.fused == model.score(same)).all()
