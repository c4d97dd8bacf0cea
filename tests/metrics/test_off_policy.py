"""Off-policy values: unbiased over all that might have been logged, with intervals."""

from itertools import permutations, product

import numpy as np
import pytest

from harmonrank.metrics import logged_values, place_gains
from harmonrank.support import UsageError

THETA = np.array([1.0, 0.6, 0.3])
WANTED = np.array([0.2, 0.5, 0.9])
GAINS = np.array([0.0, 0.6, 1.0])  # the new ranking: 2, 1, and 0 not shown


def expected(estimate, orders):
    """Average an estimate of one request over orders, looks and what is wanted."""
    total = 0.0
    for chance, place in orders:
        for seen in product((0, 1), repeat=3):
            for wanted in product((0, 1), repeat=3):
                looked = THETA[list(place)]
                p = chance * np.prod(np.where(seen, looked, 1 - looked))
                p *= np.prod(np.where(wanted, WANTED, 1 - WANTED))
                total += p * estimate(np.array(seen) * np.array(wanted), looked)
    return total


def values(labels, looked, propensity, predicted=(0.1, 0.3, 0.4)):
    return logged_values(
        GAINS,
        labels[:, None],
        np.zeros(3, int),
        looked=looked,
        propensity=propensity,
        predicted=np.array(predicted)[:, None],
    )


@pytest.mark.parametrize("predicted", [(0.0, 0.0, 0.0), (0.9, 0.1, 0.7), tuple(WANTED)])
def test_in_random_order_the_doubly_robust_value_is_unbiased_whatever_is_predicted(predicted):
    orders = [(1 / 6, place) for place in permutations(range(3))]
    even = np.full(3, THETA.mean())
    result = expected(lambda y, seen: values(y, seen, even, predicted).robust[0, 0], orders)
    assert result == pytest.approx(GAINS @ WANTED)


def test_inverse_propensities_are_unbiased_in_random_and_in_fixed_order():
    orders = [(1 / 6, place) for place in permutations(range(3))]
    even = np.full(3, THETA.mean())
    assert expected(lambda y, t: values(y, t, even).ips[0, 0], orders) == pytest.approx(
        GAINS @ WANTED
    )
    assert expected(lambda y, t: values(y, t, even).mass[0], orders) == pytest.approx(GAINS.sum())
    fixed = [(1.0, (0, 1, 2))]
    assert expected(lambda y, t: values(y, t, t).ips[0, 0], fixed) == pytest.approx(GAINS @ WANTED)


def test_what_was_never_shown_is_predicted_and_lowers_the_support():
    looked = np.array([1.0, 0.6, 0.0])
    result = values(np.array([0, 1, 0]), looked, looked)
    assert result.support == pytest.approx(0.6 / 1.6)
    assert result.robust[0, 0] == pytest.approx(0.6 * (0.3 + (1 - 0.6 * 0.3) / 0.6) + 0.4)
    # The self-normalised value spreads what is known over all.
    assert result.estimates()[0][0] == pytest.approx(1.6 * (0.6 / 0.6) / 0.6)


def test_places_are_shared_by_ties_and_end_with_the_last_one():
    gains = place_gains([1.0, 1.0, 1.0, 5.0], [2, 2, 2, 1], [1.0, 0.5])
    assert gains.tolist() == [0.5, 0.5, 0.5, 1.0]
    assert place_gains([], np.empty(0, int), [1.0]).tolist() == []


def test_intervals_cover_and_lifts_are_paired():
    rng = np.random.default_rng(0)
    held, narrow = 0, []
    for _ in range(200):
        place = np.argsort(rng.random((400, 3)), axis=1)
        looked = THETA[place].ravel()
        wanted = rng.random(1200) < np.tile(WANTED, 400)
        labels = ((rng.random(1200) < looked) & wanted)[:, None]
        request = np.repeat(np.arange(400), 3)
        how = {"looked": looked, "propensity": np.full(1200, THETA.mean())}
        how["predicted"] = np.full((1200, 1), 0.4)
        new = logged_values(np.tile(GAINS, 400), labels, request, **how)
        old = logged_values(np.tile(GAINS[::-1], 400), labels, request, **how)
        true = np.array([GAINS @ WANTED, GAINS[::-1] @ WANTED])
        lift = 100 * (true[0] / true[1] - 1)
        ends = [(new.intervals(), true[0]), (new.lifts(old), lift), (new.lifts(new), 0.0)]
        narrow += [one[0].high - one[0].low for one in new.lifts(new)]
        held += np.array([[e[0].low <= t + 1e-9 and t - 1e-9 <= e[0].high for e in pair]
                          for pair, t in ends])  # fmt: skip
    assert held[:2].min() > 180
    assert max(narrow) == pytest.approx(0)


def test_bad_arrays_are_refused():
    with pytest.raises(UsageError, match="`propensity` must have shape"):
        values(np.zeros(3), THETA, THETA[:2])
    with pytest.raises(UsageError, match="`predicted` must be finite and of shape"):
        values(np.zeros(3), THETA, THETA, predicted=(0.1, np.nan, 0.2))
