import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harmonrank.metrics import population_stability_index
from harmonrank.support import UsageError

VALUES = st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.9, 1.0, math.nan])
COLUMN = st.lists(VALUES, min_size=1, max_size=40)


def brute_force(before, now, bins=10):
    """Return the index by counting, bin after bin."""
    known = sorted(x for x in before if x == x)
    last = [-(-len(known) * b // bins) - 1 for b in range(1, bins)] if known else []
    cuts = [known[place] for place in last]
    edges = [-math.inf, *sorted(set(cuts)), math.inf]
    tests = [lambda x, a=a, b=b: a < x <= b for a, b in pairwise(edges)]
    if any(x != x for x in [*before, *now]):
        tests.append(lambda x: x != x)
    total = 0.0
    for test in tests:
        p, q = ((sum(map(test, xs)) + 0.5) / (len(xs) + 0.5 * len(tests)) for xs in (before, now))
        total += (q - p) * math.log(q / p)
    return total


@given(COLUMN, COLUMN)
def test_it_is_the_sum_over_bins(before, now):
    result = population_stability_index(np.array(before), np.array(now))
    assert result == pytest.approx(brute_force(before, now), abs=1e-12)


def test_of_random_scores_too():
    rng = np.random.default_rng(0)
    before, now = rng.beta(2, 5, 3000), rng.beta(2, 4, 1000)
    assert population_stability_index(before, now) == pytest.approx(brute_force(before, now))


def test_the_same_scores_have_none_and_order_and_monotone_maps_do_not_matter():
    rng = np.random.default_rng(1)
    before, now = rng.random(999), rng.random(500) ** 1.3
    index = population_stability_index(before, now)
    assert population_stability_index(before, before[::-1]) == 0
    assert population_stability_index(rng.permutation(before), now) == index
    assert population_stability_index(np.log(before), np.log(now)) == index


def test_without_a_change_it_is_as_large_as_chance_makes_it():
    rng = np.random.default_rng(2)
    result = [population_stability_index(rng.random(2000), rng.random(1000)) for _ in range(300)]
    assert np.mean(result) == pytest.approx(9 * (1 / 2000 + 1 / 1000), rel=0.15)


def test_a_score_that_fails_is_a_large_change_and_a_constant_one_is_none():
    rng = np.random.default_rng(3)
    before = rng.random(1000)
    assert population_stability_index(before, np.full(1000, 0.5)) > 5
    assert population_stability_index(before, np.full(1000, np.nan)) > 5
    assert population_stability_index(np.full(9, 0.5), np.full(7, 0.5)) == pytest.approx(
        0, abs=0.01
    )
    assert population_stability_index(np.full(9, np.nan), np.full(9, np.nan)) == 0


def test_no_rows_have_no_index_and_what_are_no_scores_is_refused():
    assert math.isnan(population_stability_index([], [0.5]))
    assert math.isnan(population_stability_index([0.5], []))
    with pytest.raises(UsageError, match="`now` must be numbers of shape"):
        population_stability_index([0.5], [[0.5]])
    with pytest.raises(UsageError, match="`before` must be numbers"):
        population_stability_index(["a"], [0.5])
