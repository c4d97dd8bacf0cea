"""What the default makes of a table whose upstream models may have been replaced."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import harmonrank as hr
from harmonrank.data import Log, Schema, read_log
from harmonrank.data.worlds import world
from harmonrank.errors import DataError
from harmonrank.evaluation.simulation import as_frame, world_schema
from harmonrank.methods.base import PIECE_ROWS
from harmonrank.methods.scoring import score_file
from harmonrank.methods.shift import Shift, replaced

OLD = world("conflict")
NEW = OLD.with_upstream(("comment", "like"), a=1.5, b=-1.0)


def log_of(place, rows, seed):
    return read_log(as_frame(place, place.sample(rows, seed=seed)), world_schema(OLD))


@pytest.fixture(scope="module")
def model():
    return hr.HarmonRank().fit(log_of(OLD, 50_000, 1), world_schema(OLD))


@pytest.fixture(scope="module")
def usual():
    return log_of(OLD, 40_000, 2)


@pytest.fixture(scope="module")
def moved():
    return log_of(NEW, 40_000, 2)


def test_a_replaced_upstream_model_costs_nothing(model, usual, moved):
    before = model.evaluate(usual).regret
    assert [shift.column for shift in model.replaced(moved)] == ["p_comment", "p_like"]
    assert model.evaluate(moved).regret < before + 0.003
    assert model.evaluate(moved, adapt=False).regret > before + 0.03


def test_the_usual_rows_change_nothing(model, usual):
    assert model.adapted(usual) is model
    np.testing.assert_array_equal(model.score(usual), model.score(usual, adapt=False))


@pytest.fixture(scope="module")
def many():
    return log_of(OLD, 250_000, 3)


@pytest.mark.parametrize("objective", range(5))
@pytest.mark.parametrize(
    ("low", "high"), [(0.5, 1), (0.9, 1), (0, 0.5), (0, 0.97), (0.03, 1), (0.05, 1), (0.01, 0.99)]
)
def test_rows_chosen_by_a_score_prove_nothing(model, many, objective, low, high):
    score = many.scores[:, objective]
    bounds = np.quantile(score, [low, high])
    chosen = many.take(np.flatnonzero((score >= bounds[0]) & (score <= bounds[1])))
    assert model.replaced(chosen) == []


@pytest.mark.parametrize("share", [0.03, 0.5, 0.9])
def test_rows_chosen_by_the_fused_score_prove_nothing(model, many, share):
    fused = model.score(many)
    assert model.replaced(many.take(np.flatnonzero(fused >= np.quantile(fused, share)))) == []


def test_rows_of_one_context_prove_nothing(model, many):
    first = many.context[:, 0]
    chosen = many.take(np.flatnonzero((first == first.mode()[0]).to_numpy()))
    assert chosen.rows > 20_000
    assert model.adapted(chosen) is model


def test_a_campaign_in_one_context_is_no_new_model(model, many):
    """Purchases rise for some users, and the upstream model follows them rightly."""
    first = many.context[:, 0]
    there = (first == first.mode()[0]).to_numpy()
    odds = many.scores[:, 0] / (1 - many.scores[:, 0]) * np.where(there, np.exp(1.5), 1)
    scores = many.scores.copy()
    scores[:, 0] = odds / (1 + odds)
    assert model.adapted(replace(many, scores=scores)) is model


@pytest.mark.parametrize("value", [0.0, 1.0])
@pytest.mark.parametrize("share", [0.001, 0.01])
def test_a_few_broken_scores_are_no_new_model(model, usual, value, share):
    scores = usual.scores.copy()
    broken = np.random.default_rng(0).random(usual.rows) < share
    scores[broken, 3] = value
    assert model.adapted(replace(usual, scores=scores)) is model


@pytest.mark.parametrize("value", [0.0, 0.5, 1.0])
def test_a_score_that_died_is_taken_for_no_news(model, usual, value):
    scores = usual.scores.copy()
    scores[:, 0] = value
    dead = replace(usual, scores=scores)
    (shift,) = model.replaced(dead)
    assert shift.dead
    as_is = model.evaluate(dead, adapt=False).regret
    assert model.evaluate(dead).regret < min(0.2, as_is - 0.1)
    with pytest.raises(DataError, match="one value in all recent rows"):
        model.recalibrate(dead)


def test_a_score_that_comes_back_to_life_is_read_again(model, usual):
    scores = usual.scores.copy()
    scores[:, 0] = 0.5
    dead = replace(usual, scores=scores)
    mourning = model.adapted(dead)
    assert mourning.adapted(dead) is mourning
    (shift,) = mourning.replaced(usual)
    assert not shift.dead
    assert mourning.evaluate(usual).regret < model.evaluate(usual).regret + 0.003


def test_broken_scores_do_not_spoil_a_recalibration(model, moved):
    scores = moved.scores.copy()
    scores[np.random.default_rng(0).random(moved.rows) < 0.005, 1] = 0.0
    spoilt = replace(moved, scores=scores)
    assert model.evaluate(spoilt).regret < model.evaluate(moved).regret + 0.01


@pytest.mark.parametrize("rows", [500, 30_000])
def test_scores_without_context_are_followed_too(rows, tmp_path):
    schema = Schema({name: f"p_{name}" for name in OLD.objectives})
    free = hr.HarmonRank().fit(as_frame(OLD, OLD.sample(30_000, seed=1)), schema)
    table = as_frame(NEW, NEW.sample(rows, seed=2))
    assert len(free.shifts(table)) == 5
    assert len(free.replaced(table)) == (2 if rows > 20_000 else 0)
    table.write_parquet(tmp_path / "t.parquet")
    score_file(free, tmp_path / "t.parquet", tmp_path / "out.parquet")
    fused = pl.read_parquet(tmp_path / "out.parquet")["fused"].to_numpy()
    np.testing.assert_array_equal(fused, free.score(table))


def test_a_score_that_was_constant_at_the_fit_does_not_stand_in_the_way():
    train, table = (
        as_frame(OLD, OLD.sample(30_000, seed=1)),
        as_frame(NEW, NEW.sample(30_000, seed=2)),
    )
    constant = pl.lit(0.1).alias("p_buy")
    free = hr.HarmonRank().fit(train.with_columns(constant), world_schema(OLD))
    assert len(free.replaced(table.with_columns(constant))) == 2


def test_a_change_in_the_middle_is_followed_from_the_next_piece_on(model):
    size = PIECE_ROWS
    old = as_frame(OLD, OLD.sample(size + size // 2, seed=7))
    table = pl.concat([old, as_frame(NEW, NEW.sample(2 * size, seed=8))])
    found = model.replaced(table)
    assert [(shift.column, shift.first_row) for shift in found] == [
        ("p_comment", 2 * size),
        ("p_like", 2 * size),
    ]
    fused, as_is = model.score(table), model.score(table, adapt=False)
    np.testing.assert_array_equal(fused[: 2 * size], as_is[: 2 * size])
    assert (fused[2 * size :] != as_is[2 * size :]).all()


def test_the_order_of_a_page_does_not_choose_what_is_looked_at(model):
    """Requests of five, best first: every fifth row would be a best one."""
    rows = log_of(NEW, 250_000, 9)
    page = np.argsort(-rows.scores[:, 1].reshape(-1, 5), axis=1) + 5 * np.arange(50_000)[:, None]
    sorted_ = rows.take(page.ravel())
    assert abs(model.evaluate(sorted_).regret - model.evaluate(rows).regret) < 0.001


def test_few_rows_prove_nothing(model, moved):
    few = moved.take(np.arange(19_999))
    assert model.adapted(few) is model
    np.testing.assert_array_equal(model.score(few), model.score(moved, adapt=False)[:19_999])


def test_a_request_is_scored_as_at_the_fit_until_the_service_adapts(model, moved):
    context = moved.context.row(0, named=True)
    as_fitted = model.score_request(moved.scores[:1], context)
    np.testing.assert_array_equal(as_fitted, model.score(moved, adapt=False)[:1])
    adapted = model.adapted(moved).score_request(moved.scores[:1], context)
    np.testing.assert_allclose(adapted, model.score(moved)[:1], rtol=1e-12)


def test_weights_can_be_changed_on_a_replaced_model(model, moved):
    weights = {"comment": 3.0}
    adapted = model.adapted(moved).score(moved, weights=weights, adapt=False)
    np.testing.assert_array_equal(model.score(moved, weights=weights), adapted)


def test_a_file_is_followed_like_a_table(model, tmp_path):
    frame = as_frame(NEW, NEW.sample(300_000, seed=5))
    frame.write_parquet(tmp_path / "moved.parquet", row_group_size=7_000)
    notes = []
    score_file(model, tmp_path / "moved.parquet", tmp_path / "out.parquet", on_note=notes.append)
    fused = pl.read_parquet(tmp_path / "out.parquet")["fused"].to_numpy()
    np.testing.assert_array_equal(fused, model.score(frame))
    assert len(notes) == 2
    score_file(model, tmp_path / "moved.parquet", tmp_path / "as_is.arrow", adapt=False)
    fused = pl.read_ipc(tmp_path / "as_is.arrow")["fused"].to_numpy()
    np.testing.assert_array_equal(fused, model.score(frame, adapt=False))
    score_file(model, tmp_path / "moved.parquet", tmp_path / "out.arrow")
    fused = pl.read_ipc(tmp_path / "out.arrow")["fused"].to_numpy()
    np.testing.assert_array_equal(fused, model.score(frame))


def test_a_second_replacement_is_found_too(model, moved):
    once = model.adapted(moved)
    assert once is not model
    assert once.adapted(moved) is once
    newer = OLD.with_upstream(("comment", "like"), a=0.8, b=0.5)
    rows = log_of(newer, 40_000, 6)
    assert len(once.replaced(rows)) == 2
    assert once.evaluate(rows).regret < model.evaluate(log_of(OLD, 40_000, 6)).regret + 0.003


def test_a_saved_model_adapts_like_the_one_that_was_saved(model, moved, tmp_path):
    model.save(tmp_path / "m")
    np.testing.assert_array_equal(hr.load(tmp_path / "m").score(moved), model.score(moved))


def test_labels_are_not_looked_at(model, moved):
    blind = Log(moved.schema, moved.scores, moved.context, request=moved.request)
    np.testing.assert_array_equal(model.score(blind), model.score(moved))


def test_a_score_that_neither_moved_nor_stands_still_leaves_it_open():
    tied = np.full((3, 3), 0.5)
    moved, still = Shift("a", 9000, 0.9, 1.0), Shift("b", 9000, 0.01, 1.01)
    between = Shift("c", 9000, 0.07, 1.0)
    assert replaced([moved, still, still], tied) == [moved]
    assert replaced([moved, still, between], tied) == []
    assert replaced([still, still, still], tied) == []
    assert replaced([moved, moved, moved], tied) == []
