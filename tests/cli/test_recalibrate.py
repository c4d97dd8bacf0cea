import json

import numpy as np
import polars as pl
import pytest

import harmonrank as hr
from harmonrank.metrics import spearman
from harmonrank.worlds import world
from harmonrank.worlds.simulation import as_frame, world_schema


def test_a_model_is_recalibrated_to_replaced_upstream_models_without_labels(run, tmp_path):
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
    as_fitted = model.evaluate(exam).regret
    assert fresh.evaluate(exam).regret < before + 0.003 < as_fitted


def test_the_report_is_printed_and_written(run, tmp_path):
    old = world("conflict")
    new = old.with_upstream(("like",), a=1.6, b=-1.0)
    as_frame(new, new.sample(30_000, seed=2)).write_parquet(tmp_path / "t.parquet")
    model = hr.ClosedForm().fit(as_frame(old, old.sample(30_000, seed=1)), world_schema(old))
    model.save(tmp_path / "m")
    places = (tmp_path / "m", tmp_path / "t.parquet", "-o", tmp_path / "n")
    done = run("recalibrate", *places, "--json", tmp_path / "drift.json")
    drift = model.drift(tmp_path / "t.parquet")
    written = json.loads((tmp_path / "drift.json").read_text())
    agreement = written.pop("rank_correlation")
    fused = [hr.load(tmp_path / name).score(tmp_path / "t.parquet") for name in ("m", "n")]
    assert agreement == pytest.approx(spearman(np.column_stack(fused))[0, 1])
    assert agreement < 0.99
    assert written == {"method": "closed-form", "model": str(tmp_path / "n"), **drift.to_dict()}
    shown = " ".join(done.out.split())
    assert shown.startswith(" ".join(str(drift).split()))
    assert f"It orders these rows differently: Spearman's ρ {agreement:.3f} with the" in shown
    assert "Recalibrated closed-form on 30,000 rows" in done.err
    again = run("recalibrate", *places)
    assert again.code == 2
    assert "exists" in again.err


def test_scores_that_moved_far_are_noted_and_change_no_score(run, tmp_path):
    old = world("conflict")
    new = old.with_upstream(("like",), a=1.6, b=-1.0)
    as_frame(old, old.sample(20_000, seed=1)).write_parquet(tmp_path / "train.parquet")
    as_frame(old, old.sample(20_000, seed=2)).write_parquet(tmp_path / "usual.parquet")
    as_frame(new, new.sample(20_000, seed=2)).write_parquet(tmp_path / "moved.parquet")
    model = hr.HarmonRank().fit(tmp_path / "train.parquet", world_schema(old))
    model.save(tmp_path / "m")
    for verb, more in (
        ("evaluate", ()),
        ("score", ("-o", tmp_path / "out.parquet", "--overwrite")),
    ):
        usual = run(verb, tmp_path / "m", tmp_path / "usual.parquet", *more)
        moved = run(verb, tmp_path / "m", tmp_path / "moved.parquet", *more)
        assert "has moved" not in usual.err
        assert "'p_like' has moved since the fit" in moved.err
        assert "as when its upstream model is replaced: recalibrate the model" in moved.err
        assert moved.err.count("has moved") == 1
    moved = tmp_path / "moved.parquet"
    fused = pl.read_parquet(tmp_path / "out.parquet")["fused"].to_numpy()
    np.testing.assert_array_equal(fused, model.score(moved))
    done = run("score", tmp_path / "m", moved, *more, "--recalibrate")
    assert "Recalibrated on 20,000 rows, without labels: " in done.err
    fused = pl.read_parquet(tmp_path / "out.parquet")["fused"].to_numpy()
    np.testing.assert_array_equal(fused, model.recalibrated(moved).score(moved))
