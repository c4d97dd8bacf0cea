"""What the default makes of a table whose upstream models may have been replaced."""

import numpy as np
import polars as pl
import pytest

import harmonrank as hr
from harmonrank.data import Log, read_log
from harmonrank.data.worlds import world
from harmonrank.evaluation.simulation import as_frame, world_schema
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


@pytest.mark.parametrize("objective", range(5))
@pytest.mark.parametrize("share", [0.5, 0.9])
def test_rows_chosen_by_a_score_prove_nothing(model, objective, share):
    rows = log_of(OLD, 250_000, 3)
    score = rows.scores[:, objective]
    chosen = rows.take(np.flatnonzero(score >= np.quantile(score, share)))
    assert any(shift.far for shift in model.shifts(chosen))
    assert model.replaced(chosen) == []


@pytest.mark.parametrize("share", [0.5, 0.9])
def test_rows_chosen_by_the_fused_score_prove_nothing(model, share):
    rows = log_of(OLD, 250_000, 3)
    fused = model.score(rows)
    assert model.replaced(rows.take(np.flatnonzero(fused >= np.quantile(fused, share)))) == []


def test_rows_of_one_context_prove_nothing(model):
    rows = log_of(OLD, 250_000, 4)
    first = rows.context[:, 0]
    chosen = rows.take(np.flatnonzero((first == first.mode()[0]).to_numpy()))
    assert chosen.rows > 20_000
    assert model.adapted(chosen) is model


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


def test_a_file_is_adapted_to_as_a_whole(model, tmp_path):
    """Pieces of a file are scored by one model, the one that its first rows give."""
    frame = as_frame(NEW, NEW.sample(300_000, seed=5))
    frame.write_parquet(tmp_path / "moved.parquet")
    notes = []
    score_file(model, tmp_path / "moved.parquet", tmp_path / "out.parquet", on_note=notes.append)
    fused = pl.read_parquet(tmp_path / "out.parquet")["fused"].to_numpy()
    first = read_log(frame[:262_144], world_schema(OLD))
    expected = model.adapted(first).score(frame, adapt=False)
    np.testing.assert_array_equal(fused, expected)
    assert len(notes) == 2
    score_file(model, tmp_path / "moved.parquet", tmp_path / "as_is.parquet", adapt=False)
    fused = pl.read_parquet(tmp_path / "as_is.parquet")["fused"].to_numpy()
    np.testing.assert_array_equal(fused, model.score(frame, adapt=False))


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


def test_an_upstream_model_that_became_noisier_is_weighed_anew(model):
    rows = log_of(OLD.with_upstream(("comment", "like"), tau_scale=1.5), 40_000, 2)
    assert len(model.replaced(rows)) == 2
    assert not any(shift.far for shift in model.shifts(rows))
    assert model.evaluate(rows).regret < model.evaluate(rows, adapt=False).regret - 0.002


def test_a_score_that_neither_moved_nor_stands_still_leaves_it_open():
    tied = np.full((3, 3), 0.5)
    moved, still = Shift("a", 9000, 0.9, 1.0), Shift("b", 9000, 0.01, 1.01)
    between = Shift("c", 9000, 0.07, 1.0)
    assert replaced([moved, still, still], tied) == [moved]
    assert replaced([moved, still, between], tied) == []
    assert replaced([still, still, still], tied) == []
    assert replaced([moved, moved, moved], tied) == []
