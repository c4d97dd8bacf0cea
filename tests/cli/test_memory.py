"""Tables that --memory cannot hold are read in blocks, with the numbers of tables that it can."""

import json

import numpy as np
import polars as pl
import pytest

import harmonrank as hr


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr("harmonrank.data.rows.log_blocks.BLOCK_ROWS", 150)
    monkeypatch.setattr("harmonrank.model.fit_rows.BLOCK_ROWS", 150)


@pytest.fixture
def given(folder):
    return ("--train", folder / "train.parquet", "--schema", folder / "schema.toml")


def test_the_default_is_the_same_to_the_last_bit(run, folder, given):
    whole = run("fit", *given, "-o", folder / "a")
    blocks = run("fit", *given, "-o", folder / "b", "--memory", "1KB")
    assert (whole.code, blocks.code) == (0, 0)
    assert "in blocks" not in whole.err
    assert "rows in blocks, of which one at a time is in memory." in blocks.err
    test = folder / "test.parquet"
    a, b = hr.load(folder / "a"), hr.load(folder / "b")
    np.testing.assert_array_equal(a.score(test), b.score(test))
    assert (folder / "a" / "weights.safetensors").read_bytes() == (
        folder / "b" / "weights.safetensors"
    ).read_bytes()


def test_a_folder_of_files_is_the_table(run, folder, given):
    (folder / "parts").mkdir()
    whole = pl.read_parquet(folder / "train.parquet")
    for number, part in enumerate(whole.iter_slices(110)):
        part.write_parquet(folder / "parts" / f"{number:03d}.parquet")
    more = ("--schema", folder / "schema.toml", "--memory", "1KB")
    assert run("fit", *given, "-o", folder / "a", "--memory", "1KB").code == 0
    assert run("fit", "--train", folder / "parts", "-o", folder / "b", *more).code == 0
    pattern = folder / "parts" / "*.parquet"
    assert run("fit", "--train", pattern, "-o", folder / "c", *more).code == 0
    test = folder / "test.parquet"
    expected = hr.load(folder / "a").score(test)
    for name in "bc":
        np.testing.assert_array_equal(hr.load(folder / name).score(test), expected)


@pytest.mark.parametrize("method", ["closed-form", "logistic", "prevalence-weights"])
@pytest.mark.parametrize("table", ["train", "gaps"])
def test_methods_of_sums_are_the_same_to_the_last_bit(run, folder, method, table):
    whole = pl.read_parquet(folder / "train.parquet")
    lost = pl.int_range(pl.len()) % 7 == 0
    gaps = pl.when(lost).then(None).otherwise("p_buy").alias("p_buy")
    whole.with_columns(gaps).write_parquet(folder / "gaps.parquet")
    given = ("--train", folder / f"{table}.parquet", "--schema", folder / "schema.toml")
    given += ("--valid", folder / "valid.parquet", "--method", method)
    for name, memory in (("a", ()), ("b", ("--memory", "1KB"))):
        done = run("fit", *given, "-o", folder / name, *memory)
        assert done.code == 0, done
    assert "rows in blocks, of which one at a time is in memory." in done.err
    one, two = (folder / name / "weights.safetensors" for name in "ab")
    assert one.read_bytes() == two.read_bytes()


@pytest.mark.parametrize("method", ["formula-grid", "formula-cem"])
@pytest.mark.parametrize("search", [100, 10_000])
def test_formulas_are_searched_on_the_rows_of_a_search_in_memory(
    run, folder, given, method, search
):
    given += ("--valid", folder / "valid.parquet", "--method", method, "--set", "trials=20")
    for name, memory in (("a", ()), ("b", ("--memory", "1KB"))):
        done = run("fit", *given, "--set", f"search_rows={search}", "-o", folder / name, *memory)
        assert done.code == 0, done
    one, two = (folder / name / "weights.safetensors" for name in "ab")
    assert one.read_bytes() == two.read_bytes()


def test_formulas_are_told_apart_on_all_validation_rows(run, folder, given, monkeypatch):
    given += ("--valid", folder / "valid.parquet", "--method", "formula-cem")
    given += ("--set", "trials=20", "--memory", "1KB")
    assert run("fit", *given, "-o", folder / "a").code == 0
    monkeypatch.setattr("harmonrank.fusion.baselines.formula._EXACT", 24)
    assert run("fit", *given, "-o", folder / "b").code == 0
    one, two = (folder / name / "weights.safetensors" for name in "ab")
    assert one.read_bytes() == two.read_bytes()


def test_validation_rows_are_set_aside_by_request(run, folder, given):
    out = folder / "m"
    done = run("fit", *given, "-o", out, "--method", "logistic", "--memory", "1KB")
    assert done.code == 0, done
    assert "others, set aside." in done.err
    in_memory = run("fit", *given, "-o", folder / "n", "--method", "logistic")
    assert in_memory.code == 0
    a, b = (hr.load(folder / name).evaluate(folder / "test.parquet") for name in "mn")
    assert a.auc_sum.estimate == pytest.approx(b.auc_sum.estimate, abs=0.1)


def test_isotonic_curves_are_those_of_all_rows(run, folder, given):
    given += ("--method", "closed-form", "--set", "calibration=isotonic")
    for name, memory in (("a", ()), ("b", ("--memory", "1KB"))):
        assert run("fit", *given, "-o", folder / name, *memory).code == 0
    a, b = (hr.load(folder / name).score(folder / "test.parquet") for name in "ab")
    np.testing.assert_allclose(a, b, rtol=1e-12)


def test_other_methods_are_fitted_on_rows_drawn_at_random(run, folder, given, monkeypatch):
    pytest.importorskip("lightgbm")
    monkeypatch.setattr("harmonrank.fusion.fit._FEWEST_ROWS", 400)
    out, more = folder / "m", ("--valid", folder / "valid.parquet", "--memory", "1KB")
    done = run("fit", *given, *more, "-o", out, "--method", "lightgbm", "--set", "trees=5")
    assert done.code == 0, done
    assert "lightgbm was fitted on 400 of 600 rows, drawn at random" in done.err
    model = hr.load(out)
    labels = pl.read_parquet(folder / "train.parquet").select(model.schema.names).to_numpy()
    np.testing.assert_allclose(model.prevalence, labels.mean(axis=0))


def test_evaluate_tells_the_auc_of_all_rows(run, folder, given, monkeypatch):
    monkeypatch.setattr("harmonrank.fusion.quality.block_quality.SAMPLE_ROWS", 200)
    assert run("fit", *given, "-o", folder / "m").code == 0
    parts = []
    for memory in ((), ("--memory", "1KB")):
        out = folder / f"{len(memory)}.json"
        done = run("evaluate", folder / "m", folder / "test.parquet", "--json", out, *memory)
        assert done.code == 0, done
        parts.append(json.loads(out.read_text()))
    whole, blocks = parts
    assert "each AUC of the fused score and its interval are of all rows" in done.err
    assert whole["rows"] == blocks["rows"]
    for name, area in whole["auc"].items():
        assert blocks["auc"][name] == pytest.approx(area, abs=1e-12)
    assert blocks["auc_sum"] == pytest.approx(whole["auc_sum"], abs=1e-12)
    assert blocks["ci"] == pytest.approx(whole["ci"], abs=1e-9)
    for part in ("auc", "ci"):
        assert blocks["requests"][part] == pytest.approx(whole["requests"][part], abs=1e-9)


def test_a_size_is_a_number_with_a_unit(run, folder, given):
    done = run("fit", *given, "-o", folder / "m", "--memory", "much")
    assert done.code == 2
    assert "--memory takes a size such as 3GB or 500MB. Got 'much'." in done.err


def test_an_objective_without_positives_is_refused_in_blocks_too(run, folder):
    table = pl.read_parquet(folder / "train.parquet").with_columns(buy=pl.lit(0))
    table.write_parquet(folder / "none.parquet")
    given = ("--train", folder / "none.parquet", "--schema", folder / "schema.toml")
    done = run("fit", *given, "-o", folder / "m", "--memory", "1KB")
    assert done.code == 2
    assert "Objective 'buy' has no positive label among the" in done.err


def test_compare_tells_the_auc_of_all_rows(run, folder, given):
    parts = []
    names = "harmonrank,prevalence-weights,logistic,closed-form"
    held_out = ("--test", folder / "test.parquet", "--methods", names)
    held_out += ("--valid", folder / "valid.parquet")
    for memory in ((), ("--memory", "1KB")):
        out = folder / f"compare-{len(memory)}.json"
        done = run("compare", *given, *held_out, "--json", out, "--baseline", "p_buy", *memory)
        assert done.code == 0, done
        parts.append(json.loads(out.read_text()))
    whole, blocks = parts
    words = "Training rows. Read 600 rows in blocks: every method is fitted on all of them."
    assert words in " ".join(done.err.split())
    assert whole["rows"] == blocks["rows"]
    names = [method["name"] for method in whole["methods"]]
    assert [method["name"] for method in blocks["methods"]] == names
    for a, b in zip(whole["methods"], blocks["methods"], strict=True):
        assert b["error"] is None
        assert b["auc"] == pytest.approx(a["auc"], abs=1e-12)
        assert b["ahead_of_baseline"] == pytest.approx(a["ahead_of_baseline"], abs=1e-9)


def test_a_table_in_blocks_is_neither_cut_nor_kept(run, folder):
    schema = ("--schema", folder / "schema.toml", "--memory", "1KB")
    train, test = folder / "train.parquet", folder / "test.parquet"
    done = run("compare", train, "--split", "request", *schema)
    assert done.code == 2
    assert "--split needs all rows in memory; write the parts with `harmonrank.split`" in done.err
    done = run("compare", train, "--test", test, "--runs", folder / "runs", *schema)
    assert done.code == 2
    assert "--runs needs all rows in memory; leave it out" in done.err


def test_what_needs_all_rows_is_refused_in_blocks(run, folder, given):
    position = ("--context", "age", "--position", "hour", "--test", folder / "test.parquet")
    done = run("compare", *given, *position, "--memory", "1KB")
    assert done.code == 2
    assert "Positions ('hour') are corrected with all rows in memory where" in done.err


def test_places_are_corrected_in_blocks(run, folder, given):
    given += ("--context", "age", "--position", "hour", "--valid", folder / "valid.parquet")
    parts = []
    for name, memory in (("a", ()), ("b", ("--memory", "1KB"))):
        out = folder / f"{name}.json"
        done = run("fit", *given, "-o", folder / name, "--json", out, *memory)
        assert done.code == 0, done
        assert "Corrected for position: place " in done.err
        parts.append(json.loads(out.read_text())["position"])
    assert parts[1]["examination"] == parts[0]["examination"]
    assert parts[1]["effective_positives"] == pytest.approx(parts[0]["effective_positives"])
    done = run("evaluate", folder / "a", folder / "test.parquet", "--memory", "1KB")
    assert done.code == 2
    assert "where a model is measured; raise --memory" in done.err


@pytest.mark.parametrize("kind", [("--graded", "like"), ("--given", "like=buy")])
def test_objectives_of_other_kinds_are_fitted_in_blocks_and_not_measured(run, folder, given, kind):
    given += ("--valid", folder / "valid.parquet", *kind)
    for name, memory in (("a", ()), ("b", ("--memory", "1KB"))):
        done = run("fit", *given, "-o", folder / name, *memory)
        assert done.code == 0, done
    assert "Read 600 rows in blocks" in done.err
    assert "Not measured on the validation rows: Measuring in blocks" in done.err
    for name in ("model.json", "weights.safetensors"):
        assert (folder / "a" / name).read_bytes() == (folder / "b" / name).read_bytes()
    test = (folder / "test.parquet", "--memory", "1KB")
    for verb in (("evaluate", folder / "a", *test), ("compare", *given, "--test", *test)):
        done = run(*verb)
        assert done.code == 2
        assert "Measuring in blocks" in done.err
        assert "Got 'like', which is g" in done.err


NETWORK = {
    "harmonrank-paper": ("epochs=3", "batch_rows=40", "width=4"),
    "label-aggregation": ("epochs=2", "batch_rows=40", "width=4"),
}


def settings(method):
    return [word for setting in NETWORK[method] for word in ("--set", setting)]


@pytest.mark.parametrize("method", NETWORK)
def test_a_network_from_blocks_is_that_of_memory(run, folder, given, method):
    pytest.importorskip("torch")
    given += ("--valid", folder / "valid.parquet", "--method", method, *settings(method))
    for name, memory in (("a", ()), ("b", ("--memory", "1KB"))):
        done = run("fit", *given, "-o", folder / name, *memory)
        assert done.code == 0, done
    one, two = (folder / name / "weights.safetensors" for name in "ab")
    assert one.read_bytes() == two.read_bytes()
