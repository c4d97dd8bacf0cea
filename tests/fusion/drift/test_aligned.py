"""Aligned scores: the distribution of another model, the ranking of this one."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import harmonrank as hr
from check_method import SCHEMA, planted, quick
from harmonrank.fusion import METHODS
from harmonrank.fusion.fitted import ScoreMap
from harmonrank.fusion.method import changed
from harmonrank.registry import Guardrails, Registry
from harmonrank.support import DataError, ModelFileError
from saving import rewrite_arrays


def distance(one, other):
    """Kolmogorov and Smirnov: the largest distance of two distribution functions."""
    values = np.concatenate([one, other])
    below = [np.searchsorted(np.sort(each), values, "right") / len(each) for each in (one, other)]
    return np.abs(below[0] - below[1]).max()


@pytest.fixture(scope="module")
def running():
    return quick("prevalence-weights")


@pytest.fixture(scope="module")
def recent():
    return planted(20_000, seed=7)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_is_aligned_without_another_ranking(name, running, recent, tmp_path):
    model, later = quick(name), planted(20_000, seed=8)
    new = model.aligned(running, recent)
    plain, fused, theirs = (each.score(later) for each in (model, new, running))
    # Trees give many rows one score, which no map can tell apart.
    assert distance(fused, theirs) < 0.03
    order = np.argsort(plain, kind="stable")
    np.testing.assert_array_equal(np.argsort(fused, kind="stable"), order)
    assert len(np.unique(fused)) == len(np.unique(plain))
    # A row's score is still a function of the row, by every way in.
    np.testing.assert_array_equal(new.score(later[5:9]), fused[5:9])
    rows = later.filter((pl.col("hour") == 3) & (pl.col("age") == "old"))[:20]
    scores = rows.select("p_buy", "p_like").to_numpy()
    np.testing.assert_array_equal(
        new.score_request(scores, {"hour": 3, "age": "old"}), new.score(rows)
    )
    new.save(tmp_path / "m")
    np.testing.assert_array_equal(hr.load(tmp_path / "m").score(later), fused)
    assert not model.is_aligned
    assert new.is_aligned
    np.testing.assert_array_equal(new.unaligned().score(later), plain)


def test_a_map_belongs_to_its_weights(running, recent):
    model = quick("harmonrank").with_point("sales", {"buy": 4})
    new = model.aligned(running, recent)
    # Other weights have other scores, which nobody has aligned.
    np.testing.assert_array_equal(
        new.score(recent, weights={"buy": 4}), model.score(recent, weights={"buy": 4})
    )
    np.testing.assert_array_equal(
        new.score(recent, weights={"buy": 1, "like": 1}), new.score(recent)
    )
    aligned = model.at("sales").aligned(running, recent)
    point = changed(model, fitted=replace(model.fitted, maps=aligned.fitted.maps))
    np.testing.assert_array_equal(point.score(recent), model.score(recent))
    assert distance(point.at("sales").score(recent), running.score(recent)) < 0.01
    both = point.aligned(running, recent)
    for each in (both, both.at("sales")):
        assert distance(each.score(recent), running.score(recent)) < 0.01


def test_aligning_again_replaces_the_map(running, recent):
    model = quick("closed-form")
    other = quick("logistic")
    again = model.aligned(other, recent).aligned(running, recent)
    np.testing.assert_array_equal(again.score(recent), model.aligned(running, recent).score(recent))


def test_scores_of_anything_can_be_the_running_ones(recent):
    model, theirs = quick("closed-form"), np.exp(recent["p_buy"].to_numpy())
    assert distance(model.aligned(theirs, recent).score(recent), theirs) < 0.01
    with pytest.raises(DataError, match=r"one score for each of 20,000 rows. Got \(3,\)"):
        model.aligned([1.0, 2.0, 3.0], recent)


def test_contributions_are_of_the_score_before_the_map(running, recent):
    model = quick("harmonrank")
    np.testing.assert_array_equal(
        model.aligned(running, recent).contributions(recent[:50]), model.contributions(recent[:50])
    )


def test_the_map_survives_a_recalibration_and_not_a_fit(running, recent):
    model = quick("closed-form").aligned(running, recent)
    assert model.recalibrated(recent).is_aligned
    assert (
        not hr.ClosedForm()
        .fit(recent, SCHEMA)
        .aligned(running, recent)
        .fit(recent, SCHEMA)
        .is_aligned
    )


def test_guardrails_on_the_distribution_pass_once_aligned(running, recent, tmp_path):
    rules = Guardrails(tolerance=1, calibration=None, shift=0.2, scale=1.2)
    registry = Registry.create(tmp_path / "r", rules)
    registry.publish(running)
    new = quick("formula-grid")  # whose scores have a unit of their own
    assert registry.publish(new, recent).refused is not None
    assert registry.publish(new.aligned(running, recent), recent).refused is None


# The map itself


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["normal", "exponential", "few", "heavy"]))
def test_a_map_rises_strictly_whatever_the_scores(seed, kind):
    rng = np.random.default_rng(seed)
    draws = {
        "normal": lambda: rng.normal(size=1500),
        "exponential": lambda: rng.exponential(size=1500),
        "few": lambda: rng.integers(0, 3, 1500).astype(float),
        "heavy": lambda: rng.standard_cauchy(1500) * 1e6,
    }
    new, theirs = draws[kind](), draws[rng.choice(list(draws))]()
    score_map = ScoreMap.between(new, theirs)
    assert (np.diff(score_map.x) > 0).all()
    assert (np.diff(score_map.y) > 0).all()
    scores = np.sort(np.concatenate([new, new.mean() + np.linspace(-9, 9, 50) * new.std()]))
    mapped = score_map(np.unique(scores))
    assert (np.diff(mapped) >= 0).all()


@pytest.mark.parametrize(
    ("new", "theirs", "reason"),
    [
        (np.arange(999.0), np.arange(999.0), "at least 1,000 rows that count. Got 999"),
        (np.ones(2000), np.arange(2000.0), "one score of the new model"),
        (np.arange(2000.0), np.ones(2000), "one score of the running model"),
        (np.arange(2000.0), np.full(2000, np.nan), "of the running model must be finite"),
    ],
)
def test_what_cannot_be_aligned_is_one_sentence(new, theirs, reason):
    with pytest.raises(DataError, match=reason):
        ScoreMap.between(new, theirs)


# Saved


@pytest.fixture
def saved(running, recent, tmp_path):
    quick("closed-form").aligned(running, recent).save(tmp_path / "m")
    return tmp_path / "m"


MAP = "fitted/maps/0"
X, Y, WEIGHTS = f"{MAP}/curve/x", f"{MAP}/curve/y", f"{MAP}/weights"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda a: a | {Y: a[Y][::-1].copy()}, f"array '{Y}' must rise"),
        (lambda a: {k: v for k, v in a.items() if k != Y}, f"array '{Y}' is missing"),
        (lambda a: a | {X: a[X][:1], Y: a[Y][:1]}, f"'{X}' must be float64 of shape"),
        (lambda a: a | {WEIGHTS: a[WEIGHTS][:1]}, f"'{WEIGHTS}' must be float64 of shape"),
    ],
    ids=["falls", "missing", "one knot", "few weights"],
)
def test_a_damaged_map_is_named(saved, change, reason):
    rewrite_arrays(saved, change)
    with pytest.raises(ModelFileError, match=reason):
        hr.load(saved)


def test_a_network_that_learns_on_is_no_longer_aligned(running, recent):
    pytest.importorskip("torch")
    model = quick("harmonrank-paper").aligned(running, recent)
    assert not model.updated(planted(600, seed=9), passes=1).is_aligned
