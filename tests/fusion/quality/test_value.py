"""Values per event in place of weights on AUC."""

import json

import numpy as np
import polars as pl
import pytest

import harmonrank as hr
from harmonrank.fusion import Quality, method_class
from harmonrank.metrics import bootstrap_values, percentiles, value_at_k
from harmonrank.support import UsageError
from harmonrank.worlds import as_frame, world, world_schema
from logs import small_table

SCHEMA = {
    "objectives": {"buy": "p_buy", "like": "p_like"},
    "context": ["hour", "age"],
    "request": "request_id",
}
VALUE = {"buy": 10, "like": -0.5}


@pytest.fixture(scope="module")
def table():
    return small_table()


@pytest.fixture(scope="module")
def model(table):
    return hr.ClosedForm().fit(table, SCHEMA)


def test_the_score_is_the_expected_value(model, table):
    expected = model.probabilities(table) @ [10, -0.5]
    np.testing.assert_allclose(model.score(table, value=VALUE), expected, rtol=1e-13)
    one = table[:5].with_columns(hour=3, age=pl.lit("old"))
    scores = one.select("p_buy", "p_like").to_numpy()
    scored = model.score_request(scores, {"hour": 3, "age": "old"}, value=VALUE)
    np.testing.assert_array_equal(scored, model.score(one, value=VALUE))


@pytest.mark.parametrize("name", ["harmonrank", "logistic", "prevalence-weights"])
def test_values_of_the_schema_are_kept_with_the_model(name, table, tmp_path):
    model = method_class(name)().fit(table, {**SCHEMA, "value": VALUE})
    np.testing.assert_allclose(model.score(table), model.probabilities(table) @ [10, -0.5])
    model.save(tmp_path / "m")
    loaded = hr.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.score(table), model.score(table))
    assert loaded.schema.value == VALUE
    assert model.effective_weights == pytest.approx({"buy": 20 / 21, "like": -1 / 21})
    # What a call says replaces what was kept: of values those it names, or all by weights.
    plain = method_class(name)().fit(table, SCHEMA)
    np.testing.assert_allclose(model.score(table, weights={}), plain.score(table))
    np.testing.assert_allclose(
        model.score(table, value={"like": 2}), plain.score(table, value={"buy": 10, "like": 2})
    )


def test_without_probabilities_there_is_no_expected_value(table):
    with pytest.raises(UsageError, match="formula-grid knows no probability of an objective, so"):
        method_class("formula-grid")().fit(table, {**SCHEMA, "value": VALUE})
    model = method_class("formula-grid")().fit(table, SCHEMA)
    with pytest.raises(UsageError, match="cannot rank by value after the fit; use a"):
        model.score(table, value=VALUE)


WRONG = {
    "both": ({"weights": {"buy": 2}, "value": VALUE}, "Give either `weights` or `value`, not both"),
    "unknown": ({"value": {"bye": 2}}, "`value` names an unknown objective 'bye'. Did you mean"),
    "nan": ({"value": {"buy": float("nan")}}, "The value of 'buy' must be a finite number. Got na"),
    "truth": ({"value": {"buy": True}}, "The value of 'buy' must be a finite number. Got True"),
    "zero": ({"value": {"buy": 0}}, "At least one objective needs a value other than 0"),
    "huge": ({"value": {"buy": 1e200}}, "must be at most 1e\\+100 in size"),
    "list": ({"value": [1, 2]}, "`value` must map objectives, as in {'buy': 2.0}"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_values_are_refused(model, table, case):
    given, message = WRONG[case]
    with pytest.raises(UsageError, match=message):
        model.score(table, **given)


def test_a_schema_has_weights_or_values():
    with pytest.raises(UsageError, match=r"Give either \[weights\] or \[value\], not both"):
        hr.Schema(**SCHEMA, weights={"buy": 2}, value=VALUE)
    schema = hr.Schema(**SCHEMA, value=VALUE)
    assert hr.Schema.from_dict(schema.to_dict()) == schema
    assert schema.subset(["buy"]).value == {"buy": 10}


def test_evaluate_measures_the_value_at_k(model, table):
    quality = model.evaluate(table, value=VALUE, k=3)
    fused, labels = model.score(table, value=VALUE), table.select("buy", "like").to_numpy()
    rows = fused, labels, table["request_id"], 3
    drawn = bootstrap_values(*rows, value=[10, -0.5])
    expected = percentiles(value_at_k(*rows, value=[10, -0.5]), drawn, 0.95)
    assert quality.value.interval == expected
    assert quality.effective_weights == pytest.approx({"buy": 20 / 21, "like": -1 / 21})
    parts = json.loads(json.dumps(quality.to_dict()))
    assert parts["value"]["ci"] == [expected.low, expected.high]
    assert Quality.from_dict(parts) == quality
    assert f"Value at 3: {expected.estimate:.4f} per request" in str(quality.to_table())
    assert model.evaluate(table).value is None


def test_weights_can_be_measured_by_the_values_of_the_schema(table):
    model = hr.ClosedForm().fit(table, {**SCHEMA, "value": VALUE})
    quality = model.evaluate(table, weights={"buy": 1})
    plain = hr.ClosedForm().fit(table, SCHEMA)
    assert not quality.value.ranked
    assert quality.effective_weights == pytest.approx(plain.evaluate(table).effective_weights)


def test_without_requests_it_says_what_is_missing(table):
    model = hr.ClosedForm().fit(table, {k: v for k, v in SCHEMA.items() if k != "request"})
    quality = model.evaluate(table, value=VALUE)
    assert quality.value.mean is None
    assert "Value at 10 needs requests; name the request column" in str(quality.to_table())
    assert Quality.from_dict(quality.to_dict()) == quality


def test_expected_value_earns_more_than_weighted_auc_and_the_reverse_for_auc():
    """A planted truth: the best score for one aim is not the best for the other."""
    conflict = world("conflict")
    train = as_frame(conflict, conflict.sample(40_000, seed=1))
    test = as_frame(conflict, conflict.sample(20_000, seed=2))
    schema = world_schema(conflict)
    worth = {"buy": 10, "follow": 5, "comment": 2, "like": 2, "long_view": 1}
    model = hr.HarmonRank().fit(train, schema)
    by_value = model.evaluate(test, value=worth, k=3)
    by_auc = model.evaluate(test)
    v = [worth[name] for name in schema.names]
    truth = test.select(list(schema.truth.values())).to_numpy()
    earned = value_at_k(model.score(test), truth, test[schema.request], 3, value=v)
    assert earned < by_value.value.exact <= by_value.value.best
    assert by_value.value.best - by_value.value.exact < 0.1 * (by_value.value.best - earned)
    assert by_value.exact_auc_sum < by_auc.exact_auc_sum <= by_auc.ceiling
