import dataclasses
import io
import json
import shutil

import numpy as np
import polars as pl
import pytest
from safetensors.numpy import load_file, save_file

from harmonrank.data import Schema
from harmonrank.metrics import auc
from harmonrank.support import EpochEnded, ModelFileError, Resumed, UsageError
from harmonrank_lab.events import MemberStarted
from harmonrank_lab.upstream import (
    PredictorConfig,
    fit_predictor,
    load_predictor,
    score_log,
    score_rows,
)
from harmonrank_lab.upstream.network import NETWORKS
from harmonrank_lab.upstream.scoring import score_frame

QUICK = PredictorConfig(
    epochs=3, batch_rows=512, expert_width=16, tower_width=8, embedding=4, pool_rows=3000, refits=2
)
NO_FINALS = dataclasses.replace(QUICK, refits=0)


@pytest.fixture(scope="module")
def fitted(log, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "m"
    return fit_predictor(log, path, QUICK, folds=3, seed=1), path


@pytest.fixture(scope="module")
def model(fitted):
    return fitted[1]


@pytest.fixture(scope="module")
def without_finals(log, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "m"
    fit_predictor(log, path, dataclasses.replace(NO_FINALS, epochs=2), folds=2, seed=1)
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
    config = dataclasses.replace(NO_FINALS, network=name)
    predictor = fit_predictor(log, tmp_path / "m", config, folds=0)
    assert clicks(log, "test", predictor) > 0.62


def test_a_saved_predictor_scores_the_same(log, fitted):
    predictor, path = fitted
    frame, saved = next(log.batches("test")), load_predictor(path)
    np.testing.assert_array_equal(score_frame(predictor, frame), score_frame(saved, frame))


@pytest.mark.parametrize("finals", [True, False])
def test_new_rows_are_scored_by_the_mean_of_the_finals_or_of_all_there_are(
    log, model, without_finals, finals
):
    predictor = load_predictor(model if finals else without_finals)
    frame = pl.concat(log.batches("test"))
    rows = predictor.encoder.rows(frame)
    members = predictor.finals if finals else predictor.members
    assert list(members) == (["final-0", "final-1"] if finals else ["full", "fold-0", "fold-1"])
    each = [member.score(rows).astype(np.float64) for member in members.values()]
    mean = np.mean([np.log(p / (1 - p)) for p in each], axis=0)
    scores = score_frame(predictor, frame)
    for m in range(scores.shape[1]):
        order = np.argsort(mean[:, m], kind="stable")
        assert (np.diff(scores[order, m]) >= -1e-6).all()
    mean_of_one = np.mean([auc(p[:, 0], rows.labels[:, 0]) for p in each])
    assert auc(scores[:, 0], rows.labels[:, 0]) > mean_of_one


def test_finals_learn_from_both_parts_for_as_many_epochs_as_validation_chose(log, model):
    predictor = load_predictor(model)
    rows = predictor.encoder.rows(pl.concat(log.batches("valid")))
    # They have seen these labels, so they know them better than whoever has not.
    seen, unseen = predictor.score(rows), predictor.score_valid(rows)
    assert auc(seen[:, 0], rows.labels[:, 0]) > auc(unseen[:, 0], rows.labels[:, 0]) + 0.01
    best = sorted(member.facts.best_epoch + 1 for member in predictor.validated.values())
    for final in predictor.finals.values():
        assert final.facts.epochs == final.facts.best_epoch + 1 == best[2]
        assert final.facts.valid_auc == final.facts.calibration == ()
    first, second = (final.network.embedding.table for final in predictor.finals.values())
    assert (first != second).any()


def test_finals_score_no_training_and_no_validation_row_of_their_own_log(log, model, tmp_path):
    predictor = load_predictor(model)
    score_log(predictor, log, tmp_path / "as-it-is")
    for final in predictor.finals.values():
        for weight in final.network.parameters():
            weight.data.mul_(-1)
    score_log(predictor, log, tmp_path / "poisoned")

    def same(part):
        first, second = (tmp_path / name / f"{part}.parquet" for name in ("as-it-is", "poisoned"))
        return pl.read_parquet(first).equals(pl.read_parquet(second))

    assert [same(part) for part in ("train", "valid", "test")] == [True, True, False]


def test_another_logs_rows_are_new_whatever_part_they_are_of(log, model, tmp_path):
    predictor = dataclasses.replace(load_predictor(model), log="of another log")
    score_log(predictor, log, tmp_path / "scored")
    for part in ("train", "valid"):
        expected = score_frame(predictor, pl.concat(log.batches(part)))[:, 0]
        scored = pl.read_parquet(tmp_path / "scored" / f"{part}.parquet")
        np.testing.assert_allclose(scored["p_is_click"].to_numpy(), expected, rtol=1e-4)


def change(folder, name, edit):
    """Change a file of a saved predictor and make all checksums right again."""
    from harmonrank.support.storage import sha256

    path = folder / name
    if path.suffix == ".json":
        document = json.loads(path.read_text())
        edit(document)
        path.write_text(json.dumps(document))
    else:
        arrays = load_file(path)
        edit(arrays)
        save_file(arrays, path)
        facts = path.with_suffix(".json")
        if facts.is_file():
            change(folder, facts.name, lambda parts: parts.update(sha256=sha256(path)))
    names = json.loads((folder / "checksums.json").read_text())
    (folder / "checksums.json").write_text(json.dumps({n: sha256(folder / n) for n in names}))


@pytest.mark.parametrize(
    ("name", "edit", "reason"),
    [
        ("predictor.json", lambda d: d.update(format=2), "reads format 4, so fit it again"),
        ("predictor.json", lambda d: d["predictor"].update(members=["../x"]), "`members` must be"),
        ("predictor.json", lambda d: d["predictor"]["config"].update(refits=-1), "int >= 0"),
        (
            "predictor.json",
            lambda d: d["predictor"]["folds"].update(count=1),
            "expected int >= 2",
        ),
        (
            "encoder.safetensors",
            lambda a: a["encoder/user_side/codes"].fill(10**9),
            "not rows of the embed",
        ),
        (
            "encoder.safetensors",
            lambda a: a["encoder/user_side/codes"].fill(-1),
            r"must lie in \[0",
        ),
        (
            "encoder.safetensors",
            lambda a: a["encoder/user_side/index/known"].fill(3),
            "known' must rise",
        ),
        (
            "encoder.safetensors",
            lambda a: a.update({"encoder/user_side/codes": a["encoder/user_side/codes"][:-1]}),
            "not rows of the embedding",
        ),
        (
            "encoder.safetensors",
            lambda a: a.update({"encoder/counts/train": a["encoder/counts/train"][:5]}),
            "the counts must have|must be float32 of shape",
        ),
        (
            "full.safetensors",
            lambda a: a.update({"embedding.table": a["embedding.table"][:5]}),
            "'embedding.table' must be float32 of shape",
        ),
        ("full.json", lambda d: d["calibrator"].update(maps=[]), "the calibrator must have"),
        ("full.json", lambda d: d["facts"].update(epochs="x"), "expected int, got str at facts.ep"),
    ],
)
def test_a_predictor_with_right_checksums_and_wrong_content_is_refused(
    model, tmp_path, name, edit, reason
):
    copy = shutil.copytree(model, tmp_path / "copy")
    change(copy, name, edit)
    with pytest.raises(ModelFileError, match=reason):
        load_predictor(copy)


def test_fewer_than_no_refits_are_refused():
    with pytest.raises(UsageError, match="'refits' of predict must be .* from 0 to 500. Got -1"):
        PredictorConfig(refits=-1)


def test_no_file_measures_time(model):
    for file in model.glob("*.json"):
        assert "second" not in file.read_text().replace("checkpoint_seconds", "")


def test_a_damaged_predictor_is_refused(model, tmp_path):
    copy = shutil.copytree(model, tmp_path / "copy")
    weights = copy / "fold-1.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\x01")
    with pytest.raises(ModelFileError, match="does not match its checksum"):
        load_predictor(copy)
    with pytest.raises(ModelFileError, match="is not a saved predictor"):
        load_predictor(tmp_path)


@pytest.mark.parametrize("member", ["fold-0", "final-1"])
def test_an_interrupted_fit_goes_on_to_the_same_weights(log, model, tmp_path, member):
    class StopError(Exception):
        pass

    running = []

    def stop(event):
        if isinstance(event, MemberStarted):
            running.append(event.name)
        if isinstance(event, EpochEnded) and running[-1] == member:
            raise StopError

    path = tmp_path / "m"
    with pytest.raises(StopError):
        fit_predictor(log, path, QUICK, folds=3, seed=1, on_event=stop)
    assert not path.exists()
    events = []
    fit_predictor(log, path, QUICK, folds=3, seed=1, on_event=events.append)
    assert [e.name for e in events if isinstance(e, MemberStarted) and e.kept] == running[:-1]
    assert sum(isinstance(event, Resumed) for event in events) == 1
    for name in ("full", "fold-0", "fold-1", "fold-2", "final-0", "final-1"):
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
    quick = dataclasses.replace(NO_FINALS, epochs=1)
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


def test_facts_are_plain_json_and_their_table_fits_a_terminal(model):
    from rich.console import Console

    from harmonrank_lab.pipeline.report import predictor_facts, predictor_table

    facts = predictor_facts(load_predictor(model))
    assert json.loads(json.dumps(facts))["folds"] == 3
    assert facts["refits"] == 2
    assert facts["valid"]["is_click"]["auc"] > 0.6
    console = Console(width=80, file=io.StringIO(), record=True)
    console.print(predictor_table(facts))
    lines = console.export_text().splitlines()
    assert len(lines) == 3 + len(facts["valid"])
    text = " ".join(" ".join(lines).split())
    assert "New rows are scored by 2 networks that also learned from these validation rows" in text
