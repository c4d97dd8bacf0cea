"""The frontier of one fit: what its points are, and that no refit is ahead of them."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import harmonrank as hr
from harmonrank.data import read_log
from harmonrank.evaluation import Sweep, frontier_of, refits_of
from harmonrank.evaluation.frontier._sweep import simplex_grid, weights_to_try
from harmonrank.fusion import method_class
from harmonrank.fusion.method import measured
from harmonrank.metrics import (
    auc,
    expected_grouped_auc,
    hypervolume,
    pareto_front,
    value_at_k,
)
from harmonrank.support import DataError, UsageError
from harmonrank.worlds import as_frame, world, world_schema

WORLD = world("conflict")
THREE = ("buy", "like", "long_view")
SHOWN = 0.003
"""How near to a refit the one fit is promised to be."""


def rows(count, seed, truth=False):
    return as_frame(WORLD, WORLD.sample(count, seed=seed, with_truth=truth))


@pytest.fixture(scope="module")
def schema():
    return world_schema(WORLD).subset(THREE)


@pytest.fixture(scope="module")
def train():
    return rows(40_000, 1)


@pytest.fixture(scope="module")
def model(train, schema):
    return hr.HarmonRank().fit(train, schema)


@pytest.fixture(scope="module")
def sweep(model):
    return Sweep.of(model, rows(20_000, 2, truth=True))


@pytest.fixture(scope="module")
def frontier(sweep):
    return frontier_of(sweep, points=60, k=5)


def test_a_point_is_what_the_model_scores_with_its_weights(model, sweep, frontier):
    fused = model.score(sweep.log, weights=frontier.point(17))
    np.testing.assert_allclose(frontier.auc.figures[17], auc(fused, sweep.log.truth), atol=1e-12)
    within = expected_grouped_auc(fused, sweep.log.truth, sweep.log.request)
    np.testing.assert_allclose(frontier.request_auc.figures[17], within, atol=1e-12)
    worth = [3.0, 2.0, 1.0]
    value = value_at_k(fused, sweep.log.truth, sweep.log.request, 5, value=worth)
    assert frontier.events.figures[17] @ worth == pytest.approx(value)
    assert frontier.exact


def test_point_0_has_the_weights_of_the_model_and_the_ends_are_single_objectives(frontier):
    np.testing.assert_allclose(frontier.weights[0], 1)
    np.testing.assert_allclose(frontier.weights.mean(axis=1), 1)
    for m, name in enumerate(THREE):
        (end,) = np.flatnonzero(frontier.weights[1:, m] == 3) + 1
        assert frontier.auc.figures[end, m] == frontier.auc.figures[:, m].max()
        assert f"most {name}" in frontier.listed()[end]


def test_the_front_its_volume_and_its_knee_are_those_of_the_metrics(frontier):
    np.testing.assert_array_equal(frontier.auc.unbeaten, pareto_front(frontier.auc.figures))
    assert frontier.auc.volume == hypervolume(frontier.auc.figures, [0.5] * 3)
    assert frontier.auc.unbeaten[frontier.decisive.knee]
    assert 0.9 < frontier.decisive.volume / frontier.best.volume <= 1
    assert frontier.listed()[frontier.decisive.knee].startswith(("knee", "current, knee"))
    # A random order shows so many events, and every front is above it.
    assert (frontier.events.figures.max(axis=0) > frontier.events.reference).all()


def test_the_figures_and_the_ceiling_are_those_that_evaluate_tells(model, sweep, frontier):
    best = model.evaluate(rows(20_000, 2, truth=True)).requests
    np.testing.assert_allclose(
        frontier.request_auc.figures[0], list(best.areas.values()), atol=1e-12
    )
    assert frontier.sums[0] == pytest.approx(best.total, abs=1e-12)
    assert frontier.best.figures[0].sum() == pytest.approx(best.ceiling, abs=1e-12)


def test_labels_count_where_the_truth_is_not_known(model):
    table = rows(4000, 5)
    frontier = frontier_of(Sweep.of(model, table), points=5)
    labels = table.select(THREE).to_numpy()
    np.testing.assert_allclose(frontier.auc.figures[0], auc(model.score(table), labels))
    assert frontier.best is None
    assert not frontier.exact


def test_operating_points_come_last_and_change_no_number(model, sweep, frontier):
    kept = model.with_point("sales", {"buy": 4, "like": 1, "long_view": 1})
    again = frontier_of(replace(sweep, model=kept), points=60, k=5)
    np.testing.assert_array_equal(again.weights[:-1], frontier.weights)
    np.testing.assert_allclose(again.weights[-1], [2, 0.5, 0.5])
    assert again.named == {"sales": len(frontier.weights)}
    assert "sales" in again.listed().values()


def test_where_there_are_no_requests_only_auc_is_swept(train, schema):
    alone = replace(schema, request=None)
    model = hr.ClosedForm().fit(train, alone)
    frontier = frontier_of(Sweep.of(model, rows(3000, 2)), points=5)
    assert frontier.request_auc is None
    assert frontier.events is None
    assert list(frontier.to_dict()["fronts"]) == ["auc"]


def test_of_many_rows_whole_requests_are_measured_and_the_same_each_time(model):
    table = rows(6000, 4)
    some, again = (Sweep.of(model, table, rows=2500).log for _ in range(2))
    assert 2000 < some.rows <= 2500
    np.testing.assert_array_equal(some.scores, again.scores)
    whole = read_log(table, model.schema).request
    sizes = dict(zip(*np.unique(whole, return_counts=True), strict=True))
    for request, size in zip(*np.unique(some.request, return_counts=True), strict=True):
        assert size == sizes[request]


@pytest.mark.parametrize("objectives", [2, 3, 5, 20])
def test_weights_to_try_cover_the_simplex_once(objectives):
    tried = weights_to_try(objectives, 300)
    assert len(tried) <= 300
    np.testing.assert_allclose(tried.sum(axis=1), 1)
    assert (tried >= 0).all()
    assert len(np.unique(tried, axis=0)) == len(tried)
    for end in np.eye(objectives):
        assert (tried == end).all(axis=1).any()


def test_the_grid_holds_every_composition():
    grid = (simplex_grid(3, 28) * 6).round().astype(int)
    expected = {(a, b, 6 - a - b) for a in range(7) for b in range(7 - a)}
    assert set(map(tuple, grid)) == expected
    assert len(grid) == 28


# One fit for all weights


def test_the_default_fitted_for_other_weights_is_the_same_model(sweep, frontier, train):
    some = {number: frontier.weights[number] for number in (0, frontier.decisive.knee, 1, 9)}
    refits = refits_of(sweep, some, frontier.decisive.figures, train)
    assert max(refit.largest for refit in refits) < 1e-12


def test_a_formula_that_is_searched_for_the_weights_is_not_ahead_of_one_fit(sweep, frontier, train):
    for number in (0, frontier.decisive.knee, 20):
        weights = frontier.weights[number]
        wanted = replace(sweep.log.schema, weights=frontier.point(number), value={}, truth={})
        formula = method_class("formula-cem")(trials=60, search_rows=10_000).fit(train, wanted)
        fused = formula.score(sweep.log)
        ahead = auc(fused, sweep.log.truth) - frontier.auc.figures[number]
        assert weights @ ahead / weights.sum() < SHOWN


# What cannot be


def test_a_method_without_probabilities_says_that_it_has_no_frontier(train, schema):
    model = method_class("formula-grid")(trials=3, search_rows=2000).fit(train, schema)
    with pytest.raises(UsageError, match="formula-grid gives no probability .* has no frontier"):
        Sweep.of(model, train)


def test_one_objective_or_one_class_has_no_frontier(model, train):
    one = hr.ClosedForm().fit(train, world_schema(WORLD).subset(["like"]))
    with pytest.raises(UsageError, match="at least two objectives. Got one"):
        Sweep.of(one, train)
    with pytest.raises(DataError, match="'buy' has no positive label among the 500 evaluated rows"):
        Sweep.of(model, rows(500, 2).with_columns(buy=pl.lit(0)))


def test_a_number_that_no_point_has_is_refused(frontier):
    with pytest.raises(UsageError, match=r"numbered from 0 to \d+\. Got 999"):
        frontier.point(999)


def test_feedback_counts_as_if_every_place_had_been_looked_at(model, train, schema):
    rng = np.random.default_rng(0)
    table = rows(4000, 6).with_columns(position=pl.Series(rng.integers(1, 4, 4000)))
    curve = {1: 1.0, 2: 0.5, 3: 0.25}
    placed = hr.ClosedForm().fit(train, schema)
    placed._schema = replace(placed.schema, position="position", examination=curve)
    frontier = frontier_of(Sweep.of(placed, table), points=5, k=2)
    quality = placed.evaluate(table, k=2)
    areas = [quality.auc[name].estimate for name in THREE]
    np.testing.assert_allclose(frontier.auc.figures[0], areas)
    worth = dict.fromkeys(THREE, 1.0)
    value = measured(placed, placed.score(table), Sweep.of(placed, table).log, value=worth, k=2)
    assert frontier.events.figures[0].sum() == pytest.approx(value.value.mean)


def test_a_named_point_with_the_current_weights_is_listed_as_the_current_one(sweep):
    frontier = frontier_of(sweep, points=10, more={"kept": np.full(3, 2.0)})
    listed = frontier.listed()
    assert listed[0].startswith("current")
    assert "kept" in listed[0]
    assert frontier.named["kept"] not in listed
    assert frontier.point(frontier.named["kept"]) == frontier.point(0)
