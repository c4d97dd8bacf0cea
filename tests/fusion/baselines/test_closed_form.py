import numpy as np
import polars as pl
import pytest

from harmonrank import ClosedForm, Schema
from harmonrank.data import read_log
from harmonrank.worlds import as_frame, world, world_schema


@pytest.fixture(scope="module")
def log():
    place = world("elive")
    frame = as_frame(place, place.sample(30_000, seed=3))
    return frame[:20_000], frame[20_000:], world_schema(place)


@pytest.mark.parametrize("calibration", ["logistic", "isotonic"])
def test_fused_is_the_sum_of_probabilities_by_effective_weight(table, schema, calibration):
    model = ClosedForm(calibration=calibration).fit(table, schema, valid=table)
    p = model.probabilities(read_log(table, schema))
    pi = table.select("buy", "like").to_numpy().mean(axis=0)
    np.testing.assert_allclose(model.score(table), (p / (pi * (1 - pi))).sum(axis=1))
    weights = np.array([3, 0.5])
    np.testing.assert_allclose(
        model.score(table, weights={"buy": 3, "like": 0.5}), (weights * p / (pi * (1 - pi))).sum(1)
    )


@pytest.mark.parametrize("calibration", ["logistic", "isotonic"])
def test_probabilities_are_calibrated(log, calibration):
    train, test, schema = log
    p = ClosedForm(calibration=calibration).fit(train, schema).probabilities(read_log(test, schema))
    truth = read_log(test, schema).truth
    np.testing.assert_allclose(p.mean(axis=0), truth.mean(axis=0), rtol=0.25)
    assert p.min() >= 0
    assert p.max() <= 1


@pytest.mark.parametrize("calibration", ["logistic", "isotonic"])
def test_it_comes_near_the_ceiling_and_never_above(log, calibration):
    train, test, schema = log
    quality = ClosedForm(calibration=calibration).fit(train, schema).evaluate(test)
    assert 0 < quality.regret < 0.1


def test_weights_given_after_the_fit_equal_weights_given_before(table, schema):
    after = ClosedForm().fit(table, schema, valid=table).score(table, weights={"buy": 5})
    weighted = Schema(schema.objectives, schema.context, schema.request, {"buy": 5})
    before = ClosedForm().fit(table, weighted, valid=table).score(table)
    np.testing.assert_array_equal(after, before)


def test_effective_weights_are_shares_that_favour_the_rare(table, schema):
    frame = table.with_columns(buy=pl.when(pl.int_range(600) % 9 == 0).then("buy").otherwise(0))
    shares = ClosedForm().fit(frame, schema, valid=frame).effective_weights
    assert sum(shares.values()) == pytest.approx(1)
    assert shares["buy"] > 2 * shares["like"]
