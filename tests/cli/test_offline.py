"""`harmonrank offline`: what a model would earn, from a log with places."""

import json

import polars as pl
import pytest

from harmonrank.worlds import world
from harmonrank_lab.worlds import simulate


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    folder = tmp_path_factory.mktemp("offline") / "log"
    simulate(world("qkvideo"), 12_000, folder, position_bias=1.0)
    return folder


@pytest.fixture
def model(run, log, tmp_path):
    options = ("--schema", log / "schema.toml", "--method", "closed-form", "-o", tmp_path / "model")
    assert run("fit", "--train", log / "train.parquet", *options).code == 0
    return tmp_path / "model"


def test_lifts_over_a_formula_a_model_and_the_order_that_was_shown(run, log, model, tmp_path):
    told = {}
    for name, against in (("formula", "p_click * 2"), ("model", model), ("shown", None)):
        options = () if against is None else ("--against", against)
        file = tmp_path / f"{name}.json"
        done = run(
            *("offline", model, log / "test.parquet", "-k", "5", "--json", file),
            *("--value", "click=1,like=5", *options),
        )
        assert done.code == 0, done
        assert "doubly robust" in done.out
        told[name] = json.loads(file.read_text())
    names = ["click", "like", "follow", "share", "long_view", "value"]
    assert [one["name"] for one in told["formula"]["objectives"]] == names
    assert told["formula"]["support"] == 1
    # The model is ranked by these values, its former self by weights.
    assert told["model"]["against"] == "closed-form"
    assert told["model"]["objectives"][-1]["robust_lift"] > 0
    assert told["shown"]["against"] == "the order in which rows were shown"
    # The log was ranked by the first score, so the formula is what was shown.
    one, other = (told[name]["objectives"][0]["current"] for name in ("formula", "shown"))
    assert one == pytest.approx(other)
    low, high = told["formula"]["objectives"][0]["robust_ci"]
    assert low < told["formula"]["objectives"][0]["robust"] < high


def test_random_order_is_told_by_a_column(run, log, model, tmp_path):
    table = pl.read_parquet(log / "test.parquet").with_columns(random=pl.col("request_id") % 2)
    table.write_parquet(tmp_path / "half.parquet")
    done = run("offline", model, tmp_path / "half.parquet", "--randomised", "random", "--json", "-")
    assert done.code == 0, done
    numbers = json.loads(done.out)
    assert numbers["randomised"]
    assert numbers["against"] is None
    assert numbers["objectives"][0]["robust_lift"] is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--against", "nothing"), "has no column 'nothing'"),
        (("--randomised", "click"), "must be the same in all rows of a request"),
        (("--randomised", "p_click"), "must be 0 or 1"),
        (("--position", "p_like"), "cannot be both a position column and a score column"),
        (("-k", "0"), "0 is not in the range"),
        (("--value", "click=1", "--weights", "click=1"), "either"),
    ],
)
def test_what_cannot_be_estimated_is_one_sentence(run, log, model, options, message):
    done = run("offline", model, log / "test.parquet", *options)
    assert done.code == 2, done
    assert message in done.err
    assert "Traceback" not in done.err


def test_a_model_without_places_needs_their_column(run, log, tmp_path):
    options = ("--scores", "p_click", "--labels", "click", "--request", "request_id")
    where = ("--method", "closed-form", "-o", tmp_path / "model")
    assert run("fit", "--train", log / "train.parquet", *options, *where).code == 0
    done = run("offline", tmp_path / "model", log / "test.parquet")
    assert done.code == 2
    assert "needs a position column, and the model's schema names none" in done.err
    done = run("offline", tmp_path / "model", log / "test.parquet", "--position", "position")
    assert done.code == 0, done
