"""`--position` and `--position-bias`: what fit, evaluate and compare say about places."""

import json

import polars as pl
import pytest

from harmonrank.worlds import world
from harmonrank_lab.worlds import simulate


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("position") / "log"
    simulate(world("qkvideo"), 12_000, made, position_bias=1.0)
    return made


def fit(run, folder, *more):
    options = ("--train", folder / "train.parquet", "-o", folder / "model", "--overwrite")
    return run("fit", *options, "--method", "closed-form", *more)


def test_a_simulated_log_has_places_and_says_how_often_they_are_looked_at(run, tmp_path):
    folder = tmp_path / "log"
    options = ("--rows", "4000", "--position-bias", "1", "-o", folder)
    done = run("simulate", "qkvideo", *options, "--json", "-")
    assert done.code == 0, done
    summary = json.loads(done.out)
    assert summary["examination"]["1"] == 1
    assert summary["examination"]["3"] == 0.5
    assert 'position = "position"' in (folder / "schema.toml").read_text()
    table = pl.read_parquet(folder / "train.parquet")
    rates = table.group_by("position").agg(pl.col("click").mean()).sort("position")["click"]
    assert rates[0] > 2 * rates[9]


def test_fit_evaluate_and_compare_show_the_correction(run, folder):
    schema = ("--schema", folder / "schema.toml")
    done = fit(run, folder, *schema, "--json", folder / "fit.json")
    assert done.code == 0, done
    assert "Corrected for position: place 1 is looked at with chance" in done.err
    told = json.loads((folder / "fit.json").read_text())["position"]
    assert told["clipped_share"] == 0
    assert told["effective_positives"]["click"] < told["positives"]["click"]
    done = run("explain", folder / "model", "--json", "-")
    assert json.loads(done.out)["examination"] == told["examination"]
    assert "Chance that each place is looked at: 1 " in done.err
    done = run("evaluate", folder / "model", folder / "test.parquet", "--json", "-")
    assert done.code == 0, done
    numbers = json.loads(done.out)["position"]
    assert numbers["examination"] == told["examination"]
    done = run(
        *("compare", "--train", folder / "train.parquet", "--test", folder / "test.parquet"),
        *(*schema, "--methods", "closed-form", "--json", "-", "--baseline", "p_click"),
    )
    assert done.code == 0, done
    assert json.loads(done.out)["position"] == numbers
    assert "Test rows. Corrected for position" in done.err


def test_a_position_is_named_by_an_option_too(run, folder):
    names = ("--scores", "p_click", "--labels", "click", "--request", "request_id")
    done = fit(run, folder, *names, "--position", "position")
    assert done.code == 0, done
    assert "Effective positives: click" in done.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--position", "place"), "has no column 'place'"),
        (("--position", "p_like"), "must be a whole number from 0 up"),
        (("--position", "click"), "cannot be both a label and a position column"),
        (("--position", "p_click"), "cannot be both a position column and a score column"),
    ],
)
def test_a_position_that_is_none_is_one_sentence(run, folder, options, message):
    done = fit(run, folder, "--scores", "p_click", "--labels", "click", *options)
    assert done.code == 2, done
    assert message in done.err
    assert "Traceback" not in done.err
