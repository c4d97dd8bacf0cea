"""What a drift report says, and when it takes a move for a replaced upstream model."""

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import harmonrank as hr
from harmonrank.data import Schema
from harmonrank.fusion import method_class
from harmonrank.fusion.drift.drift import ColumnDrift
from harmonrank.fusion.drift.measurement import Moves, replacement_of
from harmonrank.worlds import as_frame, world_schema
from upstream import NEW, OLD, log_of


@pytest.fixture
def model(conflict_model):
    return conflict_model


def test_a_replaced_upstream_model_is_found_with_its_evidence(model, moved):
    drift = model.drift(moved)
    assert drift.replaced == drift.moved == ("p_comment", "p_like")
    *witnesses, everywhere = drift.evidence
    assert len(witnesses) == 2
    assert "p_like moved and p_" in witnesses[1]
    assert "did not, though their correlation is" in witnesses[1]
    assert "moved in all 8 consecutive blocks of rows and all" in everywhere
    assert "frequent context values" in everywhere


def test_offset_and_scale_are_those_of_the_change():
    old, new = OLD, OLD.with_upstream(("like",), a=1.5, b=0.5)
    model = hr.ClosedForm().fit(log_of(old, 50_000, 1), world_schema(old))
    rows = log_of(old, 50_000, 2)
    columns = {c.column: c for c in model.drift(log_of(new, 50_000, 2)).columns}
    like = rows.scores[:, old.objectives.index("like")].astype(float)
    assert columns["p_like"].scale == pytest.approx(1.5, abs=0.03)
    logit = np.log(like / (1 - like))
    # Of a score that is stretched about 0, the median moves by its own share of the stretch too.
    assert np.sign(columns["p_like"].offset) == np.sign(0.5 * np.median(logit) + 0.5)
    assert columns["p_buy"].unchanged
    assert columns["p_buy"].scale == pytest.approx(1, abs=0.03)


@pytest.mark.parametrize("name", ["harmonrank", "logistic", "prevalence-weights"])
def test_every_method_gives_the_same_report(name, moved):
    train = log_of(OLD, 30_000, 1)
    model = method_class(name)().fit(train, train.schema, valid=train)
    assert model.drift(moved) == hr.ClosedForm().fit(train, train.schema).drift(moved)


def test_the_usual_rows_have_not_moved(model, usual):
    drift = model.drift(usual)
    assert drift.moved == drift.replaced == ()
    assert drift.evidence == ("No score has moved since the fit.",)
    assert all(column.unchanged for column in drift.columns)


def test_the_report_prints_and_is_json(model, moved):
    drift = model.drift(moved)
    lines = str(drift).splitlines()
    assert lines[0].split() == ["score", "median", "scale", "verdict"]
    assert [line.split()[-1] for line in lines[1:6]] == [
        "unchanged",
        "replaced",
        "unchanged",
        "replaced",
        "unchanged",
    ]
    assert max(map(len, lines)) <= 80
    assert "<table" in drift._repr_html_()
    parts = json.loads(json.dumps(drift.to_dict()))
    assert parts["replaced"] == ["p_comment", "p_like"]
    assert parts["rows"] == 40_000
    assert parts["columns"][3]["verdict"] == "replaced"
    assert parts["columns"][3]["moved"]
    assert parts["evidence"] == list(drift.evidence)


@pytest.mark.parametrize("objective", range(5))
@pytest.mark.parametrize(
    ("low", "high"), [(0.5, 1), (0.9, 1), (0, 0.5), (0, 0.97), (0.03, 1), (0.05, 1), (0.01, 0.99)]
)
def test_rows_selected_by_a_score_prove_nothing(model, many, objective, low, high):
    score = many.scores[:, objective]
    bounds = np.quantile(score, [low, high])
    selected = many.take(np.flatnonzero((score >= bounds[0]) & (score <= bounds[1])))
    assert model.drift(selected).replaced == ()


@pytest.mark.parametrize("share", [0.03, 0.5, 0.9])
def test_rows_selected_by_the_fused_score_prove_nothing(model, many, share):
    fused = model.score(many)
    selected = many.take(np.flatnonzero(fused >= np.quantile(fused, share)))
    assert model.drift(selected).replaced == ()


def test_rows_of_one_context_prove_nothing(model, many):
    first = many.context[:, 0]
    selected = many.take(np.flatnonzero((first == first.mode()[0]).to_numpy()))
    assert selected.rows > 20_000
    assert model.drift(selected).moved == ()


def test_a_campaign_in_one_context_is_no_new_model(model, many):
    """Comments rise for some users, and the upstream model rightly says so."""
    first = many.context[:, 0]
    there = (first == first.mode()[0]).to_numpy()
    odds = many.scores[:, 1] / (1 - many.scores[:, 1]) * np.where(there, np.exp(2.5), 1)
    scores = many.scores.copy()
    scores[:, 1] = odds / (1 + odds)
    drift = model.drift(replace(many, scores=scores))
    assert drift.moved == ("p_comment",)
    assert drift.replaced == ()
    assert "frequent context values only" in drift.evidence[0]


def test_a_change_half_way_is_no_new_model_of_the_whole_table(model):
    old, new = as_frame(OLD, OLD.sample(20_000, seed=7)), as_frame(NEW, NEW.sample(20_000, seed=8))
    drift = model.drift(pl.concat([old, new]))
    assert drift.moved == ("p_comment", "p_like")
    assert drift.replaced == ()
    assert "of 8 consecutive blocks of rows only" in drift.evidence[0]
    assert len(model.drift(new).replaced) == 2


@pytest.mark.parametrize("value", [0.0, 1.0])
@pytest.mark.parametrize("share", [0.001, 0.01])
def test_a_few_broken_scores_are_no_drift(model, usual, value, share):
    scores = usual.scores.copy()
    broken = np.random.default_rng(0).random(usual.rows) < share
    scores[broken, 3] = value
    assert model.drift(replace(usual, scores=scores)).moved == ()


@pytest.mark.parametrize("value", [0.0, 0.5, 1.0])
def test_a_score_that_failed_has_one_value(model, usual, value):
    scores = usual.scores.copy()
    scores[:, 0] = value
    drift = model.drift(replace(usual, scores=scores))
    assert drift.columns[0].constant
    assert drift.replaced == ("p_buy",)


@pytest.mark.parametrize("rows", [500, 19_999])
def test_few_rows_prove_nothing(model, moved, rows):
    drift = model.drift(moved.take(np.arange(rows)))
    assert drift.replaced == ()
    assert bool(drift.moved) == (rows > 1000)


def test_scores_without_context_have_a_drift_too():
    schema = Schema({name: f"p_{name}" for name in OLD.objectives})
    model = hr.HarmonRank().fit(as_frame(OLD, OLD.sample(30_000, seed=1)), schema)
    assert len(model.drift(as_frame(NEW, NEW.sample(30_000, seed=2))).replaced) == 2


def test_a_score_that_was_constant_at_the_fit_does_not_stand_in_the_way():
    train, table = (
        as_frame(OLD, OLD.sample(30_000, seed=1)),
        as_frame(NEW, NEW.sample(30_000, seed=2)),
    )
    constant = pl.lit(0.1).alias("p_buy")
    model = hr.HarmonRank().fit(train.with_columns(constant), world_schema(OLD))
    assert len(model.drift(table.with_columns(constant)).replaced) == 2


def replaced(*columns, correlation):
    """Return the finding for columns that moved alike everywhere."""
    everywhere = {"blocks": [np.arange(3)]}
    moves = Moves(*np.array([(c.offset, c.scale) for c in columns]).T)
    return replacement_of(columns, correlation, everywhere, lambda _: moves)


HALF = np.full((3, 3), 0.5)


def test_a_score_that_neither_moved_nor_is_unchanged_leaves_it_open():
    moved, same = ColumnDrift("a", 30_000, 0.3, 1.0), ColumnDrift("b", 30_000, 0.01, 1.01)
    between = ColumnDrift("c", 30_000, 0.07, 1.0)
    assert replaced(moved, same, same, correlation=HALF)[0] == ("a",)
    assert replaced(moved, same, between, correlation=HALF) == (
        (),
        ("a moved, and so did c a little: this may be a change of the rows and not of a model.",),
    )
    assert replaced(same, same, same, correlation=HALF)[0] == ()
    assert replaced(moved, moved, moved, correlation=HALF)[0] == ()
    assert "is correlated with it" in replaced(moved, same, same, correlation=np.eye(3))[1][0]


@pytest.mark.parametrize(
    ("offset", "scale", "tie", "expected"),
    [
        (0.07, 1.0, 0.5, ("a",)),  # a selection would have moved it by 1.35
        (0.07, 1.0, 0.05, ()),  # it would hardly have moved it
        (0.02, 1.06, 0.7, ("a",)),  # it would have widened it too
        (0.02, 1.06, 0.1, ()),
        (-0.09, 0.96, 0.5, ("a",)),
    ],
)
def test_a_little_move_of_others_beside_a_jump_does_not_hide_it(offset, scale, tie, expected):
    """As time moves all scores somewhat."""
    jump, same = ColumnDrift("a", 30_000, -2.7, 1.5), ColumnDrift("b", 30_000, 0.01, 1.01)
    correlation = HALF.copy()
    correlation[0, 2] = correlation[2, 0] = tie
    other = ColumnDrift("c", 30_000, offset, scale)
    assert replaced(jump, same, other, correlation=correlation)[0] == expected
