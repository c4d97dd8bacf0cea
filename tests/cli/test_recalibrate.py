import json

import numpy as np
import polars as pl
import pytest

import harmonrank as hr
from harmonrank.metrics import spearman
from harmonrank.worlds import as_frame, world, world_schema
from logs import small_table


def test_a_model_is_recalibrated_to_replaced_upstream_models_without_labels(run, tmp_path):
    old = world("conflict")
    new = old.with_upstream(("comment", "like"), a=1.6, b=-1.0)
    as_frame(old, old.sample(30_000, seed=1)).write_parquet(tmp_path / "train.parquet")
    test = as_frame(new, new.sample(60_000, seed=2))
    recent = test.select(pl.exclude(*old.objectives, "^true_.*$"))
    recent.write_parquet(tmp_path / "recent.parquet")
    model = hr.HarmonRank().fit(tmp_path / "train.parquet", world_schema(old))
    model.save(tmp_path / "m")
    done = run("recalibrate", tmp_path / "m", tmp_path / "recent.parquet", "-o", tmp_path / "n")
    assert done.code == 0
    fresh = hr.load(tmp_path / "n")
    usual = as_frame(old, old.sample(60_000, seed=2))
    before = model.evaluate(usual).regret
    as_fitted = model.evaluate(test).regret
    assert fresh.evaluate(test).regret < before + 0.003 < as_fitted


def test_the_report_is_printed_and_written(run, tmp_path):
    old = world("conflict")
    new = old.with_upstream(("like",), a=1.6, b=-1.0)
    as_frame(new, new.sample(30_000, seed=2)).write_parquet(tmp_path / "t.parquet")
    model = hr.ClosedForm().fit(as_frame(old, old.sample(30_000, seed=1)), world_schema(old))
    model.save(tmp_path / "m")
    given = (tmp_path / "m", tmp_path / "t.parquet", "-o", tmp_path / "n")
    done = run("recalibrate", *given, "--json", tmp_path / "drift.json")
    drift = model.drift(tmp_path / "t.parquet")
    written = json.loads((tmp_path / "drift.json").read_text())
    agreement = written.pop("rank_correlation")
    fused = [hr.load(tmp_path / name).score(tmp_path / "t.parquet") for name in ("m", "n")]
    assert agreement == pytest.approx(spearman(np.column_stack(fused))[0, 1])
    assert agreement < 0.99
    assert {name for name, share in written.pop("recalibrated").items() if share} == {"p_like"}
    assert written == {"method": "closed-form", "model": str(tmp_path / "n"), **drift.to_dict()}
    shown = " ".join(done.out.split())
    assert shown.startswith(" ".join(str(drift).split()))
    assert f"It orders these rows differently: Spearman's ρ {agreement:.3f} with the" in shown
    assert "Recalibrated closed-form on 30,000 rows" in done.err
    again = run("recalibrate", *given)
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
    assert "Recalibrated on 20,000 rows: p_like (median " in done.err
    fused = pl.read_parquet(tmp_path / "out.parquet")["fused"].to_numpy()
    np.testing.assert_array_equal(fused, model.recalibrated(moved).score(moved))


# Aligned with what runs


@pytest.fixture
def place(folder):
    """Return a folder with a new model, a running one and recent rows."""
    schema = hr.Schema.read(folder / "schema.toml")
    new = hr.HarmonRank().fit(folder / "train.parquet", schema).with_point("sales", {"buy": 5})
    new.save(folder / "new")
    hr.ClosedForm().fit(folder / "train.parquet", schema).save(folder / "running")
    small_table(4000, seed=5).with_columns(
        prod_score=100 * pl.col("p_buy") + pl.col("p_like")
    ).write_parquet(folder / "recent.parquet")
    return folder


def test_what_is_not_proven_stays_unless_the_user_knows(run, place):
    given = (place / "new", place / "recent.parquet", "-o", place / "out", "--overwrite")
    done = run("recalibrate", *given)
    shown = " ".join(done.out.split())
    assert "no score, as none is proven to come of another upstream model" in shown
    assert "ranks these rows as the old one does: Spearman's ρ 1.000" in shown
    done = run("recalibrate", *given, "--scores-changed", "p_buy,p_like", "--json", "-")
    assert json.loads(done.out)["recalibrated"] == {"p_buy": 1.0, "p_like": 1.0}
    done = run("recalibrate", *given, "--scores-changed", "p_byu")
    assert done.code == 2
    assert "no score column 'p_byu' to recalibrate. Did you mean 'p_buy'?" in done.err


def align(run, place, *more):
    data = place / "recent.parquet"
    return run("recalibrate", place / "new", data, "-o", place / "out", *more)


@pytest.mark.parametrize("at", [(), ("--at", "sales")], ids=["as fitted", "at a point"])
def test_scores_fall_as_those_of_the_running_model(run, place, at):
    done = align(run, place, "--like", place / "running", *at, "--json", place / "a.json")
    assert done.code == 0, done
    told = json.loads((place / "a.json").read_text())
    assert told["ks"]["aligned"] < 0.01 < told["ks"]["before"]
    assert told["rows"] == 4000
    assert "The ranking is the same." in " ".join(done.out.split())
    before, after = hr.load(place / "new"), hr.load(place / "out")
    assert after.points == before.points
    assert after.schema == before.schema
    if at:
        before, after = before.at("sales"), after.at("sales")
    assert after.is_aligned
    table = place / "test.parquet"
    np.testing.assert_array_equal(
        np.argsort(after.score(table)), np.argsort(before.unaligned().score(table))
    )


def test_the_running_model_may_be_that_of_a_registry_or_a_column(run, place):
    run("registry", "init", place / "r")
    assert run("registry", "publish", place / "r", place / "running").code == 0
    assert align(run, place, "--like", place / "r").code == 0
    done = align(run, place, "--like", "prod_score", "--overwrite", "--json", "-")
    told = json.loads(done.out)
    assert told["quantiles"]["aligned"]["0.5"] == pytest.approx(
        pl.read_parquet(place / "recent.parquet")["prod_score"].quantile(0.5, "linear"), rel=0.01
    )


def test_a_row_of_an_aligned_model_is_explained(run, place):
    align(run, place, "--like", "prod_score")
    done = run(
        *("explain", place / "out", "--data", place / "recent.parquet", "--row", 3, "--json", "-")
    )
    row = json.loads(done.out)["row"]
    aligned = hr.load(place / "out")
    assert row["given"] == aligned.score(place / "recent.parquet")[3]
    assert row["fused"] == aligned.unaligned().score(place / "recent.parquet")[3]
    assert sum(row["adds"].values()) == pytest.approx(row["fused"])
    assert "is given out as" in done.err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--at", "sales"), "--at and --like-at are points of models that are aligned; add"),
        (("--like", "prod_score", "--like-at", "x"), "--like-at is a point of a model"),
        (("--like", "prod"), "has no column 'prod'"),
        (("--like", "R", "--like-at", "x"), "There is no operating point 'x'. There are none."),
        (("--like", "R", "--at", "sale"), "Did you mean 'sales'?"),
        (("--like", "none"), "has no column 'none'"),
    ],
)
def test_a_mistake_is_one_sentence_and_writes_nothing(run, place, arguments, sentence):
    words = [place / "running" if word == "R" else word for word in arguments]
    done = align(run, place, *words)
    assert done.code == 2
    assert sentence in done.err
    assert not (place / "out").exists()


def test_too_few_rows_are_refused(run, place):
    done = run(
        *("recalibrate", place / "new", place / "test.parquet", "-o", place / "out"),
        *("--like", place / "running"),
    )
    assert done.code == 2
    assert "Scores are aligned on at least 1,000 rows that count. Got 600" in done.err
