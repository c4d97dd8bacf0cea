"""Unwanted objectives: what counts against a row, in every method and every figure."""

from dataclasses import replace

import numpy as np
import pytest

import harmonrank as hr
from check_method import SCHEMA, SMALL, planted
from harmonrank.evaluation import Floor, Sweep, frontier_of, guarded_by
from harmonrank.fusion import installed_methods, method_class
from harmonrank.metrics import auc, auc_sum_interval, best_score
from harmonrank.registry import Guardrails
from harmonrank.registry.guardrails import checks_of
from harmonrank.support import UsageError
from resampled import bootstrap_auc_sum

AGAINST = hr.Schema(
    {"buy": "p_buy", "like": "p_like"}, context=["hour", "age"], request="request", unwanted=["buy"]
)


def evaluated(name, schema):
    model = method_class(name)(**SMALL.get(name, {}))
    model.fit(planted(), schema, valid=planted(1000, seed=1))
    return model.evaluate(planted(2000, seed=2))


@pytest.mark.parametrize("name", installed_methods())
def test_every_method_ranks_against_what_is_unwanted(name):
    wanted, against = evaluated(name, SCHEMA), evaluated(name, AGAINST)
    assert against.auc["buy"].estimate < 0.45 < 0.55 < wanted.auc["buy"].estimate
    assert against.auc["like"].estimate > 0.55
    areas = {name: interval.estimate for name, interval in against.auc.items()}
    assert against.auc_sum.estimate == pytest.approx(areas["like"] - areas["buy"])
    assert "buy ↓" in str(against)
    assert "buy is unwanted (less is better)" in str(against)


def test_the_sign_of_an_unwanted_weight_does_not_matter_and_a_weight_below_0_does_the_same():
    two = {"weights": {"buy": 2}}
    for schema in (
        hr.Schema(SCHEMA.objectives, unwanted=["buy"], **two),
        hr.Schema(SCHEMA.objectives, unwanted=["buy"], weights={"buy": -2}),
        hr.Schema(SCHEMA.objectives, weights={"buy": -2}),
    ):
        assert schema.weight_vector.tolist() == [-2, 1]
        assert schema.signs.tolist() == [-1, 1]
        assert hr.Schema.from_dict(schema.to_dict()) == schema
    assert hr.Schema(SCHEMA.objectives, unwanted=["buy"]).subset(["like"]).unwanted == ()


def test_no_order_beats_the_closed_form_with_a_weight_below_0():
    rng = np.random.default_rng(0)
    truth, weights = rng.random((7, 3)), np.array([1.0, -2.0, 0.5])
    best = weights @ auc(best_score(truth, weights.tolist()), truth)
    for _ in range(3000):
        assert weights @ auc(rng.permutation(7), truth) <= best + 1e-12


def test_intervals_of_the_sum_take_weights_below_0():
    rng = np.random.default_rng(0)
    labels, scores = rng.random((400, 2)) < 0.4, rng.normal(size=400)
    weights = np.array([1.0, -1.0])
    a, b = auc(scores, labels)
    turned = np.stack([labels[:, 0], ~labels[:, 1]], axis=1)
    interval = auc_sum_interval(scores, labels, objective_weights=weights)
    same = auc_sum_interval(scores, turned)
    assert interval.estimate == pytest.approx(a - b)
    assert interval.high - interval.low == pytest.approx(same.high - same.low)
    drawn = bootstrap_auc_sum(scores, labels, objective_weights=weights)
    assert drawn.low < interval.estimate < drawn.high


def unwanted_sweep():
    model = hr.HarmonRank().fit(planted(), AGAINST)
    return model, Sweep.of(model, planted(2000, seed=2))


def test_a_frontier_seeks_less_of_what_is_unwanted():
    model, sweep = unwanted_sweep()
    swept = frontier_of(sweep, points=21)
    assert swept.unwanted == ("buy",)
    assert (swept.weights[:, 0] <= 0).all()
    # More weight against it leaves less of it.
    order = np.argsort(swept.weights[:, 0])
    assert swept.auc.figures[order[0], 0] < 0.3 < 0.45 < swept.auc.figures[order[-1], 0]
    quality = model.evaluate(sweep.log)
    assert swept.sums[0] == pytest.approx(quality.requests.auc_sum.estimate)
    assert swept.to_dict()["points"][0]["auc_sum"] == pytest.approx(quality.auc_sum.estimate)
    assert "least buy" in " ".join(swept.listed().values())
    saved = model.with_point("calm", swept.point(3)).at("calm")
    again = saved.evaluate(sweep.log)
    assert again.auc["buy"].estimate == pytest.approx(swept.auc.figures[3, 0])


def test_floors_of_what_is_unwanted_are_bounds_from_above():
    model, sweep = unwanted_sweep()
    sweep = replace(sweep, log=replace(sweep.log, request=None))  # over all rows
    now = model.evaluate(sweep.log)
    least = now.auc["buy"].estimate - 0.02
    floor = Floor.parse(f"buy<={least:.4f}", sweep.names, sweep.unwanted)
    guarded = guarded_by(sweep, [floor], level=0)
    assert guarded.feasible
    assert guarded.point.areas[0] <= least + 1e-4 < now.auc["buy"].estimate
    assert guarded.current.total == pytest.approx(now.auc_sum.estimate)
    assert guarded.point.total < guarded.current.total
    assert guarded.to_dict()["floors"][0]["most"] == pytest.approx(least, abs=1e-4)
    with pytest.raises(UsageError, match=r"'buy' is unwanted, .* write buy<="):
        Floor.parse("buy>=0.3", sweep.names, sweep.unwanted)


def test_a_guardrail_lets_an_unwanted_auc_fall_and_not_rise():
    good = hr.HarmonRank().fit(planted(), AGAINST)
    careless = good.reweighted({"buy": 0.01})

    log = Sweep.of(good, planted(2000, seed=2)).log
    worse = {c.name: c for c in checks_of(Guardrails(), careless, good, log, None)[0]}
    assert not worse["auc buy"].passed
    assert "unwanted" in worse["auc buy"].sentence
    better = {c.name: c for c in checks_of(Guardrails(), good, careless, log, None)[0]}
    assert better["auc buy"].passed
