"""What rows of a request share is no evidence for the context values that they have."""

from dataclasses import replace

import numpy as np
import pytest

from harmonrank.data.rows.blocks import HeldBlocks
from harmonrank.model.fit_rows import cut_rows
from harmonrank.model.linear.clustering import context_clustering
from harmonrank.model.linear.heads_fit import fit_blocks
from harmonrank.support.logistic import sigmoid

SLOTS = (3, 40)


def rows_of(shared, seed=0, requests=500):
    """Return rows whose requests share an effect, and mostly a place, which has none."""
    rng = np.random.default_rng(seed)
    request = np.repeat(np.arange(requests), 20)
    kind = rng.integers(0, 3, len(request))
    own = rng.integers(0, 40, requests)[request]
    place = np.where(rng.random(len(request)) < 0.9, own, rng.integers(0, 40, len(request)))
    logits = rng.normal(-1.0, 1.0, (len(request), 2))
    moods = shared * rng.normal(size=requests)[request]
    chance = sigmoid(logits + 0.5 * (kind[:, None] - 1) + np.column_stack([moods, 0 * moods]))
    labels = (rng.random(chance.shape) < chance).astype(float)
    codes = np.column_stack([kind, place]).astype(np.int32)
    return cut_rows(logits, codes, labels, request=request, are_logits=True)


def test_clustering_is_how_much_more_sums_of_requests_vary():
    blocks = rows_of(1.5)
    (rows,) = blocks
    heads = fit_blocks(blocks, SLOTS, residual=False)
    r = rows.labels - sigmoid(heads.logits(rows.logits(), rows.codes))
    of_requests, of_rows = np.zeros(2), np.zeros(2)
    for f in range(2):
        for cell in {*zip(rows.request.tolist(), rows.codes[:, f].tolist(), strict=True)}:
            same = (rows.request == cell[0]) & (rows.codes[:, f] == cell[1])
            of_requests += r[same].sum(axis=0) ** 2
            of_rows += (r[same] ** 2).sum(axis=0)
    clustering = context_clustering(heads, rows, rows.rows)
    assert clustering[0] == pytest.approx(of_requests[0] / of_rows[0])
    assert clustering[0] > 1.5
    assert clustering[1] == 1


def test_what_few_users_of_a_place_share_is_seen_though_its_effect_takes_it_up():
    d = {}
    for users in (2000, 80):
        (rows,) = rows_of(1.5, requests=users)
        for name in ("request", "user"):
            known = replace(rows, **{"request": None, name: rows.request})
            heads = fit_blocks(HeldBlocks([known]), SLOTS, residual=False)
            d[name, users] = context_clustering(heads, known, rows.rows)[0]
    assert d["user", 2000] == pytest.approx(d["request", 2000], rel=0.05)
    assert d["user", 80] > 1.05 * d["request", 80]
    assert 0.7 < d["user", 80] / d["user", 2000] < 1.4


def test_where_rows_are_independent_the_fit_is_the_same_to_the_bit():
    (rows,) = rows_of(0.0)
    given = rows.scores, rows.codes, rows.labels
    named = fit_blocks(cut_rows(*given, request=rows.request, are_logits=True), SLOTS)
    np.testing.assert_array_equal(
        named.theta, fit_blocks(cut_rows(*given, are_logits=True), SLOTS).theta
    )


@pytest.mark.parametrize("seed", range(3))
def test_what_requests_share_does_not_become_an_effect_of_their_place(seed):
    (rows,) = rows_of(1.5, seed)
    given = rows.scores, rows.codes, rows.labels
    blind = fit_blocks(cut_rows(*given, are_logits=True), SLOTS, residual=False)
    aware = fit_blocks(
        cut_rows(*given, request=rows.request, are_logits=True), SLOTS, residual=False
    )
    effects = [np.abs(heads.theta[0, -SLOTS[1] :]).mean() for heads in (blind, aware)]
    assert effects[1] < 0.7 * effects[0]


@pytest.mark.parametrize("seed", range(3))
def test_what_users_share_does_not_become_an_effect_of_pairs_of_their_columns(seed):
    rng = np.random.default_rng(seed)
    user = rng.integers(0, 800, 16_000)  # who come back throughout the log
    codes = rng.integers(0, 10, (800, 2)).astype(np.int32)[user]
    logits = rng.normal(-1.0, 1.0, (len(user), 1))
    moods = 2.0 * rng.normal(size=(800, 1))[user]
    labels = (rng.random(logits.shape) < sigmoid(logits + moods)).astype(float)
    given = logits, codes, labels
    blind, aware = (
        fit_blocks(cut_rows(*given, request=known, are_logits=True), (10, 10)).residual.pair
        for known in (None, user)
    )
    assert np.abs(aware).mean() < 0.1 * np.abs(blind).mean()
