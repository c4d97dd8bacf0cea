"""The best score for objectives of every kind, against all orders of a few rows."""

from itertools import permutations

import numpy as np
import polars as pl
import pytest

import harmonrank as hr
from harmonrank.data import Log
from harmonrank.fusion import best_terms, true_outcomes
from harmonrank.metrics import auc

ROWS = 6
ORDERS = np.array(list(permutations(range(ROWS))), float)


def enumerated(rng, *, graded=(), given=None, ordered=False):
    """Return rows of a small world whose truth is known: two events and seconds."""
    names = ("click", "order", "watch")
    schema = hr.Schema(
        {name: f"p_{name}" for name in names},
        truth={name: f"true_{name}" for name in names},
        graded=graded,
        given=given or {},
    )
    p = rng.beta(1, 2, (ROWS, 3))
    spread = 1.0 if ordered else rng.choice([0.3, 1.0, 3.0], (ROWS, 1))
    density = rng.normal(size=(ROWS, 1)) + spread * np.sort(rng.normal(size=(1, 5)))
    draws = {"watch": density} if "watch" in graded else {}
    truth = p.copy()
    if draws:
        truth[:, 2] = density.mean(axis=1)
    return Log(schema, p, pl.DataFrame(), truth=truth, draws=draws)


def loss_of(log, weights):
    """Return how far the documented score is below the best of all orders."""
    truth = true_outcomes(log)
    best = max(float(weights @ auc(order, truth)) for order in ORDERS)
    return best - float(weights @ auc(best_terms(log, weights) @ weights, truth))


def test_events_are_ordered_as_no_other_order_does_whatever_the_signs():
    rng = np.random.default_rng(0)
    log = enumerated(rng, graded=["watch"])
    assert loss_of(log, np.array([1.0, -2.0, 0.0])) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_a_graded_objective_alone_is_best_where_its_draws_are_ordered(seed):
    log = enumerated(np.random.default_rng(seed), graded=["watch"], ordered=True)
    assert loss_of(log, np.array([0.0, 0.0, 1.0])) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_a_conditional_objective_alone_is_best_by_its_own_chance(seed):
    log = enumerated(np.random.default_rng(seed), graded=["watch"], given={"order": "click"})
    assert loss_of(log, np.array([0.0, 1.0, 0.0])) == pytest.approx(0, abs=1e-12)


def mean_loss(weights, **kinds):
    return np.mean(
        [loss_of(enumerated(np.random.default_rng(s), **kinds), weights) for s in range(12)]
    )


def test_the_projections_lose_little_of_a_sum():
    watched = mean_loss(np.array([1.0, 0.0, 1.0]), graded=["watch"])
    assert watched < 0.01
    ordered = mean_loss(np.array([1.0, 1.0, 0.0]), graded=["watch"], given={"order": "click"})
    assert ordered < 0.03


def test_beside_others_a_conditional_objective_counts_by_the_chance_that_it_is_shown():
    log = enumerated(np.random.default_rng(0), graded=["watch"], given={"order": "click"})
    click, order = log.truth[:, 0], log.truth[:, 1]
    pi = float(click @ order / click.sum())
    terms = best_terms(log, np.array([1.0, 1.0, 0.0]))[:, 1]
    np.testing.assert_allclose(
        terms, click / click.mean() * (order - pi) / (pi * (1 - pi)), rtol=1e-12
    )


def test_of_many_rows_the_projection_beats_the_plain_chance_of_a_conditional_objective():
    # Likely clicks are unlikely orders, so that it matters which rows show an order at all.
    rng = np.random.default_rng(1)
    latent = rng.normal(size=(20_000, 2))
    other = -0.5 * latent[:, 0] + np.sqrt(0.75) * latent[:, 1]
    p = 1 / (1 + np.exp(2 - np.column_stack([latent[:, 0], other])))
    names = {"click": "p_click", "order": "p_order"}
    truths = {name: f"true_{name}" for name in names}
    schema = hr.Schema(names, truth=truths, given={"order": "click"})
    log, even = Log(schema, p, pl.DataFrame(), truth=p), np.ones(2)
    pi = np.array([p[:, 0].mean(), p[:, 0] @ p[:, 1] / p[:, 0].sum()])
    ours, plain = (
        float(auc(score, true_outcomes(log)).sum())
        for score in (best_terms(log, even) @ even, p @ (1 / (pi * (1 - pi))))
    )
    assert ours > plain + 0.03
