"""Places and examination curves: what a schema takes, what a table must hold."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from harmonrank.data import Schema, read_log
from harmonrank.data.values import checked_curve
from harmonrank.support import DataError, UsageError

SCHEMA = Schema({"buy": "p_buy"}, position="place", examination={1: 1.0, 3: 0.4})


def table(places):
    rows = len(places)
    return pl.DataFrame(
        {"p_buy": np.linspace(0.1, 0.9, rows), "buy": np.arange(rows) % 2, "place": places}
    )


def test_a_schema_with_a_curve_survives_toml_and_json(tmp_path):
    (tmp_path / "schema.toml").write_text(SCHEMA.to_toml())
    assert Schema.read(tmp_path / "schema.toml") == SCHEMA == Schema.from_dict(SCHEMA.to_dict())
    assert SCHEMA.examination == {1: 1.0, 3: 0.4}


@pytest.mark.parametrize(
    ("curve", "match"),
    [
        ({1: 0.0}, "must be a chance above 0 and up to 1. Got 0.0"),
        ({1: 1.5}, "up to 1. Got 1.5"),
        ({1: float("nan")}, "up to 1. Got nan"),
        ({1: True}, "up to 1. Got True"),
        ({1: "much"}, "up to 1. Got 'much'"),
        ({"first": 1.0}, "must be whole numbers from 0 up. Got 'first'"),
        ({-1: 1.0}, "must be whole numbers from 0 up. Got -1"),
        ({1.5: 1.0}, "must be whole numbers from 0 up. Got 1.5"),
        ({1: 1.0, "01": 0.5}, "lists place 1 twice"),
        ([1.0, 0.5], "must map places to chances"),
    ],
)
def test_a_curve_that_is_none_is_refused(curve, match):
    with pytest.raises(UsageError, match=match):
        checked_curve(curve)


def test_a_curve_needs_a_position_and_a_position_is_no_context():
    with pytest.raises(UsageError, match="`examination` needs `position`"):
        Schema({"buy": "p_buy"}, examination={1: 1.0})
    with pytest.raises(UsageError, match="both a position column and a context column"):
        Schema({"buy": "p_buy"}, context=["place"], position="place")


@pytest.mark.parametrize(
    ("places", "match"),
    [
        ([1, 2, -1], "must be a whole number from 0 up. Got -1 in row 2"),
        ([1.0, 1.5, 2.0], "whole number from 0 up. Got 1.5 in row 1"),
        (["a", "b", "c"], "must hold whole numbers from 0 up. Got type String"),
        ([1.0, float("inf"), 2.0], "whole number from 0 up. Got inf"),
    ],
)
def test_places_that_are_none_are_refused(places, match):
    with pytest.raises(DataError, match=match):
        read_log(table(places), SCHEMA)


def test_a_row_without_a_place_was_not_shown():
    assert read_log(table([1, None, 2]), SCHEMA).position.tolist() == [1, -1, 2]
    assert read_log(table([1.0, float("nan"), 2.0]), SCHEMA).position.tolist() == [1, -1, 2]


def test_places_are_read_with_labels_and_not_to_score():
    assert read_log(table([3, 1, 2]), SCHEMA).position.tolist() == [3, 1, 2]
    assert read_log(table([3, 1, 2]).drop("place"), SCHEMA, labels=False).position is None
    with pytest.raises(DataError, match="no column 'place'"):
        read_log(table([3, 1, 2]).drop("place"), SCHEMA)


def test_a_log_keeps_its_correction_where_rows_are_taken_and_drops_it_with_another_curve():
    log = read_log(table([1, 2, 3, 4]), SCHEMA)
    done = log.corrected(np.array([1.0, 2.0, 3.0, 4.0]), SCHEMA.examination)
    assert done.take(np.array([3, 1])).inverse.tolist() == [4.0, 2.0]
    assert done.own_weight is None
    assert done.aligned(SCHEMA).sample_weight.tolist() == [1.0, 2.0, 3.0, 4.0]
    unknown = replace(SCHEMA, examination={})
    assert done.aligned(unknown).schema.examination == SCHEMA.examination
    assert done.aligned(replace(SCHEMA, examination={1: 1.0})).inverse is None
    assert done.aligned(replace(unknown, position=None)).sample_weight is None


def test_weights_that_undo_places_sum_up_to_what_rows_with_feedback_are_worth():
    log = read_log(table([1, 2, 3, 4]), SCHEMA)  # rows 1 and 3 have feedback
    done = log.corrected(np.array([1.0, 1.0, 1.0, 3.0]), SCHEMA.examination).with_unit_weights()
    ratio = done.sample_weight / np.array([1.0, 1.0, 1.0, 3.0])
    assert np.allclose(ratio, (1 / 1.5) * 4 / 10)
