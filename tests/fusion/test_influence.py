"""What moves the order of a request, against a loop over its pairs."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import harmonrank as hr
from harmonrank.data import read_log
from harmonrank.fusion import method_class
from harmonrank.fusion.influence import equal_influence, influence_of, pair_covariance
from harmonrank.metrics import grouped_auc
from harmonrank.support.errors import ConvergenceWarning
from logs import rare_table, small_table
from reference import influence_by_pairs

SCHEMA = hr.Schema({"buy": "p_buy", "like": "p_like", "view": "p_view"}, request="request_id")


def test_shares_are_those_of_a_loop_over_pairs_and_add_up_to_one():
    table = rare_table()
    model = hr.ClosedForm().fit(table, SCHEMA)
    log = read_log(table, SCHEMA)
    influence = influence_of(model, log)
    parts = model.contributions(table)
    assert list(influence.shares.values()) == pytest.approx(influence_by_pairs(parts, log.request))
    assert sum(influence.shares.values()) == pytest.approx(1)
    alone = influence_of(model, read_log(table, hr.Schema(SCHEMA.objectives)))
    same = influence_by_pairs(parts[:300], np.zeros(300))
    part = read_log(table.head(300), hr.Schema(SCHEMA.objectives))
    assert list(influence_of(model, part).shares.values()) == pytest.approx(same)
    assert (influence.where, alone.where) == ("within requests", "over all rows")
    single = replace(log, request=np.arange(log.rows))
    assert influence_of(model, single) == alone


def test_what_a_whole_request_shares_has_no_influence():
    rng = np.random.default_rng(0)
    parts, request = rng.normal(size=(400, 2)), rng.integers(0, 60, 400)
    parts = np.column_stack([parts, 9 * rng.normal(size=60)[request]])
    covariance = pair_covariance(parts, request)
    assert covariance[2] == pytest.approx(np.zeros(3), abs=1e-12)
    np.testing.assert_allclose(pair_covariance(parts, np.zeros(400)), np.cov(parts.T))


@pytest.mark.parametrize("seed", range(5))
def test_factors_of_equal_influence_are_found_whatever_pulls_against_what(seed):
    rng = np.random.default_rng(seed)
    parts = rng.normal(size=(50, 4)) @ rng.normal(size=(4, 4)) * 10.0 ** rng.integers(-3, 3, 4)
    covariance = np.cov(parts.T)
    factors = equal_influence(covariance)
    assert (factors > 0).all()
    assert factors * (covariance @ factors) == pytest.approx(np.ones(4))


def test_a_score_that_is_the_same_everywhere_lets_no_other_one_rule():
    table = rare_table(2000).with_columns(p_like=pl.lit(0.25))
    schema = hr.Schema({"buy": "p_buy", "like": "p_like"}, request="request_id")
    influence = influence_of(hr.ClosedForm().fit(table, schema), read_log(table, schema))
    assert influence.shares["buy"] == pytest.approx(1)
    assert influence.caution() is None


def test_factors_that_have_not_converged_are_said(monkeypatch):
    monkeypatch.setattr("harmonrank.fusion.influence._STEPS", 1)
    with pytest.warns(ConvergenceWarning, match="equal influence did not converge"):
        equal_influence(np.array([[4.0, 1.0], [1.0, 9.0]]))


def test_a_rare_objective_that_rules_is_said_with_weights_to_paste_and_their_cost():
    table = rare_table(6000)
    model = hr.ClosedForm().fit(table, SCHEMA)
    log = read_log(table, SCHEMA)
    influence = influence_of(model, log)
    assert influence.shares["buy"] > 0.5
    equal = influence_of(model.reweighted(influence.proposal), log)
    assert list(equal.shares.values()) == pytest.approx([1 / 3] * 3, abs=0.005)
    assert equal.proposal == {}
    assert equal.caution() is None
    for asked, areas in ((None, 0), (influence.proposal, 1)):
        expected = grouped_auc(model.score(table, weights=asked), log.labels, log.request)
        assert [pair[areas] for pair in influence.auc.values()] == pytest.approx(expected.tolist())
    said = influence.caution()
    assert said.startswith("All weights are equal, yet 'buy' has ")
    weights = said.split("--weights ")[1].split(";")[0]
    assert weights == ",".join(f"{n}={w:g}" for n, w in influence.proposal.items())
    assert f"buy {influence.auc['buy'][0]:.4f} to {influence.auc['buy'][1]:.4f}" in said
    unknown = influence_of(model, replace(log, labels=None))
    assert unknown.auc == {}
    assert "rows with labels tell" in unknown.caution()


def test_nothing_is_said_of_weights_that_were_chosen():
    table = rare_table()
    log = read_log(table, SCHEMA)
    model = hr.ClosedForm().fit(table, SCHEMA)
    assert influence_of(model.reweighted({"buy": 1.5}), log).proposal == {}
    assert influence_of(model.valued({"buy": 5, "like": 1}), log).proposal == {}
    schema = hr.Schema({"buy": "p_buy", "like": "p_like"})
    small = small_table()
    formula = method_class("formula-grid")(trials=3).fit(small, schema)
    assert influence_of(formula, read_log(small, schema)) is None
