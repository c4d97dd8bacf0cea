from dataclasses import fields, replace

import numpy as np
import pytest

import harmonrank as hr
from check_method import SCHEMA, planted
from harmonrank.model import Residual, fit_heads
from harmonrank.model.density.density import distinct_contexts
from harmonrank.model.linear.heads_recalibration import recalibrated_heads
from harmonrank.model.linear.heads_sums import periods_of
from harmonrank.model.scorer.heads_score import HeadScorer
from harmonrank.model.terms.residual import (
    CURVE_KNOTS,
    FINE_KNOTS,
    REFINED,
    inputs_of,
    residual_sizes,
)
from harmonrank.model.terms.residual_blocks import Look
from harmonrank.model.terms.residual_fit import _dispersions
from harmonrank.model.terms.residual_kernels import CURVE, FINE, SURFACE
from harmonrank.model.terms.residual_sums import (
    KINDS,
    PAIR,
    VALUE,
    ResidualRows,
    blocks_of,
    groups_of,
)
from harmonrank.support import limited_threads
from harmonrank.support.errors import DataError
from harmonrank.support.storage.stored import declared, restored, stored

SLOTS = (4, 3)


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def drawn(bend, rows=40_000, seed=0):
    """Scores of three objectives whose true logit is their own score, bent by `bend`."""
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(0, s, rows) for s in SLOTS], axis=1).astype(np.int32)
    common = rng.normal(size=(rows, 1))
    u = 0.6 * common + 0.8 * rng.normal(size=(rows, 3))
    truth = sigmoid(np.array([-1.5, -1.0, -2.0]) + u + bend(u, codes))
    labels = (rng.random((rows, 3)) < truth).astype(np.int8)
    return 1.3 * u - 1.0, codes, labels, truth


def nothing(u, codes):
    return 0.0


def product(u, codes):
    return np.outer(1.2 * np.tanh(u[:, 0]) * np.tanh(u[:, 1]), [1.0, 1.0, 0.0])


def fold(u, codes):
    return np.outer(-2.5 * np.maximum(u[:, 2] - 0.5, 0.0), [0.0, 0.0, 1.0])


def bands(u, codes):
    """Chances are high in four narrow ranges of a score."""
    inside = (np.abs(u[:, :1] - np.array([-1.3, -0.4, 0.3, 1.1])) < 0.06).any(axis=1)
    return np.outer(2.0 * inside, [1.0, 0.0, 0.0])


def by_context(u, codes):
    return np.outer(np.array([-0.8, 0.0, 0.4, 0.9])[codes[:, 0]] * u[:, 1], [0.0, 0.0, 1.0])


def cells(u, codes):
    return np.outer(np.where((codes[:, 0] == 1) & (codes[:, 1] == 2), 1.5, 0.0), [1.0, 1.0, 1.0])


@pytest.fixture(scope="module")
def bent():
    logits, codes, labels, _ = drawn(product)
    return fit_heads(logits, codes, SLOTS, labels)


def excess(heads, logits, codes, truth):
    """Cross entropy beyond that of the truth, in thousandths of a nat per row and head."""
    p = sigmoid(heads.logits(logits, codes))
    return 1e3 * (truth * np.log(truth / p) + (1 - truth) * np.log((1 - truth) / (1 - p))).mean()


def without(heads):
    return replace(heads, residual=Residual.none(3, SLOTS))


@pytest.mark.parametrize("bend", [product, fold, bands, by_context, cells])
def test_residual_finds_what_linear_heads_miss(bend):
    logits, codes, labels, _ = drawn(bend)
    heads = fit_heads(logits, codes, SLOTS, labels)
    logits, codes, _, truth = drawn(bend, seed=1)
    linear = excess(without(heads), logits, codes, truth)
    assert excess(heads, logits, codes, truth) < 0.4 * linear


@pytest.mark.parametrize("seed", range(3))
def test_residual_does_no_harm_where_there_is_nothing_to_find(seed):
    logits, codes, labels, _ = drawn(nothing, rows=20_000, seed=10 + seed)
    heads = fit_heads(logits, codes, SLOTS, labels)
    logits, codes, _, truth = drawn(nothing, seed=1)
    linear = excess(without(heads), logits, codes, truth)
    assert excess(heads, logits, codes, truth) < linear + 0.05


def test_what_is_narrower_than_knots_are_apart_has_a_fine_curve_in_its_head_alone():
    logits, codes, labels, _ = drawn(bands)
    result = fit_heads(logits, codes, SLOTS, labels).residual
    assert result.knots == FINE_KNOTS
    # The other heads have what is straight between coarse knots, or nothing.
    coarse = result.curve[1:, :, :: (FINE_KNOTS - 1) // (CURVE_KNOTS - 1)]
    np.testing.assert_allclose(result.curve[1:], coarse @ REFINED.T, atol=1e-12)
    inside = result.curve[0, 0].max() - np.median(result.curve[0, 0])
    assert 1.0 < inside < 3.0


@pytest.mark.parametrize("bend", [nothing, product, fold, by_context, cells])
def test_smooth_effects_have_no_fine_curve(bend):
    logits, codes, labels, _ = drawn(bend)
    assert fit_heads(logits, codes, SLOTS, labels).residual.knots == CURVE_KNOTS


def test_fine_curves_are_stored_and_those_with_other_knots_are_refused():
    none = Residual.none(3, SLOTS)
    fine = replace(none, curve=np.ones((3, 7, FINE_KNOTS)))
    parts, arrays = stored(fine)
    np.testing.assert_array_equal(restored(Residual, parts, arrays).curve, fine.curve)
    with pytest.raises(DataError, match="16 or 121 knots, got 17"):
        restored(Residual, parts, {**arrays, "curve": np.ones((3, 7, 17))})


def test_an_effect_that_turns_around_is_not_admitted():
    logits, codes, labels, _ = drawn(product)
    turned, _, other, _ = drawn(lambda u, codes: -product(u, codes), rows=15_000, seed=1)
    later = np.concatenate([logits[:25_000], turned])
    answers = np.concatenate([labels[:25_000], other])
    shuffled = np.random.default_rng(0).permutation(len(later))
    codes = codes[: len(later)]
    in_order = fit_heads(later, codes, SLOTS, answers)
    mixed = fit_heads(later[shuffled], codes[shuffled], SLOTS, answers[shuffled])
    # In the mixture there is a mean effect; in order, the halves of the log contradict each other.
    assert len(mixed.residual.joined) > len(in_order.residual.joined)


# Halves of the log contradict each other about the last; they would let the others pass.
@pytest.mark.parametrize(("scale", "seed"), [(0.15, 9), (0.2, 8), (0.3, 9)])
def test_an_effect_of_context_that_comes_and_goes_is_not_admitted(scale, seed):
    rng = np.random.default_rng(seed)
    effects = rng.normal(scale=scale, size=(16, *SLOTS))

    def changing(u, codes):
        day = np.arange(len(u)) * 16 // len(u)
        return np.outer(effects[day, codes[:, 0], codes[:, 1]], [1.0, 1.0, 1.0])

    logits, codes, labels, _ = drawn(changing, seed=seed)
    mixed = rng.permutation(len(logits))
    in_order = fit_heads(logits, codes, SLOTS, labels)
    shuffled = fit_heads(logits[mixed], codes[mixed], SLOTS, labels[mixed])
    # What is left of the effects in the mean of all days is there in every part of a mixture.
    assert np.abs(shuffled.residual.pair).max() > 0
    assert np.abs(in_order.residual.pair).max() == 0


@pytest.mark.parametrize("copies", [1, 3])
def test_dispersion_tells_how_many_rows_are_copies(copies):
    rng = np.random.default_rng(5)
    count, M = 40_000, 3
    codes = np.stack([rng.integers(0, s, count) for s in SLOTS], axis=1)
    heads = rng.normal(size=(count, M)).astype(np.float32) - 1
    labels = (rng.random((count, M)) < sigmoid(heads)).astype(np.float32)
    codes, heads, labels = (np.repeat(x, copies, axis=0) for x in (codes, heads, labels))
    rows = count * copies
    contexts, of_row = distinct_contexts(codes, SLOTS)
    ends = np.full(2 * M + 1, 2.0)
    data = ResidualRows(
        SLOTS, -ends, ends, np.zeros((rows, 2 * M + 1), np.float32), contexts,
        of_row.astype(np.int32), heads, np.ascontiguousarray(labels.T), np.ones(rows, np.float32),
        periods_of(np.arange(rows), rows),
    )  # fmt: skip
    groups = groups_of(M, SLOTS)
    periods = data.look(groups)
    for m, total in enumerate(data.totals()):
        drawn_rows = data.sample(heads[:, m], total / 50_000, m)
        blocks = blocks_of(groups, data.bands(groups, *drawn_rows))
        dispersions = _dispersions(Look(periods[:, :, m], blocks), groups)
        # Eight periods of twelve cells: a standard error of 15 %.
        assert copies == pytest.approx(dispersions[PAIR], rel=0.35)
        # An intercept takes much of what few values vary by, so that they tell less.
        assert (dispersions[VALUE] > 1.2) == (copies > 1)


def test_kernel_scores_as_the_definition_says(bent):
    logits, codes, _, _ = drawn(product, rows=3_000, seed=2)
    assert len(bent.residual.joined) > 0
    expected = sigmoid(bent.logits(logits, codes))
    scorer, scores = HeadScorer(bent), sigmoid(logits)
    np.testing.assert_allclose(scorer.probabilities(scores, codes), expected, atol=1e-6)
    weights = np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(scorer.fuse(scores, codes, weights), expected @ weights, rtol=1e-5)


def test_more_heads_than_a_vector_holds_are_scored_alike():
    rng = np.random.default_rng(0)
    M = 10
    u = rng.normal(size=(6_000, M)) + rng.normal(size=(6_000, 1))
    labels = (rng.random(u.shape) < sigmoid(u - 1)).astype(np.int8)
    codes = np.zeros((len(u), 1), np.int32)
    heads = fit_heads(u, codes, (1,), labels, residual=False)
    none = heads.residual
    curve = 0.3 * rng.normal(size=none.curve.shape)
    surface = 0.3 * rng.normal(size=none.surface.shape)
    surface[:, 7:] = 0
    ends = np.full(2 * M + 1, 2.0)
    heads = replace(
        heads, residual=replace(none, low=-ends, high=ends, curve=curve, surface=surface)
    )
    assert len(heads.residual.joined) == 7
    p = HeadScorer(heads).probabilities(sigmoid(u), codes)
    np.testing.assert_allclose(p, sigmoid(heads.logits(u, codes)), atol=1e-6)


def test_gradient_and_curvature_match_brute_force():
    rng = np.random.default_rng(3)
    rows, M = 400, 3
    codes = np.stack([rng.integers(0, s, rows) for s in SLOTS], axis=1)
    contexts, of_row = distinct_contexts(codes, SLOTS)
    inputs = rng.normal(size=(rows, 2 * M + 1)).astype(np.float32)
    heads = rng.normal(size=(rows, M)).astype(np.float32)
    labels = rng.integers(0, 2, (M, rows)).astype(np.float32)
    weight = rng.uniform(0.5, 2, rows).astype(np.float32)
    low, high = np.full(2 * M + 1, -2.0), np.full(2 * M + 1, 2.0)
    data = ResidualRows(
        SLOTS, low, high, inputs, contexts, of_row.astype(np.int32), heads, labels, weight,
        (np.arange(rows) % 3 == 0).astype(np.uint8),
    )  # fmt: skip
    groups = groups_of(M, SLOTS)
    size = 2 + M + sum(group.size for group in groups)
    theta = 0.1 * rng.normal(size=size)

    def residual(theta):
        """Put the coefficients of head 1 where the definition looks for them."""
        none = Residual.none(M, SLOTS)
        names = [field.name for field in fields(Residual)][3:]
        arrays = {name: getattr(none, name).copy() for name in names}
        arrays["fine"] = np.zeros((M, 2 * M + 1, FINE_KNOTS))
        arrays["linear"][1], start = theta[: 2 + M], 2 + M
        for group in groups:
            flat = arrays[KINDS[group.kind]].reshape(M, -1)
            flat[1, group.first : group.first + group.size] = theta[start : start + group.size]
            start += group.size
        arrays["curve"] = arrays["curve"] @ REFINED.T + arrays.pop("fine")
        return replace(none, low=low, high=high, **arrays)

    def logit(theta):
        inputs64, heads64 = inputs.astype(np.float64), heads.astype(np.float64)
        return heads64[:, 1] + residual(theta).logits(heads64, inputs64, codes)[:, 1]

    X = np.stack([logit(column) - heads[:, 1] for column in np.eye(size)], axis=1)
    out = np.empty(rows, np.float32)
    value, gradient = data.at(1, groups, theta, out)
    z = logit(theta)
    np.testing.assert_allclose(out, z, atol=1e-5)
    expected = weight @ (labels[1] * z - np.logaddexp(0, z))
    np.testing.assert_allclose(value, expected, rtol=1e-6)
    np.testing.assert_allclose(gradient, X.T @ (weight * (labels[1] - sigmoid(z))), atol=1e-3)
    third = np.arange(rows) % 3 == 0
    residual_rows = third * weight * (labels[1] - sigmoid(heads[:, 1].astype(np.float64)))
    periods = data.look(groups)
    np.testing.assert_allclose(periods[1, :, 1], X.T @ residual_rows, atol=1e-3)
    for m in range(M):
        _, gradient = data.at(m, groups, np.zeros(size), out)
        np.testing.assert_allclose(periods[:, :, m].sum(axis=0), gradient, atol=1e-9)
    every = np.arange(rows)
    curvature = data.curvature(1, groups, size, every, 1.0)
    np.testing.assert_allclose(curvature, X.T @ X, atol=1e-3)
    start = 2 + M
    for group, block in zip(groups, blocks_of(groups, data.bands(groups, every, 1.0)), strict=True):
        part = curvature[start : start + group.size, start : start + group.size]
        bent = group.kind in (CURVE, FINE, SURFACE)
        whole = block.reshape(part.shape) if bent else np.diag(block)
        np.testing.assert_allclose(whole, part, atol=1e-9)
        start += group.size


def test_sample_stands_for_the_curvature_of_all_rows():
    rng = np.random.default_rng(4)
    rows, M = 20_000, 2
    inputs = rng.normal(size=(rows, 2 * M + 1)).astype(np.float32)
    heads = (inputs[:, :M] - 4).astype(np.float32)
    weight = rng.uniform(0.5, 2, rows).astype(np.float32)
    ends = np.full(2 * M + 1, 2.0)
    zeros = np.zeros(rows, np.int32)
    data = ResidualRows(
        (1,), -ends, ends, inputs, np.zeros((1, 1), np.int64), zeros, heads,
        np.zeros((M, rows), np.float32), weight, np.zeros(rows, bool),
    )  # fmt: skip
    logits = heads[:, 0].copy()
    p = sigmoid(logits.astype(np.float64))
    drawn, each = data.sample(logits, float(data.totals()[0]) / 5_000)
    assert len(drawn) == 5_000
    sampled = data.curvature(0, [], 2 + M, drawn, each)
    X = np.column_stack([np.ones(rows), logits, inputs[:, :M]])
    expected = (X.T * (weight * p * (1 - p))) @ X
    np.testing.assert_allclose(sampled, expected, rtol=0.02, atol=0.02 * np.abs(expected).max())


def test_surprise_and_distance_are_standard_where_the_density_holds():
    rng = np.random.default_rng(5)
    covariance = np.array([[1.0, 0.6], [0.6, 1.0]])
    away = rng.multivariate_normal([0, 0], covariance, size=50_000)
    surprise = np.broadcast_to(np.linalg.inv(covariance), (50_000, 2, 2))
    inputs = inputs_of(away, np.full((50_000, 2), 0.5), surprise)
    np.testing.assert_allclose(inputs[:, :2], away + 0.5)
    np.testing.assert_allclose(inputs[:, 2:4].std(axis=0), 1.0, atol=0.02)
    np.testing.assert_allclose((np.exp(inputs[:, 4]) - 0.1).mean(), 1.0, atol=0.02)


def test_threads_do_not_change_the_fit(bent):
    logits, codes, labels, _ = drawn(product)
    with limited_threads(2):
        again = fit_heads(logits, codes, SLOTS, labels)
    for field in fields(Residual):
        np.testing.assert_array_equal(
            getattr(again.residual, field.name), getattr(bent.residual, field.name)
        )


def test_recalibrated_heads_keep_what_the_residual_found(bent):
    logits, codes, _, truth = drawn(product, seed=7)
    changed = logits * np.array([1.0, 1.5, 1.0]) + np.array([0.0, 0.7, 0.0])
    now = recalibrated_heads(bent, changed, codes)
    before, after = (excess(h, x, codes, truth) for h, x in ((bent, logits), (now, changed)))
    assert after < before + 0.2
    assert excess(bent, changed, codes, truth) > before + 5


def test_counts_tell_how_many_groups_each_head_has(bent):
    assert Residual.none(3, SLOTS).counts().tolist() == [0, 0, 0]
    assert (bent.residual.counts()[:2] > 0).all()
    one = Residual.none(3, SLOTS)
    one.slope[2, 1, 4:], one.pair[2, 0], one.curve[0, 3, 5] = 0.5, 0.1, 1.0
    assert one.counts().tolist() == [1, 0, 2]


def test_declared_arrays_are_those_of_the_residual(bent):
    parts = stored(bent.residual)[0]
    sizes = {**residual_sizes(3, SLOTS), "knots": CURVE_KNOTS}
    for name, array in declared(Residual, parts, sizes).items():
        assert getattr(bent.residual, name).shape == array.shape
        array.check(name, getattr(bent.residual, name))


def test_unlikely_labels_of_few_rows_are_no_fine_curve():
    model = hr.HarmonRank().fit(planted(), SCHEMA)
    assert model.explain()["effects"] == {"buy": 0, "like": 0}
