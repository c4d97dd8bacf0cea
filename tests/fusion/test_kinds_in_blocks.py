"""Graded and conditional objectives are fitted in blocks to the model of memory."""

from functools import reduce
from operator import add

import numpy as np
import polars as pl
import pytest
from safetensors.numpy import load_file

import harmonrank as hr
from check_method import SMALL
from harmonrank.data import read_log
from harmonrank.data.kinds import LabelLevels
from harmonrank.data.rows.log_blocks import FileBlocks
from harmonrank.fusion import method_class
from harmonrank.support import UsageError
from kinds_log import SCHEMA, planted

EXACT = ("harmonrank", "logistic", "closed-form", "prevalence-weights")
FORMULAS = ("formula-grid", "formula-tpe", "formula-cem")
BLOCK = 700


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    for module in ("model.fit_rows", "data.rows.log_blocks"):
        monkeypatch.setattr(f"harmonrank.{module}.BLOCK_ROWS", BLOCK)


def both(method, schema, tmp_path, *, rows=None, **options):
    """Fit in memory and in blocks; return the folders of both models."""
    train, valid = (planted(), planted(2000, seed=1)) if rows is None else rows
    if "order" not in schema.given:
        train, valid = (rows.with_columns(pl.col("order").fill_null(0)) for rows in (train, valid))
    train.write_parquet(tmp_path / "train.parquet")
    paths = []
    for name in ("memory", "blocks"):
        model = method_class(method)(**options)
        if name == "memory":
            model.fit(train, schema, valid=valid)
        else:
            blocks = FileBlocks(tmp_path / "train.parquet", schema)
            assert len(blocks) > 3
            model.fit(blocks, schema, valid=valid)
            weight = train[schema.sample_weight] if schema.sample_weight else np.ones(train.height)
            assert model.training.rows == (weight > 0).sum()
        model.save(tmp_path / name)
        paths.append(tmp_path / name)
    return paths


def schemas():
    events = {"click": "p_click", "order": "p_order", "watch": "p_watch", "report": "p_report"}
    given = {"order": "click"}
    yield (
        "graded",
        hr.Schema(events | {}, context=["age"], graded=["watch"]).subset(
            ["click", "watch", "report"]
        ),
    )
    yield (
        "given",
        hr.Schema(events, context=["age"], given=given).subset(["click", "order", "report"]),
    )
    yield "both", SCHEMA
    yield "chain", hr.Schema(events, context=["age"], graded=["watch"], given={"watch": "click"})


KINDS = dict(schemas())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", EXACT)
def test_the_model_is_that_of_memory_to_the_last_bit(method, kind, tmp_path):
    one, two = both(method, KINDS[kind], tmp_path)
    a, b = (load_file(folder / "weights.safetensors") for folder in (one, two))
    assert a.keys() == b.keys()
    for name, array in a.items():
        np.testing.assert_array_equal(b[name], array, err_msg=name)
    assert (one / "model.json").read_bytes() == (two / "model.json").read_bytes()


@pytest.mark.parametrize("kind", ["graded", "both"])
@pytest.mark.parametrize("method", FORMULAS)
@pytest.mark.parametrize("search_rows", [500, 100_000])
def test_formulas_are_those_of_memory(method, kind, search_rows, tmp_path):
    options = SMALL.get(method, {}) | {"search_rows": search_rows}
    one, two = both(method, KINDS[kind], tmp_path, **options)
    assert (one / "weights.safetensors").read_bytes() == (two / "weights.safetensors").read_bytes()
    assert (one / "model.json").read_bytes() == (two / "model.json").read_bytes()


@pytest.mark.parametrize("least", [0, 1])
@pytest.mark.parametrize("method", EXACT)
def test_weights_and_missing_scores_change_last_digits_at_most(method, least, tmp_path):
    """Rows of weight 0 move where blocks begin, and with it what is drawn for a missing score."""
    rng, rows = np.random.default_rng(5), []
    for table in (planted(), planted(2000, seed=1)):
        lost = pl.Series(rng.random(table.height) < 0.1 * least)
        score = pl.when(lost).then(None).otherwise(pl.col("p_watch"))
        weight = rng.integers(least, 4, table.height) * 0.3
        rows.append(table.with_columns(w=weight, p_watch=score))
    schema = hr.Schema.from_dict(SCHEMA.to_dict() | {"sample_weight": "w"})
    a, b = map(hr.load, both(method, schema, tmp_path, rows=rows))
    np.testing.assert_allclose(b.prevalence, a.prevalence, rtol=1e-12)
    np.testing.assert_allclose(b.fitted.kinds.shown, a.fitted.kinds.shown, rtol=1e-12)
    digits = {"rtol": 1e-5, "atol": 1e-6}
    np.testing.assert_allclose(b.score(rows[0]), a.score(rows[0]), **digits)
    np.testing.assert_allclose(b.probabilities(rows[0]), a.probabilities(rows[0]), **digits)


def test_trees_are_fitted_on_some_rows(tmp_path, monkeypatch):
    pytest.importorskip("lightgbm")
    planted().write_parquet(tmp_path / "train.parquet")
    model = method_class("lightgbm")(**SMALL.get("lightgbm", {}))
    monkeypatch.setattr("harmonrank.fusion.fit._FEWEST_ROWS", 3000)
    model.fit(tmp_path / "train.parquet", SCHEMA, valid=planted(500, seed=1), memory="1KB")
    assert model.training.fitted_rows == 3000
    np.testing.assert_array_equal(model.prevalence, read_log(planted(), SCHEMA).prevalence())
    assert np.isfinite(model.score(planted(500, seed=3))).all()


def test_more_different_labels_than_are_counted_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("harmonrank.fusion.facts.MOST_LEVELS", 100)
    planted().write_parquet(tmp_path / "train.parquet")
    blocks = FileBlocks(tmp_path / "train.parquet", SCHEMA)
    with pytest.raises(UsageError, match="'watch' has more than 100 different labels, .* round"):
        hr.HarmonRank().fit(blocks, SCHEMA)


@pytest.mark.parametrize("weighted", [False, True])
def test_levels_of_parts_are_those_of_all_rows(weighted):
    rng = np.random.default_rng(0)
    labels = np.concatenate([rng.integers(0, 9, 5000) / 2, rng.normal(size=5000)])
    weight = rng.random(10_000) if weighted else None
    parts = [slice(first, first + 70) for first in range(0, 10_000, 70)]
    of_parts = (LabelLevels.of(labels[p], None if weight is None else weight[p]) for p in parts)
    added, known = reduce(add, of_parts), LabelLevels.of(labels, weight)
    np.testing.assert_array_equal(added.values, known.values)
    np.testing.assert_allclose(added.mass, known.mass, rtol=1e-12)
    np.testing.assert_allclose(added.mid_distribution(), known.mid_distribution(), rtol=1e-12)
    assert added.ties() == pytest.approx(known.ties(), rel=1e-12)
