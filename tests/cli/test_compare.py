import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import harmonrank as hr
from logs import SCHEMA_TOML, small_table

BOTH = "logistic,closed-form"


def command(folder, *more):
    tables = [("--" + name, folder / f"{name}.parquet") for name in ("train", "valid", "test")]
    return ("compare", *sum(tables, ()), "--schema", folder / "schema.toml", *more)


def test_a_simulated_world_gives_regrets(run, tmp_path):
    w = tmp_path / "w"
    assert run("simulate", "conflict", "--rows", 4000, "-o", w, "-q").code == 0
    done = run(*command(w, "--methods", BOTH, "--json", "-"))
    assert done.code == 0, done
    numbers = json.loads(done.out)
    assert numbers["objectives"] == ["buy", "comment", "follow", "like", "long_view"]
    assert numbers["rows"] == {"train": 4000, "test": 2000}
    assert numbers["ceiling"] == json.loads((w / "ceiling.json").read_text())["ceiling"]
    assert [method["name"] for method in numbers["methods"]] == ["logistic", "closed-form"]
    for method in numbers["methods"]:
        assert set(method) >= {"name", "auc", "auc_sum", "ci", "regret", "fit_seconds", "error"}
        assert set(method["auc"]) == set(numbers["objectives"])
        assert len(method["ci"]) == 2
        assert method["error"] is None
        assert 0 < method["regret"] < 1
    assert "ceiling" in done.err
    assert "[2/2] closed-form AUC-sum" in done.err


def test_validation_rows_may_be_left_out(run, folder):
    done = run(
        *("compare", "--train", folder / "train.parquet", "--test", folder / "test.parquet"),
        *("--schema", folder / "schema.toml", "--methods", "closed-form"),
    )
    assert done.code == 0, done
    assert "behind" in done.out
    assert "regret" not in done.out


def test_quiet_with_a_json_file_prints_nothing(run, folder):
    done = run(*command(folder, "--methods", "closed-form", "-q", "--json", folder / "c.json"))
    assert (done.code, done.out, done.err) == (0, "", "")
    assert json.loads((folder / "c.json").read_text())["ceiling"] is None


@pytest.mark.parametrize(("methods", "code"), [(BOTH, 0), ("logistic", 1)])
def test_a_method_that_fails_does_not_stop_the_others(run, folder, monkeypatch, methods, code):
    def explode(*_):
        raise ZeroDivisionError("oh no")

    monkeypatch.setattr("harmonrank.fusion.baselines.logistic.LogisticConfig.fit", explode)
    done = run(*command(folder, "--methods", methods))
    assert done.code == code
    assert "logistic: ZeroDivisionError: oh no" in done.out
    assert ("closed-form" in done.out) == (code == 0)


def test_the_verdict_comes_first_and_names_today(run, folder):
    options = ("--methods", "closed-form,logistic", "--baseline", "p_buy * (1 + p_like)")
    done = run(*command(folder, *options, "--json", folder / "c.json"))
    assert done.code == 0, done
    numbers = json.loads((folder / "c.json").read_text())
    said = numbers["verdict"]["sentence"]
    assert " ".join(done.out.split()).startswith(said)
    assert "today's formula" in said
    assert "today" in [method["name"] for method in numbers["methods"]]
    assert max(map(len, done.out.splitlines())) <= 80


@pytest.mark.parametrize("text", ["p_bux", "p_buy +", "exit()"])
def test_a_wrong_baseline_is_one_sentence(run, folder, text):
    done = run(*command(folder, "--methods", "closed-form", "--baseline", text))
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("Error: ")
    assert done.err.count("\n") == 1


def test_scores_that_moved_without_proof_of_another_model_invite_to_nothing(run, folder):
    table = small_table(3000, seed=2)
    table.with_columns(pl.col("p_like") ** 3).write_parquet(folder / "test.parquet")
    page = folder / "c.html"
    done = run(*command(folder, "--methods", "closed-form", "--json", "-", "--report", page))
    assert done.code == 0, done
    assert "Note: Test rows outside the training range: p_like in " in done.err
    assert "outside the training range: p_like in " in page.read_text(encoding="utf-8")
    assert "has moved since the fit" not in done.err
    (like,) = [c for c in json.loads(done.out)["drift"]["columns"] if c["column"] == "p_like"]
    assert like["moved"]


# One log that is cut

TIMED = 'time = "at"\n' + SCHEMA_TOML


@pytest.fixture
def parts(tmp_path, monkeypatch):
    """Go to a folder with a log in three parts, a column of times and a schema."""
    table = small_table(3000).with_columns(
        at=1_793_500_000 + pl.col("request_id") * 60 + pl.int_range(pl.len()) % 10,
        prod=pl.col("p_buy") + pl.col("p_like"),
    )
    (tmp_path / "log").mkdir()
    for part in range(3):
        table[part * 1000 : (part + 1) * 1000].write_parquet(tmp_path / f"log/part-{part}.parquet")
    (tmp_path / "schema.toml").write_text(TIMED, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return table


def test_a_log_is_cut_by_time_into_tables_that_a_comparison_takes(run, parts):
    schema = hr.Schema.read("schema.toml")
    facts = hr.split("log", "cut", schema, hr.Cut("time", valid_share=0.1))
    assert facts["rows"] == {"train": 2100, "valid": 300, "test": 600}
    assert facts["requests"] == {"train": 210, "valid": 30, "test": 60}
    tables = [pl.read_parquet(f"cut/{name}.parquet") for name in ("train", "valid", "test")]
    assert pl.concat(tables).equals(parts)
    assert facts["positives"]["test"] == {n: int(tables[2][n].sum()) for n in ("buy", "like")}
    assert json.loads(Path("cut/split.json").read_text()) == facts
    assert hr.Schema.read("cut/schema.toml") == schema
    options = ("--methods", "closed-form", "-q", "--json", "-")
    both = run("compare", "--train", "cut/train.parquet", "--test", "cut/test.parquet", *options)
    assert both.code == 0, both


def test_a_comparison_cuts_its_table_as_split_does(run, parts):
    hr.split("log", "cut", hr.Schema.read("schema.toml"))
    options = ("--methods", "closed-form,logistic", "--baseline", "prod", "-q", "--json", "-")
    tables = ("--train", "cut/train.parquet", "--test", "cut/test.parquet")
    two, one = run("compare", *tables, *options), run("compare", "log", "--split", "time", *options)
    assert (two.code, one.code) == (0, 0), one
    result = [json.loads(done.out) for done in (two, one)]
    for board in result:
        for method in board["methods"]:
            method.pop("fit_seconds")
    assert result[0]["methods"] == result[1]["methods"]
    assert result[1]["rows"] == {"train": 2400, "test": 600}
    named = run("compare", "--train", "log/*.parquet", "--split", "request", *options)
    assert named.code == 0, named


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("log",), "Give either --test TABLE, or --split time (or request) to cut one table."),
        (("log", "--test", "log", "--split", "time"), "Give either --test TABLE, or --split"),
        (("log", "--test", "log", "--test-share", "0.1"), "tell where --split cuts; add --split"),
        (("log", "--train", "log", "--split", "time"), "Name one table to learn from: LOG, or"),
        (("--split", "time"), "Name one table to learn from: LOG, or --train TABLE."),
        (("log", "--split", "time", "--test-share", "2"), "must lie between 0 and 1"),
        (("log", "--split", "time", "--test-from", "x"), "--test-from must be a date or a time"),
        (("log", "--split", "time", "--time", "no"), "has no column 'no'"),
        (("log", "--split", "time", "--time", "age"), "must hold a time in every row. Got "),
        (("log", "--split", "time", "--scale", "p_buy"), "--scale takes pairs such as p_buy=perc"),
    ],
)
@pytest.mark.usefixtures("parts")
def test_a_comparison_that_cannot_be_cut_is_refused(run, arguments, sentence):
    done = run("compare", *arguments, "--methods", "closed-form", "-q")
    assert (done.code, done.out) == (2, "")
    assert sentence in done.err
    assert len(done.err.splitlines()) == 1


def test_scales_may_be_given_by_an_option(run, parts):
    in_percent = parts.with_columns(pl.col("p_buy") * 100)
    in_percent.write_parquet("percent.parquet")
    options = ("--split", "time", "--methods", "closed-form", "-q", "--json", "-")
    done = run("compare", "percent.parquet", *options)
    assert "p_buy looks like percent: " in done.err
    assert "add scale p_buy=percent." in done.err
    done = run("compare", "percent.parquet", *options, "--scale", "p_buy=percent")
    assert done.code == 0, done
    ours = json.loads(done.out)["methods"][0]["auc_sum"]
    plain = json.loads(run("compare", "log", *options).out)["methods"][0]["auc_sum"]
    np.testing.assert_allclose(ours, plain)
