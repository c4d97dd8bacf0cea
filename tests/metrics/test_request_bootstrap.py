"""The bootstrap of the AUC within requests draws whole requests again."""

import numpy as np
import pytest

from harmonrank.metrics import (
    bootstrap_request_areas,
    bootstrap_values,
    events_at_k,
    expected_grouped_auc,
    grouped_auc,
)
from harmonrank.metrics._bootstrap import poisson_weights

REPLICATES = 20


@pytest.fixture
def rows():
    rng = np.random.default_rng(3)
    groups = rng.integers(0, 40, 300)
    p = rng.beta(1, 3, (300, 2))
    labels = (rng.random(p.shape) < p).astype(np.uint8)
    ours, other = p.sum(axis=1), rng.integers(0, 5, 300)  # the other has many ties
    return ours, other, labels, p, groups, rng.integers(0, 3, 300)


def repeated(groups):
    """Yield the rows of each resampled log, and the request that each row is then of."""
    ids = np.unique(groups)
    for drawn in poisson_weights(len(ids), REPLICATES, 0):
        copies = [(g, c) for g, often in zip(ids, drawn, strict=True) for c in range(often)]
        parts = [np.flatnonzero(groups == g) for g, _ in copies]
        yield np.concatenate(parts), np.repeat(np.arange(len(copies)), [len(p) for p in parts])


@pytest.mark.parametrize("weighted", [False, True])
def test_a_paired_difference_is_that_of_logs_whose_requests_are_copied(rows, weighted):
    ours, other, labels, _, groups, weight = rows
    weight = weight if weighted else np.ones(len(weight))
    drawn = [
        bootstrap_request_areas(s, labels, groups, sample_weight=weight, replicates=REPLICATES)
        for s in (ours, other)
    ]
    brute = [
        [grouped_auc(s[i], labels[i], g, sample_weight=weight[i]) for s in (ours, other)]
        for i, g in repeated(groups)
    ]
    expected = np.array(brute)
    np.testing.assert_allclose(drawn[0] - drawn[1], expected[:, 0] - expected[:, 1], atol=1e-12)


def test_true_probabilities_are_resampled_likewise(rows):
    ours, _, _, p, groups, _ = rows
    drawn = bootstrap_request_areas(ours, p, groups, expected=True, replicates=REPLICATES)
    brute = [expected_grouped_auc(ours[i], p[i], g) for i, g in repeated(groups)]
    np.testing.assert_allclose(drawn, brute, atol=1e-12)


def test_a_factor_of_each_request_changes_nothing(rows):
    ours, _, labels, _, groups, _ = rows
    factor = np.exp(np.random.default_rng(0).normal(size=40))[groups]
    one, other = (bootstrap_request_areas(s, labels, groups) for s in (ours, factor * ours))
    np.testing.assert_array_equal(one, other)


def test_values_at_the_identity_are_the_events_of_each_objective(rows):
    ours, _, labels, _, groups, _ = rows
    drawn = bootstrap_values(ours, labels, groups, 3, value=np.eye(2), replicates=REPLICATES)
    brute = [events_at_k(ours[i], labels[i], g, 3) for i, g in repeated(groups)]
    np.testing.assert_allclose(drawn, brute, atol=1e-12)


def test_a_log_without_a_usable_request_has_no_area():
    drawn = bootstrap_request_areas([1, 2], [1, 1], [7, 7], replicates=3)
    assert np.isnan(drawn).all()
