import json

import polars as pl
import pytest

from logs import small_table

BOTH = "harmonrank-paper,closed-form"


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
    assert [method["name"] for method in numbers["methods"]] == ["closed-form", "harmonrank-paper"]
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


@pytest.mark.parametrize(("methods", "code"), [(BOTH, 0), ("harmonrank-paper", 1)])
def test_a_method_that_fails_does_not_stop_the_others(run, folder, monkeypatch, methods, code):
    def explode(*_):
        raise ZeroDivisionError("oh no")

    monkeypatch.setattr("harmonrank.paper.methods.harmonrank_paper.HarmonRankPaper._fit", explode)
    done = run(*command(folder, "--methods", methods))
    assert done.code == code
    assert "harmonrank-paper: ZeroDivisionError: oh no" in done.out
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


def test_scores_of_another_model_in_the_test_rows_are_noted(run, folder):
    table = small_table(3000, seed=2)
    table.with_columns(pl.col("p_like") ** 3).write_parquet(folder / "test.parquet")
    page = folder / "c.html"
    done = run(*command(folder, "--methods", "closed-form", "--json", "-", "--report", page))
    assert done.code == 0, done
    assert "Note: 'p_like' has moved since the fit (median -" in done.err
    assert "has moved since the fit" in page.read_text(encoding="utf-8")
    assert "'p_buy' has moved" not in done.err
    (like,) = [c for c in json.loads(done.out)["drift"]["columns"] if c["column"] == "p_like"]
    assert like["moved"]
