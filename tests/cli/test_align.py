import json

import numpy as np
import polars as pl
import pytest

import harmonrank as hr
from logs import small_table


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


def align(run, place, *more):
    data = place / "recent.parquet"
    return run("align", place / "new", "--data", data, "-o", place / "out", *more)


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
    done = align(run, place, "--like-column", "prod_score", "--overwrite", "--json", "-")
    told = json.loads(done.out)
    assert told["quantiles"]["aligned"]["0.5"] == pytest.approx(
        pl.read_parquet(place / "recent.parquet")["prod_score"].quantile(0.5, "linear"), rel=0.01
    )


def test_a_row_of_an_aligned_model_is_explained(run, place):
    align(run, place, "--like-column", "prod_score")
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
        ((), "Name what runs now: either --like MODEL or --like-column A"),
        (("--like", "R", "--like-column", "x"), "either --like MODEL or --like-column A"),
        (("--like-column", "prod_score", "--like-at", "x"), "--like-at is a point of a model"),
        (("--like-column", "prod"), "prod"),
        (("--like", "R", "--like-at", "x"), "There is no operating point 'x'. There are none."),
        (("--like", "R", "--at", "sale"), "Did you mean 'sales'?"),
        (("--like", "none"), "There is no saved model 'none'"),
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
        *("align", place / "new", "--data", place / "test.parquet", "-o", place / "out"),
        *("--like", place / "running"),
    )
    assert done.code == 2
    assert "Scores are aligned on at least 1,000 rows that count. Got 600" in done.err
