"""Scoring by tables: equal to the definition, and a function of the row alone."""

from dataclasses import replace

import numpy as np
import pytest

from harmonrank.model import HeadColumns, Heads, Residual
from harmonrank.model.coordinate import fit_coordinate
from harmonrank.model.density.density_sums import fit_density
from harmonrank.model.linear.head_columns import GROUPS
from harmonrank.model.scorer.head_room import BLOCK
from harmonrank.model.scorer.heads_score import HeadScorer
from harmonrank.model.terms.residual import FINE_KNOTS, residual_shapes, surface_pairs
from harmonrank.support import limited_threads, score_logit

SLOTS = (4, 3)


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def drawn(M, rows=3_000, seed=0):
    """Return logits and codes; every second logit is squared, so that its quantile is better."""
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(0, s, rows) for s in SLOTS], axis=1).astype(np.int32)
    u = rng.normal(size=(rows, M)) + rng.normal(size=(rows, 1)) + 0.3 * codes[:, :1]
    labels = (rng.random((rows, M)) < sigmoid(u)).astype(np.int8)
    u[:, 1::2] = np.sign(u[:, 1::2]) * u[:, 1::2] ** 2
    return u, codes, labels


def heads_of(M, used):
    """Return heads with random coefficients, and curves of all inputs, few, of scores, or none.

    Curves are fine where it says so.
    """
    rng = np.random.default_rng(1)
    logits, codes, labels = drawn(M, rows=20_000)
    coordinate = fit_coordinate(logits, labels)
    density = fit_density(coordinate(logits), codes, SLOTS)
    shapes = residual_shapes(M, SLOTS)
    arrays = {name: 0.2 * rng.normal(size=shape) for name, shape in shapes.items()}
    arrays["low"], arrays["high"] = np.full(2 * M + 1, -2.0), np.linspace(1, 3, 2 * M + 1)
    if used == "few":  # The later a head, the more it has, so that heads change places.
        there = rng.random((2, M, 99)) < np.linspace(0, 0.7, M)[:, None]
        arrays["curve"] *= there[0, :, : 2 * M + 1, None]
        arrays["surface"] *= there[1, :, : len(surface_pairs(M)), None, None]
    elif used == "fine":
        arrays["curve"] = 0.2 * rng.normal(size=(M, 2 * M + 1, FINE_KNOTS))
    elif used != "all":
        arrays["curve"][:, M:] = arrays["surface"][:, M * (M - 1) // 2 :] = 0
    if used == "none":
        arrays["curve"][:] = arrays["surface"][:] = 0
    theta = 0.3 * rng.normal(size=(M, HeadColumns(M).total(SLOTS)))
    residual = Residual(SLOTS, **arrays)
    return Heads(coordinate, density, SLOTS, theta, np.ones(len(GROUPS)), np.zeros(4), residual)


@pytest.mark.parametrize("used", ["none", "scores", "few", "all", "fine"])
@pytest.mark.parametrize("M", [1, 3, 8, 9])
def test_tables_score_as_the_definition_says(M, used):
    heads = heads_of(M, used)
    logits, codes, _ = drawn(M, seed=2)
    scores = sigmoid(logits)
    expected = sigmoid(heads.logits(score_logit(scores), codes))
    tolerance = {"rtol": 1e-11} if used == "none" else {"rtol": 3e-5, "atol": 1e-6}
    scorer = HeadScorer(heads)
    np.testing.assert_allclose(scorer.probabilities(scores, codes), expected, **tolerance)
    effective = np.linspace(1, 2, M)
    fused = scorer.fuse(scores, codes, effective)
    np.testing.assert_allclose(fused, expected @ effective, **tolerance)


@pytest.mark.parametrize("used", ["none", "scores", "few", "all", "fine"])
def test_scores_do_not_depend_on_the_other_rows(used):
    scorer, effective = HeadScorer(heads_of(5, used)), np.linspace(1, 2, 5)
    logits, codes, _ = drawn(5, rows=5_000, seed=3)
    scores = sigmoid(logits).astype(np.float32)
    whole, p = scorer.fuse(scores, codes, effective), scorer.probabilities(scores, codes)
    for size in [*range(1, 20), BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 5, 4_500]:
        for start in (0, 7, 411):
            rows = slice(start, start + size)
            fused = scorer.fuse(scores[rows], codes[rows], effective)
            np.testing.assert_array_equal(fused, whole[rows])
            np.testing.assert_array_equal(scorer.probabilities(scores[rows], codes[rows]), p[rows])
    order = np.random.default_rng(4).permutation(len(scores))
    with limited_threads(2):
        fused = scorer.fuse(scores[order], codes[order], effective)
    np.testing.assert_array_equal(fused, whole[order])


def test_records_made_for_a_call_score_as_those_that_are_kept():
    scorer, effective = HeadScorer(heads_of(4, "all")), np.ones(4)
    logits, codes, _ = drawn(4, seed=5)
    kept = scorer.fuse(sigmoid(logits), codes, effective)
    scorer._records = None  # as with more contexts than are kept
    np.testing.assert_array_equal(scorer.fuse(sigmoid(logits), codes, effective), kept)


@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning")
def test_knots_without_a_range_lead_into_no_other_memory():
    heads = heads_of(3, "all")
    logits, codes, _ = drawn(3, seed=6)
    same = replace(heads.residual, high=heads.residual.low.copy())
    flat = replace(heads.coordinate, high=heads.coordinate.low.copy())
    p = HeadScorer(replace(heads, residual=same, coordinate=flat)).probabilities(
        sigmoid(logits), codes
    )
    assert ((p >= 0) & (p <= 1)).all()
