"""How methods and results show themselves, and what they say to wrong types."""

import copy
import inspect
import pickle
import pydoc

import numpy as np
import pytest

import harmonrank as hr
from check_method import SCHEMA, fitted, planted
from harmonrank.fusion import METHODS, method_class
from harmonrank.support import UsageError

PARTS = {
    "objectives": {"buy": "p_buy", "like": "p_like"},
    "context": ["hour", "age"],
    "request": "request",
}


@pytest.mark.parametrize("name", METHODS)
def test_a_method_shows_its_real_options(name):
    kind = method_class(name)
    assert repr(kind()) == f"{kind.__name__}()"
    shown = inspect.signature(kind).parameters
    assert shown.keys() == inspect.signature(kind.Config).parameters.keys()
    for key, parameter in shown.items():
        assert parameter.default == getattr(kind.Config(), key)
        assert parameter.annotation is not inspect.Parameter.empty


def test_help_shows_options_and_types():
    text = pydoc.plain(pydoc.render_doc(hr.HarmonRankPaper))
    assert "strength: float = " in text
    assert "pyarrow" in inspect.getdoc(hr.HarmonRank.fit)
    assert "pl.DataFrame" in str(inspect.signature(hr.HarmonRank.score)).replace(
        "polars.dataframe.frame", "pl"
    )


def test_changed_options_are_printed_as_they_are_typed():
    logistic = method_class("logistic")
    assert repr(logistic(ridges=[30, 3])) == "Logistic(ridges=(30.0, 3.0))"
    assert eval(repr(logistic(ridges=[7])), {"Logistic": logistic}).config == (
        logistic(ridges=[7]).config
    )


def test_quality_leaderboard_and_drift_show_as_tables(table, schema):
    model = hr.ClosedForm().fit(table, schema)
    board = hr.compare(table, schema, ["closed-form", "prevalence-weights"], test=table).board
    for report, head in (
        (model.evaluate(table), "objective"),
        (board, "method"),
        (model.drift(table), "score"),
    ):
        assert repr(report) == str(report.to_table())
        # A leaderboard says first who is ahead.
        assert any(line.lstrip().startswith(head) for line in repr(report).splitlines())
        assert "<table" in report._repr_html_()


@pytest.mark.parametrize("name", ["harmonrank", "logistic", "lightgbm", "mbce"])
def test_a_copy_scores_the_same_and_a_deep_one_shares_nothing(name):
    model, test = fitted(name), planted(300, seed=2)
    expected = model.score(test)
    for copied in (copy.copy(model), copy.deepcopy(model)):
        np.testing.assert_array_equal(copied.score(test), expected)
        assert copied.config == model.config
        assert copied.schema == model.schema
    deep = copy.deepcopy(model)
    deep.prevalence[:] = 0.5
    assert (model.prevalence != 0.5).any()


def test_a_copy_is_fitted_apart():
    model, test = hr.ClosedForm().fit(planted(), SCHEMA), planted(300, seed=2)
    expected = model.score(test)
    copy.copy(model).fit(planted(seed=5), SCHEMA)
    np.testing.assert_array_equal(model.score(test), expected)


def test_pickling_is_refused_in_one_sentence():
    with pytest.raises(UsageError, match="A model is not pickled.*use `model.save"):
        pickle.dumps(hr.HarmonRank())


def test_a_dict_does_for_a_schema():
    train, test = planted(), planted(300, seed=2)
    as_dict, as_schema = hr.ClosedForm().fit(train, PARTS), hr.ClosedForm().fit(train, SCHEMA)
    np.testing.assert_array_equal(as_dict.score(test), as_schema.score(test))
    assert as_dict.schema == SCHEMA
    board = hr.compare(train, PARTS, "closed-form", test=test).board
    assert [entry.name for entry in board.entries] == ["closed-form"]


SHOWN = [
    *(
        "aligned",
        "at",
        "config",
        "contributions",
        "corrections",
        "drift",
        "effective_weights",
        "evaluate",
    ),
    *("explain", "fit", "is_aligned", "name", "points", "prevalence", "probabilities", "rank"),
    *("recalibrated", "reweighted", "save", "schema", "score", "score_request", "strict"),
    *("unaligned", "valued", "with_point"),
]
OF_NETWORKS = {"health", "history", "network"}


def test_a_model_shows_what_a_user_calls_and_nothing_else():
    for name in METHODS:
        shown = {one for one in dir(method_class(name)()) if not one.startswith("_")}
        more = shown - set(SHOWN)
        assert set(SHOWN) <= shown
        assert more in (set(), OF_NETWORKS, {*OF_NETWORKS, "attention", "updated"})
