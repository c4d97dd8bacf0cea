"""Offline: what a model would earn on the platform, estimated from a log of another ranking."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from harmonrank.data import Schema
from harmonrank.evaluation.offline import offline
from harmonrank.fusion import method_class
from harmonrank.metrics import spearman
from harmonrank.support import DataError, UsageError
from harmonrank.worlds import world
from harmonrank_lab.experiments.online import (
    RANDOMISED,
    OnlineConfig,
    candidate_scores,
    shown_log,
    shown_requests,
    true_values,
)

OBJECTIVES = ("click", "like", "long_view")
WORLD = world("qkvideo").subset(OBJECTIVES)
CONFIG = OnlineConfig(users=5_000, days=1, hours=1, requests_per_hour=1_500, candidates=12, top_k=4)
SCHEMA = Schema(
    {name: f"p_{name}" for name in OBJECTIVES},
    tuple(WORLD.context),
    "request_id",
    position="position",
    examination=dict(enumerate(CONFIG.examination().tolist(), 1)),
)
RANDOM = {"k": 4, "randomised": RANDOMISED}


def production(log):
    return log.scores[:, 0].astype(np.float64)


def log_of(seed, share=0.5, requests=1_500):
    hour = shown_requests(WORLD, replace(CONFIG, requests_per_hour=requests), seed)
    fused = candidate_scores(hour, WORLD, production)
    return shown_log(hour, WORLD, fused, CONFIG, share=share, seed=seed)


def truth_of(*scores):
    hour = shown_requests(WORLD, replace(CONFIG, requests_per_hour=20_000), 999)
    return [true_values(hour, candidate_scores(hour, WORLD, s), CONFIG) for s in scores]


@pytest.fixture(scope="module")
def model():
    return method_class("closed-form")().fit(log_of(1, requests=4_000), SCHEMA)


@pytest.fixture(scope="module")
def logged():
    return log_of(2)


def test_intervals_cover_the_true_value_and_the_true_lift(model):
    true, today = truth_of(model.score, production)
    lift, runs = 100 * (true / today - 1), 20
    held = np.zeros((4, len(OBJECTIVES)), int)
    for run in range(runs):
        log = log_of(100 + run, requests=800)
        result = offline(model, log, against="p_click", **RANDOM)
        parts = ("snips", "robust", "snips_lift", "robust_lift")
        for row, (part, about) in enumerate(zip(parts, (true, true, lift, lift), strict=True)):
            ends = [getattr(one, part) for one in result.objectives]
            held[row] += [e.low <= t <= e.high for e, t in zip(ends, about, strict=True)]
    assert held.min() >= 0.8 * runs
    assert held.mean() >= 0.9 * runs


def test_estimated_lifts_rank_ten_pairs_as_the_true_ones_do(model):
    formulas = [
        *("p_click", "p_like", "p_long_view", "p_click * p_like", "p_click * p_long_view"),
        *("0 - p_click", "p_long_view - p_click", "p_like - p_long_view", "0 - p_long_view"),
        "p_click + p_long_view",
    ]
    log = log_of(3, share=1.0, requests=4_000)

    def score(formula):
        names = [f"p_{name}" for name in OBJECTIVES]
        return lambda rows: eval(formula, dict(zip(names, rows.scores.T, strict=True)))

    true, *truth = truth_of(model.score, *map(score, formulas))
    lifts = [
        [one.robust_lift.estimate for one in
         offline(model, log, against=text, **RANDOM).objectives]
        for text in formulas
    ]  # fmt: skip
    for m in range(len(OBJECTIVES)):
        exact = [true[m] / other[m] for other in truth]
        assert spearman(np.column_stack([np.array(lifts)[:, m], exact]))[0, 1] >= 0.9


def test_a_ranking_against_itself_has_no_lift_and_full_support(model, logged):
    result = offline(model, logged, against=model, **RANDOM)
    assert [one.robust_lift.estimate for one in result.objectives] == pytest.approx([0, 0, 0])
    assert result.support == 1
    assert result.randomised
    assert 600 < result.requests < 900
    assert result["like"].name == "like"
    for one in result.objectives:
        assert one.robust.low < one.robust.estimate < one.robust.high


def test_without_random_order_the_order_that_was_shown_is_what_was_seen(model):
    log = log_of(4, share=0.0)
    result = offline(model, log, k=4)
    assert result.against == "the order in which rows were shown"
    seen = log.select(OBJECTIVES).sum().row(0)
    current = [one.current.estimate for one in result.objectives]
    assert current == pytest.approx(np.array(seen) / 1_500, rel=0.02)
    # The model would show what nobody has seen, and it is said.
    assert 0.2 < result.support < 0.95
    assert "never shown, so it is only predicted" in result.warnings[0]


def test_where_everything_is_shown_places_alone_tell_the_value(model):
    config = replace(CONFIG, candidates=6, top_k=6, requests_per_hour=4_000)
    hour = shown_requests(WORLD, config, 7)
    fused = candidate_scores(hour, WORLD, production)
    log = shown_log(hour, WORLD, fused, config, share=0.0, seed=7)
    result = offline(model, log.drop(RANDOMISED), k=6, position="position")
    true = true_values(hour, candidate_scores(hour, WORLD, model.score), config)
    outcome = [one.robust.estimate for one in result.objectives]
    assert result.support == 1
    assert outcome == pytest.approx(true, rel=0.15)


def test_values_add_up_and_few_events_are_told(model, logged):
    value = {"click": 1, "like": 5, "long_view": 2}
    few = logged.filter(pl.col("request_id") < 150)
    result = offline(model, few, against=model, value=value, **RANDOM)
    worth = sum(value[n] * result[n].robust.estimate for n in OBJECTIVES)
    assert result["value"].robust.estimate == pytest.approx(worth)
    assert any("effective events of" in line for line in result.warnings)
    table = str(result.to_table())
    assert "in random order" in table
    assert result.to_dict()["objectives"][0]["robust_ci"][0] < worth


def test_what_cannot_be_estimated_is_one_sentence(model, logged):
    plain = replace(SCHEMA, position=None, examination={})
    bare = method_class("closed-form")().fit(logged.filter(pl.col("position") > 0), plain)
    with pytest.raises(UsageError, match="needs a position column"):
        offline(bare, logged)
    with pytest.raises(DataError, match="'half', which says whether the order was random"):
        offline(model, logged.with_columns(half=pl.lit(0.5)), randomised="half")
    with pytest.raises(DataError, match="must be the same in all rows of a request"):
        offline(model, logged, randomised="click")
    with pytest.raises(DataError, match="is 0 in all rows; no request"):
        offline(model, logged.with_columns(none=pl.lit(0)), randomised="none")
    with pytest.raises(UsageError, match="`against` must be a fitted model, a column or a formula"):
        offline(model, logged, against=3)
    with pytest.raises(UsageError, match="`model` must be a fitted model"):
        offline("model", logged)
    with pytest.raises(DataError, match="no column 'nowhere'"):
        offline(model, logged, randomised="nowhere")
