"""What a model makes of changed upstream scores once it is recalibrated on unlabelled rows."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import harmonrank as hr
from check_method import SMALL
from harmonrank.fusion import METHODS, method_class
from harmonrank.support import DataError
from upstream import NEW, OLD, log_of


@pytest.fixture
def model(conflict_model):
    return conflict_model


@cache
def fitted(name):
    """Return a method other than the default, which is fitted once for all files."""
    train, options = log_of(OLD, 50_000, 1), {"forms": ("sum",), "trials": 8}
    model = method_class(name)(**(options if name == "formula-grid" else {}))
    return model.fit(train, train.schema, valid=log_of(OLD, 20_000, 3))


def test_a_replaced_upstream_model_costs_the_default_nothing(model, usual, moved):
    before = model.evaluate(usual).regret
    assert model.recalibrated(moved).evaluate(moved).regret < before + 0.003
    assert model.evaluate(moved).regret > before + 0.03


@pytest.mark.parametrize("name", ["closed-form", "logistic", "formula-grid"])
def test_matching_moments_gives_any_method_most_of_its_loss_back(name, usual, moved):
    model = fitted(name)
    before, as_fitted = model.evaluate(usual).regret, model.evaluate(moved).regret
    again = model.recalibrated(moved).evaluate(moved).regret
    assert as_fitted > before + 0.01
    assert again < before + 0.2 * (as_fitted - before)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_can_be_recalibrated_saved_and_served(name, moved, tmp_path):
    train = log_of(OLD, 3000, 1)
    model = method_class(name)(**SMALL.get(name, {})).fit(train, train.schema, valid=train)
    stale = model.score(moved)
    again = model.recalibrated(moved, scores="all")
    fused = again.score(moved)
    np.testing.assert_array_equal(model.score(moved), stale)
    assert not np.array_equal(fused, stale)
    assert again.drift(moved).moved == ()
    again.save(tmp_path / "m")
    loaded = hr.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.score(moved), fused)
    assert loaded.drift(moved) == again.drift(moved)
    one = again.score_request(moved.scores[:1], moved.context.row(0, named=True))
    np.testing.assert_array_equal(one, fused[:1])


def test_probabilities_are_those_of_the_recalibrated_scores(moved):
    model = fitted("closed-form")
    again = model.recalibrated(moved)
    away = np.abs(again.probabilities(moved) - moved.truth).mean()
    assert away < np.abs(model.probabilities(moved) - moved.truth).mean()


# As fitted, `logistic` adds a score that is always 1 to all rows alike, which costs little.
@pytest.mark.parametrize(
    ("name", "value", "gain"),
    [
        *(("harmonrank", value, 0.1) for value in (0.0, 0.5, 1.0)),
        *(("logistic", value, 0.1) for value in (0.0, 0.5)),
        ("logistic", 1.0, 0.0),
    ],
)
def test_a_score_that_failed_is_ignored_until_it_is_back(name, value, gain, usual, model):
    model = model if name == "harmonrank" else fitted(name)
    scores = usual.scores.copy()
    scores[:, 0] = value
    dead = replace(usual, scores=scores)
    without = model.recalibrated(dead)
    assert without.evaluate(dead).regret < min(0.25, model.evaluate(dead).regret - gain)
    assert without.drift(dead).moved == ()
    assert "p_buy" in without.drift(usual).moved
    back = without.recalibrated(usual)
    assert back.evaluate(usual).regret < model.evaluate(usual).regret + 0.003


def test_broken_scores_do_not_spoil_a_recalibration(model, moved):
    scores = moved.scores.copy()
    scores[np.random.default_rng(0).random(moved.rows) < 0.005, 1] = 0.0
    spoilt = replace(moved, scores=scores)
    regret = model.recalibrated(moved).evaluate(moved).regret
    assert model.recalibrated(spoilt).evaluate(spoilt).regret < regret + 0.01


@pytest.mark.parametrize("name", ["harmonrank", "closed-form"])
def test_a_second_replacement_is_recalibrated_to_the_fit_too(name, moved, model):
    newer = OLD.with_upstream(("comment", "like"), a=0.8, b=0.5)
    model, rows = model if name == "harmonrank" else fitted(name), log_of(newer, 40_000, 6)
    once = model.recalibrated(moved)
    assert len(once.drift(rows).replaced) == 2
    usual = model.evaluate(log_of(OLD, 40_000, 6)).regret
    assert once.recalibrated(rows).evaluate(rows).regret < usual + 0.004


def test_the_order_of_a_page_does_not_choose_what_is_measured(model):
    """Requests of five, best first: every fifth row would be a best one."""
    rows = log_of(NEW, 250_000, 9)
    page = np.argsort(-rows.scores[:, 1].reshape(-1, 5), axis=1) + 5 * np.arange(50_000)[:, None]
    by_place = rows.take(page.ravel())
    one, other = (model.recalibrated(log).evaluate(rows).regret for log in (rows, by_place))
    assert abs(one - other) < 0.001


def test_weights_can_be_changed_after_a_recalibration(model, moved):
    again = model.recalibrated(moved)
    plain, other = again.score(moved), again.score(moved, weights={"comment": 3.0})
    assert not np.array_equal(plain, other)


def test_too_few_rows_are_refused(table, schema):
    model = hr.ClosedForm().fit(table, schema)
    with pytest.raises(DataError, match="at least 1,000 recent rows that count .* Got 600"):
        model.recalibrated(table)
