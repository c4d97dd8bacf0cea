import json

import polars as pl
import pytest

import harmonrank as hr
from harmonrank.data.worlds import world
from harmonrank.evaluation.simulation import as_frame, world_schema


@pytest.fixture
def model(world_folder, tmp_path):
    schema = hr.Schema.read(world_folder / "schema.toml")
    hr.ClosedForm().fit(world_folder / "train.parquet", schema).save(tmp_path / "m")
    return tmp_path / "m"


def test_json_holds_the_numbers_of_the_python_call(run, model, world_folder):
    done = run("evaluate", model, world_folder / "test.parquet", "--json", "-")
    quality = hr.load(model).evaluate(world_folder / "test.parquet")
    as_is = {"shifts": [], "adapted": [], "auc_sum_as_is": quality.auc_sum.estimate}
    expected = {"method": "closed-form", **quality.to_dict(), **as_is}
    assert json.loads(done.out) == expected
    assert f"{quality.auc_sum.estimate:.4f}" in done.err


def test_the_table_fits_a_terminal_and_names_every_objective(run, model, world_folder):
    lines = run("evaluate", model, world_folder / "test.parquet").out.splitlines()
    assert len(lines) == 1 + 5 + 1 + 2
    assert max(map(len, lines)) <= 80
    assert lines[0].startswith("objective     AUC    95 % interval  in request  positives  weight")
    assert lines[5].startswith("long_view ")
    assert "regret" in lines[-1]


def test_weights_may_be_changed(run, model, world_folder):
    done = run(
        "evaluate", model, world_folder / "test.parquet", "--weights", "buy=3", "--json", "-"
    )
    numbers = json.loads(done.out)
    assert numbers["weights"]["buy"] == 3
    auc = numbers["auc"]
    assert numbers["auc_sum"] == pytest.approx(sum(auc.values()) + 2 * auc["buy"])


def test_a_table_that_changes_half_way_is_measured_as_it_is_scored(run, tmp_path):
    old = world("conflict")
    new = old.with_upstream(("like",), a=1.6, b=-1.0)
    halves = [
        as_frame(old, old.sample(270_000, seed=2)),
        as_frame(new, new.sample(280_000, seed=3)),
    ]
    pl.concat(halves).write_parquet(tmp_path / "t.parquet")
    model = hr.HarmonRank().fit(as_frame(old, old.sample(30_000, seed=1)), world_schema(old))
    model.save(tmp_path / "m")
    done = run("evaluate", tmp_path / "m", tmp_path / "t.parquet", "--json", "-")
    found = json.loads(done.out)
    assert found["auc_sum"] == model.evaluate(tmp_path / "t.parquet").auc_sum.estimate
    assert found["adapted"] == ["p_like"]
    assert "from row 262,144 on" in done.err
    assert found["auc_sum_as_is"] < found["auc_sum"]
