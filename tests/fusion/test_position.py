"""Position bias: the examination curve, the weights that undo it, and what they repair."""

import itertools
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import harmonrank as hr
from harmonrank.data import Schema, chances_at, read_log
from harmonrank.evaluation import compare
from harmonrank.fusion import Quality, method_class
from harmonrank.fusion.click_model import ClickModel
from harmonrank.fusion.position import corrected, inverse_weights
from harmonrank.fusion.quality.position_quality import PositionCorrection
from harmonrank.metrics import auc, value_at_k
from harmonrank.support import DataError
from harmonrank.worlds import as_frame, world, world_schema
from harmonrank_lab.worlds import POSITION, examination_curve, with_places
from reference import em_examination

WORLD = world("qkvideo")
CURVE = examination_curve(1.0, 30)
NAIVE = replace(world_schema(WORLD), truth={})
PLACED = replace(NAIVE, position=POSITION)


def shown(rows, start):
    sample = WORLD.sample(rows, seed=1, start=start)
    return with_places(as_frame(WORLD, sample), WORLD, sample, 1.0, seed=start)


@pytest.fixture(scope="module")
def train():
    return shown(40_000, 0)


@pytest.fixture(scope="module")
def test():
    return shown(30_000, 40_000)


@pytest.fixture(scope="module")
def model(train):
    return hr.HarmonRank().fit(train, PLACED)


def test_one_weight_makes_the_expectation_of_any_figure_that_of_what_is_wanted():
    # Two objectives that depend on each other, so that no product of chances would do.
    wanted = {(0, 0): 0.5, (0, 1): 0.1, (1, 0): 0.15, (1, 1): 0.25}
    rho, theta = 1 - wanted[0, 0], 0.3
    for figure in (lambda a, b: a, lambda a, b: b * (1 - a), lambda a, b: (a - 0.3) ** 2 + 2 * b):
        expected = 0.0
        for (a, b), seen in itertools.product(wanted, (0, 1)):
            answered = np.array([bool(seen * (a + b))])
            (u,) = inverse_weights(answered, np.array([theta]), np.array([rho]))
            chance = wanted[a, b] * (theta if seen else 1 - theta)
            expected += chance * u * figure(a * seen, b * seen)
        assert expected == pytest.approx(sum(p * figure(*y) for y, p in wanted.items()))


def test_the_curve_is_the_maximum_that_em_climbs_to():
    rng = np.random.default_rng(0)
    group, place = rng.integers(0, 3, 20_000), rng.integers(0, 4, 20_000)
    # Better items are shown higher.
    place = np.where(rng.random(20_000) < 0.5, 3 - group, place)
    answered = rng.random(20_000) < np.array([1, 0.6, 0.4, 0.2])[place] * (0.2 + 0.2 * group)
    theta, rho = em_examination(group, place, answered, 20_000)
    features = np.c_[np.ones(20_000), group == 1, group == 2]
    model = ClickModel.fit(features, place, answered, np.ones(20_000))
    assert np.exp(model.log_chance) == pytest.approx(theta, rel=0.01)
    ours = model.relevance(lambda rows: features[rows], 20_000)
    assert [ours[group == g][0] for g in range(3)] == pytest.approx(rho, rel=0.01)


def test_the_curve_is_estimated_within_its_errors(model):
    curve = model.schema.examination
    at = np.array(list(curve))
    assert len(at) > 15
    assert curve[1] == 1
    ratio = chances_at(curve, at) / chances_at(CURVE, at)
    assert np.abs(ratio - 1).mean() < 0.1
    assert np.abs(ratio - 1).max() < 0.3


@pytest.mark.parametrize("method", ["harmonrank", "logistic"])
def test_correction_leaves_at_most_a_third_of_the_naive_regret(method, train, test, model):
    whole = read_log(test, world_schema(WORLD))
    if method != "harmonrank":
        model = method_class(method)().fit(train, PLACED)
    naive = method_class(method)().fit(train, NAIVE)
    best, truth = whole.truth @ (1 / (whole.truth.mean(0) * (1 - whole.truth.mean(0)))), whole.truth
    ceiling = auc(best, truth).sum()
    regret = {m: ceiling - auc(m.score(test), truth).sum() for m in (model, naive)}
    assert regret[model] < regret[naive] / 3


def test_metrics_of_corrected_feedback_are_near_the_exact_ones_and_naive_ones_are_not(model, test):
    exact = replace(model.schema, truth=world_schema(WORLD).truth)
    log = corrected(read_log(test, exact))
    fused = model.score(log)
    truth = auc(fused, log.truth)
    right = np.abs(auc(fused, log.labels, sample_weight=log.sample_weight) - truth)
    wrong = np.abs(auc(fused, log.labels) - truth)
    assert right.mean() < wrong.mean() / 2
    worth = np.array([1.0, 5, 10, 10, 1])
    k = {"k": 5, "value": worth}
    value = value_at_k(fused, log.labels, log.request, event_weight=log.inverse, **k)
    true = value_at_k(fused, log.truth, log.request, **k)
    assert value == pytest.approx(true, rel=0.05)
    assert value_at_k(fused, log.labels, log.request, **k) < 0.7 * true


def curve_of(quality):
    return {int(place): chance for place, chance in quality.position.examination.items()}


def test_evaluate_shows_curve_clipping_and_effective_positives(model, test):
    quality = model.evaluate(test)
    assert curve_of(quality) == model.schema.examination
    assert 1 < quality.position.largest_weight < 20
    assert quality.position.clipped_share == 0
    for name, count in quality.position.effective_positives.items():
        assert 0 < count < quality.position.positives[name]
    assert "Corrected for position: place 1" in str(quality.to_table())
    assert Quality.from_dict(quality.to_dict()) == quality
    # Labels of rows that all were looked at would have this prevalence.
    truth = test.select(list(world_schema(WORLD).truth.values())).mean().row(0)
    assert list(quality.prevalence.values()) == pytest.approx(truth, rel=0.2)


def test_a_saved_model_keeps_the_curve(model, test, tmp_path):
    model.save(tmp_path / "model")
    again = hr.load(tmp_path / "model")
    assert again.schema == model.schema
    assert again.evaluate(test) == model.evaluate(test)
    # To score, no position is needed.
    assert (again.score(test.drop(POSITION)) == model.score(test)).all()


def test_rows_are_corrected_once_and_by_the_curve_that_is_given(train):
    given = replace(PLACED, examination=CURVE)
    log = corrected(read_log(train.head(5000), given))
    assert log.schema.examination == CURVE
    assert corrected(log) is log
    answered = log.labels.any(axis=1)
    assert np.allclose(log.inverse[answered], 1 / chances_at(CURVE, log.position)[answered])
    assert (log.inverse[~answered] <= 1).all()
    assert corrected(read_log(train, NAIVE)).sample_weight is None


def test_chances_below_a_twentieth_are_clipped_and_it_is_said(train):
    log = corrected(read_log(train.head(5000), replace(PLACED, examination={1: 1.0, 4: 0.001})))
    correction = PositionCorrection.of(log)
    assert correction.largest_weight == 20
    assert correction.clipped_share == pytest.approx((log.position >= 4).mean())
    assert "weights up to 20.0, clipped in" in correction.words()
    few = PositionCorrection.of(log.take(np.arange(300)))
    assert "Too few to trust: " in few.words()


def test_sample_weights_of_the_table_count_beside_the_places(train):
    schema = replace(PLACED, examination=CURVE, sample_weight="w")
    part = train.head(4000).with_columns(w=pl.Series(np.arange(4000) % 2 + 1.0))
    log = corrected(read_log(part, schema))
    assert np.allclose(log.own_weight, part["w"])
    assert np.allclose(log.sample_weight, log.inverse * part["w"].to_numpy())


def test_compare_corrects_all_methods_by_one_curve(train, test):
    board = compare(
        train.head(20_000), PLACED, ["closed-form", "prevalence-weights"], test=test
    ).board
    curves = [curve_of(entry.quality) for entry in board.entries]
    assert (
        curves[0] == curves[1] == corrected(read_log(train.head(20_000), PLACED)).schema.examination
    )


def test_what_tells_nothing_about_places_is_refused(train):
    log = read_log(train.with_columns(position=pl.lit(3)), PLACED)
    with pytest.raises(DataError, match="'position' is 3 in all 40,000 rows"):
        corrected(log)
    with pytest.raises(DataError, match="too few to estimate how often each place of 'position'"):
        corrected(read_log(train.head(150), PLACED))


def test_candidates_that_were_not_shown_do_not_count(train):
    first, schema = train.head(10_000), replace(PLACED, examination=CURVE)
    hidden = first.with_columns(
        pl.when(pl.col("position") <= 8).then("position").alias("position"),
        *(pl.when(pl.col("position") <= 8).then(name).otherwise(0) for name in PLACED.names),
    )
    log = corrected(read_log(hidden, schema))
    shown = corrected(read_log(first.filter(pl.col("position") <= 8), schema))
    assert (log.counted().sample_weight == shown.sample_weight).all()
    models = [method_class("closed-form")().fit(rows, schema) for rows in (hidden, shown)]
    assert (models[0].score(train) == models[1].score(train)).all()
    with pytest.raises(DataError, match="'position' has feedback on rows without a place"):
        corrected(read_log(hidden.with_columns(click=pl.lit(1)), schema))
    with pytest.raises(DataError, match="'position' is null in all rows"):
        corrected(read_log(hidden.with_columns(position=pl.lit(None, pl.Int64), click=0), schema))


def test_missing_scores_and_places_go_together(train):
    holes = train.head(8000).with_columns(
        p_click=pl.when(pl.int_range(pl.len()) % 5 > 0).then("p_click")
    )
    log = corrected(read_log(holes, PLACED))
    assert np.isfinite(log.inverse).all()
    plain = Schema({"click": "p_click"}, position=POSITION)
    assert np.isfinite(corrected(read_log(holes, plain)).inverse).all()


@pytest.mark.parametrize(("method", "options"), [("mbce", {"epochs": 2}), ("lightgbm", {})])
def test_losses_of_networks_and_trees_are_weighted_too(method, options, train):
    pytest.importorskip("torch" if method == "mbce" else "lightgbm")
    part, given = train.head(4000), replace(PLACED, examination=CURVE)
    naive, placed = (method_class(method)(**options).fit(part, s) for s in (NAIVE, given))
    # The share of positives that a model takes for the whole is that of rows looked at.
    assert (placed.prevalence > 1.5 * naive.prevalence).all()
    assert np.abs(placed.score(part) - naive.score(part)).max() > 1e-3
