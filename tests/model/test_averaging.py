"""Rungs of heads are averaged by what unseen requests say of them."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import harmonrank as hr
from harmonrank.fusion import method_class
from harmonrank.metrics import auc
from harmonrank.model import fit_heads
from harmonrank.model.fit_rows import cut_rows
from harmonrank.model.linear.averaging import averaged, evidence_weights, fit_averaged
from harmonrank.model.linear.heads_fit import fit_blocks
from harmonrank.support.logistic import sigmoid

SLOTS = (5,)


def rows_with_a_curve(rows, seed):
    rng = np.random.default_rng(seed)
    logits, codes = rng.normal(size=(rows, 2)), rng.integers(0, 5, (rows, 1))
    labels = rng.random((rows, 2)) < sigmoid(2 * np.cos(2 * logits) + 0.3 * codes)
    return logits, codes, labels.astype(float)


def test_averaged_heads_have_the_average_of_all_logits():
    logits, codes, labels = rows_with_a_curve(6000, 1)
    full = fit_heads(logits, codes, SLOTS, labels)
    assert full.residual.curve.any()
    simple = replace(fit_heads(logits, codes, SLOTS, labels, residual=False))
    weights = np.array([[0.7, 0.2], [0.3, 0.8]])
    mixed = averaged([full, simple], weights)
    expected = sum(
        w * rung.logits(logits, codes) for w, rung in zip(weights, [full, simple], strict=True)
    )
    np.testing.assert_allclose(mixed.logits(logits, codes), expected, atol=1e-10)


def test_a_head_that_unseen_rows_need_keeps_its_weight():
    logits, codes, labels = rows_with_a_curve(6000, 2)
    blocks = cut_rows(logits, codes, labels, are_logits=True)
    alone, (mixed, _) = fit_blocks(blocks, SLOTS), fit_averaged(blocks, SLOTS)
    np.testing.assert_allclose(
        mixed.logits(logits, codes), alone.logits(logits, codes), rtol=0, atol=1e-6
    )


def test_rows_of_one_request_are_one_observation():
    rng = np.random.default_rng(3)
    each = rng.normal(0.03, 1.0, 100)
    full_is_worse = np.stack([np.zeros(100), each])
    requests = evidence_weights(full_is_worse * 10)  # ten rows of each request say the same
    rows = evidence_weights(np.repeat(full_is_worse, 10, axis=1))
    assert abs(requests[1] - 0.5) < abs(rows[1] - 0.5)


def test_rungs_that_nobody_can_tell_apart_leave_the_full_head_most():
    weights = evidence_weights(np.zeros((3, 50)))
    np.testing.assert_allclose(weights, np.array([np.exp(4), 1, 1]) / (np.exp(4) + 2))


def clustered(users, seed):
    """Rows of users whose taste no column tells; the region of a user means nothing."""
    rng = np.random.default_rng(seed)
    user = np.repeat(np.arange(users), 40)
    logit = rng.normal(size=len(user)) - 1.5
    taste = rng.normal(0, 1.5, users)[user]
    return pl.DataFrame(
        {
            "user": user,
            "region": rng.integers(0, 60, users)[user].astype(str),
            "p": sigmoid(logit),
            "click": (rng.random(len(user)) < sigmoid(logit + taste)).astype(int),
        }
    )


@pytest.mark.parametrize("redraw", range(3))
def test_what_users_share_by_chance_does_no_harm_to_others(redraw):
    schema = hr.Schema(objectives={"click": "p"}, context=["region"], request="user")
    train, test = clustered(250, redraw), clustered(2000, 100 + redraw)
    reached = {}
    for name in ("harmonrank", "logistic", "closed-form"):
        scores = method_class(name)().fit(train, schema, seed=1).score(test)
        reached[name] = float(auc(scores, test["click"].to_numpy()))
    assert reached["harmonrank"] > max(reached.values()) - 0.002, reached
