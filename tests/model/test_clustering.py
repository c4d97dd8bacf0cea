"""What rows of a request share is no evidence for the context values that they have."""

import numpy as np
import pytest

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
    p = rows.labels - r
    together, alone = np.zeros((2, 2)), np.zeros((2, 2))
    for f in range(2):
        for cell in {*zip(rows.request.tolist(), rows.codes[:, f].tolist(), strict=True)}:
            value = rows.codes[:, f] == cell[1]
            same = value & (rows.request == cell[0])
            known, whole = ((p * (1 - p))[rows].sum(axis=0) for rows in (same, value))
            together[f] += r[same].sum(axis=0) ** 2
            alone[f] += (1 - known / (heads.precision[:, -1] + whole)) * (r[same] ** 2).sum(axis=0)
    found = context_clustering(heads, rows, rows.rows)
    assert found[0] == pytest.approx((together / alone)[:, 0])
    assert found[0, 1] > 1.5 * found[0, 0] > 3  # rows of a request have most places in common
    assert found[1].max() < 1.2


def test_what_few_requests_with_a_place_share_is_seen_though_its_effect_takes_it_up():
    many, few = (rows_of(1.5, requests=requests) for requests in (2000, 80))
    d = [
        context_clustering(fit_blocks(one, SLOTS, residual=False), one[0], one[0].rows)[0, 1]
        for one in (many, few)
    ]
    assert 0.6 < d[1] / d[0] < 1.6


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
