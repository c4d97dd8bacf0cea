from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from harmonrank.data.rows.blocks import HeldBlocks
from harmonrank.model.density.density import MOST_STEADY, distinct_contexts
from harmonrank.model.density.density_spread import _looked
from harmonrank.model.density.density_sums import DensitySums, density_of, fit_density
from harmonrank.worlds import world

SLOTS = (4, 6)
EFFECTS = (np.array([-0.8, -0.2, 0.3, 0.9]), np.array([0.7, 0.4, 0.0, -0.3, -0.6, 0.1]))


def drawn(variance, rows=400_000, seed=1):
    """Draw logits with the given variance at each sum of effects."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, SLOTS, (rows, 2))
    wanted = variance(EFFECTS[0][codes[:, 0]] + EFFECTS[1][codes[:, 1]])
    return rng.normal(size=(rows, 1)) * np.sqrt(wanted)[:, None], codes, wanted


def error(density, codes, wanted):
    contexts, of_row = distinct_contexts(codes, SLOTS)
    return np.abs(density.variance_of(contexts)[of_row, 0] / wanted - 1).mean()


def test_noise_that_multiplies_is_told_from_signal_that_does_not():
    logits, codes, wanted = drawn(lambda effect: 3.0 + np.exp(effect))
    density = fit_density(logits, codes, SLOTS)
    plain = fit_density(logits, codes, SLOTS, steady=np.zeros(1))
    assert density.steady[0] == pytest.approx(3.0 / logits.var(), abs=0.06)
    assert error(density, codes, wanted) < 0.01 < error(plain, codes, wanted)


def test_effects_on_the_whole_variance_have_no_steady_part():
    logits, codes, wanted = drawn(np.exp)
    density = fit_density(logits, codes, SLOTS)
    assert density.steady[0] < 0.05
    assert error(density, codes, wanted) < 0.01


@pytest.mark.parametrize("rows", [20_000, 200_000])
def test_a_steady_part_at_its_bound_leaves_the_effects_free(rows):
    # Variances that fall faster than effects multiply: the likeliest steady part would be below 0.
    logits, codes, _ = drawn(lambda effect: np.maximum(np.exp(effect) - 0.15, 0.02), rows)
    density, plain = (
        fit_density(logits, codes, SLOTS, steady=given) for given in (None, np.zeros(1))
    )
    assert density.steady[0] == 0
    np.testing.assert_allclose(density.spread, plain.spread, atol=0.01)


def test_the_variances_of_a_world_are_those_of_its_contexts():
    place = world("qkvideo", redraw=1)
    sample = place.sample(200_000, seed=3, with_truth=False)
    codes = np.stack(list(sample.context.values()), axis=1).astype(np.int64)
    slots = tuple(place.context.values())
    logits = np.log(sample.scores.astype(float)) - np.log1p(-sample.scores.astype(float))
    contexts, of_row = distinct_contexts(codes, slots)
    view = place.at(sample.context, sample.time)
    wanted = view.a**2 * (np.diag(place.covariance) + view.tau**2)

    def off(density):
        return np.abs(density.variance_of(contexts)[of_row] / wanted - 1).mean()

    plain = fit_density(logits, codes, slots, steady=np.zeros(5))
    assert off(fit_density(logits, codes, slots)) < 0.5 * off(plain)


def test_a_steady_part_that_is_known_stays():
    logits, codes, _ = drawn(lambda effect: 3.0 + np.exp(effect), rows=20_000)
    assert fit_density(logits, codes, SLOTS, steady=np.array([0.3])).steady == 0.3


def test_slopes_are_those_of_the_likelihood():
    logits, codes, _ = drawn(lambda effect: 3.0 + np.exp(effect), rows=5_000)
    both = np.concatenate([logits, 2 * logits + 1], axis=1)
    sums = DensitySums.of(both, codes, SLOTS)
    density = replace(sums.density(SLOTS), steady=np.array([0.4, 0.7]))
    shift = density.base - sums.origin
    _, slope, curvature = _looked(sums, density, shift)
    for m, slot in product(range(2), range(len(density.spread))):
        ends = []
        for sign in (-1, 1):
            spread = density.spread.copy()
            spread[slot, m] += sign * 1e-5
            ends.append(_looked(sums, replace(density, spread=spread), shift)[0][m])
        assert (ends[1] - ends[0]) / 2e-5 == pytest.approx(slope[m, slot], rel=1e-4, abs=1e-3)
    for m in range(2):
        moved = 1e-5 * np.eye(2)[m]
        ends = [
            _looked(sums, replace(density, steady=density.steady + sign * moved), shift)[0][m]
            for sign in (-1, 1)
        ]
        assert (ends[1] - ends[0]) / 2e-5 == pytest.approx(slope[m, -1], rel=1e-4, abs=1e-3)
    np.testing.assert_array_equal(curvature, np.swapaxes(curvature, 1, 2))
    assert (np.linalg.eigvalsh(curvature) > -1e-6).all()


def test_blocks_give_the_density_of_all_rows():
    logits, codes, _ = drawn(lambda effect: 3.0 + np.exp(effect), rows=20_000)
    whole = DensitySums.of(logits, codes, SLOTS)
    parts = [
        DensitySums.of(logits[some], codes[some], SLOTS, origin=whole.origin)
        for some in (slice(7_000), slice(7_000, None))
    ]
    density, of_blocks = whole.density(SLOTS), density_of(HeldBlocks(parts), SLOTS)
    np.testing.assert_allclose(of_blocks.steady, density.steady, rtol=1e-6)
    np.testing.assert_allclose(of_blocks.spread, density.spread, rtol=1e-6, atol=1e-9)


def test_without_context_nothing_is_to_be_told():
    density = fit_density(
        np.random.default_rng(0).normal(size=(100, 2)), np.empty((100, 0), int), ()
    )
    np.testing.assert_array_equal(density.steady, 0)


@pytest.mark.parametrize("rows", [1, 2, 50])
def test_few_rows_or_one_value_leave_the_density_finite(rows):
    codes = np.random.default_rng(0).integers(0, SLOTS, (rows, 2))
    logits = np.stack([np.zeros(rows), np.arange(rows) * 5.0], axis=1)
    density = fit_density(logits, codes, SLOTS)
    assert np.isfinite(density.variance_of(codes)).all()
    assert np.isfinite(density.precision_of(codes)).all()
    assert (density.steady >= 0).all()
    assert (density.steady <= MOST_STEADY).all()
