import json

import pytest

import harmonrank as hr


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
