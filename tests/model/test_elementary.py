import numpy as np
import pytest

from harmonrank.model.scorer.elementary import take_logarithms, take_logits, take_sigmoids
from harmonrank.support import score_logit
from harmonrank.support.simd import SINGLES


def taken(take, x):
    result = np.append(x, np.full(-len(x) % SINGLES, 0.5))  # eight at a time
    take(result)
    return result[: len(x)]


def test_logarithms_are_those_of_the_library():
    rng = np.random.default_rng(0)
    near_one = 1 + np.concatenate([[0.0], np.geomspace(1e-16, 0.4, 999)])
    x = np.concatenate([np.exp(rng.uniform(-300, 300, 100_000)), near_one, 1 / near_one])
    np.testing.assert_allclose(taken(take_logarithms, x), np.log(x), rtol=4e-16, atol=1e-13)


def test_logits_are_bounded_at_0_and_1():
    ends = [0.0, 1e-300, 1e-9, 1e-8, 0.5, 1 - 1e-9, 1.0]
    scores = np.concatenate([np.random.default_rng(1).random(50_000), ends])
    np.testing.assert_allclose(
        taken(take_logits, scores), score_logit(scores), rtol=4e-16, atol=1e-13
    )


def test_sigmoids_are_those_of_the_library():
    x = np.random.default_rng(2).uniform(-650, 650, 100_000)
    x = np.concatenate([x, x / 100, [0.0, -0.0, 1e-300]])
    np.testing.assert_allclose(taken(take_sigmoids, x), 1 / (1 + np.exp(-x)), rtol=2e-13)
    far = np.array([-np.inf, -1e300, -701.0, 701.0, 1e300, np.inf])
    sigmoids = taken(take_sigmoids, far)
    assert (sigmoids[:3] < 1e-300).all()
    np.testing.assert_array_equal(sigmoids[3:], 1.0)


def test_a_rising_logit_never_lowers_the_probability():
    x = np.linspace(-40, 40, 1_000_001)
    assert (np.diff(taken(take_sigmoids, x)) >= -1e-13).all()


@pytest.mark.parametrize("take", [take_logits, take_logarithms, take_sigmoids])
def test_nan_stays_nan(take):
    assert np.isnan(taken(take, np.array([0.3, np.nan]))).tolist() == [False, True]


@pytest.mark.parametrize("take", [take_logits, take_logarithms, take_sigmoids])
def test_a_number_is_treated_alike_wherever_it_stands(take):
    x = np.random.default_rng(3).random(131)
    whole = taken(take, x)
    for size in range(1, 131, 7):
        np.testing.assert_array_equal(taken(take, x[:size]), whole[:size])
