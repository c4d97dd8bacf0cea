"""Sums in place of rows: moments, quadratics, a reservoir, and the heads that they give."""

from dataclasses import replace

import numpy as np

from harmonrank.model import fit_heads
from harmonrank.model.density.density_sums import DensitySums, fit_density
from harmonrank.model.linear.head_quadratic import HeadQuadratic, Pooled
from harmonrank.model.linear.heads_sums import HeadSums
from harmonrank.model.missing.density_fit import incomplete_sums
from harmonrank.model.running.reservoir import Reservoir
from harmonrank.model.running.running_heads import RunningHeads


def rows_of(n=6000, seed=0):
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(0, 4, n), rng.integers(0, 3, n)], axis=1).astype(np.int32)
    signal = rng.normal(size=(n, 1)) + 0.3 * codes[:, :1]
    logits = signal + rng.normal(size=(n, 3)) * np.array([0.5, 1.0, 1.5]) - 2
    labels = (rng.random((n, 3)) < 1 / (1 + np.exp(2 - signal))).astype(np.uint8)
    return logits, codes, (4, 3), labels


def test_moments_of_parts_add_up_to_those_of_the_whole():
    logits, codes, slots, _ = rows_of()
    whole = DensitySums.of(logits, codes, slots)
    origin = np.array([5.0, -3.0, 0.0])
    parts = [
        DensitySums.of(logits[part], codes[part], slots, origin=origin)
        for part in np.array_split(np.arange(len(logits)), 3)
    ]
    density, added = whole.density(slots), (parts[0] + parts[1] + parts[2]).density(slots)
    for name in ("base", "mean", "log_variance", "spread", "covariance"):
        np.testing.assert_allclose(getattr(added, name), getattr(density, name), atol=1e-9)


def test_faded_moments_are_those_of_rows_that_count_less():
    logits, codes, slots, _ = rows_of()
    half = len(logits) // 2
    weight = np.where(np.arange(len(logits)) < half, 0.25, 1.0)
    origin = np.zeros(3)
    old = DensitySums.of(logits[:half], codes[:half], slots, origin=origin)
    new = DensitySums.of(logits[half:], codes[half:], slots, origin=origin)
    faded, density = (
        (old.faded(0.25) + new).density(slots),
        fit_density(logits, codes, slots, weight),
    )
    np.testing.assert_allclose(faded.covariance, density.covariance, atol=1e-9)
    np.testing.assert_allclose(faded.mean, density.mean, atol=1e-9)


def test_moments_of_rows_with_gaps_give_the_density_that_filled_them():
    logits, codes, slots, _ = rows_of(4000, 3)
    coordinates = logits.copy()
    coordinates[np.random.default_rng(1).random(coordinates.shape) < 0.2] = np.nan
    density = incomplete_sums(coordinates, codes, slots, None).density(slots)
    np.testing.assert_allclose(
        density.covariance, fit_density(logits, codes, slots).covariance, rtol=0.1
    )


def test_a_quadratic_touches_the_likelihood_and_adds_up():
    logits, codes, slots, labels = rows_of()
    heads = fit_heads(logits, codes, slots, labels, residual=False)
    data = HeadSums.of(heads.density, logits, codes, slots, labels, None)
    touching = HeadQuadratic.at(heads.theta, data)
    _, slope, curvature = data.likelihood(heads.theta)
    at = touching.likelihood(heads.theta)
    np.testing.assert_allclose(at.slope, slope, atol=1e-6)
    np.testing.assert_allclose(at.curvature, curvature)
    pooled = Pooled((touching, data)).likelihood(heads.theta)
    np.testing.assert_allclose(pooled.slope, 2 * slope, atol=1e-6)
    half = touching.faded(0.5) + touching.faded(0.5)
    np.testing.assert_allclose(half.pull, touching.pull)


def test_the_log_likelihood_is_the_sum_over_labels():
    logits, codes, slots, labels = rows_of(700)
    heads = fit_heads(logits, codes, slots, labels, residual=False)
    data = HeadSums.of(heads.density, logits, codes, slots, labels, None)
    p = 1 / (1 + np.exp(-heads.logits(logits, codes)))
    by_hand = np.log(np.where(labels == 1, p, 1 - p)).sum()
    np.testing.assert_allclose(data.likelihood(heads.theta).value.sum(), by_hand, rtol=1e-5)


def filled(most, n=20_000, half_life=np.inf, times=(0.0,)):
    rng = np.random.default_rng(5)
    reservoir = Reservoir.empty(most, 2, 1)
    for time in times:
        p = rng.beta(0.3, 3.0, size=(n, 2))
        labels = (rng.random((n, 2)) < p).astype(np.uint8)
        codes = np.full((n, 1), int(time), np.int32)
        reservoir = reservoir.with_rows(p, codes, labels, None, p, time, half_life)
    return reservoir


def test_a_reservoir_stands_for_all_rows_that_came():
    whole, sample = filled(100_000), filled(2000)
    assert not whole.thinned
    assert (whole.weights(0.0, np.inf) == 1).all()
    assert len(sample.weight) == 2000
    w = sample.weights(0.0, np.inf)
    assert abs(w.sum() / 20_000 - 1) < 0.1
    # All but a few positives stay, and stand for themselves.
    np.testing.assert_allclose(w @ sample.labels, whole.labels.sum(axis=0), rtol=0.1)
    np.testing.assert_allclose(w @ sample.places, whole.places.sum(axis=0), rtol=0.1)
    share = sample.labels.max(axis=1).mean()
    assert share > 2 * whole.labels.max(axis=1).mean()


def test_newer_rows_are_preferred_as_old_ones_fade():
    sample = filled(3000, half_life=1.0, times=(0.0, 1.0, 2.0, 3.0))
    counts = np.bincount(sample.codes[:, 0], minlength=4)
    assert (np.diff(counts) > 0).all()
    w = sample.weights(3.0, 1.0)
    by_time = np.bincount(sample.codes[:, 0], w, 4)
    np.testing.assert_allclose(by_time, 20_000 * 0.5 ** np.arange(3, -1, -1), rtol=0.25)


def running(rows, parts, **options):
    logits, codes, slots, labels = rows
    first, *later = np.array_split(np.arange(len(logits)), parts)
    heads = fit_heads(logits[first], codes[first], slots, labels[first])
    state = RunningHeads.of(
        heads, logits[first], codes[first], labels[first], None, time=0.0, **options
    )
    for hour, part in enumerate(later, 1):
        state = state.learned(logits[part], codes[part], labels[part], None, float(hour))
    return state


def test_hours_without_forgetting_end_at_the_heads_of_all_rows():
    rows = rows_of(30_000)
    logits, codes, slots, labels = rows
    hourly = running(rows, 5, half_lives=(np.inf,)).heads
    whole = fit_heads(logits, codes, slots, labels)
    assert (whole.coordinate.normal == hourly.coordinate.normal).all()
    np.testing.assert_allclose(hourly.density.covariance, whole.density.covariance, atol=1e-9)
    data = HeadSums.of(whole.density, whole.coordinate(logits), codes, slots, labels, None)
    # Rows leave a likelihood open by some nats a head; the sums are closer to its top than that.
    lost = data.likelihood(whole.theta).value - data.likelihood(hourly.theta).value
    assert abs(lost.sum()) < 1.5
    before, after = whole.logits(logits, codes), hourly.logits(logits, codes)
    assert (np.abs(after - before).std(axis=0) < 0.02 * before.std(axis=0)).all()


def test_prevalence_fades_too():
    logits, codes, slots, labels = rows_of(8000)
    labels[4000:, 0] = 1
    labels[:4000, 0] = np.arange(4000) % 2
    kept = running((logits, codes, slots, labels), 2, half_lives=(np.inf,))
    short = running((logits, codes, slots, labels), 2, half_lives=(0.5,))
    np.testing.assert_allclose(kept.prevalence[0], 0.75)
    np.testing.assert_allclose(short.prevalence[0], (0.25 * 0.5 + 1) / 1.25)


def test_more_context_values_change_nothing_for_the_old_ones():
    rows = rows_of(8000)
    logits, codes, _, _ = rows
    narrow = running(rows, 2, half_lives=(np.inf,))
    maps = [np.array([0, 1, 3, 4]), np.array([0, 1, 2])]
    wide = narrow.recoded(maps, (5, 3))
    moved = np.stack([maps[0][codes[:, 0]], codes[:, 1]], axis=1)
    again = wide.recoded([np.arange(5), np.arange(3)], (5, 3))
    np.testing.assert_array_equal(again.heads.theta, wide.heads.theta)
    plain = [
        replace(h, residual=r._none()) for h, r in ((narrow.heads, narrow), (wide.heads, wide))
    ]
    before, after = plain[0].logits(logits, codes), plain[1].logits(logits, moved)
    np.testing.assert_allclose(after, before, atol=1e-6)


def test_recalibrated_scores_of_another_scale_give_the_same_logits():
    rows = rows_of(20_000)
    logits, codes, _, _ = rows
    state = running(rows, 2, half_lives=(np.inf,))
    changed = logits * np.array([1.0, 1.5, 1.0]) + np.array([0.0, -0.7, 0.0])
    heads = state.recalibrated(changed, codes).heads
    before, after = state.heads.logits(logits, codes), heads.logits(changed, codes)
    assert np.abs(after - before).std() < 0.05 * before.std()
    # Rows of the reservoir are where their new scores would be.
    kept = state.recalibrated(changed, codes).reservoir.places
    np.testing.assert_allclose(kept, changed, atol=0.1)
