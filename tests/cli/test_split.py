"""`harmonrank split`, and `compare --split`, on a log in parts."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from logs import SCHEMA_TOML, small_table

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
    done = run("split", "log", "-o", "cut", "--valid-share", "0.1", "--json", "-")
    assert done.code == 0, done
    assert "Columns are as 'schema.toml' says." in done.err
    facts = json.loads(done.out)
    assert facts["rows"] == {"train": 2100, "valid": 300, "test": 600}
    assert facts["requests"] == {"train": 210, "valid": 30, "test": 60}
    tables = [pl.read_parquet(f"cut/{name}.parquet") for name in ("train", "valid", "test")]
    assert pl.concat(tables).equals(parts)
    assert facts["positives"]["test"] == {n: int(tables[2][n].sum()) for n in ("buy", "like")}
    assert json.loads(Path("cut/split.json").read_text()) == facts
    assert Path("cut/schema.toml").read_text().startswith('context = ["hour", "age"]')
    options = ("--methods", "closed-form", "-q", "--json", "-")
    both = run("compare", "--train", "cut/train.parquet", "--test", "cut/test.parquet", *options)
    assert both.code == 0, both


def test_parts_are_printed_with_their_positives(run, parts):
    done = run("split", "log", "-o", "cut", "--by", "request", "--test-share", "0.5")
    assert done.code == 0, done
    assert "part " in done.out
    assert "buy" in done.out
    assert "Split by request: " in done.err
    again = run("split", "log", "-o", "cut", "--by", "request", "--test-share", "0.5")
    assert (again.code, "exists already" in again.err) == (2, True)
    more = ("--by", "request", "--seed", "1", "--overwrite")
    assert run("split", "log", "-o", "cut", *more).code == 0


def test_columns_suffice_without_a_schema(run, parts, tmp_path):
    (tmp_path / "schema.toml").unlink()
    parts.write_csv("log.csv")
    options = ("--time", "at", "--request", "request_id", "--test-from", "2026-11-01 05:00")
    done = run("split", "log.csv", "-o", "cut", *options)
    assert done.code == 0, done
    assert not (tmp_path / "cut" / "schema.toml").exists()
    assert pl.read_parquet("cut/test.parquet")["at"].min() >= 1_793_500_000 + 9200
    done = run("split", "log.csv", "-o", "other", "--time", "at")
    assert "There is no request column, so rows of one request may be on both sides." in done.err
    assert run("split", "log.csv", "-o", "none").code == 2
    assert not (tmp_path / "none").exists()


def test_a_comparison_cuts_its_table_as_split_does(run, parts):
    assert run("split", "log", "-o", "cut", "-q").code == 0
    options = ("--methods", "closed-form,logistic", "--baseline", "prod", "-q", "--json", "-")
    tables = ("--train", "cut/train.parquet", "--test", "cut/test.parquet")
    two, one = run("compare", *tables, *options), run("compare", "log", "--split", "time", *options)
    assert (two.code, one.code) == (0, 0), one
    found = [json.loads(done.out) for done in (two, one)]
    for board in found:
        for method in board["methods"]:
            method.pop("fit_seconds")
    assert found[0]["methods"] == found[1]["methods"]
    assert found[1]["rows"] == {"train": 2400, "test": 600}
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
