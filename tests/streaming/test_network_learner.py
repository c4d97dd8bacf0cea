from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from batches import CONFLICT, SCHEMA, SWAPPED, batch, check_learner, hour, stored
from scipy.stats import spearmanr

from harmonrank.fusion.method import changed
from harmonrank.model.density.spread import Spread
from harmonrank.streaming import LearnerSettings, new_learner

QUICK = {"steps": 60, "batch_rows": 2000}
FEW = LearnerSettings(passes=3, replay_rows=8000)


def begun(method="mbce", settings=FEW, **options):
    return new_learner(method, {**QUICK, **options}, SCHEMA, settings)


@pytest.fixture(scope="module")
def opened():
    return begun().learned(batch(0), seed=0, at=hour(0))


@pytest.mark.parametrize(
    "method", [pytest.param("mbce", marks=pytest.mark.slow), "harmonrank-paper"]
)
def test_it_is_a_value_that_repeats_itself_and_is_saved_exactly(method, tmp_path):
    check_learner(begun(method), tmp_path)


def test_it_waits_for_enough_rows_and_opens_with_a_fit_on_all_of_them(tmp_path):
    learner = begun().learned(batch(0, 900), seed=0, at=hour(0))
    assert learner.model is None
    learner = stored(learner, tmp_path).learned(batch(1), seed=1, at=hour(1))
    assert learner.model is not None
    assert learner.window is None
    assert learner.facts() == {"learner": "network", "learned_rows": 6900, "replay_rows": 6900}


def test_it_goes_on_from_its_weights_over_the_batch_and_earlier_rows(opened):
    fresh, test = batch(1), batch(99)
    mixed = opened.continuation.replay.mixed(fresh, 0.5, seed=4)
    assert mixed.rows == 2 * fresh.rows
    expected = opened.continuation.network.updated(mixed, passes=3, seed=4)
    after = opened.learned(fresh, seed=4, at=hour(4))
    assert np.array_equal(after.continuation.network.score(test), expected.score(test))


def test_a_share_of_none_learns_the_batch_alone():
    opened = begun(settings=replace(FEW, replay_share=0.0)).learned(batch(0), seed=0, at=hour(0))
    fresh, test = batch(1), batch(99)
    expected = opened.continuation.network.updated(fresh, passes=3, seed=4)
    after = opened.learned(fresh, seed=4, at=hour(4))
    assert np.array_equal(after.continuation.network.score(test), expected.score(test))


def test_what_is_published_lies_where_the_model_before_it_lay(tmp_path):
    """A loss of ranks leaves the scale open; the order of rows is that of the network."""
    learner, test = begun("harmonrank-paper", learning_rate=0.1), batch(99)
    first = learner = learner.learned(batch(0), seed=0, at=hour(0))
    for number in range(1, 4):
        learner = learner.learned(batch(number), seed=number, at=hour(number))
        before, now = Spread.of(first.model.score(test)[:, None]), learner.model.score(test)
        away = (np.median(now) - before.middle) / before.width
        assert abs(away) < 0.2
        assert Spread.of(now[:, None]).width == pytest.approx(before.width, rel=0.2)
    raw = learner.continuation.network.score(test)
    assert spearmanr(raw, now).statistic > 0.999_999
    factor, shift = learner.continuation.scale
    assert np.allclose(factor * raw + shift, now, rtol=1e-4, atol=1e-4)


def test_earlier_rows_are_an_even_sample_of_all_batches():
    learner = begun(settings=replace(FEW, replay_rows=2000, passes=1))
    for number in range(5):
        learner = learner.learned(batch(number), seed=number, at=hour(number))
    kept = learner.continuation.replay.rows
    assert (kept.rows, learner.continuation.replay.seen) == (2000, 30_000)
    came = [{row.tobytes() for row in batch(number).scores} for number in range(5)]
    counts = [sum(row.tobytes() in of_hour for row in kept.scores) for of_hour in came]
    assert sum(counts) == 2000
    # The standard deviation of each is 17.
    assert all(abs(count - 400) < 80 for count in counts)


def test_a_batch_of_one_class_is_learned_and_the_model_can_be_saved(opened, tmp_path):
    rows = batch(1)
    m = SCHEMA.names.index("buy")
    alone = replace(FEW, replay_share=0.0)
    learner = replace(opened, continuation=replace(opened.continuation, settings=alone))
    after = learner.learned(rows.take(np.flatnonzero(rows.labels[:, m] == 0)), seed=1, at=hour(1))
    assert after.model.prevalence[m] == opened.model.prevalence[m]
    assert stored(after, tmp_path).model is not None


def test_context_values_of_later_batches_are_learned(opened):
    rows = batch(1)
    newer = replace(
        rows, context=rows.context.with_columns(age=pl.lit(99, rows.context["age"].dtype))
    )
    # A value that has only just come ranks as the unknown one did.
    grown = opened.model._grown(newer)
    encoder = grown.fitted.encoder
    assert 99 in encoder.features[encoder.names.index("age")].values
    assert np.array_equal(grown.score(newer), opened.model.score(newer))
    assert np.array_equal(grown.score(rows), opened.model.score(rows))
    after = opened.learned(newer, seed=1, at=hour(1)).model
    null = replace(newer, context=newer.context.with_columns(age=pl.lit(None, pl.Int64)))
    assert not np.array_equal(after.score(newer), after.score(null))


def test_drift_counts_from_the_newest_batches():
    """A slow change that the network has followed is not taken for a replaced model."""
    slow = CONFLICT.with_upstream(("like",), a=1.0, b=0.5)
    learner = begun(settings=replace(FEW, passes=1)).learned(batch(0), seed=0, at=hour(0))
    test = batch(90, 25_000, slow)
    assert "p_like" in learner.model.drift(test).moved
    for number in range(1, 5):
        learner = learner.learned(batch(number, 6000, slow), seed=number, at=hour(number))
    assert learner.model.drift(test).moved == ()
    assert learner.continuation.recent.rows == 20_000


def expected(model, log):
    """Return scores as the network is given them."""
    return model.fitted.expected(log.scores, model.fitted.codes(log), missing=False)


def test_after_a_swap_earlier_rows_are_replayed_with_the_new_scores(opened):
    recent = batch(50, 20_000, SWAPPED)
    told = opened.recalibrated(recent)
    moved = told.model.drift(told.continuation.replay.rows)
    assert max(abs(column.offset) for column in moved.columns) < 0.1
    # What the network is given of an old row is what it was given before, but for rounding.
    before, after = opened.continuation.replay.rows, told.continuation.replay.rows
    assert np.abs(expected(told.model, after) - expected(opened.model, before)).max() < 1e-3


def test_a_recalibrated_network_that_learned_on_scores_as_before(opened):
    """Drift then counts from newer rows, and scores still come to where they were learned."""
    told = opened.recalibrated(batch(50, 20_000, SWAPPED)).model
    again = changed(told, fitted=told.fitted.referred_to(batch(52, 20_000, SWAPPED)))
    test = batch(53, 5000, SWAPPED)
    one, other = (expected(model, test) for model in (told, again))
    assert np.abs(one - other).mean() < 0.002
    assert again.drift(batch(54, 20_000, SWAPPED)).moved == ()


def test_which_learner_a_method_has():
    def kind(method):
        return new_learner(method, {}, SCHEMA).recipe.learner

    assert kind("harmonrank-paper") == kind("reinforce") == "network"
    assert {kind(m) for m in ("lightgbm", "formula-grid")} == {"window"}
