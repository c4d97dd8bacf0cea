import json

import numpy as np
import polars as pl
import pytest

from harmonrank import Schema, world
from harmonrank.data import read_log
from harmonrank.support import OutputError, UsageError
from harmonrank.worlds import simulate, world_schema


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_the_folder_holds_three_tables_their_schema_and_the_ceiling(world_folder):
    assert names(world_folder) == [
        "ceiling.json",
        "schema.toml",
        "test.parquet",
        "train.parquet",
        "valid.parquet",
    ]
    rows = [
        pl.read_parquet(world_folder / f"{n}.parquet").height for n in ("train", "valid", "test")
    ]
    assert rows == [8000, 4000, 4000]
    assert Schema.read(world_folder / "schema.toml") == world_schema(world("elive"))


def test_training_rows_do_not_tell_the_truth(world_folder):
    schema = Schema.read(world_folder / "schema.toml")
    assert not set(schema.truth.values()) & set(
        pl.read_parquet_schema(world_folder / "train.parquet")
    )
    assert read_log(world_folder / "train.parquet", schema).truth is None
    assert read_log(world_folder / "test.parquet", schema).truth is not None


def test_no_request_is_in_two_tables_that_a_learner_and_a_judge_see(world_folder):
    train, test = (
        set(pl.read_parquet(world_folder / f"{n}.parquet")["request_id"]) for n in ("train", "test")
    )
    assert not train & test


def test_the_same_seed_writes_the_same_bytes_and_another_seed_others(tmp_path):
    for name, seed in (("a", 5), ("b", 5), ("c", 6)):
        simulate(world("qkvideo"), 100, tmp_path / name, seed=seed)
    read = [(tmp_path / name / "train.parquet").read_bytes() for name in "abc"]
    assert read[0] == read[1] != read[2]


def test_the_summary_is_what_the_file_says(tmp_path):
    summary = simulate(world("conflict"), 2000, tmp_path / "w")
    assert summary == json.loads((tmp_path / "w" / "ceiling.json").read_text())
    assert summary["ceiling"] == pytest.approx(sum(summary["ceiling_auc"].values()))
    assert set(summary["prevalence"]) == set(world("conflict").objectives)


def test_the_fewest_rows_work_and_fewer_are_refused(tmp_path):
    assert np.isfinite(simulate(world("elive"), 4, tmp_path / "w")["ceiling"])
    with pytest.raises(UsageError, match="`rows` must be at least 4. Got 3"):
        simulate(world("elive"), 3, tmp_path / "v")
    assert names(tmp_path) == ["w"]


def test_only_a_simulated_folder_is_overwritten(tmp_path):
    simulate(world("elive"), 10, tmp_path / "w")
    with pytest.raises(OutputError, match="exists already"):
        simulate(world("elive"), 10, tmp_path / "w")
    simulate(world("elive"), 20, tmp_path / "w", overwrite=True)
    assert pl.read_parquet(tmp_path / "w" / "train.parquet").height == 20
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes").touch()
    with pytest.raises(OutputError, match="without schema.toml, so it is not overwritten"):
        simulate(world("elive"), 10, tmp_path / "mine", overwrite=True)


def test_what_fails_leaves_nothing_behind(tmp_path):
    def stop(name, _):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        simulate(world("elive"), 10, tmp_path / "w", on_table=stop)
    assert names(tmp_path) == []
