import numpy as np
import pytest

from harmonrank.metrics import best_request_score, expected_grouped_auc, grouped_auc_intervals
from harmonrank.worlds import world
from harmonrank_lab.worlds import RequestAreas, logs_of, sample_to_test

ROWS = 200_000


def first(rows):
    return lambda place: place.sample(rows, seed=1)


@pytest.fixture(scope="module", params=["clustered", "skewed-lists"])
def place(request):
    """A world of which effects are hidden from upstream."""
    return world(request.param)


def test_auc_within_requests_is_that_of_dependent_labels(place):
    sample = place.sample(ROWS, seed=1)
    score = sample.truth.sum(axis=1)
    exact = RequestAreas.of(place, first(ROWS), nodes=8).auc(score)
    wrong = expected_grouped_auc(score, sample.truth, sample.request)
    intervals, _ = grouped_auc_intervals(score, sample.labels, sample.request)
    error = np.array([(each.high - each.low) / 4 for each in intervals])
    labels = np.array([each.estimate for each in intervals])
    assert (abs(labels - exact) < 4 * error).all()
    if place.name == "clustered":
        # Who takes labels for independent is wrong where an objective often happens.
        assert (abs(labels - wrong) > 4 * error)[3]


def test_more_nodes_change_nothing_and_the_best_order_is_not_beaten(place):
    areas = RequestAreas.of(place, first(10_000))
    finer = RequestAreas.of(place, first(10_000), nodes=32)
    best, rng = areas.best(), np.random.default_rng(0)
    np.testing.assert_allclose(areas.auc(best), finer.auc(best), atol=5e-6)
    np.testing.assert_allclose(areas.auc(finer.best()), areas.auc(best), atol=5e-6)
    assert areas.regret(best) == 0
    for strength in (0.01, 0.1, 1.0):
        assert areas.regret(best * np.exp(strength * rng.standard_normal(len(best)))) > 0


@pytest.mark.parametrize("name", ["elive", "requests"])
def test_where_nothing_is_hidden_from_upstream_labels_are_taken_for_independent(name):
    sample = world(name).sample(20_000, seed=1)
    areas, score = RequestAreas.of(world(name), first(20_000)), sample.scores.sum(axis=1)
    expected = expected_grouped_auc(score, sample.truth, sample.request)
    np.testing.assert_allclose(areas.auc(score), expected, rtol=1e-12)
    best = best_request_score(sample.truth, sample.request)
    np.testing.assert_allclose(areas.best(), best, rtol=1e-9)


def test_rows_of_a_world_that_drifts_follow_each_other():
    place = world("drifting")
    train, valid, test = logs_of(place, 8_000, 1, tested=3_000)
    sample = sample_to_test(place, 8_000, 1, tested=3_000)
    whole = place.sample(15_000, seed=1)
    for log, rows in ((train, slice(8_000)), (valid, slice(8_000, 12_000))):
        np.testing.assert_array_equal(log.known_labels(), whole.labels[rows])
    np.testing.assert_array_equal(test.truth, whole.truth[12_000:])
    np.testing.assert_array_equal(sample.truth, test.truth)
    assert sample.time.max() > 0.99
    # Elsewhere the test rows are the same, however many there are to learn from.
    few, many = (logs_of(world("elive"), rows, 1, tested=500)[2] for rows in (1_000, 2_000))
    np.testing.assert_array_equal(few.truth, many.truth)
