from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from harmonrank.metrics import auc, best_score, logit
from harmonrank.support import UsageError, limited_threads
from harmonrank.worlds import Additive, mean_sigmoid, world
from harmonrank_lab.worlds import WORLDS, Swap
from harmonrank_lab.worlds.recipes import RECIPES
from reference import auc_by_pairs, posterior_by_importance

THREE = {"elive": ("buy", "follow", "long_view"), "qkvideo": ("click", "like", "follow")}
TWO = dict.fromkeys(("backbone", "tails", "leak", "requests"), ("follow", "buy"))


def sigmoid_mean(mean, spread):
    """Return E σ(Z) for Z normal with these means and one standard deviation each."""
    mean = np.atleast_2d(mean)
    spreads = np.broadcast_to(spread, (1, mean.shape[1])).astype(float)
    return mean_sigmoid(mean, spreads.copy(), np.zeros(len(mean), np.intp))


def looked_at(sample):
    """Return many functions g of what a fusion sees, (functions, rows); of 60 categories at most.

    Of rare ones the sums have no normal density, nor are they alike in worlds.
    """
    L = logit(sample.scores)
    L = (L - L.mean(0)) / L.std(0)
    seen = [np.ones(len(L)), *L.T, *(L[:, [0]] * L).T]
    usual = {n: np.argsort(-np.bincount(c), stable=True)[:60] for n, c in sample.context.items()}
    seen += [sample.context[name] == k for name, codes in usual.items() for k in np.sort(codes)]
    seen += [(c == c[0]) * L[:, 0] for c in sample.context.values()]
    return np.array(seen, dtype=float)


def standardised_residuals(residual, sample):
    """z-values of residual · g for many g of what a fusion sees; all are N(0, 1) if E = 0."""
    g = looked_at(sample)
    return (g @ residual) / np.sqrt(g**2 @ residual**2)


def independent_sums(values, sample, preset):
    """Return sums of (rows, objectives) over rows whose labels depend on each other.

    These are a user's, or a request's where these have effects that no score tells, or single rows.
    """
    if preset.request_effects.hidden is None:
        return values
    group = sample.request if preset.users is None else preset.users.of(sample.request)
    return np.stack([np.bincount(group, column) for column in values.T], axis=1)


def label_residuals(sample, preset):
    """The same of labels less truth, with their known density: the truth is their probability.

    Where labels depend on each other their squared sums tell how far they may be off. Few users
    share a device and few lists a place, whose luck has no normal density: these are left out.
    """
    if preset.request_effects.hidden is not None:
        told = {k: c for k, c in sample.context.items() if k not in ("device", "place")}
        residual, g = sample.labels - sample.truth, looked_at(replace(sample, context=told))
        sums = [independent_sums(one[:, None] * residual, sample, preset) for one in g]
        return np.sum(sums, axis=1) / np.sqrt(np.sum(np.square(sums), axis=1))
    g, y, p = looked_at(sample), sample.labels, sample.truth
    variance = g**2 @ (p * (1 - p))
    z = (g @ (y - p)) / np.sqrt(variance)
    for i, m in np.argwhere(variance < 20):
        z[i, m] = signed_root(g[i], y[:, m], p[:, m])  # too few positives to be normal
    return z


def signed_root(g, y, p):
    """Return ±√2I of Σ g·y, with I its large-deviation rate: P(as far or farther) ≤ exp(−I)."""
    g, y, p = (values[g != 0] for values in (g, y, p))
    found, high = g @ y, 40 / abs(g).max()
    low = -high
    for _ in range(60):
        tilt = (low + high) / 2
        odds = p * np.exp(tilt * g)
        low, high = (tilt, high) if g @ (odds / (1 - p + odds)) < found else (low, tilt)
    rate = tilt * found - np.log1p(p * np.expm1(tilt * g)).sum()
    return np.sign(found - g @ p) * np.sqrt(2 * max(rate, 0.0))


def assert_same(a, b, rows=slice(None)):
    for name in ("scores", "labels", "request", "truth"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name)[rows], err_msg=name)
    for name, values in a.context.items():
        np.testing.assert_array_equal(values, b.context[name][rows])


@pytest.fixture(scope="module", params=WORLDS)
def preset(request):
    return world(request.param)


# The truth


def test_posterior_equals_weighted_prior_draws(preset):
    sample = preset.sample(3, seed=4)
    view = preset.at(sample.context, sample.time)
    o = (logit(sample.scores) - view.b) / view.a
    effect = preset.effect(o, view, sample.context)
    truth = preset.posterior(sample.scores, sample.context, sample.time)
    for i in range(3):
        loadings = preset.loadings * view.gain[i]
        covariance = loadings @ loadings.T + np.diag(preset.own**2)
        covariance += preset.request_effects.covariance
        correlation = np.outer(preset.shared_noise, preset.shared_noise)
        np.fill_diagonal(correlation, 1.0)
        noise = correlation * np.outer(view.tau[i], view.tau[i]) + preset.request_effects.noise
        added, unseen = effect[i], preset.request_effects.hidden_variance
        if unseen.any():
            normal = np.random.default_rng(1).standard_normal((450_000, len(unseen)))
            added = added + np.sqrt(unseen) * normal
        mean, error = posterior_by_importance(
            o[i], view.mu[i], covariance, noise, preset.classes, added
        )
        assert (error < 0.1 * mean).all()
        assert (abs(truth[i] - mean) < 5 * error).all()


def test_labels_agree_with_truth_whatever_the_fusion_looks_at(preset):
    sample = preset.sample(100_000, seed=5)
    assert abs(label_residuals(sample, preset)).max() < 4.5


def test_few_positives_too_many_are_seen_where_a_normal_density_says_nothing():
    # 4 are expected; the chance of 14 or more is 8e-5, of 9 or more 2e-2, of none 2e-2.
    p = np.full(4_000, 0.001)
    for positives, low, high in [(14, 3.7, 4.0), (9, 2.0, 2.3), (4, -0.01, 0.01), (0, -2.9, -2.8)]:
        assert low < signed_root(np.ones(4_000), np.arange(4_000) < positives, p) < high


def test_mean_of_sigmoid_equals_a_fine_sum():
    x = np.linspace(-12, 12, 200_001)
    for mean, spread in [(-7.0, 1.5), (0.3, 0.0), (-2.0, 1.8)]:
        p = np.exp(-x * x / 2) / (1 + np.exp(-(mean + spread * x)))
        expected = p.sum() / np.exp(-x * x / 2).sum()
        found = sigmoid_mean(np.array([mean]), spread)
        assert found == pytest.approx(expected, abs=1e-10)


def test_without_noise_the_truth_is_the_sigmoid_of_the_latent_logit():
    quiet = world("elive").with_upstream(world("elive").objectives, tau_scale=1e-6)
    sample = quiet.sample(1000, seed=1)
    view = quiet.at(sample.context, sample.time)
    z = (logit(sample.scores) - view.b) / view.a
    np.testing.assert_allclose(sample.truth, 1 / (1 + np.exp(-z)), rtol=1e-4)


# The best score


@st.composite
def truth_weights_and_score(draw):
    n, M = draw(st.integers(2, 8)), draw(st.integers(1, 4))
    truth = draw(arrays(float, (n, M), elements=st.floats(0.01, 0.99)))
    weights = draw(arrays(float, M, elements=st.floats(0, 5)))
    return truth, weights, draw(arrays(float, n, elements=st.integers(0, 5)))


@given(truth_weights_and_score())
@settings(max_examples=200, deadline=None)
def test_no_score_beats_the_best_score(case):
    truth, weights, score = case

    def auc_sum(s):
        return sum(w * auc_by_pairs(s, p) for w, p in zip(weights, truth.T, strict=True))

    assert auc_sum(score) <= auc_sum(best_score(truth, weights)) + 1e-9


def test_best_score_beats_perturbed_scores_and_random_fusions(preset):
    sample = preset.sample(50_000, seed=8)
    best = best_score(sample.truth)
    ceiling = auc(best, sample.truth).sum()
    rng = np.random.default_rng(0)
    for strength in (0.001, 0.1, 1.0):
        nudged = best * np.exp(strength * rng.standard_normal(len(best)))
        assert auc(nudged, sample.truth).sum() < ceiling
    for _ in range(5):
        fusion = logit(sample.scores) @ rng.exponential(size=sample.scores.shape[1])
        assert auc(fusion, sample.truth).sum() < ceiling


# The presets


def test_prevalence_is_exact_over_all_contexts_and_hidden_classes(preset):
    if preset.interactions is not None:
        pytest.skip("its prevalence is solved on rows")
    # What a city lies in adds nothing to the city's own effect.
    outer = {parent for parent, _ in preset.nested.values()}
    names = [name for name in preset.categories if name not in outer]
    cells = np.array(list(product(*(range(preset.context[n]) for n in names))))
    context = dict(zip(names, cells.T, strict=True))
    share = np.prod([preset.categories[n][context[n]] for n in names], axis=0)
    covariance = preset.covariance + preset.request_effects.covariance
    variance = np.diag(covariance) + preset.request_effects.hidden_variance
    mu, spread = preset.mu.at(context, len(cells)), np.sqrt(variance)
    p = sum(
        s * sigmoid_mean(mu + chance, spread)
        for s, chance in zip(preset.classes.shares, preset.classes.chance, strict=True)
    )
    wanted = [RECIPES[preset.name].prevalence[name] for name in preset.objectives]
    np.testing.assert_allclose(share @ p, wanted, rtol=1e-5)


@pytest.mark.parametrize(
    ("name", "five", "three"), [("elive", 3.75, 2.22), ("qkvideo", 3.92, 2.46)]
)
def test_ceilings_are_near_the_published_results(name, five, three):
    for drawn, wanted in [(world(name), five), (world(name).subset(THREE[name]), three)]:
        truth = drawn.sample(300_000, seed=9).truth
        assert auc(best_score(truth), truth).sum() == pytest.approx(wanted, abs=0.01)


def test_objectives_of_conflict_pull_apart():
    correlation = np.corrcoef(world("conflict").sample(50_000, seed=1).truth.T)
    off = correlation[np.triu_indices(5, 1)]
    assert off.min() < -0.2
    assert off.max() > 0.1
    assert (off < 0).sum() >= 4


@pytest.mark.parametrize("name", WORLDS)
def test_a_redraw_is_another_world_of_the_same_kind(name):
    own, other = world(name), world(name, redraw=1)
    assert (other.objectives, other.context) == (own.objectives, own.context)
    assert abs(other.loadings - own.loadings).min() > 0
    assert abs(other.a - own.a).min() > 0
    # At time 0, before any drift.
    truths = [w.sample(100_000, seed=3, horizon=10**9).truth for w in (own, other)]
    np.testing.assert_allclose(truths[0].mean(0), truths[1].mean(0), rtol=0.05)
    ceilings = [auc(best_score(t), t).sum() for t in truths]
    assert ceilings[0] == pytest.approx(ceilings[1], abs=0.02)


# Sampling


def test_same_seed_same_rows_on_any_number_of_threads(preset):
    sample = preset.sample(20_000, seed=1)
    for threads in (1, 2):
        with limited_threads(threads):
            assert_same(preset.sample(20_000, seed=1), sample)
    assert (preset.sample(20_000, seed=2).scores != sample.scores).mean() > 0.99


def test_a_part_of_the_stream_is_that_part():
    drifting = world("elive").drifting(mu_amplitude=0.3)
    whole = drifting.sample(50_000, seed=1)
    part = drifting.sample(30_000, seed=1, start=17_003, horizon=50_000)
    assert_same(part, whole, slice(17_003, 47_003))
    np.testing.assert_array_equal(part.time, whole.time[17_003:47_003])


def test_a_request_is_a_run_of_rows_with_one_context_and_time(preset):
    sample = preset.sample(40_000, seed=1)
    first = np.flatnonzero(np.diff(sample.request, prepend=-1))
    np.testing.assert_array_equal(sample.request[first], first)
    assert (np.diff(sample.request) >= 0).all()
    shared = [c for name, c in sample.context.items() if name not in preset.item_columns]
    for values in (*shared, sample.time):
        np.testing.assert_array_equal(values, values[sample.request])
    sizes, (shortest, longest) = np.diff(first), preset.request_rows
    assert sizes.max() == longest
    # Only a request at the end of a block may be shorter than the world says.
    assert (sizes < shortest).sum() <= 2


def test_contexts_come_in_their_shares(preset):
    sample = preset.sample(200_000, seed=1)
    first = np.flatnonzero(np.diff(sample.request, prepend=-1))
    of_users = () if preset.users is None else preset.users.columns
    for name, share in preset.categories.items():
        seen = np.bincount(sample.context[name][first], minlength=share.size) / first.size
        near = abs(seen - share) < 5 * np.sqrt(share / first.size)
        # Counts of rare categories have no normal density.
        assert near[share * first.size > 20].all() or name in of_users
        assert share.max() > 1.2 * share.min()


def test_scores_survive_float32_and_stay_inside_the_open_interval():
    loud = world("elive").with_upstream(("buy", "like"), b=40.0).with_upstream(("follow",), b=-40.0)
    scores = loud.sample(1000, seed=1).scores
    np.testing.assert_array_equal(scores.astype(np.float32).astype(np.float64), scores)
    assert scores.min() > 0
    assert scores.max() < 1


def test_truth_is_left_out_on_request_and_empty_samples_are_fine():
    assert world("elive").sample(10, seed=1, with_truth=False).truth is None
    empty = world("elive").sample(0, seed=1)
    assert empty.scores.shape == empty.truth.shape == (0, 5)


# Fewer objectives, other upstreams, drift


@pytest.mark.parametrize(("name", "some"), (THREE | TWO).items(), ids=THREE | TWO)
def test_a_subset_draws_the_same_rows_and_knows_less(name, some):
    full, part = world(name), world(name).subset(some)
    columns = [full.objectives.index(o) for o in some]
    a, b = full.sample(100_000, seed=1), part.sample(100_000, seed=1)
    np.testing.assert_array_equal(a.scores[:, columns], b.scores)
    np.testing.assert_array_equal(a.labels[:, columns], b.labels)
    assert abs(a.truth[:, columns] - b.truth).max() > 0.01
    # The tower rule: what more is known averages out over what the subset sees.
    assert abs(standardised_residuals(a.truth[:, columns] - b.truth, b)).max() < 4.5
    assert abs(label_residuals(b, part)).max() < 4.5


def test_a_subset_keeps_its_order_drift_and_swaps():
    swap = Swap(at=0.5, objectives=("buy", "like"), b=1.0)
    full = world("elive").drifting(mu_amplitude=0.5, swap=swap)
    part = full.subset(("long_view", "like"))
    a, b = full.sample(20_000, seed=1), part.sample(20_000, seed=1)
    np.testing.assert_array_equal(a.scores[:, [4, 3]], b.scores)
    assert part.swaps[0].objectives == ("like",)
    assert full.subset(("follow",)).swaps == ()


def test_a_new_scale_upstream_changes_scores_but_neither_labels_nor_truth(preset):
    name = preset.objectives[1]
    other = preset.with_upstream((name,), a=0.6, b=1.0)
    a, b = preset.sample(20_000, seed=1), other.sample(20_000, seed=1)
    np.testing.assert_array_equal(a.labels, b.labels)
    # Scores are rounded to float32, which tells little of a logit where they are almost 1.
    sure = np.maximum(a.scores, b.scores)[:, 1] > 0.999
    assert sure.mean() < 0.01
    np.testing.assert_allclose(a.truth[~sure], b.truth[~sure], rtol=1e-4)
    np.testing.assert_allclose(a.truth, b.truth, rtol=3e-4)
    changed = (a.scores != b.scores).mean(0)
    assert changed[1] > 0.99
    assert np.delete(changed, 1).max() == 0


def test_a_noisier_upstream_lowers_the_ceiling(preset):
    noisier = preset.with_upstream(preset.objectives, tau_scale=2.0)
    a, b = (w.sample(50_000, seed=1).truth for w in (preset, noisier))
    assert auc(best_score(b), b).sum() < auc(best_score(a), a).sum() - 0.01


def test_truth_stays_exact_under_drift_and_swap(preset):
    swap = Swap(at=0.5, objectives=preset.objectives[:2], a=0.7, b=0.8, tau_scale=1.5)
    sample = preset.drifting(mu_amplitude=1.0, swap=swap).sample(100_000, seed=2)
    residual = sample.labels - sample.truth
    for late in (False, True):
        rows = (sample.time >= 0.5) == late
        sums = independent_sums(residual * rows[:, None], sample, preset)
        assert (abs(sums.sum(0)) < 4.5 * np.sqrt((sums**2).sum(0))).all()
    assert abs(label_residuals(sample, preset)).max() < 4.5


def test_drift_starts_at_nothing_and_moves_prevalence():
    drifting = world("elive").drifting(mu_amplitude=1.0)
    start, end = drifting.drift.at(np.array([0.0, 0.999]), {})
    np.testing.assert_array_equal(start, np.zeros(5))
    np.testing.assert_allclose(end, [1, -1, 1, -1, 1], atol=0.01)
    sample = drifting.sample(200_000, seed=1)
    assert 0 <= sample.time.min() <= sample.time.max() < 1
    late = sample.labels[sample.time > 0.9].mean(0) / sample.labels[sample.time < 0.1].mean(0)
    assert (np.sign(np.log(late[1:])) == [-1, 1, -1, 1]).all()


def test_a_swap_acts_on_its_objectives_from_its_time_on():
    swapped = world("elive").drifting(swap=Swap(at=0.5, objectives=("buy",), b=1.0))
    a, b = world("elive").sample(20_000, seed=1), swapped.sample(20_000, seed=1)
    changed = a.scores != b.scores
    assert b.time[0] < 0.5 < b.time[-1]
    np.testing.assert_array_equal(changed[:, 0], b.time >= 0.5)
    assert not changed[:, 1:].any()
    gap = logit(b.scores[:, 0]) - logit(a.scores[:, 0])
    np.testing.assert_allclose(gap[b.time >= 0.5], 1.0, rtol=1e-4)


# Mistakes


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: world("elvie"), "no world 'elvie'. Did you mean 'elive'"),
        (lambda: world("elive", redraw=-1), "`redraw` must be a whole number from 0 up"),
        (
            lambda: world("elive").sample(-1, seed=0),
            "`rows` must be a whole number from 0 up. Got -1",
        ),
        (lambda: world("elive").sample(5, seed=-2), "`seed` must be a whole number from 0 up"),
        (lambda: world("elive").sample(5, seed=0, horizon=4), "`horizon` must reach"),
        (lambda: world("elive").subset(("bye",)), "no objective 'bye'. Did you mean 'buy'"),
        (lambda: world("elive").subset(()), "at least one objective"),
        (lambda: world("elive").subset(("buy", "buy")), "each objective once"),
        (lambda: world("elive").with_upstream(("bye",)), "no objective 'bye'"),
        (lambda: world("elive").with_prevalence([0.1]), "must be 5 shares"),
        (lambda: Swap(at=1.0, objectives=("buy",)), r"must be a time in \[0, 1\). Got 1.0"),
        (lambda: Swap(at=0.1, objectives=("buy",), a=0.0), "Swap.a must be above 0"),
        (lambda: best_score(np.zeros(3)), r"shape \(rows, objectives\). Got \(3,\)"),
        (lambda: best_score(np.ones((3, 2)) / 2, [1.0]), "one number per objective, 2"),
    ],
)
def test_mistakes_are_named(act, message):
    with pytest.raises(UsageError, match=message):
        act()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"a": np.zeros(5)}, "`a` must be above 0"),
        ({"own": np.ones(4)}, r"`own` must have the shape \(5,\). Got \(4,\)"),
        ({"request_rows": (5, 2)}, "`request_rows` must be"),
        ({"mu": Additive(np.zeros(5), {"agee": np.zeros((8, 5))})}, "Did you mean 'age'"),
        ({"mu": Additive(np.zeros(5), {"age": np.zeros((7, 5))})}, r"shape \(8, 5\)"),
        ({"categories": world("elive").categories | {"age": np.ones(8)}}, "sum to 1"),
    ],
)
def test_a_world_that_does_not_fit_together_is_refused(change, message):
    with pytest.raises(UsageError, match=message):
        replace(world("elive"), **change)
