from itertools import product

import numpy as np
import pytest

from harmonrank.model.coordinate import fit_coordinate
from harmonrank.model.density.density import distinct_contexts
from harmonrank.model.density.density_sums import fit_density
from harmonrank.model.missing.density_fit import fit_incomplete_density
from harmonrank.model.missing.gaps import Gaps, MissingDensity, distinct_sets
from logs import drawn_logits as drawn


def covariance(M, seed):
    root = np.random.default_rng(seed).normal(size=(M, M + 2))
    return root @ root.T


@pytest.mark.parametrize("M", [1, 2, 5])
def test_the_density_of_what_is_missing_is_the_conditional_normal(M):
    C = covariance(M, M)
    for lost in product([True, False], repeat=M):
        m, o = np.flatnonzero(lost), np.flatnonzero(~np.array(lost))
        missing = MissingDensity.of(np.linalg.inv(C)[None], np.array([lost]))
        gain, left = np.zeros((M, M)), np.zeros((M, M))
        if len(m):
            # The textbook's form, by the covariance: S_mo S_oo⁻¹ and S_mm − S_mo S_oo⁻¹ S_om.
            across = C[np.ix_(m, o)] @ np.linalg.inv(C[np.ix_(o, o)])
            gain[np.ix_(m, o)] = across
            left[np.ix_(m, m)] = C[np.ix_(m, m)] - across @ C[np.ix_(o, m)]
        np.testing.assert_allclose(missing.gain[0], gain, atol=1e-9)
        np.testing.assert_allclose(missing.covariance[0], left, atol=1e-9)


def test_conditional_moments_are_those_of_rows_that_look_alike():
    """Brute force: among draws whose first coordinate is near a value, the others have them."""
    C = covariance(3, 7)
    x = np.random.default_rng(0).multivariate_normal(np.zeros(3), C, 400_000)
    value = 0.7 * np.sqrt(C[0, 0])
    near = x[np.abs(x[:, 0] - value) < 0.02 * np.sqrt(C[0, 0])]
    missing = MissingDensity.of(np.linalg.inv(C)[None], np.array([[False, True, True]]))
    mean = missing.gain[0] @ [value, 0.0, 0.0]
    error = np.sqrt(np.diag(C) / len(near))
    assert (np.abs(near.mean(axis=0) - mean)[1:] < 4 * error[1:]).all()
    np.testing.assert_allclose(np.cov(near.T)[1:, 1:], missing.covariance[0, 1:, 1:], rtol=0.08)


def test_sets_of_many_flags_are_found_as_those_of_few():
    lost = np.random.default_rng(0).random((300, 70)) < 0.01
    sets, which = distinct_sets(lost)
    np.testing.assert_array_equal(sets[which], lost)
    few, of_row = distinct_sets(lost[:, :5])
    np.testing.assert_array_equal(few[of_row], lost[:, :5])


def test_blocks_of_pairs_give_what_all_of_them_give(monkeypatch):
    _, logits, codes, slots = drawn(rows=3000)
    density = fit_density(logits, codes, slots)
    logits[np.random.default_rng(0).random(logits.shape) < 0.2] = np.nan
    contexts, of_row = distinct_contexts(codes, slots)
    gaps, whole, parts = Gaps.of(logits, of_row), logits.copy(), logits.copy()
    gaps.fill(whole, density, contexts)
    monkeypatch.setattr("harmonrank.model.density.density._BLOCK_NUMBERS", 2000)
    gaps.fill(parts, density, contexts)
    np.testing.assert_array_equal(parts, whole)
    assert np.isfinite(whole).all()
    np.testing.assert_array_equal(whole[~np.isnan(logits)], logits[~np.isnan(logits)])


def test_a_density_of_whole_rows_is_that_of_fit_density_to_the_last_bit():
    _, logits, codes, slots = drawn(rows=3000)
    incomplete, plain = (
        fit_incomplete_density(logits, codes, slots),
        fit_density(logits, codes, slots),
    )
    for name in vars(plain):
        np.testing.assert_array_equal(getattr(incomplete, name), getattr(plain, name))


@pytest.mark.parametrize("share", [0.05, 0.4])
def test_the_density_is_found_from_incomplete_rows(share):
    _, logits, codes, slots = drawn(rows=30_000)
    density = fit_density(logits, codes, slots)
    deviation = np.exp(density.log_variance / 2)
    holed = logits.copy()
    holed[np.random.default_rng(0).random(holed.shape) < share] = np.nan
    fitted = fit_incomplete_density(holed, codes, slots)
    np.testing.assert_allclose(fitted.base / deviation, density.base / deviation, atol=0.02)
    scale = np.outer(deviation, deviation)
    np.testing.assert_allclose(
        fitted.covariance / scale, density.covariance / scale, atol=0.05 * share**0.5
    )
    assert np.abs((fitted.mean - density.mean) / deviation).mean() < 0.03
    assert np.abs(fitted.spread - density.spread).mean() < 0.04


def test_a_score_that_is_missing_where_another_is_high_does_not_mislead_the_density():
    """A mean of what is there is off by .3 deviations; the density is not."""
    _, logits, codes, slots = drawn(rows=30_000)
    density = fit_density(logits, codes, slots)
    deviation, holed = np.exp(density.log_variance / 2), logits.copy()
    holed[logits[:, 0] > np.quantile(logits[:, 0], 0.6), 1] = np.nan
    fitted = fit_incomplete_density(holed, codes, slots)
    assert abs(np.nanmean(holed[:, 1]) - density.base[1]) / deviation[1] > 0.2
    assert abs(fitted.base[1] - density.base[1]) / deviation[1] < 0.04


def test_a_coordinate_is_undone_by_its_inverse():
    sample, logits, _, _ = drawn("tails", rows=20_000)
    bent = fit_coordinate(logits**3 / 20, sample.labels)  # No logit of a calibrated model.
    assert bent.normal.any()
    away = np.concatenate(
        [logits, logits.min() - 1 + 0 * logits[:5], logits.max() + 1 + 0 * logits[:5]]
    )
    np.testing.assert_allclose(bent.inverse(bent(away)), away, atol=1e-7)


def test_coordinates_are_fitted_to_the_rows_that_have_the_score():
    sample, logits, _, _ = drawn(rows=20_000)
    kept = np.random.default_rng(0).random(len(logits)) < 0.7
    holed = np.where(kept[:, None], logits, np.nan)
    of_some = fit_coordinate(holed, sample.labels)
    of_kept = fit_coordinate(logits[kept], sample.labels[kept])
    for name in vars(of_some):
        np.testing.assert_allclose(getattr(of_some, name), getattr(of_kept, name), atol=1e-9)
    assert np.isnan(of_some(holed)[~kept]).all()
