import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from harmonrank.data import Schema
from harmonrank.support import DataError, UsageError
from harmonrank.support.storage.files import to_json
from harmonrank.worlds import world
from harmonrank_lab.experiments.ab import analyse
from harmonrank_lab.experiments.online import OnlineConfig, OnlineResult, run_online
from harmonrank_lab.experiments.online._arm import Impressions, matured, newest, rows_of, serve
from harmonrank_lab.experiments.online._traffic import Traffic

TINY = {
    "users": 2000,
    "days": 2,
    "hours": 4,
    "requests_per_hour": 500,
    "candidates": 10,
    "top_k": 3,
    "arms": {"base": "prevalence-weights", "ours": "closed-form"},
    "warmup_hours": 3,
    "delays": {"click": 0.0, "like": 0.25, "follow": 0.25, "share": 0.25, "long_view": 0.0},
}


@pytest.fixture(scope="module")
def result():
    return run_online("qkvideo", seed=1, **TINY)


@pytest.fixture(scope="module")
def hour():
    plan = OnlineConfig(users=500, requests_per_hour=400, candidates=8, top_k=3)
    return next(Traffic(world("elive"), plan, seed=0).hours())


def numbers(result):
    return to_json(replace(result, seconds=0.0).to_dict())


def test_the_same_seed_gives_the_same_experiment(result):
    again = run_online("qkvideo", seed=1, **TINY)
    assert numbers(again) == numbers(result)
    assert again.log.equals(result.log)
    assert not run_online("qkvideo", seed=2, **TINY).log.equals(result.log)


def test_the_analysis_of_the_log_is_the_result(result, tmp_path):
    result.log.write_parquet(tmp_path / "log.parquet")
    analysis = analyse(
        tmp_path / "log.parquet",
        outcomes=result.objectives,
        impressions="impressions",
        aa_arm="base-again",
    )
    assert to_json(analysis.to_dict()) == to_json(result.analysis.to_dict())


def test_a_result_survives_json(result):
    again = OnlineResult.from_dict(json.loads(to_json(result.to_dict())))
    assert numbers(again) == numbers(result)
    assert again.analysis.lift("ours", "like") == result.analysis.lift("ours", "like")
    assert again.log is None


def test_users_stay_in_their_arm_and_the_split_is_even(result):
    assert result.analysis.crossed_users == 0
    assert not result.analysis.sample_ratio.alarm
    assert set(result.log["arm"]) == {"base", "ours", "base-again"}
    assert result.log["impressions"].sum() == 3 * result.requests


def test_what_is_measured_agrees_with_what_is_true(result):
    # Four standard errors; 1.96 of them are the upper half of the interval.
    for name in result.objectives:
        measured, exact = result.analysis.lift("ours", name), result.exact_lift("ours", name)
        half = np.log1p(measured.high / 100) - np.log1p(measured.lift / 100)
        away = np.log1p(measured.lift / 100) - np.log1p(exact.lift / 100)
        assert abs(away) < 4 / 1.96 * half
        assert exact.high - exact.low < (measured.high - measured.low) / 2


@pytest.mark.slow
def test_measured_intervals_cover_the_exact_lift_nineteen_times_in_twenty():
    plan = TINY | {"users": 3000, "requests_per_hour": 800, "delays": {}}
    inside = []
    for seed in range(120):
        result = run_online("qkvideo", seed=seed, **plan)
        for lift in result.analysis.lifts:
            aa = lift.arm == "base-again"
            exact = 0.0 if aa else result.exact_lift(lift.arm, lift.outcome).lift
            inside.append(lift.low < exact < lift.high)
    # Lifts of an experiment go together: the spread is wider than that of 1,200 single ones.
    assert np.mean(inside) == pytest.approx(0.95, abs=0.03)


def test_an_arm_that_is_the_control_has_no_lift_but_by_chance():
    plan = TINY | {"arms": {"base": "closed-form", "twin": "closed-form"}, "retrain_hours": 100}
    result = run_online("qkvideo", seed=3, **plan)
    assert [(lift.lift, lift.low, lift.p) for lift in result.exact] == [(0.0, 0.0, 1.0)] * 5
    for lift in result.analysis.lifts:
        assert lift.p > 1e-4


def test_a_network_learns_on_from_its_weights():
    short = {"epochs": 2, "batch_rows": 1000}
    plan = TINY | {
        "arms": {"base": "mbce", "twin": "mbce"},
        "options": {"base": short, "twin": short},
    }
    moving = run_online("qkvideo", seed=0, **plan)
    resting = run_online("qkvideo", seed=0, **plan, retrain_hours=100)
    # Both arms began alike; each learns from its own users, so they part.
    assert all(lift.lift == 0 for lift in resting.exact)
    assert any(lift.lift != 0 for lift in moving.exact)


def test_traffic_has_the_contexts_of_the_world_and_users_keep_theirs():
    plan, elive = OnlineConfig(users=3000, days=1, requests_per_hour=1000), world("elive")
    hours = list(Traffic(elive, plan, seed=0).hours())
    clock = np.concatenate([h.context["hour"] for h in hours])
    shares = np.bincount(clock, minlength=24) / len(clock)
    assert shares == pytest.approx(elive.categories["hour"], abs=0.001)
    seen = pl.DataFrame(
        {
            "user": np.concatenate([h.user for h in hours]),
            "age": np.concatenate([h.context["age"] for h in hours]),
        }
    )
    assert seen.group_by("user").agg(pl.col("age").n_unique())["age"].max() == 1


def test_the_best_items_are_shown_and_places_are_looked_at_by_the_curve():
    plan = OnlineConfig(users=500, requests_per_hour=20_000, candidates=4, top_k=3)
    hour = next(Traffic(world("qkvideo"), plan, seed=0).hours())
    fused = hour.chance[..., 0]
    answers = serve(hour, fused, plan.examination())
    best = np.sort(fused, axis=1)[:, ::-1][:, :3]
    assert np.array_equal(np.take_along_axis(fused, answers.order, axis=1), best)
    assert answers.seen.mean(axis=0) == pytest.approx(plan.examination(), abs=0.015)
    assert not answers.came[~answers.seen].any()
    rate = answers.came[..., 0].sum() / answers.seen.sum()
    assert rate == pytest.approx(best[answers.seen].mean(), abs=0.01)


def test_two_arms_that_show_an_item_at_the_same_place_get_the_same_answer(hour):
    curve, rng = OnlineConfig(top_k=3).examination(), np.random.default_rng(0)
    one, other = (serve(hour, rng.random(hour.scores.shape[:2]), curve) for _ in range(2))
    same = one.order == other.order
    assert same.any()
    assert np.array_equal(one.came[same], other.came[same])
    assert np.array_equal(one.seen, other.seen)


def test_only_what_was_looked_at_is_learned_from_and_late_labels_are_lost():
    plan = OnlineConfig(users=500, requests_per_hour=20_000, candidates=4, top_k=3)
    hour = next(Traffic(world("qkvideo"), plan, seed=0).hours())
    answers = serve(hour, hour.chance[..., 0], plan.examination())
    mine = hour.user % 2 == 0
    rows = rows_of(hour, answers, mine, np.array([0.0, 0, 0, 0, 2.0]), wait=4)
    assert len(rows.labels) == answers.seen[mine].sum()
    came = answers.came[mine].sum(axis=(0, 1))
    assert np.array_equal(rows.labels.sum(axis=0)[:4], came[:4])
    # A delay of mean 2 is longer than 4 with probability e⁻².
    assert rows.labels[:, 4].sum() / came[4] == pytest.approx(1 - np.exp(-2), abs=0.02)


def rows_at(hour, count):
    column = np.full(count, hour)
    return Impressions(hour, np.full((count, 1), 0.5), {"age": column}, column[:, None] % 2, column)


def test_a_row_waits_until_its_labels_have_come():
    log = [rows_at(hour, 2) for hour in (-1, 0, 1, 2, 3)]
    assert [part.hour for part in matured(log, now=4, wait=2)] == [-1, 0, 1]
    assert [part.hour for part in matured(log, now=4, wait=0)] == [-1, 0, 1, 2, 3]


def test_the_window_holds_the_newest_rows():
    schema = Schema({"buy": "p_buy"}, context=["age"], request="request_id")
    log = [rows_at(hour, 3) for hour in range(4)]
    assert newest(log, schema, most=5).context["age"].to_list() == [2, 2, 3, 3, 3]
    assert newest(log, schema, most=100).rows == 12


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"users": 0}, "Option 'users' of the online experiment must be a whole number from 1"),
        ({"candidates": 2, "top_k": 3}, "`candidates` must be at least `top_k`, 3"),
        ({"arms": {"base": "mcbe"}}, "Did you mean 'mbce'?"),
        ({"arms": {"base": "mbce"}, "aa": False}, "at least two arms"),
        ({"options": {"bass": {}}}, "Did you mean 'base'?"),
    ],
)
def test_a_plan_that_cannot_be_is_refused(options, sentence):
    with pytest.raises(UsageError, match=sentence.replace("?", r"\?")):
        replace(OnlineConfig(), **options)


def test_a_warmup_without_a_positive_says_what_to_do():
    plan = TINY | {"requests_per_hour": 2, "warmup_hours": 1}
    with pytest.raises(DataError, match="The warm-up is too short; raise requests_per_hour"):
        run_online("elive", **plan)


def test_a_saved_model_is_an_arm_that_does_not_learn():
    import harmonrank as hr
    from harmonrank.worlds import as_frame, world_schema

    place = world("qkvideo")
    model = hr.ClosedForm().fit(as_frame(place, place.sample(4000, seed=3)), world_schema(place))
    same = {**TINY, "arms": {"current": model, "again": model}}
    outcome = run_online("qkvideo", seed=1, **same)
    assert outcome.arms == {"current": "closed-form", "again": "closed-form"}
    assert all(lift.lift == 0 for lift in outcome.exact)
    # With all weight on clicks there are more of them; only a simulation knows by how much.
    clicks = model.with_point("clicks", dict.fromkeys(model.schema.names, 0.0) | {"click": 1})
    arms = {"current": model, "clicks": clicks.at("clicks")}
    moved = run_online("qkvideo", seed=1, **{**TINY, "arms": arms})
    assert moved.exact_lift("clicks", "click").low > 1
    with pytest.raises(UsageError, match="reads a column '.*', which world 'conflict' does not"):
        run_online("conflict", seed=1, **{**TINY, "arms": arms, "delays": {}})
