import json

import numpy as np
import polars as pl
import pytest

from harmonrank.data import Schema
from harmonrank.errors import ModelFileError, UsageError
from harmonrank.metrics import auc
from harmonrank.prediction import (
    NETWORKS,
    PredictorConfig,
    fit_predictor,
    load_predictor,
    score_log,
    score_rows,
)
from harmonrank.prediction.scoring import score_frame

QUICK = PredictorConfig(
    epochs=3, batch_rows=512, expert_width=16, tower_width=8, embedding=4, pool_rows=3000
)


@pytest.fixture(scope="module")
def model(log, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "m"
    fit_predictor(log, path, QUICK, folds=3, seed=1)
    return path


def clicks(log, part, predictor, **options):
    frame = pl.concat(log.batches(part))
    return float(auc(score_frame(predictor, frame, **options)[:, 0], frame["is_click"].to_numpy()))


def test_short_logs_get_shorter_steps_unless_told_otherwise():
    assert PredictorConfig().step_rows(10_000_000) == 8192
    assert PredictorConfig().step_rows(32_000) == 500
    assert PredictorConfig().step_rows(100) == 256
    assert PredictorConfig(batch_rows=8192).step_rows(100) == 8192


@pytest.mark.parametrize("name", NETWORKS)
def test_every_network_finds_what_makes_a_click(log, tmp_path, name):
    import dataclasses

    predictor = fit_predictor(
        log, tmp_path / "m", dataclasses.replace(QUICK, network=name), folds=0
    )
    assert clicks(log, "test", predictor) > 0.62


def test_a_saved_predictor_scores_the_same(log, model):
    frame = next(log.batches("test"))
    first, second = load_predictor(model), load_predictor(model)
    np.testing.assert_array_equal(score_frame(first, frame), score_frame(second, frame))
    again = fit_predictor(log, model.parent / "again", QUICK, folds=3, seed=1)
    np.testing.assert_array_equal(score_frame(first, frame), score_frame(again, frame))


def test_new_rows_are_scored_by_the_mean_of_all_networks(log, model):
    predictor = load_predictor(model)
    frame = pl.concat(log.batches("test"))
    rows = predictor.encoder.rows(frame)
    each = [member.score(rows).astype(np.float64) for member in predictor.members.values()]
    assert len(each) == 4
    mean = np.mean([np.log(p / (1 - p)) for p in each], axis=0)
    found = score_frame(predictor, frame)
    for m in range(found.shape[1]):
        order = np.argsort(mean[:, m], kind="stable")
        assert (np.diff(found[order, m]) >= -1e-6).all()
    mean_of_one = np.mean([auc(p[:, 0], rows.labels[:, 0]) for p in each])
    assert auc(found[:, 0], rows.labels[:, 0]) > mean_of_one


def test_a_damaged_predictor_is_refused(model, tmp_path):
    import shutil

    copy = shutil.copytree(model, tmp_path / "copy")
    weights = copy / "fold-1.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\x01")
    with pytest.raises(ModelFileError, match="does not match its checksum"):
        load_predictor(copy)
    with pytest.raises(ModelFileError, match="is not a saved predictor"):
        load_predictor(tmp_path)


def test_an_interrupted_fit_goes_on_to_the_same_weights(log, model, tmp_path):
    class StopError(Exception):
        pass

    seen = []

    def stop(event):
        seen.append(type(event).__name__)
        if seen.count("EpochEnded") == 5:
            raise StopError

    path = tmp_path / "m"
    with pytest.raises(StopError):
        fit_predictor(log, path, QUICK, folds=3, seed=1, on_event=stop)
    assert not path.exists()
    events = []
    fit_predictor(log, path, QUICK, folds=3, seed=1, on_event=events.append)
    kinds = [type(event).__name__ for event in events]
    assert events[0].kept
    assert kinds.count("Resumed") == 1
    for name in ("full", "fold-0", "fold-1", "fold-2"):
        first, second = (load_predictor(p).members[name].network for p in (model, path))
        for key, value in first.state_dict().items():
            if key != "embedding.squares":
                assert (value == second.state_dict()[key]).all(), (name, key)


def test_training_rows_are_scored_by_the_network_that_never_saw_them(log, model, tmp_path):
    predictor = load_predictor(model)
    score_log(predictor, log, tmp_path / "scored")
    scored = pl.read_parquet(tmp_path / "scored" / "train.parquet")
    frame = pl.concat(log.batches("train"))
    rows, fold = predictor.encoder.rows(frame), predictor.folds.of(frame)
    for k in range(3):
        mine = np.flatnonzero(fold == k)
        expected = predictor.of_fold(k).score(rows.take(mine))
        np.testing.assert_allclose(scored["p_is_click"].to_numpy()[mine], expected[:, 0], rtol=1e-4)
    assert scored["row"].to_list() == frame["row"].to_list()
    assert not [name for name in scored.columns if name.startswith("true_")]


def test_scored_tables_are_ready_for_a_fusion(log, model, tmp_path):
    from harmonrank.data import read_log

    score_log(load_predictor(model), log, tmp_path / "scored")
    schema = Schema.read(tmp_path / "scored" / "schema.toml")
    assert schema.names == log.columns.objectives
    for part, rows in log.rows.items():
        table = read_log(tmp_path / "scored" / f"{part}.parquet", schema)
        assert table.rows == rows
        assert (table.truth is None) == (part == "train")


def test_without_folds_own_training_rows_are_refused(log, tmp_path):
    import dataclasses

    quick = dataclasses.replace(QUICK, epochs=1)
    predictor = fit_predictor(log, tmp_path / "m", quick, folds=0)
    with pytest.raises(UsageError, match="have seen their labels"):
        score_log(predictor, log, tmp_path / "scored")


def test_a_table_gets_one_more_column_per_objective(log, model, tmp_path):
    source = tmp_path / "rows.parquet"
    frame = next(log.batches("test")).head(50)
    frame.write_parquet(source)
    assert score_rows(load_predictor(model), source, tmp_path / "out.parquet") == 50
    out = pl.read_parquet(tmp_path / "out.parquet")
    assert out.columns == [*frame.columns, *(f"p_{name}" for name in log.columns.objectives)]
    np.testing.assert_array_equal(
        out["p_long_view"].to_numpy(), score_frame(load_predictor(model), frame)[:, 1]
    )


def test_facts_are_plain_json(model):
    from harmonrank.reports.prediction import predictor_facts

    facts = predictor_facts(load_predictor(model))
    assert json.loads(json.dumps(facts))["folds"] == 3
    assert facts["valid"]["is_click"]["auc"] > 0.6
