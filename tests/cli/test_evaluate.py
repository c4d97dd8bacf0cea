import json

import polars as pl
import pytest

import harmonrank as hr
from harmonrank.worlds import as_frame, world, world_schema


@pytest.fixture
def model(world_folder, tmp_path):
    schema = hr.Schema.read(world_folder / "schema.toml")
    hr.ClosedForm().fit(world_folder / "train.parquet", schema).save(tmp_path / "m")
    return tmp_path / "m"


def test_json_holds_the_numbers_of_the_python_call(run, model, world_folder):
    done = run("evaluate", model, world_folder / "test.parquet", "--json", "-")
    loaded = hr.load(model)
    quality = loaded.evaluate(world_folder / "test.parquet")
    drift = loaded.drift(world_folder / "test.parquet")
    more = {"recalibrated": False, "auc_sum_as_fitted": quality.auc_sum.estimate}
    more |= {"criterion": "within requests"}
    expected = {"method": "closed-form", **quality.to_dict(), **more, "drift": drift.to_dict()}
    told = json.loads(done.out)
    others = {"upstream", "verdict", "baseline", "warnings", "missing", "events_at_k", "influence"}
    assert set(told) == set(expected) | others
    assert {key: told[key] for key in expected} == expected
    assert told["baseline"] is told["verdict"] is None
    assert set(told["upstream"]) == set(quality.auc)
    assert f"{quality.requests.exact_auc_sum:.4f}" in done.err


def test_the_table_fits_a_terminal_and_names_every_objective(run, model, world_folder):
    lines = run("evaluate", model, world_folder / "test.parquet").out.splitlines()
    assert len(lines) == 1 + 5 + 1 + 6
    assert max(map(len, lines)) <= 80
    first = ["objective", "within", "alone", "all", "rows", "events@10"]
    assert lines[0].split()[:6] == first
    assert lines[5].startswith("long_view ")
    assert lines[-4].startswith("Within requests: ceiling ")
    assert lines[-3].startswith("Over all rows: ceiling ")


def test_today_stands_beside_the_model(run, model, world_folder):
    test = world_folder / "test.parquet"
    done = run("evaluate", model, test, "--baseline", "p_buy + p_like", "--json", "-")
    told = json.loads(done.out)
    assert done.err.startswith("Within requests closed-form is ahead of today's formula by .")
    (against,) = told["verdict"]["against"]
    today = told["baseline"]
    assert today["score"] == "p_buy + p_like"
    ours, theirs = (each["requests"]["exact_auc_sum"] for each in (told, today))
    assert against["difference"] == pytest.approx(ours - theirs)
    assert f"{theirs:.4f}" in done.err
    notes = [line for line in done.err.splitlines() if line.startswith("Note: ")]
    assert notes == [f"Note: {line}" for line in told["warnings"]]
    assert max(len(line) for line in done.err.splitlines() if line not in notes) <= 80


def test_a_baseline_is_weighted_like_the_model(run, model, world_folder):
    test = world_folder / "test.parquet"
    options = ("--baseline", "p_buy", "--weights", "buy=3", "--json", "-")
    told = json.loads(run("evaluate", model, test, *options).out)
    areas = told["baseline"]["auc"]
    assert told["baseline"]["auc_sum"] == pytest.approx(sum(areas.values()) + 2 * areas["buy"])
    assert told["upstream"]["buy"]["auc_sum"] == pytest.approx(told["baseline"]["auc_sum"])


def test_weights_may_be_changed(run, model, world_folder):
    done = run(
        "evaluate", model, world_folder / "test.parquet", "--weights", "buy=3", "--json", "-"
    )
    numbers = json.loads(done.out)
    assert numbers["weights"]["buy"] == 3
    auc = numbers["auc"]
    assert numbers["auc_sum"] == pytest.approx(sum(auc.values()) + 2 * auc["buy"])


def test_recalibration_is_said_with_what_it_changed(run, tmp_path):
    old = world("conflict")
    new = old.with_upstream(("like",), a=1.6, b=-1.0)
    as_frame(new, new.sample(30_000, seed=2)).write_parquet(tmp_path / "t.parquet")
    model = hr.ClosedForm().fit(as_frame(old, old.sample(30_000, seed=1)), world_schema(old))
    model.save(tmp_path / "m")
    done = run("evaluate", tmp_path / "m", tmp_path / "t.parquet", "--recalibrate", "--json", "-")
    blind = pl.read_parquet(tmp_path / "t.parquet").drop(old.objectives)
    told, again = json.loads(done.out), model.recalibrated(blind)
    assert told["recalibrated"]
    assert told["auc_sum"] == again.evaluate(tmp_path / "t.parquet").auc_sum.estimate
    assert told["auc_sum_as_fitted"] == model.evaluate(tmp_path / "t.parquet").auc_sum.estimate
    assert told["drift"]["replaced"] == ["p_like"]
    assert "Recalibrated on 30,000 rows: p_like (median " in done.err
    before = model.evaluate(tmp_path / "t.parquet").requests.exact_auc_sum
    assert f"As fitted, AUC-sum within requests is {before:.4f}." in done.err


def test_evaluate_and_explain_tell_which_auc_is_optimised(run, world_folder, tmp_path):
    table, model = world_folder / "test.parquet", tmp_path / "model"
    train, schema = world_folder / "train.parquet", world_folder / "schema.toml"
    done = run(
        *("fit", "--train", train, "--schema", schema, "--set", "optimise=requests", "-o", model)
    )
    assert done.code == 0, done
    done = run("evaluate", model, table, "--json", "-")
    told = json.loads(done.out)
    assert told["optimises"] == "requests"
    assert told["requests"]["ci"][0] < told["requests"]["auc_sum"] < told["requests"]["ci"][1]
    assert told["requests"]["regret"] > 0
    assert told["regret"] > 0
    assert "Within requests: ceiling" in done.err
    assert "the fit is for AUC within requests" in " ".join(done.err.split())
    done = run("explain", model, "--data", table, "--row", 5, "--json", "-")
    told, text = json.loads(done.out), " ".join(done.err.split())
    assert told["optimises"] == "requests"
    plain = run("explain", model).out
    assert "Fitted for AUC within requests." in " ".join(plain.split())
    assert "w κ p, as fitted for requests" in text
    assert sum(told["row"]["adds"].values()) == pytest.approx(told["row"]["fused"])


def test_a_fit_without_requests_is_refused_in_one_sentence(run, world_folder, tmp_path):
    columns = ("--scores", "p_buy,p_like", "--labels", "buy,like", "--context", "age")
    done = run(
        *("fit", "--train", world_folder / "train.parquet", *columns),
        *("--set", "optimise=requests", "-o", tmp_path / "model"),
    )
    assert done.code == 2
    assert "needs a request column" in done.err
    assert not (tmp_path / "model").exists()
