import numpy as np
import pytest

from harmonrank.data import read_log
from harmonrank.fusion import load
from harmonrank.fusion.method import changed
from harmonrank.paper.methods.neural_methods import Mbce
from harmonrank.worlds import as_frame, world, world_schema

QKVIDEO = world("qkvideo")
SCHEMA = world_schema(QKVIDEO)


def rows(place, seed, count=6000):
    return read_log(as_frame(place, place.sample(count, seed=seed)), SCHEMA)


@pytest.fixture
def model():
    return Mbce(epochs=4, batch_rows=1000).fit(rows(QKVIDEO, seed=1), SCHEMA)


def test_an_update_follows_a_change_of_upstream(model):
    replaced = QKVIDEO.with_upstream(["click", "long_view"], a=0.3, b=-2.0)
    test = rows(replaced, seed=2)
    before = model.evaluate(test).auc_sum.estimate
    newer = model.updated(rows(replaced, seed=3), passes=4)
    assert newer.evaluate(test).auc_sum.estimate > before
    assert model.evaluate(test).auc_sum.estimate == before


def test_an_update_is_the_same_twice_and_leaves_a_model_that_can_be_saved(model, tmp_path):
    model.save(tmp_path / "before")
    again, test = load(tmp_path / "before"), rows(QKVIDEO, seed=2, count=500)
    one, other = (m.updated(rows(QKVIDEO, seed=3), seed=5) for m in (model, again))
    assert np.array_equal(one.score(test), other.score(test))
    assert not np.array_equal(one.score(test), model.score(test))
    one.save(tmp_path / "after")
    assert np.array_equal(load(tmp_path / "after").score(test), one.score(test))


def test_a_context_value_that_the_fit_did_not_see_begins_as_the_unknown_one(model, tmp_path):
    newer = rows(QKVIDEO, seed=3, count=2000)
    newer.context[0, "age"] = 99
    grown = model._grown(newer)
    assert np.array_equal(grown.score(newer), model.score(newer))
    updated = model.updated(newer)
    assert 99 in updated.fitted.encoder.features[0].values
    updated.save(tmp_path / "m")
    assert np.array_equal(load(tmp_path / "m").score(newer), updated.score(newer))


def test_rows_of_one_class_tell_no_prevalence(model, tmp_path):
    newer = rows(QKVIDEO, seed=3, count=2000)
    m = SCHEMA.names.index("follow")
    newer = newer.take(np.flatnonzero(newer.labels[:, m] == 0))
    updated = model.updated(newer, passes=1)
    assert updated.prevalence[m] == model.prevalence[m]
    assert updated.prevalence[0] == newer.prevalence()[0]
    updated.save(tmp_path / "m")
    load(tmp_path / "m")


def test_drift_counts_from_the_rows_of_a_new_reference(model):
    replaced = QKVIDEO.with_upstream(["click"], a=1.0, b=-2.0)
    test = rows(replaced, seed=2)
    assert "p_click" in model.drift(test).moved
    newer = changed(model, fitted=model.fitted.referred_to(rows(replaced, seed=3)))
    assert newer.drift(test).moved == ()
    assert np.array_equal(newer.score(test), model.score(test))
