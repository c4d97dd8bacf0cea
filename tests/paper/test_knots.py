"""Buckets lie where their scale says."""

import numpy as np
import pytest
import torch

from harmonrank.paper import Network, NetworkConfig
from harmonrank.paper.buckets import fit_knots, table_rows
from harmonrank.support import UsageError

SCORES = np.random.default_rng(0).beta(2, 60, (20_000, 2)).astype(np.float32)
SCALES = ("raw", "range", "logit", "quantile")


def logit(p):
    return np.log(p / (1 - p))


def test_raw_buckets_are_those_of_the_paper():
    knots = fit_knots(SCORES, 2, 300, "raw", interpolate=False)
    row, _ = table_rows(knots, SCORES, interpolate=False)
    np.testing.assert_array_equal(row, np.clip(np.floor(SCORES.astype(float) * 300), 0, 299))


def test_steps_are_equal_on_the_scale():
    ends = np.quantile(SCORES[:, 0], [1e-4, 1 - 1e-4])
    on_range = fit_knots(SCORES, 2, 8, "range", interpolate=True)[0]
    np.testing.assert_allclose(on_range, np.linspace(*ends, 8), rtol=1e-4)
    on_logit = fit_knots(SCORES, 2, 8, "logit", interpolate=True)[0].astype(float)
    np.testing.assert_allclose(logit(on_logit), np.linspace(*logit(ends), 8), rtol=1e-4)


def test_quantile_buckets_hold_equal_shares():
    knots = fit_knots(SCORES, 2, 10, "quantile", interpolate=False)
    row, _ = table_rows(knots, SCORES, interpolate=False)
    assert np.abs(np.bincount(row[:, 1]) / len(row) - 0.1).max() < 0.002


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("scores", [np.full((50, 1), 0.3), np.zeros((9, 1)), np.ones((9, 1))])
def test_knots_ascend_even_where_all_scores_are_the_same(scale, scores):
    knots = fit_knots(scores.astype(np.float32), 1, 6, scale, interpolate=True)
    assert (np.diff(knots) > 0).all()
    _, share = table_rows(knots, np.float32([[0.0], [0.3], [1.0]]), interpolate=True)
    assert ((share >= 0) & (share <= 1)).all()


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("interpolate", [False, True])
def test_the_network_looks_up_what_places_say(scale, interpolate):
    config = NetworkConfig(objectives=2, buckets=12, scale=scale, interpolate=interpolate)
    network = Network(config, torch.Generator().manual_seed(0), scores=SCORES)
    row, share = table_rows(network.scores.knots.numpy(), SCORES, interpolate=interpolate)
    E = network.scores.table.detach().numpy().reshape(2, 12, -1)
    for m in range(2):
        expected = E[m, row[:, m]]
        if interpolate:
            expected = expected + share[:, m, None] * (E[m, row[:, m] + 1] - expected)
        result = network.scores(torch.from_numpy(SCORES))[:, m].detach().numpy()
        np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)


def test_interpolation_has_no_jumps():
    config = NetworkConfig(objectives=1, buckets=16, scale="logit", interpolate=True)
    network = Network(config, torch.Generator().manual_seed(0), scores=SCORES[:, :1])
    fine = torch.linspace(0, 1, 100_001).unsqueeze(1)
    x = network.scores(fine)[:, 0].detach()
    assert x.diff(dim=0).abs().max() < 0.2 * (x.max() - x.min())
    coarse = Network(NetworkConfig(objectives=1, buckets=16)).scores(fine)[:, 0].detach()
    assert coarse.diff(dim=0).abs().max() > 0.2 * (coarse.max() - coarse.min())


def test_a_scale_without_scores_is_refused():
    with pytest.raises(UsageError, match="pass training scores to the network as `scores`"):
        Network(NetworkConfig(objectives=1, scale="logit"))
    with pytest.raises(UsageError, match=r"`scores` must be \(rows, 1\). Got \(20000, 2\)"):
        Network(NetworkConfig(objectives=1, scale="logit"), scores=SCORES)


def test_impossible_buckets_are_refused():
    with pytest.raises(UsageError, match="`buckets` must be at least 2 to interpolate. Got 1."):
        NetworkConfig(objectives=1, buckets=1, interpolate=True)
    with pytest.raises(UsageError, match="'scale' of NetworkConfig must be 'raw' or 'range' or"):
        NetworkConfig(objectives=1, scale="log")
