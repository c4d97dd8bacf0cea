"""--value: what an event is worth, in place of --weights."""

import json

import numpy as np
import polars as pl
import pytest

import harmonrank as hr
from logs import SCHEMA_TOML, small_table


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("value")
    small_table().write_parquet(folder / "log.parquet")
    (folder / "schema.toml").write_text(SCHEMA_TOML, "utf-8")
    (folder / "weighted.toml").write_text(SCHEMA_TOML + "[weights]\nbuy = 2\n", "utf-8")
    return folder


def _fit(run, folder, *options, schema="schema.toml"):
    log, columns = folder / "log.parquet", ["--schema", folder / schema]
    out = ["-o", folder / "m", "--overwrite", "--method", "closed-form"]
    run("fit", "--train", log, *columns, *out, *options)
    return hr.load(folder / "m")


def test_values_are_fitted_scored_and_measured(run, folder):
    model = _fit(run, folder, "--value", "buy=10,like=-1", schema="weighted.toml")
    assert (model.schema.value, model.schema.weights) == ({"buy": 10, "like": -1}, {})
    log, p = folder / "log.parquet", model.probabilities(folder / "log.parquet")
    run("score", folder / "m", log, "-o", folder / "out.parquet", "--value", "like=3")
    fused = pl.read_parquet(folder / "out.parquet")["fused"]
    np.testing.assert_allclose(fused, p @ [10, 3])
    done = run("evaluate", folder / "m", log, "-k", "2", "--json", "-")
    expected = model.evaluate(log, k=2)
    assert json.loads(done.out)["value"] == expected.value.to_dict()
    assert f"Value at 2: {expected.value.mean:.4f} per request" in done.err
    facts = json.loads(run("explain", folder / "m", "--json", "-").out)
    assert facts["value"] == {"buy": 10, "like": -1}
    assert facts["effective_weight"]["like"] == pytest.approx(-1 / 11)


def test_options_win_over_the_file_both_ways(run, folder):
    text = SCHEMA_TOML + "[value]\nbuy = 2\n"
    (folder / "valued.toml").write_text(text, "utf-8")
    assert _fit(run, folder, schema="valued.toml").schema.value == {"buy": 2}
    model = _fit(run, folder, "--weights", "like=3", schema="valued.toml")
    assert (model.schema.value, model.schema.weights) == ({}, {"like": 3})


@pytest.mark.parametrize("verb", ["fit", "score", "evaluate", "explain"])
def test_weights_and_values_together_are_refused(run, folder, verb):
    _fit(run, folder)
    log, both = folder / "log.parquet", ["--weights", "buy=1", "--value", "buy=1"]
    rest = {
        "fit": ["--train", log, "--schema", folder / "schema.toml", "-o", folder / "n"],
        "score": [folder / "m", log, "-o", folder / "n.parquet"],
        "evaluate": [folder / "m", log],
        "explain": [folder / "m"],
    }
    done = run(verb, *rest[verb], *both)
    assert done.code == 2
    assert "not both: weights count AUCs, values count events." in done.err


def test_a_method_without_probabilities_says_so(run, folder):
    log = ["--train", folder / "log.parquet", "--schema", folder / "schema.toml"]
    out = ["-o", folder / "n", "--method", "formula-grid", "--value", "buy=1"]
    done = run("fit", *log, *out)
    assert done.code == 2
    assert "probability of an objective, so it cannot rank by v" in done.err


def test_a_comparison_and_its_page_are_about_value(run, folder):
    small_table(seed=1).write_parquet(folder / "test.parquet")
    tables = ("--train", folder / "log.parquet", "--test", folder / "test.parquet")
    options = ("--schema", folder / "schema.toml", "--value", "buy=10,like=1", "-k", "2")
    methods = ("--methods", "closed-form,prevalence-weights", "--baseline", "p_like")
    page = folder / "page.html"
    done = run("compare", *tables, *options, *methods, "--json", "-", "--report", page)
    assert done.code == 0, done
    numbers = json.loads(done.out)
    assert numbers["criterion"] == "value"
    means = [method["value"]["mean"] for method in numbers["methods"]]
    assert means == sorted(means, reverse=True)
    assert numbers["verdict"]["sentence"].startswith("In value at 2 ")
    text = page.read_text(encoding="utf-8")
    assert "Value at 2" in text
    assert f"{means[0]:.4f}" in text
    assert "Rows are ranked by their expected value" in text
    assert "Value at 2 against today: paired differences" in text
    assert "values: buy 10, like 1" in text
    assert "weights: buy 1, like 1" not in text
