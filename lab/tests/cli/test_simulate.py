import json

import polars as pl


def test_json_holds_the_ceiling_that_is_printed(run, tmp_path):
    done = run("simulate", "qkvideo", "--rows", 1000, "-o", tmp_path / "w", "--json", "-")
    numbers = json.loads(done.out)
    assert numbers["world"] == "qkvideo"
    assert numbers["redraw"] is None
    assert f"Best possible AUC-sum on the test rows: {numbers['ceiling']:.4f}." in done.err
    assert "Wrote 1,000 training, 500 validation and 500 test rows" in done.err


def test_objectives_may_be_chosen(run, tmp_path):
    done = run(
        *("simulate", "elive", "--rows", 100, "--objectives", "buy, like", "-o", tmp_path / "w"),
    )
    assert done.code == 0, done
    columns = pl.read_parquet(tmp_path / "w" / "test.parquet").columns
    assert columns[-6:] == ["p_buy", "buy", "true_buy", "p_like", "like", "true_like"]


def test_seed_redraw_and_drift_each_give_another_log(run, tmp_path):
    options = {
        "plain": (),
        "same": (),
        "seed": ("--seed", 1),
        "redraw": ("--redraw", 1),
        "drift": ("--drift", 2),
    }
    for name, option in options.items():
        done = run("simulate", "conflict", "--rows", 200, "-o", tmp_path / name, "-q", *option)
        assert done.code == 0, done
    read = {name: (tmp_path / name / "train.parquet").read_bytes() for name in options}
    assert read["plain"] == read["same"]
    assert len(set(read.values())) == 4
