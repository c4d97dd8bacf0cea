from dataclasses import replace

import numpy as np
import pytest

from harmonrank.metrics import auc, best_score
from harmonrank.model import Residual, fit_heads
from harmonrank.model.coordinate import fit_coordinate
from harmonrank.model.density.density import distinct_contexts, slot_counts
from harmonrank.model.density.density_sums import fit_density
from harmonrank.model.linear.head_columns import BY_CONTEXT, GROUPS, OWN
from harmonrank.model.linear.heads import _numbers
from harmonrank.model.linear.heads_sums import HeadSums, _runs
from harmonrank.model.scorer.heads_score import HeadScorer
from harmonrank.support.logistic import SMALLEST_SCORE
from harmonrank.worlds import world


def drawn(name="conflict", rows=20_000, start=0, place=None):
    place = place or world(name)
    sample = place.sample(rows, seed=7, start=start)
    codes = np.stack(list(sample.context.values()), axis=1).astype(np.int32)
    scores = np.clip(sample.scores, SMALLEST_SCORE, 1 - SMALLEST_SCORE)
    logits = np.log(scores) - np.log1p(-scores)
    return sample, logits, codes, tuple(place.context.values())


@pytest.fixture(scope="module")
def fitted():
    sample, logits, codes, slots = drawn()
    return fit_heads(logits, codes, slots, sample.labels)


def regret(heads, sample, logits, codes):
    return regret_of(heads.logits(logits, codes), sample)


def regret_of(logit, sample):
    pi = sample.truth.mean(axis=0)
    fused = 1 / (1 + np.exp(-logit)) @ (1 / (pi * (1 - pi)))
    return (auc(best_score(sample.truth), sample.truth) - auc(fused, sample.truth)).sum()


def plainly_calibrated(logits, labels, test_logits):
    """Return the logits of a logistic regression of each label on its own score alone."""
    calibrated = np.empty_like(test_logits)
    for m in range(labels.shape[1]):
        X = np.stack([np.ones(len(logits)), logits[:, m]], axis=1)
        theta = np.array([np.log(labels[:, m].mean()), 0.0])
        for _ in range(25):
            p = 1 / (1 + np.exp(-X @ theta))
            hessian = X.T @ (X * (p * (1 - p))[:, None]) + 1e-6 * np.eye(2)
            theta += np.linalg.solve(hessian, X.T @ (labels[:, m] - p))
        calibrated[:, m] = theta[0] + theta[1] * test_logits[:, m]
    return calibrated


def test_density_finds_the_moments_of_a_world():
    place = world("conflict")
    sample, logits, codes, slots = drawn(rows=200_000)
    density = fit_density(logits, codes, slots)
    view = place.at(sample.context, sample.time)
    contexts, of_row = distinct_contexts(codes, slots)
    np.testing.assert_allclose(
        density.centre_of(contexts)[of_row], view.a * view.mu + view.b, atol=0.08
    )
    signal = view.a[0] * view.a[0][:, None] * place.covariance
    off = ~np.eye(5, dtype=bool)
    np.testing.assert_allclose(density.covariance[off], signal[off], atol=0.03)
    variance = view.a**2 * (np.diag(place.covariance) + view.tau**2)
    assert np.abs(density.variance_of(contexts)[of_row] / variance - 1).mean() < 0.02


def test_precision_inverts_the_covariance_of_each_context():
    _, logits, codes, slots = drawn()
    density = fit_density(logits, codes, slots)
    contexts, _ = distinct_contexts(codes, slots)
    covariance = density.covariance * (1 - np.eye(5)) + density.variance_of(contexts)[
        :, :, None
    ] * np.eye(5)
    np.testing.assert_allclose(
        density.precision_of(contexts) @ covariance,
        np.broadcast_to(np.eye(5), covariance.shape),
        atol=1e-8,
    )


def test_impossible_correlations_are_shrunk_until_they_fit():
    _, logits, codes, slots = drawn()
    density = replace(fit_density(logits, codes, slots), covariance=np.full((5, 5), 40.0))
    values = np.linalg.eigvalsh(density.precision_of(codes[:50].astype(np.int64)))
    assert (values > 0).all()


def test_distinct_contexts_say_which_context_each_row_has():
    codes = np.random.default_rng(0).integers(0, [3, 1000, 5], (500, 3))
    for slots in [(3, 1000, 5), (3_000_000, 1000, 5), (2**31, 2**31, 2**31)]:
        contexts, of_row = distinct_contexts(codes, slots)
        np.testing.assert_array_equal(contexts[of_row], codes)
        assert len(np.unique(contexts, axis=0)) == len(contexts)


def test_scorer_equals_the_definition(fitted):
    sample, logits, codes, _ = drawn(rows=40_000, start=50_000)
    expected = 1 / (1 + np.exp(-fitted.logits(logits, codes)))
    scorer = HeadScorer(fitted)
    np.testing.assert_allclose(scorer.probabilities(sample.scores, codes), expected, rtol=1e-9)
    effective = np.array([5.0, 4.0, 3.0, 2.0, 1.0])
    fused = scorer.fuse(sample.scores, codes, effective)
    np.testing.assert_allclose(fused, expected @ effective, rtol=1e-9)
    scorer._records = None  # as with more contexts than are kept
    np.testing.assert_array_equal(scorer.fuse(sample.scores, codes, effective), fused)


@pytest.mark.parametrize("rows", [1, 700, 30_000])
def test_sums_are_the_derivatives_of_the_likelihood(fitted, rows):
    sample, logits, codes, slots = drawn(rows=rows)
    weight = np.random.default_rng(1).uniform(0.5, 2, rows)
    coordinates = fitted.coordinate(logits)
    data = HeadSums.of(fitted.density, coordinates, codes, slots, sample.labels, weight)
    _, slopes, curved = data.likelihood(fitted.theta)
    contexts, of_row = distinct_contexts(codes, slots)
    numbers = _numbers(fitted.density, coordinates, contexts, of_row)  # (rows, M, width)
    effects = np.concatenate([np.eye(size)[codes[:, f]] for f, size in enumerate(slots)], axis=1)
    for m in (0, 3):
        X = np.concatenate([numbers[:, m], effects], axis=1)  # the whole design
        p = 1 / (1 + np.exp(-X @ fitted.theta[m]))
        mass = np.abs(X).T @ weight
        expected = X.T @ (weight * (sample.labels[:, m] - p))
        np.testing.assert_allclose(slopes[m], expected, atol=1e-6 * mass.max())
        expected = X.T @ (X * (weight * p * (1 - p))[:, None])
        atol = 1e-5 * np.abs(expected).max()
        np.testing.assert_allclose(curved[m], expected, rtol=1e-4, atol=atol)


def test_a_context_of_many_rows_is_added_up_in_runs():
    start, context = _runs(np.array([1, 4097, 0, 2048]))
    assert start.tolist() == [0, 1, 2049, 4097, 4098, 6146]
    assert context.tolist() == [0, 1, 1, 1, 3]


def test_heads_beat_calibration_of_each_score_alone(fitted):
    sample, logits, codes, _ = drawn(rows=100_000, start=50_000)
    alone = np.zeros_like(fitted.theta)
    alone[:, :2] = fitted.theta[:, :2]
    plain = replace(fitted, theta=alone)
    assert regret(fitted, sample, logits, codes) < 0.7 * regret(plain, sample, logits, codes)


def test_denoising_coefficients_are_those_of_tweedie():
    place = world("qkvideo")
    sample, logits, codes, slots = drawn(rows=200_000, place=place)
    heads = fit_heads(logits, codes, slots, sample.labels, residual=False)
    own, by_context = heads.theta[:, OWN], heads.theta[:, BY_CONTEXT]
    np.testing.assert_allclose(by_context, -own, rtol=0.25)
    assert by_context.mean() == pytest.approx(-own.mean(), rel=0.1)
    signal = place.at(sample.context, sample.time).a[0] ** 2 * np.diag(place.covariance)
    noise_shares = 1 - signal / np.exp(heads.density.log_variance)
    np.testing.assert_allclose(heads.noise_shares(), noise_shares, rtol=0.25)
    assert heads.precision[:, GROUPS.index("others")].min() > 300  # nothing is left for them to say
    # What the heads add to a plain calibration is what the exact posterior adds to it.
    truth = np.log(sample.truth) - np.log1p(-sample.truth)
    wrong = []
    for m, estimate in enumerate(heads.logits(logits, codes).T):
        X = np.stack([np.ones(len(logits)), logits[:, m]], axis=1)
        both = np.stack([estimate, truth[:, m]], axis=1)
        both -= X @ np.linalg.lstsq(X, both, rcond=None)[0]
        wrong.append(np.std(both[:, 0] - both[:, 1]) / np.std(both[:, 1]))
    assert np.mean(wrong) < 0.25


@pytest.mark.parametrize(
    ("name", "of_plain", "of_linear"),
    [("backbone", 0.3, 1.05), ("tails", 0.3, 0.75), ("leak", 0.3, 0.6)],
)
def test_where_the_density_is_wrong_heads_still_beat_a_plain_calibration(name, of_plain, of_linear):
    sample, logits, codes, slots = drawn(name, rows=50_000)
    test, test_logits, test_codes, _ = drawn(name, rows=50_000, start=200_000)
    heads = fit_heads(logits, codes, slots, sample.labels)
    linear = replace(heads, residual=Residual.none(5, slots))
    plain = regret_of(plainly_calibrated(logits, sample.labels, test_logits), test)
    of_heads = regret(heads, test, test_logits, test_codes)
    assert of_heads < of_plain * plain
    assert of_heads < of_linear * regret(linear, test, test_logits, test_codes)


def test_correlated_noise_is_left_to_the_coefficients_of_other_scores():
    sample, logits, codes, slots = drawn("backbone", rows=50_000)
    heads = fit_heads(logits, codes, slots, sample.labels, residual=False)
    # Signal and noise share their correlations, so the surprise does not tell the noise.
    assert heads.noise_shares().max() < 0.05
    assert heads.precision[:, GROUPS.index("others")].min() < 100
    test, test_logits, test_codes, _ = drawn("backbone", rows=50_000, start=200_000)
    plain = regret_of(plainly_calibrated(logits, sample.labels, test_logits), test)
    assert regret(heads, test, test_logits, test_codes) < 0.3 * plain


def test_recalibration_follows_an_upstream_swap_without_labels(fitted):
    place = world("conflict").with_upstream(("comment", "like"), a=1.7, b=-0.8)
    before = regret(fitted, *[drawn(rows=100_000, start=90_000)[k] for k in (0, 1, 2)])
    sample, logits, codes, slots = drawn(rows=100_000, start=90_000, place=place)
    stale = regret(fitted, sample, logits, codes)
    coordinate = fitted.coordinate.refitted(logits)
    now = fit_density(coordinate(logits), codes, slots)
    density = fitted.density.recalibrated(now, slot_counts(codes, slots))
    fresh = regret(replace(fitted, coordinate=coordinate, density=density), sample, logits, codes)
    np.testing.assert_allclose(density.scale, [1, 1.7, 1, 1.7, 1], rtol=0.05)
    assert fresh < before + 0.002 < stale


def test_weights_act_as_copies(fitted):
    sample, logits, codes, slots = drawn(rows=4_000)
    weight = np.random.default_rng(3).integers(0, 3, 4_000)
    again = np.repeat(np.arange(4_000), weight)
    weighted = fit_heads(logits, codes, slots, sample.labels, weight.astype(float))
    copied = fit_heads(logits[again], codes[again], slots, sample.labels[again])
    np.testing.assert_allclose(weighted.theta, copied.theta, atol=1e-3)


def test_heads_without_context_and_of_one_objective():
    sample, logits, _, _ = drawn(rows=5_000)
    none = np.zeros((5_000, 0), dtype=np.int32)
    for columns in ([0, 4], [4]):
        heads = fit_heads(logits[:, columns], none, (), sample.labels[:, columns])
        assert np.isfinite(heads.theta).all()
        assert HeadScorer(heads).probabilities(sample.scores[:, columns], none).shape == (
            5_000,
            len(columns),
        )


def test_a_score_that_never_varies_does_no_harm():
    sample, logits, codes, slots = drawn(rows=20_000)
    test, test_logits, test_codes, _ = drawn(rows=50_000, start=200_000)
    logits[:, 2] = test_logits[:, 2] = 0.0
    heads = fit_heads(logits, codes, slots, sample.labels)
    assert np.isfinite(heads.theta).all()
    plain = regret_of(plainly_calibrated(logits, sample.labels, test_logits), test)
    assert regret(heads, test, test_logits, test_codes) < 0.8 * plain


def bend(logits, columns):
    bent = logits.copy()
    bent[:, columns] = 3 * np.tanh((bent[:, columns] - np.median(bent[:, columns], axis=0)) / 3) - 4
    return bent


def test_a_bent_score_is_straightened_and_a_straight_one_left_alone():
    sample, logits, _, _ = drawn(rows=100_000)
    coordinate = fit_coordinate(bend(logits, [1, 3]), sample.labels)
    np.testing.assert_array_equal(coordinate.normal, [0, 1, 0, 1, 0])
    coordinates = coordinate(bend(logits, [1, 3]))
    for m in (1, 3):
        assert np.corrcoef(coordinates[:, m], logits[:, m])[0, 1] > 0.999
    for m in (0, 2, 4):
        np.testing.assert_allclose(coordinates[:, m], logits[:, m], atol=1e-9)


def test_coordinates_rise_everywhere_also_beyond_what_was_seen():
    sample, logits, _, _ = drawn(rows=50_000)
    coordinate = fit_coordinate(bend(logits, [1, 3]), sample.labels)
    x = np.tile(np.linspace(-20, 20, 4001)[:, None], (1, 5))
    assert (np.diff(coordinate(x), axis=0) > 0).all()


def test_any_rising_transform_of_a_score_costs_next_to_nothing():
    sample, logits, codes, slots = drawn(rows=100_000)
    test, test_logits, test_codes, _ = drawn(rows=100_000, start=200_000)
    straight = fit_heads(logits, codes, slots, sample.labels)
    bent = fit_heads(bend(logits, [1, 3]), codes, slots, sample.labels)
    assert regret(bent, test, bend(test_logits, [1, 3]), test_codes) == pytest.approx(
        regret(straight, test, test_logits, test_codes), abs=0.002
    )


def test_a_score_of_few_values_keeps_its_logit():
    sample, logits, _, _ = drawn(rows=5_000)
    coordinate = fit_coordinate(np.round(logits), sample.labels)
    assert not coordinate.normal.any()


@pytest.mark.parametrize("change", [{"tau_scale": 1.5}, {"a": 1.5, "tau_scale": 0.6}])
def test_recalibration_weighs_an_upstream_model_by_its_new_noise(fitted, change):
    place = world("conflict").with_upstream(("comment", "like"), **change)
    before = regret(fitted, *[drawn(rows=100_000, start=90_000)[k] for k in (0, 1, 2)])
    sample, logits, codes, slots = drawn(rows=100_000, start=90_000, place=place)
    density = fitted.density.recalibrated(
        fit_density(logits, codes, slots), slot_counts(codes, slots)
    )
    fresh = regret(replace(fitted, density=density), sample, logits, codes)
    assert fresh < regret(fitted, sample, logits, codes)
    assert fresh < before + 0.003


def test_few_recent_rows_change_only_what_they_prove():
    rng = np.random.default_rng(0)

    def drawn(n, shift):
        codes = rng.integers(0, 20, (n, 1)).astype(np.int32)
        signal = rng.normal(size=(n, 1))
        logits = signal + rng.normal(size=(n, 3)) + 0.5 * np.sin(codes)
        logits[:, 1] = 1.5 * logits[:, 1] - 1 + shift * (codes[:, 0] % 2)
        return logits, codes

    old = fit_density(*drawn(400_000, 0.0), (20,))
    logits, codes = drawn(4000, 0.0)
    same = old.recalibrated(fit_density(logits, codes, (20,)), slot_counts(codes, (20,)))
    contexts = np.arange(20)[:, None]
    truth = old.centre_of(contexts)
    # Each context has 200 rows, of which the mean alone would be off by .1.
    assert np.abs(same.centre_of(contexts) - truth).max() < 0.08
    np.testing.assert_allclose(same.covariance[0, 2], old.covariance[0, 2], atol=0.05)
    logits, codes = drawn(4000, 2.0)
    moved = old.recalibrated(fit_density(logits, codes, (20,)), slot_counts(codes, (20,)))
    centre = moved.centre_of(contexts)[:, 1]
    np.testing.assert_allclose(centre - truth[:, 1], 2.0 * (contexts[:, 0] % 2), atol=0.35)
    others = moved.centre_of(contexts)[:, [0, 2]] - truth[:, [0, 2]]
    assert np.sqrt((others**2).mean()) < 0.06
