"""`--missing`, and what fit, evaluate and compare say about scores that did not arrive."""

import json

import numpy as np
import polars as pl
import pytest

from logs import SCHEMA_TOML, small_table


@pytest.fixture
def folder(tmp_path):
    """Return a folder with tables in which a like score is missing now and then."""
    for seed, name in enumerate(["train", "test"]):
        table = small_table(2000, seed)
        kept = pl.Series(np.arange(2000) % 20 != 0)
        table.with_columns(p_like=pl.when(kept).then("p_like")).write_parquet(
            tmp_path / f"{name}.parquet"
        )
    (tmp_path / "schema.toml").write_text(SCHEMA_TOML)
    return tmp_path


def fit(run, folder, *more):
    options = ("--schema", folder / "schema.toml", "-o", folder / "model", "--overwrite")
    return run("fit", "--train", folder / "train.parquet", *options, *more)


def test_fit_and_evaluate_say_how_many_scores_are_missing_and_what_it_costs(run, folder):
    done = fit(run, folder, "--json", folder / "fit.json")
    assert done.code == 0, done
    assert "Training rows. Missing scores: p_like 100 (5.0%); 100 of 2,000 rows" in done.err
    lost = json.loads((folder / "fit.json").read_text())["missing"]
    assert lost["columns"] == {"p_buy": 0, "p_like": 100}
    done = run("evaluate", folder / "model", folder / "test.parquet", "--json", "-")
    assert done.code == 0, done
    assert "Note: Missing scores: p_like 100 (5.0%)" in done.err
    lost = json.loads(done.out)["missing"]
    assert lost["incomplete"] == 100
    assert lost["cost_ci"][0] < lost["cost"] < lost["cost_ci"][1]
    whole = small_table(2000, 1)
    whole.write_parquet(folder / "whole.parquet")
    done = run("evaluate", folder / "model", folder / "whole.parquet", "--json", "-")
    assert json.loads(done.out)["missing"] is None


def test_compare_counts_missing_scores_of_both_tables(run, folder):
    done = run(
        *("compare", "--train", folder / "train.parquet", "--test", folder / "test.parquet"),
        *("--schema", folder / "schema.toml", "--methods", "harmonrank,closed-form,logistic"),
        *("--json", folder / "c.json", "--report", folder / "c.html"),
    )
    assert done.code == 0, done
    board = json.loads((folder / "c.json").read_text())
    assert [entry["error"] for entry in board["methods"]] == [None] * 3
    assert board["missing"]["train"]["columns"] == {"p_buy": 0, "p_like": 100}
    assert "Training rows. Missing scores:" in done.err
    assert "Test rows. Missing scores:" in done.err


@pytest.mark.parametrize("verb", ["fit", "score", "evaluate", "rank", "compare"])
def test_the_strict_refuse_missing_scores(run, folder, verb):
    assert fit(run, folder, "-q").code == 0
    table, model = folder / "test.parquet", folder / "model"
    columns = ("--schema", folder / "schema.toml")
    words = {
        "fit": ("--train", table, *columns, "-o", folder / "m"),
        "score": (model, table, "-o", folder / "out.parquet"),
        "evaluate": (model, table),
        "rank": (model, table, "-o", folder / "out.parquet"),
        "compare": ("--train", table, "--test", table, *columns),
    }
    strict = ("--missing", "error")
    if verb not in ("fit", "compare"):
        (folder / "s.toml").write_text(f'[{verb}]\nmissing = "error"', encoding="utf-8")
        strict = ("--settings", folder / "s.toml")
    done = run(verb, *words[verb], *strict)
    assert done.code == 2
    assert "Score column 'p_like'" in done.err
    assert "Got null in row 0 (counted from 0), and 100 such rows in all" in done.err


def test_a_model_that_was_fitted_strictly_stays_so_until_it_is_told_otherwise(run, folder):
    small_table(2000).write_parquet(folder / "train.parquet")
    assert fit(run, folder, "-q", "--missing", "error").code == 0
    written = ("-o", folder / "out.parquet", "--overwrite", "-q")
    words = ("score", folder / "model", folder / "test.parquet", *written)
    assert run(*words).code == 2
    (folder / "s.toml").write_text('[score]\nmissing = "allow"', encoding="utf-8")
    done = run(*words, "--settings", folder / "s.toml")
    assert done.code == 0, done
    assert pl.read_parquet(folder / "out.parquet")["fused"].is_finite().all()
