"""Which scores a recalibration corrects, by the pattern across scores and by labels."""

from dataclasses import replace

import numpy as np
import pytest

import harmonrank as hr
from harmonrank.support import UsageError
from harmonrank.worlds import Additive
from upstream import NEW, OLD, log_of

LIKE = OLD.objectives.index("like")


@pytest.fixture
def model(conflict_model):
    return conflict_model


def with_chances(base=0.0, by_context=0.0):
    """Return the world with other chances, about which its upstream models are right."""
    rng = np.random.default_rng(0)
    moved = {f: e + by_context * rng.normal(size=e.shape) for f, e in OLD.mu.effects.items()}
    return replace(OLD, mu=Additive(OLD.mu.base + base, moved))


def only(objective, move):
    return np.where(np.arange(len(OLD.objectives)) == objective, move, 0.0)


def unlabelled(log):
    return replace(log, labels=None, truth=None)


def corrected(model, log, **asked):
    return {name: share for name, share in model.corrections(log, **asked).items() if share}


@pytest.mark.parametrize("known", [True, False], ids=["labels", "no labels"])
@pytest.mark.parametrize(
    "move", [{"by_context": 0.3}, {"base": 0.4}, {"base": -0.3, "by_context": 0.2}]
)
def test_scores_of_chances_that_moved_stay_as_they_are(model, move, known):
    rows = log_of(with_chances(**move), 40_000, 5)
    given = rows if known else unlabelled(rows)
    assert model.drift(given).moved
    assert corrected(model, given) == {}
    np.testing.assert_array_equal(model.recalibrated(given).score(rows), model.score(rows))


def test_forcing_a_recalibration_where_chances_moved_would_cost(model):
    rows = log_of(with_chances(by_context=0.3), 40_000, 5)
    forced = model.recalibrated(rows, scores="all")
    assert forced.evaluate(rows).regret > model.evaluate(rows).regret + 0.005


def test_labels_prove_what_few_rows_cannot(model, usual):
    rows, before = log_of(NEW, 10_000, 6), model.evaluate(usual).regret
    assert corrected(model, unlabelled(rows)) == {}
    shares = corrected(model, rows)
    assert set(shares) == {"p_comment", "p_like"}
    assert min(shares.values()) > 0.7
    later = log_of(NEW, 40_000, 7)
    assert model.recalibrated(rows).evaluate(later).regret < before + 0.01


def test_labels_refute_what_looks_like_a_replaced_model(model):
    """The chances of one objective moved alone, as no other score could tell."""
    rows = log_of(with_chances(only(LIKE, 0.6)), 40_000, 8)
    assert corrected(model, unlabelled(rows)) == {"p_like": 1.0}
    assert corrected(model, rows)["p_like"] < 0.05
    assert not any("recalibrate" in note for note in hr.evaluate(model, rows).notes)


def test_a_score_that_goes_on_moving_is_of_no_replaced_model(model):
    moves = np.linspace(0.4, 1.0, 8)
    parts = [log_of(with_chances(only(LIKE, move)), 5000, 9) for move in moves]
    scores = np.concatenate([part.scores for part in parts])
    context = parts[0].context.vstack(parts[1].context)
    for part in parts[2:]:
        context = context.vstack(part.context)
    rows = replace(unlabelled(parts[0]), scores=scores, context=context, request=None)
    drift = model.drift(rows)
    assert drift.replaced == ()
    assert "p_like goes on moving" in drift.evidence[0]


def test_a_model_that_only_became_noisier_is_found(model):
    noisier = OLD.with_upstream(("comment", "like"), tau_scale=1.6)
    rows = unlabelled(log_of(noisier, 100_000, 9))
    assert corrected(model, rows) == {"p_comment": 1.0, "p_like": 1.0}
    assert "other rows would have raised it" in model.drift(rows).evidence[0]


def test_a_user_who_knows_which_models_are_new_names_them(model, moved):
    both = ["p_comment", "p_like"]
    assert corrected(model, moved, scores=both) == dict.fromkeys(both, 1.0)
    assert len(corrected(model, moved, scores="all")) == 5
    named = model.recalibrated(moved, scores="p_like")
    assert named.drift(moved).moved == ("p_comment",)
    np.testing.assert_array_equal(
        model.recalibrated(moved, scores={"p_like": 1}).score(moved), named.score(moved)
    )
    with pytest.raises(UsageError, match=r"no score column 'p_lke' .* Did you mean 'p_like'"):
        model.recalibrated(moved, scores=["p_lke"])
