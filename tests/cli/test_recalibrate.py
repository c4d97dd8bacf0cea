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
    assert fresh.evaluate(exam).regret < before + 0.003 < model.evaluate(exam).regret


def test_a_method_that_needs_labels_says_so(run, tmp_path, table, schema):
    hr.ClosedForm().fit(table, schema).save(tmp_path / "m")
    table.write_parquet(tmp_path / "t.parquet")
    done = run("recalibrate", tmp_path / "m", tmp_path / "t.parquet", "-o", tmp_path / "n")
    assert done.code == 2
    assert "closed-form cannot be recalibrated without labels" in done.err
    assert not (tmp_path / "n").exists()
