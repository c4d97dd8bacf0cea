"""A comparison of methods that rank by what events are worth."""

import json
from dataclasses import asdict, replace

import numpy as np
import pytest

import harmonrank as hr
from harmonrank.metrics import bootstrap_values, percentiles, value_at_k
from harmonrank.worlds import as_frame, world, world_schema

WORTH = {"buy": 10, "follow": 5, "comment": 2, "like": 2, "long_view": 1}
METHODS = ("prevalence-weights", "closed-form", "formula-grid")


@pytest.fixture(scope="module")
def rows():
    conflict = world("conflict")
    return [as_frame(conflict, conflict.sample(n, seed=s)) for n, s in ((20_000, 1), (8_000, 2))]


@pytest.fixture(scope="module")
def schema():
    return replace(world_schema(world("conflict")), value=WORTH)


@pytest.fixture(scope="module")
def board(rows, schema, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    more = {"k": 3, "runs": folder, "baseline": "p_long_view"}
    first, again = (
        hr.compare(rows[0], schema, METHODS, test=rows[1], **more).board for _ in range(2)
    )
    # What was kept gives the same board, intervals included.
    assert again.to_dict()["methods"][:-1] == first.to_dict()["methods"][:-1]
    return first


def test_value_decides_the_order_and_a_method_without_probabilities_fails(board):
    values = [e.quality.value.exact for e in board.entries if e.quality is not None]
    assert values == sorted(values, reverse=True)
    assert board.entries[0].name == "closed-form"
    assert board.entries[-1].name == "formula-grid"
    assert "cannot rank by value" in board.entries[-1].error
    assert board.criterion == "value"
    assert json.loads(json.dumps(board.to_dict()))["criterion"] == "value"


def test_differences_are_those_of_a_paired_bootstrap_over_requests(board, rows, schema):
    train, test = rows
    worth = [WORTH[name] for name in schema.names]
    models = [hr.ClosedForm().fit(train, schema).score(test), test["p_long_view"].to_numpy()]
    # A world is judged by true probabilities.
    chances = test.select([f"true_{name}" for name in schema.names]).to_numpy()
    groups = test[schema.request]
    drawn = [bootstrap_values(s, chances, groups, 3, value=worth) for s in models]
    means = [value_at_k(s, chances, groups, 3, value=worth) for s in models]
    expected = percentiles(means[0] - means[1], drawn[0] - drawn[1], 0.95)
    ahead = board.entries[0].ahead
    assert asdict(ahead) == pytest.approx(asdict(expected), rel=1e-12)
    assert board.verdict.to_dict()["against"][-1]["difference"] == ahead.estimate


def test_table_and_verdict_speak_of_value(board):
    text = board.to_table().to_text(120)
    assert board.verdict.sentence in text.replace("\n", " ")
    assert board.verdict.sentence.startswith("In value at 3 closed-form is ")
    assert "value@3" in text
    best = board.entries[0].quality.value
    assert f"{best.best - best.exact:.4f}" in text
    assert "AUC-sum" not in text


def test_without_values_the_order_within_requests_decides(rows, schema):
    plain = hr.compare(rows[0], replace(schema, value={}), ["closed-form"], test=rows[1]).board
    assert plain.criterion == "within requests"
    assert plain.entries[0].value is None
    assert np.isfinite(plain.entries[0].quality.total)
