"""A fit for AUC within requests: what it gains, and that it is a model like any other."""

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import harmonrank as hr
from harmonrank.data import read_log
from harmonrank.data.rows.log_blocks import FileBlocks
from harmonrank.evaluation import Sweep
from harmonrank.fusion import method_class
from harmonrank.fusion.influence import influence_of
from harmonrank.support import UsageError
from harmonrank.worlds import as_frame, world, world_schema
from reference import influence_by_pairs


def tables(name, rows, **more):
    place = world(name, **more)
    train = as_frame(place, place.sample(rows, seed=1, with_truth=False))
    test = as_frame(place, place.sample(40_000, seed=1, start=rows))
    return train, test, world_schema(place)


@pytest.fixture(scope="module")
def log():
    return tables("requests", 60_000)


@pytest.fixture(scope="module")
def model(log):
    train, _, schema = log
    return hr.HarmonRank().fit(train, schema)


@pytest.fixture(scope="module")
def over_all(log):
    train, _, schema = log
    return hr.HarmonRank(optimise="all").fit(train, schema)


def test_where_requests_differ_it_beats_the_fit_for_all_rows(log, model, over_all):
    test = log[1]
    within, usual = model.evaluate(test), over_all.evaluate(test)
    assert within.requests.regret < usual.requests.regret - 0.01
    # Each is the better one of what it is fitted for.
    assert usual.exact_auc_sum > within.exact_auc_sum
    assert (within.optimises, usual.optimises) == ("requests", "all")
    assert any("the fit is for AUC within requests" in note for note in within.to_table().notes)


@pytest.mark.parametrize("name", ["elive", pytest.param("conflict", marks=pytest.mark.slow)])
def test_where_rows_are_independent_it_does_no_harm(name):
    train, test, schema = tables(name, 40_000)
    quality_of_fit = {
        optimise: hr.HarmonRank(optimise=optimise).fit(train, schema).evaluate(test)
        for optimise in ("all", "auto")
    }
    regret = {optimise: quality.requests.regret for optimise, quality in quality_of_fit.items()}
    assert regret["auto"] < regret["all"] + 0.001


def test_a_saved_model_is_the_same(log, model, tmp_path):
    test = log[1][:2_000]
    model.save(tmp_path / "model")
    again = hr.load(tmp_path / "model")
    assert again.fuser.optimises == "requests"
    assert repr(again) == "HarmonRank()"
    np.testing.assert_array_equal(again.score(test), model.score(test))
    assert again.effective_weights == model.effective_weights


def test_a_score_depends_on_its_row_alone(log, model):
    test, schema = log[1][:300], log[2]
    whole = model.score(test)
    for row in (0, 7, 299):
        np.testing.assert_array_equal(model.score(test[row]), whole[row : row + 1])
    np.testing.assert_array_equal(model.score(test.drop("request_id")), whole)
    first = test.filter(pl.col("request_id") == test["request_id"][0])
    scores = first.select(schema.score_columns).to_numpy()
    context = {name: first[name][0] for name in schema.context}
    np.testing.assert_array_equal(model.score_request(scores, context), model.score(first))


def test_other_weights_and_contributions_add_up(log, model):
    test = log[1][:500]
    weights = {"buy": 3.0, "long_view": 0.5}
    parts = model.contributions(test, weights=weights)
    np.testing.assert_allclose(parts.sum(axis=1), model.score(test, weights=weights), rtol=1e-12)
    alone = model.fuser.parts_of(model.probabilities(test), model.fuser.weights())
    vector = model.fuser.weights(weights).counted
    np.testing.assert_allclose(model.score(test, weights=weights), alone @ vector, rtol=1e-12)
    shares = influence_of(model, read_log(test, model.schema)).shares
    parts = model.contributions(test)
    expected = influence_by_pairs(parts, test["request_id"].to_numpy())
    assert list(shares.values()) == pytest.approx(expected.tolist())
    sweep = Sweep.of(model, log[1])
    np.testing.assert_allclose(sweep.fused(np.ones(5)), model.score(sweep.log), rtol=1e-12)


def test_rows_that_miss_a_score_are_scored_by_their_probabilities(log, model):
    test = log[1][:200].with_columns(p_like=pl.lit(None, pl.Float64))
    p = model.probabilities(test)
    np.testing.assert_allclose(
        model.score(test), model.fuser.parts_of(p, model.fuser.weights()).sum(axis=1)
    )


def test_a_recalibrated_model_keeps_what_a_probability_is_worth(log, model):
    test = log[1]
    again = model.recalibrated(test, scores="all")
    assert again.state.request_weights is model.state.request_weights
    assert np.corrcoef(again.score(test), model.score(test))[0, 1] > 0.9


def test_effective_weights_are_those_of_a_usual_row(log, model):
    shares = model.effective_weights
    assert sum(shares.values()) == pytest.approx(1.0)
    assert model.explain()["effective_weight"] == shares
    worth = model.state.request_weights.mean
    np.testing.assert_allclose(list(shares.values()), worth / worth.sum())
    json.dumps(model.evaluate(log[1]).to_dict(), allow_nan=False)


def test_it_needs_requests_and_knows_no_values(log):
    train, _, schema = log
    model = hr.HarmonRank(optimise="requests")
    bare = hr.Schema(schema.objectives, schema.context)
    with pytest.raises(UsageError, match="needs a request column, which says which rows"):
        model.fit(train[:2_000], bare)
    valued = hr.Schema(schema.objectives, schema.context, "request_id", value={"like": 1})
    with pytest.raises(UsageError, match="values per event have a best score of their own"):
        model.fit(train[:2_000], valued)
    with pytest.raises(UsageError, match="optimise"):
        hr.HarmonRank(optimise="request")


def test_values_per_event_are_worth_the_same_in_every_request(log, model):
    test = log[1][:100]
    expected = model.probabilities(test)[:, 3] * 2.0
    np.testing.assert_allclose(model.score(test, value={"like": 2.0}), expected)
    train, _, schema = log
    valued = replace(schema, value={"like": 1.0})
    assert hr.HarmonRank().fit(train[:20_000], valued).fuser.optimises == "all"


def test_requests_of_one_row_tell_nothing(log):
    train, _, schema = log
    lonely = train[:20_000].with_columns(request_id=pl.int_range(20_000))
    assert hr.HarmonRank().fit(lonely, schema).fuser.optimises == "all"


def test_one_request_that_holds_all_rows_breaks_nothing(log):
    train, test, schema = log
    one = train[:20_000].with_columns(request_id=pl.lit(7))
    model = hr.HarmonRank().fit(one, schema)
    assert np.isfinite(model.score(read_log(test[:50], schema))).all()


SMALL = {"steps": 60, "patience_steps": 60, "batch_rows": 1_000, "buckets": 6}


def test_a_network_learns_within_requests(log):
    train, test, schema = log[0][:10_000], log[1][:5_000], log[2]
    network = method_class("harmonrank-paper")(optimise="requests", **SMALL)
    network.fit(train, schema)
    quality = network.evaluate(test)
    assert quality.optimises == "requests"
    assert quality.requests.exact_auc_sum > 2.5 + 0.1  # chance is 2.5
    again = method_class("harmonrank-paper")(optimise="requests", **SMALL).fit(train, schema)
    np.testing.assert_array_equal(again.score(test), network.score(test))


@pytest.mark.parametrize(
    "name",
    ["mbce", "label-aggregation", "reinforce", "pairwise-square", "pairwise-logistic", "aucm"],
)
def test_a_loss_that_cannot_says_so(name):
    with pytest.raises(UsageError, match=f"{name} cannot be fitted for AUC within requests, as"):
        method_class(name)(optimise="requests")


def test_a_network_says_what_it_needs(log):
    train, schema = log[0][:2_000], log[2]
    paper = method_class("harmonrank-paper")
    with pytest.raises(UsageError, match="use pairs='each' with optimise='requests'"):
        paper(optimise="requests", preset="paper")
    bare = hr.Schema(schema.objectives, schema.context)
    with pytest.raises(UsageError, match="needs a request column"):
        paper(optimise="requests", **SMALL).fit(train, bare)
    tiny = paper(optimise="requests", **{**SMALL, "batch_rows": 10})
    with pytest.raises(UsageError, match="raise `batch_rows`"):
        tiny.fit(train, schema)


def test_blocks_may_cut_requests(log, model, tmp_path):
    train, test, schema = log
    train.write_parquet(tmp_path / "train.parquet")
    blocks = FileBlocks(tmp_path / "train.parquet", schema, size=7_000)
    again = hr.HarmonRank().fit(blocks, schema)
    np.testing.assert_allclose(again.score(test[:50]), model.score(test[:50]), rtol=1e-3)
