import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from harmonrank import ClosedForm, Schema
from harmonrank.data import read_log
from harmonrank.fusion import Quality, ceiling_of, quality_of
from harmonrank.metrics import best_request_score, grouped_auc
from harmonrank.support import HarmonRankError
from reference import auc_by_pairs


@pytest.fixture
def log(table, schema):
    return read_log(table, schema)


def test_figures_are_what_counting_pairs_gives(log):
    fused = log.scores.sum(axis=1)
    quality = quality_of(fused, log, np.array([2.0, 1.0]))
    counted = {n: auc_by_pairs(fused, log.labels[:, m]) for m, n in enumerate(("buy", "like"))}
    for name, value in counted.items():
        assert quality.auc[name].estimate == pytest.approx(value)
        assert quality.auc[name].low < value < quality.auc[name].high
    assert quality.auc_sum.estimate == pytest.approx(2 * counted["buy"] + counted["like"])
    assert set(quality.request_auc) == {"buy", "like"}
    pi = log.labels.mean(axis=0)
    effective = np.array([2.0, 1.0]) / (pi * (1 - pi))
    np.testing.assert_allclose(
        list(quality.effective_weights.values()), effective / effective.sum()
    )


def test_outside_a_world_nothing_is_said_of_a_ceiling(log):
    quality = quality_of(log.scores[:, 0], log, np.ones(2))
    assert ceiling_of(log, np.ones(2)) is None
    for name in ("exact_auc", "exact_auc_sum", "ceiling", "regret"):
        assert getattr(quality, name) is None
        assert quality.to_dict()[name] is None


def test_the_best_score_of_a_world_has_no_regret_and_no_other_has_less(log):
    world = replace(log, truth=log.scores.astype(float))
    weights = np.array([1.0, 3.0])
    pi = world.truth.mean(axis=0)
    best = (weights * world.truth / (pi * (1 - pi))).sum(axis=1)
    assert quality_of(best, world, weights).regret == pytest.approx(0, abs=1e-12)
    rng = np.random.default_rng(0)
    for _ in range(20):
        assert quality_of(best + rng.normal(size=len(best)), world, weights).regret > 0


def test_sample_weights_count_rows_as_often_as_they_say(table):
    schema = Schema({"buy": "p_buy"}, sample_weight="w")
    weight = np.random.default_rng(1).integers(0, 3, table.height)
    weighted = table.with_columns(w=pl.Series(weight))
    repeated = table[np.repeat(np.arange(table.height), weight)]
    model = ClosedForm().fit(weighted, schema, valid=weighted)
    one = model.evaluate(weighted)
    other = quality_of(
        model.score(repeated), read_log(repeated, Schema({"buy": "p_buy"})), np.ones(1)
    )
    assert one.auc["buy"].estimate == pytest.approx(other.auc["buy"].estimate)
    assert one.prevalence["buy"] == pytest.approx(other.prevalence["buy"])
    fused = model.score(weighted)
    counted = auc_by_pairs(fused, table["buy"].to_numpy(), weight)
    assert one.auc["buy"].estimate == pytest.approx(counted)


def test_numbers_become_json_whatever_they_are(table, schema):
    # Every request has one row, so that no pair of a request can be compared.
    frame = table.with_columns(request_id=pl.int_range(600))
    quality = ClosedForm().fit(frame, schema, valid=frame).evaluate(frame)
    numbers = json.loads(json.dumps(quality.to_dict(), allow_nan=False))
    assert numbers["request_auc"] == {"buy": None, "like": None}
    assert numbers["rows"] == 600


def test_each_request_is_measured_with_its_sum_and_interval(log):
    fused, weights = log.scores.sum(axis=1), np.array([2.0, 1.0])
    ours = quality_of(fused, log, weights).requests
    within = grouped_auc(fused, log.labels, log.request)
    np.testing.assert_allclose([value.estimate for value in ours.auc.values()], within)
    assert ours.auc_sum.estimate == pytest.approx(within @ weights)
    assert ours.auc_sum.low < ours.auc_sum.estimate < ours.auc_sum.high
    assert ours.exact_auc is ours.regret is ours.ceiling is None
    assert quality_of(fused, replace(log, request=None), weights).requests is None


def test_within_requests_of_a_world_the_best_order_has_no_regret(log):
    world, weights = replace(log, truth=log.scores.astype(float)), np.array([1.0, 3.0])
    best = best_request_score(world.truth, world.request, weights)
    assert quality_of(best, world, weights).requests.regret == pytest.approx(0, abs=1e-12)
    rng = np.random.default_rng(0)
    for _ in range(10):
        noisy = quality_of(best + 0.1 * rng.normal(size=len(best)), world, weights)
        assert noisy.requests.regret > 0
        assert noisy.decisive is noisy.requests
        assert f"regret {noisy.requests.regret:.4f}." in str(noisy.to_table())


def test_all_rows_decide_where_requests_cannot_and_that_is_said(log):
    def said(rows):
        quality = quality_of(rows.scores[:, 0], rows, np.ones(2))
        return quality.criterion, quality.criterion_words()

    assert said(log) == ("within requests", None)
    where, words = said(replace(log, request=None))
    assert where == "all rows"
    assert words.startswith("No request column is named; with one, the order within requests")
    where, words = said(replace(log, request=np.arange(log.rows)))
    assert where == "all rows"
    assert words.endswith("no request has a positive and a negative of buy, like.")


def test_what_is_known_within_requests_comes_back_from_json(log):
    world = replace(log, truth=log.scores.astype(float))
    for rows in (log, world):
        quality = quality_of(rows.scores[:, 0], rows, np.ones(2))
        again = Quality.from_dict(json.loads(json.dumps(quality.to_dict())))
        assert again.requests == quality.requests
    parts = quality.to_dict()
    parts["requests"]["exact_auc"] = {"buy": 0.5}
    with pytest.raises(HarmonRankError, match="same objectives"):
        Quality.from_dict(parts)
