"""Operating points: named weights that a model keeps."""

import numpy as np
import pytest

import harmonrank as hr
from harmonrank.fusion.method import with_points_of
from harmonrank.support import ModelFileError, UsageError
from logs import small_table
from saving import rewrite

SALES = {"buy": 3.0, "like": 0.5}


@pytest.fixture
def model(table, schema):
    return hr.HarmonRank().fit(table, schema)


def test_a_point_is_weights_under_a_name(model, table):
    kept = model.with_point("sales", SALES)
    assert model.points == {}
    assert kept.points == {"sales": SALES}
    np.testing.assert_array_equal(kept.score(table), model.score(table))
    at = kept.at("sales")
    np.testing.assert_array_equal(at.score(table), model.score(table, weights=SALES))
    assert at.effective_weights == model.explain(SALES)["effective_weight"]
    assert at.evaluate(table) == model.evaluate(table, weights=SALES)
    context = {"hour": 3, "age": "old"}
    np.testing.assert_array_equal(
        at.score_request([[0.1, 0.2], [0.4, 0.1]], context),
        model.score_request([[0.1, 0.2], [0.4, 0.1]], context, weights=SALES),
    )
    # The weights of a call are added on top, as for a service.
    np.testing.assert_array_equal(
        at.score(table, weights={"like": 2}), model.score(table, weights={"buy": 3, "like": 2})
    )


def test_an_objective_that_a_point_does_not_name_has_its_weight_of_the_fit(table, schema):
    weighted = hr.Schema(
        schema.objectives, context=schema.context, request=schema.request, weights={"like": 4}
    )
    model = hr.ClosedForm().fit(table, weighted)
    assert model.with_point("sales", {"buy": 2}).points == {"sales": {"buy": 2.0, "like": 4.0}}


def test_points_are_saved_and_loaded_and_survive_a_recalibration(model, table, tmp_path):
    kept = model.with_point("sales", SALES).with_point("likes", {"like": 9})
    kept.save(tmp_path / "m")
    again = hr.load(tmp_path / "m")
    assert again.points == kept.points == {"sales": SALES, "likes": {"buy": 1.0, "like": 9.0}}
    np.testing.assert_array_equal(again.at("likes").score(table), kept.at("likes").score(table))
    assert again.recalibrated(small_table(1200, seed=5)).points == kept.points


def test_a_new_fit_forgets_the_points_of_the_old_one(model, table, schema):
    assert model.with_point("sales", SALES).fit(table, schema).points == {}


@pytest.mark.parametrize(
    ("points", "reason"),
    [
        ({"sales": {"bye": 1.0}}, "unknown objective 'bye'"),
        ({"sales": {"buy": -1e200}}, "expected float >= -1e"),
        ({"sales": {"buy": 1e200}}, "expected float <= 1e"),
        ({"sales": {"buy": 0.0, "like": 0.0}}, "At least one objective needs a weight"),
        ({"": {"buy": 1.0}}, "length >= 1"),
        ({"a b": {"buy": 1.0}}, "An operating point is named by"),
        ({"x" * 65: {"buy": 1.0}}, "length <= 64"),
        ({str(n): {"buy": 1.0} for n in range(1001)}, "length <= 1000"),
        ([], "expected object, got array"),
    ],
    ids=["unknown", "negative", "huge", "zero", "empty", "space", "long", "many", "list"],
)
def test_points_that_cannot_be_are_refused_when_loaded(model, tmp_path, points, reason):
    model.save(tmp_path / "m")
    rewrite(tmp_path / "m", "fitted", points=points)
    with pytest.raises(ModelFileError, match=reason):
        hr.load(tmp_path / "m")


def test_a_method_without_probabilities_says_that_it_has_no_points(table, schema, tmp_path):
    from harmonrank.fusion import method_class

    model = method_class("formula-grid")(trials=3).fit(table, schema)
    with pytest.raises(
        UsageError, match="formula-grid knows no probability .* cannot change its weights"
    ):
        model.with_point("sales", SALES)
    model.save(tmp_path / "m")
    rewrite(tmp_path / "m", "fitted", points={"sales": SALES})
    with pytest.raises(ModelFileError, match="cannot change its weights"):
        hr.load(tmp_path / "m")


def test_wrong_names_and_weights_are_named(model):
    with pytest.raises(UsageError, match=r"There is no operating point 'sale'\. There are none\."):
        model.at("sale")
    with pytest.raises(UsageError, match=r"'sale'\. Did you mean 'sales'\?"):
        model.with_point("sales", SALES).at("sale")
    for name in ("", "a b", "-a", "a=b", None, 3):
        with pytest.raises(UsageError, match="An operating point is named by up to 64 letters"):
            model.with_point(name, SALES)
    with pytest.raises(UsageError, match="unknown objective 'bye'"):
        model.with_point("sales", {"bye": 1})


def test_a_model_takes_over_the_points_of_one_of_the_same_objectives(model, table, schema):
    from harmonrank.fusion import method_class

    other = hr.ClosedForm().fit(table, schema).with_point("sales", SALES).with_point("x", SALES)
    merged = with_points_of(model.with_point("x", {"buy": 7}), other)
    assert merged.points == {"sales": SALES, "x": {"buy": 7.0, "like": 1.0}}
    one = hr.ClosedForm().fit(table, schema.subset(["buy"]))
    assert with_points_of(one, other).points == {}
    formula = method_class("formula-grid")(trials=3).fit(table, schema)
    assert with_points_of(formula, other).points == {}
