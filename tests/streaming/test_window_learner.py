import numpy as np
import pytest
from batches import CONFLICT, SCHEMA, SWAPPED, batch, check_learner, hour

from harmonrank.data.rows.kept_rows import concatenated
from harmonrank.fusion import method_class
from harmonrank.streaming import LearnerSettings, new_learner
from harmonrank.support import UsageError

CLOSED = new_learner("closed-form", {}, SCHEMA)


@pytest.mark.parametrize("method", ["closed-form", "logistic"])
def test_it_is_a_value_that_repeats_itself_and_is_saved_exactly(method, tmp_path):
    check_learner(new_learner(method, {}, SCHEMA), tmp_path)


def test_its_model_is_the_fit_on_its_newest_rows():
    learner = new_learner("closed-form", {}, SCHEMA, LearnerSettings(window_rows=9500))
    for number in range(3):
        learner = learner.learned(batch(number), seed=number, at=hour(number))
    whole = concatenated([batch(number) for number in range(3)])
    newest = whole.take(np.arange(8500, 18_000))
    expected = method_class("closed-form")().fit(newest, SCHEMA, seed=2)
    test = batch(99)
    assert np.array_equal(learner.model.score(test), expected.score(test))
    assert learner.facts()["window_rows"] == 9500


def test_there_is_no_model_before_enough_rows_and_both_classes_have_come():
    few = CLOSED.learned(batch(0, 900), seed=0, at=hour(0))
    assert few.model is None
    assert few.learned(batch(1), seed=0, at=hour(0)).model is not None
    rows = batch(2)
    lonely = rows.take(np.flatnonzero(rows.labels[:, 1] == 0))
    one_class = CLOSED.learned(lonely, seed=0, at=hour(0))
    assert one_class.model is None
    assert one_class.learned(rows, seed=0, at=hour(0)).model is not None


def test_a_window_of_one_class_keeps_the_last_model():
    settings = LearnerSettings(window_rows=6000)
    learner = new_learner("closed-form", {}, SCHEMA, settings).learned(batch(0), seed=0, at=hour(0))
    rows = batch(1, 9000)
    lonely = rows.take(np.flatnonzero(rows.labels[:, 1] == 0)[:6000])
    after = learner.learned(lonely, seed=1, at=hour(1))
    assert after.model is learner.model
    assert after.learned(batch(2), seed=2, at=hour(2)).model is not learner.model


def test_drift_counts_from_the_newest_rows():
    """A slow change that the fits have followed is not taken for a replaced model."""
    slow = CONFLICT.with_upstream(("like",), a=1.0, b=0.5)
    learner = CLOSED.learned(batch(0, 40_000), seed=0, at=hour(0))
    test = batch(90, 25_000, slow)
    assert "p_like" in learner.model.drift(test).moved
    learner = learner.learned(batch(1, 25_000, slow), seed=1, at=hour(1))
    assert learner.model.drift(test).moved == ()


def test_rows_from_before_a_swap_help_after_it():
    """After a recalibration, old rows are learned on the scale of the new scores."""
    learner, test = CLOSED, batch(98, 20_000, SWAPPED)
    for number in range(3):
        learner = learner.learned(batch(number, 8000), seed=number, at=hour(number))
    fresh = batch(50, 6000, SWAPPED)
    told = learner.recalibrated(batch(51, 20_000, SWAPPED)).learned(fresh, seed=4, at=hour(4))
    untold = learner.learned(fresh, seed=4, at=hour(4))
    alone = CLOSED.learned(fresh, seed=4, at=hour(4))
    sums = {
        name: one.model.evaluate(test).exact_auc_sum
        for name, one in (("told", told), ("untold", untold), ("alone", alone))
    }
    assert sums["told"] > sums["untold"]
    assert sums["told"] > sums["alone"] - 0.002


def test_without_a_model_a_recalibration_changes_nothing():
    assert CLOSED.recalibrated(batch(0)) is CLOSED


def test_unknown_methods_and_options_are_refused():
    with pytest.raises(UsageError, match="no method 'harmonrnk'"):
        new_learner("harmonrnk", {}, SCHEMA)
    with pytest.raises(UsageError, match="no option 'widht'"):
        new_learner("logistic", {"widht": 3}, SCHEMA)
    with pytest.raises(UsageError, match="'window_rows' of A learner must be a whole number"):
        LearnerSettings(window_rows=0)
