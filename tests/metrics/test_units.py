"""Users who return: what is resampled with all its requests."""

import numpy as np
import pytest

from harmonrank.metrics import (
    bootstrap_request_areas,
    bootstrap_values,
    grouped_auc_influence,
    grouped_auc_intervals,
)

COPIES = 5


@pytest.fixture(scope="module")
def once():
    """Return scores, labels and requests of rows, in any order."""
    rng = np.random.default_rng(0)
    requests = rng.integers(0, 120, 700)
    scores = rng.normal(size=700)
    labels = (scores[:, None] + rng.normal(size=(700, 2)) > [0.5, 1.0]).astype(np.uint8)
    return scores, labels, requests


@pytest.fixture(scope="module")
def often(once):
    """Return the same with every request again and again, by the same user; and the users."""
    scores, labels, requests = once
    copy = np.repeat(np.arange(COPIES), len(scores))
    user = np.tile(requests, COPIES)
    again = user + 1000 * copy
    return (np.tile(scores, COPIES), np.tile(labels, (COPIES, 1)), again), user


def ends(intervals):
    each, total = intervals
    return [(one.estimate, one.low, one.high) for one in (*each, total)]


def test_a_user_who_does_the_same_again_tells_nothing_new(once, often):
    rows, user = often
    expected = ends(grouped_auc_intervals(*once))
    np.testing.assert_allclose(ends(grouped_auc_intervals(*rows, units=user)), expected)
    by_request = ends(grouped_auc_intervals(*rows))
    assert by_request[0][2] - by_request[0][1] < 0.6 * (expected[0][2] - expected[0][1])


def test_moves_of_a_user_are_those_of_all_requests(once, often):
    rows, user = often
    area, moves = grouped_auc_influence(*once)
    again, of_users = grouped_auc_influence(*rows, units=user)
    np.testing.assert_allclose(again, area)
    np.testing.assert_allclose(of_users, moves, atol=1e-15)
    assert np.isnan(moves).any()


def test_resampled_users_take_all_their_requests_with_them(once, often):
    rows, user = often
    areas = bootstrap_request_areas(*rows, units=user, replicates=20)
    np.testing.assert_allclose(areas, bootstrap_request_areas(*once, replicates=20))
    values = bootstrap_values(*rows, 3, value=[1.0, 2.0], units=user, replicates=20)
    np.testing.assert_allclose(values, bootstrap_values(*once, 3, value=[1.0, 2.0], replicates=20))


def test_users_of_one_request_each_are_requests(once):
    user = 7 * once[2] % 1009  # other numbers in another order
    np.testing.assert_allclose(
        ends(grouped_auc_intervals(*once, units=user)), ends(grouped_auc_intervals(*once))
    )
