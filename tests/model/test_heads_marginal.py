"""Rows with missing scores: the heads averaged over what is missing, and the exact posterior."""

import numpy as np
import pytest

import harmonrank as hr
from harmonrank.data import read_log
from harmonrank.metrics import auc, best_score
from harmonrank.model import fit_heads
from harmonrank.model.density.density import distinct_contexts
from harmonrank.model.linear.heads_recalibration import recalibrated_heads
from harmonrank.model.missing.gaps import Gaps
from harmonrank.model.missing.heads_marginal import MarginalScorer
from harmonrank.support import UsageError
from harmonrank.worlds import as_frame, world, world_schema
from logs import drawn_logits as drawn


def holed(x, share, seed=0):
    return np.where(np.random.default_rng(seed).random(x.shape) < share, np.nan, x)


def brute_force(heads, logits, codes, draws=10_000):
    """Average the heads' own definition over many draws of what one row misses."""
    coordinates = heads.coordinate(logits[None])
    contexts, of_row = distinct_contexts(codes[None], heads.slots)
    gaps = Gaps.of(coordinates, of_row)
    missing = gaps.conditional(heads.density, contexts, slice(0, 1))
    gaps.fill(coordinates, heads.density, contexts)
    half = np.random.default_rng(1).standard_normal((draws // 2, coordinates.shape[1]))
    away = np.concatenate([half, -half]) @ missing.root[0].T * heads.density.scale
    whole = heads.coordinate.inverse(coordinates + away)
    return (1 / (1 + np.exp(-heads.logits(whole, np.tile(codes, (draws, 1)))))).mean(axis=0)


@pytest.fixture(scope="module", params=["linear", "curved", "recalibrated"])
def heads(request):
    sample, logits, codes, slots = drawn("tails" if request.param == "curved" else "conflict")
    fitted = fit_heads(logits, codes, slots, sample.labels, residual=request.param == "curved")
    assert (fitted.residual.counts().sum() > 0) == (request.param == "curved")
    if request.param == "recalibrated":
        return recalibrated_heads(fitted, 1.4 * logits - 0.5, codes)
    return fitted


def test_probabilities_are_averages_over_what_is_missing(heads):
    _, logits, codes, _ = drawn("conflict", rows=400)
    logits = holed(logits, 0.4)
    rows = np.flatnonzero(np.isnan(logits).any(axis=1))[:8]
    logits[rows[0]] = np.nan  # A row without any score.
    averaged = MarginalScorer(heads).probabilities(1 / (1 + np.exp(-logits[rows])), codes[rows])
    for row, p in zip(rows, averaged, strict=True):
        # Of a rare objective whose own score is missing, so many draws are good to some percent.
        np.testing.assert_allclose(p, brute_force(heads, logits[row], codes[row]), rtol=0.1)


@pytest.fixture(scope="module")
def place():
    return world("conflict")


def test_the_exact_posterior_of_some_scores_is_that_of_their_world(place):
    sample = place.sample(500, seed=1)
    names = ("buy", "like")
    kept = [place.objectives.index(name) for name in names]
    scores = np.full(sample.scores.shape, np.nan)
    scores[:, kept] = sample.scores[:, kept]
    p = place.posterior(scores, sample.context, sample.time)
    few = place.subset(names).posterior(sample.scores[:, kept], sample.context, sample.time)
    np.testing.assert_allclose(p[:, kept], few, rtol=1e-9)


def test_the_exact_posterior_of_missing_scores_is_right_on_average():
    """Given what is there, the labels of many rows come true as often as it says."""
    place = world("backbone")
    sample = place.sample(100_000, seed=2)
    scores = holed(sample.scores, 0.5)
    p = place.posterior(scores, sample.context, sample.time)
    for m in range(p.shape[1]):
        for lost in (True, False):
            rows = np.isnan(scores[:, m]) == lost
            expected, error = p[rows, m].sum(), np.sqrt((p[rows, m] * (1 - p[rows, m])).sum())
            assert abs(sample.labels[rows, m].sum() - expected) < 4 * error
            # Averaged over what is missing, the posterior of all scores is that of some.
            assert abs(sample.truth[rows, m].sum() - expected) < 0.01 * expected + error


def test_missing_scores_are_ruled_out_where_the_truth_interacts_with_all_of_them():
    place = world("interactions")
    sample = place.sample(10, seed=0)
    with pytest.raises(UsageError, match="exact probabilities need all of them"):
        place.posterior(holed(sample.scores, 0.5), sample.context, sample.time)


@pytest.mark.parametrize(("share", "most"), [(0.03, 0.020), (0.5, 0.026)])
def test_the_default_is_near_the_exact_posterior_of_what_is_there(place, share, most):
    """Its regret hardly grows with what is missing; that of mean imputation does, many times."""
    a, b = place.sample(20_000, seed=7), place.sample(20_000, seed=7, start=20_000)
    schema = world_schema(place)
    train, test = (read_log(as_frame(place, sample), schema) for sample in (a, b))
    train, test = (
        log.with_scores(holed(log.scores, share, n)) for n, log in enumerate([train, test])
    )
    truth = place.posterior(test.scores.astype(float), b.context, b.time)
    ceiling = auc(best_score(truth), truth).sum()

    def regret(rows, to):
        return ceiling - auc(hr.HarmonRank().fit(rows, schema).score(to), truth).sum()

    mean = np.nanmean(np.log(train.scores) - np.log1p(-train.scores), axis=0)

    def filled(log):
        return log.with_scores(np.where(np.isnan(log.scores), 1 / (1 + np.exp(-mean)), log.scores))

    ours = regret(train, test)
    assert 0 < ours < most
    if share > 0.1:
        assert regret(filled(train), filled(test)) > 2.5 * ours
