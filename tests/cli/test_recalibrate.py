import numpy as np
import polars as pl

import harmonrank as hr
from harmonrank.data.worlds import world
from harmonrank.evaluation.simulation import as_frame, world_schema


def test_a_model_follows_replaced_upstream_models_without_labels(run, tmp_path):
    old = world("conflict")
    new = old.with_upstream(("comment", "like"), a=1.6, b=-1.0)
    as_frame(old, old.sample(30_000, seed=1)).write_parquet(tmp_path / "train.parquet")
    exam = as_frame(new, new.sample(60_000, seed=2))
    recent = exam.select(pl.exclude(*old.objectives, "^true_.*$"))
    recent.write_parquet(tmp_path / "recent.parquet")
    model = hr.HarmonRank().fit(tmp_path / "train.parquet", world_schema(old))
    model.save(tmp_path / "m")
    done = run("recalibrate", tmp_path / "m", tmp_path / "recent.parquet", "-o", tmp_path / "n")
    assert done.code == 0
    fresh = hr.load(tmp_path / "n")
    usual = as_frame(old, old.sample(60_000, seed=2))
    before = model.evaluate(usual).regret
    as_it_was = model.evaluate(exam, adapt=False).regret
    assert fresh.evaluate(exam, adapt=False).regret < before + 0.003 < as_it_was


def test_a_method_that_needs_labels_says_so(run, tmp_path, table, schema):
    hr.ClosedForm().fit(table, schema).save(tmp_path / "m")
    table.write_parquet(tmp_path / "t.parquet")
    done = run("recalibrate", tmp_path / "m", tmp_path / "t.parquet", "-o", tmp_path / "n")
    assert done.code == 2
    assert "closed-form cannot be recalibrated without labels" in done.err
    assert not (tmp_path / "n").exists()


def test_scores_that_moved_far_are_told_of_and_others_are_not(run, tmp_path):
    old = world("conflict")
    new = old.with_upstream(("like",), a=1.6, b=-1.0)
    as_frame(old, old.sample(20_000, seed=1)).write_parquet(tmp_path / "train.parquet")
    as_frame(old, old.sample(20_000, seed=2)).write_parquet(tmp_path / "usual.parquet")
    as_frame(new, new.sample(20_000, seed=2)).write_parquet(tmp_path / "moved.parquet")
    hr.HarmonRank().fit(tmp_path / "train.parquet", world_schema(old)).save(tmp_path / "m")
    for verb, more in (
        ("evaluate", ()),
        ("score", ("-o", tmp_path / "out.parquet", "--overwrite")),
    ):
        usual = run(verb, tmp_path / "m", tmp_path / "usual.parquet", *more)
        moved = run(verb, tmp_path / "m", tmp_path / "moved.parquet", *more)
        assert "has moved" not in usual.err
        as_is = run(verb, tmp_path / "m", tmp_path / "moved.parquet", *more, "--as-is")
        for done in (moved, as_is):
            assert "'p_like' has moved since the fit" in done.err
            assert "`harmonrank recalibrate`" in done.err
            assert done.err.count("has moved") == 1
        assert "model is replaced: it is read on its new scale" in moved.err
        assert "if its upstream model was replaced" in as_is.err


def test_a_shift_is_measured_in_deviations_of_the_fit():
    old = world("conflict")
    new = old.with_upstream(("like",), a=1.0, b=0.5)
    model = hr.HarmonRank().fit(as_frame(old, old.sample(50_000, seed=1)), world_schema(old))
    shifts = {
        shift.column: shift for shift in model.shifts(as_frame(new, new.sample(50_000, seed=2)))
    }
    like = model._heads.law.log_variance[old.objectives.index("like")]
    assert abs(shifts["p_like"].offset - 0.5 / np.exp(like / 2)) < 0.1
    assert abs(shifts["p_like"].scale - 1) < 0.05
    assert not shifts["p_buy"].far
