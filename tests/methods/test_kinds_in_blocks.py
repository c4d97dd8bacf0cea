"""Graded and conditional objectives are fitted in blocks to the model of memory."""

import numpy as np
import polars as pl
import pytest
from safetensors.numpy import load_file

import harmonrank as hr
from check_method import SMALL
from harmonrank.data import read_log
from harmonrank.data.label_levels import LabelLevels, LevelSum
from harmonrank.data.log_blocks import LogBlocks
from harmonrank.errors import DataError, UsageError
from harmonrank.methods import installed_methods, method_class
from harmonrank.methods.block_fit import fit_in_blocks
from kinds_log import SCHEMA, planted

EXACT = ("harmonrank", "logistic", "closed-form", "prevalence-weights")
FORMULAS = ("formula-grid", "formula-tpe", "formula-cem")
BLOCK = 700


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    for module in ("model.fit_rows", "data.log_blocks"):
        monkeypatch.setattr(f"harmonrank.{module}.BLOCK_ROWS", BLOCK)


def both(method, schema, tmp_path, **options):
    """Fit in memory and in blocks; return the folders of both models."""
    train, valid = planted(), planted(2000, seed=1)
    if "order" not in schema.given:
        train, valid = (rows.with_columns(pl.col("order").fill_null(0)) for rows in (train, valid))
    train.write_parquet(tmp_path / "train.parquet")
    found = []
    for name in ("memory", "blocks"):
        model = method_class(method)(**options)
        if name == "memory":
            model.fit(train, schema, valid=valid)
        else:
            blocks = LogBlocks(tmp_path / "train.parquet", schema)
            assert len(blocks) > 3
            fitted = fit_in_blocks(model, blocks, most_rows=1, valid=read_log(valid, schema))
            assert fitted.rows == train.height
        model.save(tmp_path / name)
        found.append(tmp_path / name)
    return found


def schemas():
    events = {"click": "p_click", "order": "p_order", "watch": "p_watch", "report": "p_report"}
    given = {"order": "click"}
    yield "graded", hr.Schema(events | {}, context=["age"], graded=["watch"]).subset(
        ["click", "watch", "report"]
    )
    yield "given", hr.Schema(events, context=["age"], given=given).subset(
        ["click", "order", "report"]
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
