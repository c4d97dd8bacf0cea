import json
import re
from pathlib import Path

import polars as pl
import pytest
from declared_logs import write_shop

import harmonrank as hr
from browser import need_browser

SLICE = Path(__file__).parents[4] / "shared" / "data" / "kuairand27k-slice"
QUICK = [
    *("--epochs", "2", "--folds", "2", "--methods", "closed-form,prevalence-weights"),
    *("--set", "expert_width=8", "--set", "tower_width=4", "--set", "embedding=4"),
    *("--set", "refits=1"),
]


@pytest.fixture(scope="module")
def raw(tmp_path_factory):
    from harmonrank_lab.worlds.raw import KuaiRandWorld
    from harmonrank_lab.worlds.raw_simulation import simulate_log

    path = tmp_path_factory.mktemp("raw") / "kuairand"
    simulate_log(KuaiRandWorld(users=80, items=40), 6000, path, seed=1)
    return path


def test_predict_fits_and_scores_from_the_command_line(run, raw, tmp_path):
    log, model, scored = tmp_path / "log", tmp_path / "model", tmp_path / "scored"
    assert run("lab", "data", "import", "kuairand", raw, "-o", log).code == 0
    options = ["--epochs", 2, "--folds", 2, "--set", "batch_rows=512", "--by", "user"]
    options += ["--set", "refits=1"]
    fitted = run(
        "lab", "predict", "fit", log, *options, "-o", model, "--json", tmp_path / "fit.json"
    )
    assert fitted.code == 0, fitted.err
    assert re.search(r"\[4/4\] final-0 epoch 1: loss \d\.\d{4}$", fitted.err, re.MULTILINE)
    assert "New rows are scored by 1 network that also learned" in fitted.out
    facts = json.loads((tmp_path / "fit.json").read_text())
    assert facts["folds"] == 2
    assert facts["refits"] == 1
    assert facts["by"] == "user"
    assert set(facts["valid"]["is_click"]) >= {"auc", "ece_before", "ece_after"}
    assert run("lab", "predict", "score", model, log, "-o", scored).code == 0
    assert pl.read_parquet(scored / "train.parquet")["p_is_click"].is_between(0, 1).all()
    table = tmp_path / "rows.parquet"
    pl.read_parquet(log / "test" / "*.parquet").write_parquet(table)
    assert run("lab", "predict", "score", model, table, "-o", tmp_path / "out.parquet").code == 0
    assert "p_is_click" in pl.read_parquet_schema(tmp_path / "out.parquet")


def test_predict_says_what_is_wrong(run, raw, tmp_path):
    result = run("lab", "predict", "fit", raw, "-o", tmp_path / "m")
    assert result.code == 2
    assert "is not an imported log" in result.err
    assert run("lab", "predict", "fit", raw, "-o", tmp_path / "m", "--set", "epoch=3").code == 2
    result = run("lab", "predict", "score", tmp_path, raw, "-o", tmp_path / "o.parquet")
    assert result.code == 2
    assert "is not a saved predictor" in result.err


def test_a_pipeline_goes_from_raw_logs_to_a_report_and_keeps_what_it_did(run, raw, tmp_path):
    out, numbers = tmp_path / "out", tmp_path / "numbers.json"
    first = run("lab", "pipeline", raw, "-o", out, *QUICK, "--json", numbers)
    assert first.code == 0, first.err
    board = json.loads(numbers.read_text())
    assert [m["error"] for m in board["methods"]] == [None, None]
    assert board["prediction"]["is_click"]["truth_auc"] > 0.6
    page = (out / "report.html").read_text(encoding="utf-8")
    for caveat in board["caveats"]:
        assert caveat[:20] in first.err
        assert caveat[:20] in page
    second = run(
        "lab", "pipeline", raw, "-o", out, *QUICK, "--format", "md", "--source", "kuairand"
    )
    assert second.code == 0, second.err
    assert second.out.startswith("| objective | positives | share | AUC | AUC of the truth | ECE |")
    assert "| method | AUC-sum | 95 % interval |" in second.out
    assert second.err.count("kept: nothing it depends on has changed") == 5
    changed = [*QUICK[:4], "--methods", "closed-form", *QUICK[6:]]
    fourth = run("lab", "pipeline", raw, "-o", out, *changed)
    assert fourth.err.count("kept: nothing it depends on has changed") == 3


def test_a_pipelines_charts_are_pictures_on_request(run, raw, tmp_path):
    need_browser()
    out, figures = tmp_path / "out", tmp_path / "png"
    done = run("lab", "pipeline", raw, "-o", out, *QUICK, "--figures", figures)
    assert done.code == 0, done.err
    assert (figures / "difference.png").read_bytes().startswith(b"\x89PNG")


def test_a_pipeline_says_which_files_it_looked_for(run, tmp_path):
    (tmp_path / "empty").mkdir()
    result = run("lab", "pipeline", tmp_path / "empty", "-o", tmp_path / "out")
    assert result.code == 2
    assert "log_standard" in result.err
    assert "Tenrec" in result.err
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
@pytest.mark.skipif(not SLICE.is_dir(), reason="the slice is not here")
def test_a_real_slice_runs_with_its_caveats(run, tmp_path):
    result = run("lab", "pipeline", SLICE, "-o", tmp_path / "out", "--epochs", 2, "--folds", 2)
    assert result.code == 0, result.err
    assert "no result on it is a KuaiRand benchmark number" in result.err


def test_a_log_of_ones_own_goes_from_raw_files_to_a_leaderboard(run, tmp_path):
    write_shop(tmp_path / "raw", rows=2000)
    declaration = (tmp_path / "raw" / "declaration.toml").rename(tmp_path / "shop.toml")
    small = ("--folds", "2", "--epochs", "1", "--methods", "closed-form,prevalence-weights")
    small += ("--set", "refits=0", "--set", "embedding=2")
    out = ("-o", tmp_path / "out", "--json", tmp_path / "out.json")
    done = run("lab", "pipeline", tmp_path / "raw", "--declaration", declaration, *out, *small)
    assert done.code == 0, done
    numbers = json.loads((tmp_path / "out.json").read_text())
    assert numbers["objectives"] == ["clicked", "bought", "engaged"]
    assert {m["name"] for m in numbers["methods"]} == {"closed-form", "prevalence-weights"}
    assert all(m["error"] is None and 0 < m["auc_sum"] < 3 for m in numbers["methods"])
    assert "price is 0: null" in " ".join(numbers["caveats"])
    schema = hr.Schema.read(tmp_path / "out" / "scores" / "schema.toml")
    assert schema.context == ("country", "hour", "weekday", "slot", "currency", "plan")
    again = run("lab", "pipeline", tmp_path / "raw", "--declaration", declaration, *out, *small)
    assert again.code == 0, again
    changed = declaration.read_text().replace("at_least = 30", "at_least = 60")
    (tmp_path / "raw" / "declaration.toml").write_text(changed)
    wrong = run(
        "lab",
        "pipeline",
        tmp_path / "raw",
        "--declaration",
        declaration,
        "--source",
        "tenrec",
        *out,
    )
    assert wrong.code == 2
    assert "--declaration stands for --source and --file; leave those out." in wrong.err
    imported = run(
        "lab",
        "data",
        "import",
        tmp_path / "raw" / "declaration.toml",
        tmp_path / "raw",
        "-o",
        tmp_path / "log",
    )
    assert imported.code == 0, imported
    assert "divided by shown_at, by whole seconds" in imported.out
