"""Each world of another kind breaks the assumption that it names."""

from dataclasses import replace

import numpy as np
import pytest

from harmonrank.metrics import auc, expected_grouped_auc, logit
from harmonrank.support import UsageError
from harmonrank.worlds import world
from harmonrank_lab.worlds import draw_candidates
from harmonrank_lab.worlds.parts import Hidden
from harmonrank_lab.worlds.shared_effects import RequestEffects

ROWS = 100_000
REDRAWS = (None, 1, pytest.param(2, marks=pytest.mark.slow))


def observed(place, sample):
    """What upstream observed, less its mean: o − μ(c)."""
    view = place.at(sample.context, sample.time)
    return (logit(sample.scores) - view.b) / view.a - view.mu


def off_diagonal(matrix):
    return matrix[np.triu_indices(len(matrix), 1)]


def quiet(place, **change):
    """The same world without latent variation, so that o − μ is noise alone."""
    still = {"loadings": np.zeros_like(place.loadings), "own": np.full_like(place.own, 1e-9)}
    return replace(place, **still, **change)


@pytest.mark.parametrize("redraw", REDRAWS)
def test_upstream_noise_is_correlated_in_backbone_and_not_elsewhere(redraw):
    place = quiet(world("backbone", redraw=redraw))
    noise = observed(place, place.sample(ROWS, seed=1, with_truth=False))
    correlation = off_diagonal(np.corrcoef(noise.T / noise.std(1)))
    assert 0.4 < correlation.min() < correlation.max() < 0.9
    place = quiet(world("elive", redraw=redraw))
    noise = observed(place, place.sample(ROWS, seed=1, with_truth=False))
    assert abs(off_diagonal(np.corrcoef(noise.T))).max() < 0.02


def excess_kurtosis(values):
    values = (values - values.mean(0)) / values.std(0)
    return (values**4).mean(0) - 3


@pytest.mark.parametrize("redraw", REDRAWS)
def test_observations_have_heavy_tails_in_tails_and_not_elsewhere(redraw):
    for name, heavy in (("tails", True), ("backbone", False)):
        place = world(name, redraw=redraw)
        sample = place.sample(ROWS, seed=1, with_truth=False)
        view = place.at(sample.context, sample.time)
        spread = np.sqrt(np.diag(place.covariance) + view.tau**2)
        # Intents far apart have two humps, which lowers the kurtosis of single objectives.
        kurtosis = excess_kurtosis(observed(place, sample) / spread)
        assert kurtosis.mean() > 0.5 if heavy else (abs(kurtosis) < 0.1).all()


@pytest.mark.parametrize("redraw", REDRAWS)
def test_rows_of_tails_differ_in_intent_and_in_noise(redraw):
    hidden = world("tails", redraw=redraw).hidden
    levels = np.unique(hidden.noise.round(12))
    assert len(hidden.shares) == 9
    assert len(levels) == 3
    assert levels[-1] > 2 * levels[1]
    assert 0.05 < hidden.shares[hidden.noise > levels[1] + 1e-9].sum() < 0.15
    assert (hidden.chance.std(0) > 0.1).all()
    np.testing.assert_allclose(hidden.shares @ hidden.chance, 0, atol=1e-12)


@pytest.mark.parametrize("redraw", REDRAWS)
def test_the_chance_falls_where_the_leaked_score_is_high(redraw):
    place = world("leak", redraw=redraw)
    sample = place.sample(ROWS, seed=1)
    leaked = int(np.argmin(place.hidden.chance.min(0)))
    for m in range(5):
        order = np.argsort(sample.scores[:, m])
        mean = np.array([sample.truth[rows, m].mean() for rows in np.array_split(order, 25)])
        lowest_after = np.minimum.accumulate(mean[::-1])[::-1]
        drop = (mean / lowest_after).max()
        assert drop > 2 if m == leaked else drop < 1.25


@pytest.mark.parametrize("redraw", REDRAWS)
def test_effects_do_not_add_up_in_interactions(redraw):
    place = world("interactions", redraw=redraw)
    sample = place.sample(ROWS, seed=1, with_truth=False)
    view = place.at(sample.context, sample.time)
    o = observed(place, sample) + view.mu
    h = place.effect(o, view, sample.context)
    # What no sum of curves of the single scores and effects of the single features explains.
    bins = [np.searchsorted(np.quantile(x, np.linspace(0, 1, 33)[1:-1]), x) for x in o.T]
    columns = [*bins, *sample.context.values()]
    one_hot = np.hstack([np.eye(c.max() + 1)[c] for c in columns])[:50_000]
    fit, *_ = np.linalg.lstsq(one_hot, h[:50_000], rcond=None)
    left = (h[:50_000] - one_hot @ fit).std(0)
    assert (left > 0.15).all()
    assert np.ptp(view.gain, axis=0).min() > 0.2


def shares_within(place, sample):
    """Return which share of the variance of o − μ lies between requests, per objective."""
    o, (_, codes) = observed(place, sample), np.unique(sample.request, return_inverse=True)
    means = np.stack([np.bincount(codes, column) for column in o.T], axis=1)
    means /= np.bincount(codes)[:, None]
    return means[codes].var(0) / o.var(0)


@pytest.mark.parametrize("redraw", REDRAWS)
def test_requests_differ_in_requests_and_not_elsewhere(redraw):
    place = world("requests", redraw=redraw)
    sample = place.sample(ROWS, seed=1)
    between = shares_within(place, sample)
    assert between.max() > 0.7
    assert between.max() - between.min() > 0.3
    other = world("elive", redraw=redraw)
    # By chance, one in twenty rows or so.
    assert shares_within(other, other.sample(ROWS, seed=1, with_truth=False)).max() < 0.08
    # What a row alone says is the best over all rows, and not within requests.
    row = place.posterior(sample.scores, sample.context)
    own = replace(place, requests=None).posterior(sample.scores, sample.context)
    assert auc(row[:, 0], sample.truth[:, 0]) > auc(own[:, 0], sample.truth[:, 0])
    within = [expected_grouped_auc(p[:, 0], sample.truth[:, 0], sample.request) for p in (own, row)]
    assert within[0] > within[1]


def test_the_truth_of_a_row_is_the_mean_over_what_its_request_may_have_drawn():
    place = world("requests")
    sample = place.sample(1, seed=3)
    effects, rng = place.request_effects, np.random.default_rng(0)
    drawn = rng.standard_normal((200_000, effects.count))
    one = {name: np.repeat(values, len(drawn)) for name, values in sample.context.items()}
    scores = np.repeat(sample.scores, len(drawn), axis=0)
    p = place.posterior(scores, one, request=drawn)
    # How likely the scores are under each draw.
    view = place.at(sample.context, sample.time)
    away = observed(place, sample) - effects.scores(drawn)
    A = place.covariance + np.diag(view.tau[0] ** 2)
    weight = np.exp(-0.5 * np.einsum("ni,ij,nj->n", away, np.linalg.inv(A), away))
    mean = weight @ p / weight.sum()
    error = np.sqrt((weight[:, None] ** 2 * (p - mean) ** 2).sum(0)) / weight.sum()
    truth = place.posterior(sample.scores, sample.context)[0]
    assert (abs(truth - mean) < 5 * error).all()
    assert (error < 0.1 * mean).all()


def test_effects_of_requests_and_interactions_are_not_known_together():
    effects = RequestEffects(np.ones((5, 1)), np.zeros((5, 0)))
    with pytest.raises(UsageError, match="`requests` or `interactions`, not both"):
        replace(world("interactions"), requests=effects)
    with pytest.raises(UsageError, match=r"`requests.chance` must have the shape \(5, 1\)"):
        replace(world("elive"), requests=RequestEffects(np.ones((4, 1)), np.zeros((5, 0))))


def test_interactions_have_no_subset():
    place = world("interactions")
    assert place.subset(place.objectives).objectives == place.objectives
    with pytest.raises(UsageError, match="all 5 objectives in their order. Got 2"):
        place.subset(("buy", "like"))


@pytest.mark.parametrize("name", ["elive", "backbone", "tails", "interactions", "leak"])
def test_candidates_follow_the_same_density_as_samples(name):
    place = world(name)
    sample = place.sample(ROWS, seed=1, with_truth=False)
    first = np.flatnonzero(np.diff(sample.request, prepend=-1))
    context = {feature: values[first] for feature, values in sample.context.items()}
    items = draw_candidates(place, context, np.zeros(len(first)), 20, np.random.default_rng(2))
    scores = logit(items.scores.reshape(-1, 5).astype(float))
    np.testing.assert_allclose(scores.mean(0), logit(sample.scores).mean(0), atol=0.05)
    np.testing.assert_allclose(np.cov(scores.T), np.cov(logit(sample.scores).T), atol=0.12)
    np.testing.assert_allclose(items.chance.mean((0, 1)), sample.labels.mean(0), rtol=0.15)
    for m in range(5):
        gained = auc(scores[:, m], items.chance.reshape(-1, 5)[:, m])
        assert gained == pytest.approx(auc(sample.scores[:, m], sample.labels[:, m]), abs=0.05)


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ({"backbone": np.ones(5)}, r"`backbone` must be inside \(−1, 1\)"),
        ({"backbone": np.zeros(4)}, r"`backbone` must have the shape \(5,\). Got \(4,\)"),
        ({"hidden": Hidden.none(4)}, r"`hidden.chance` must have the shape \(1, 5\)"),
    ],
)
def test_parts_that_do_not_fit_are_refused(part, message):
    with pytest.raises(UsageError, match=message):
        replace(world("elive"), **part)


@pytest.mark.parametrize(
    ("shares", "noise", "message"),
    [([0.5, 0.6], [1, 1], "sum to 1"), ([0.5, 0.5], [1, 0], "Hidden.noise must be above 0")],
)
def test_hidden_classes_need_shares_and_noise(shares, noise, message):
    with pytest.raises(UsageError, match=message):
        Hidden(np.array(shares), np.zeros((2, 1)), np.zeros((2, 1)), np.array(noise))
