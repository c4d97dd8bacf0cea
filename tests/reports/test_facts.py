from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import harmonrank as hr
from harmonrank.data import read_log
from harmonrank.fusion.baselines.closed_form import ClosedForm, PrevalenceWeights
from harmonrank.metrics import auc
from harmonrank.reports import collect, run_of
from harmonrank.reports.data_facts import data_facts
from harmonrank.reports.model_facts import (
    attention_of,
    calibration_of,
    pulls_by_context,
    pulls_of,
    response_of,
)
from harmonrank.reports.stability import stability_of


@pytest.fixture
def log(table, schema):
    return read_log(table, schema)


@pytest.fixture
def linear(table, schema):
    """Return a method whose fused score is linear in the scores."""
    return PrevalenceWeights().fit(table, schema, valid=table)


def test_the_response_of_a_linear_fusion_is_its_slope(linear, log):
    pi = linear.prevalence
    spread = linear.score(log).std()
    medians = np.median(log.scores, axis=0)
    for m, curve in enumerate(response_of(linear, log)):
        expected = (np.array(curve.x) - medians[m]) / (pi[m] * (1 - pi[m])) / spread
        np.testing.assert_allclose(curve.y, expected, atol=1e-9)
        assert curve.x[0] == pytest.approx(np.quantile(log.scores[:, m], 0.005))


def test_the_pulls_of_a_linear_fusion_are_slope_times_range(linear, log):
    pi = linear.prevalence
    low, high = np.quantile(log.scores, [0.1, 0.9], axis=0)
    moved = (high - low) / (pi * (1 - pi))
    np.testing.assert_allclose(pulls_of(linear, log), moved / moved.sum())


def test_a_fusion_that_ignores_the_context_pulls_alike_in_every_value(linear, log):
    by_context = pulls_by_context(linear, log)
    assert list(by_context) == ["hour", "age"]
    assert list(by_context["age"]) == ["old", "young"]
    assert len(by_context["hour"]) == 24
    for values in by_context.values():
        for pulls in values.values():
            np.testing.assert_allclose(pulls, pulls_of(linear, log))


def test_a_context_of_fractions_is_cut_into_fifths(table, schema):
    changed = table.with_columns(age=pl.int_range(pl.len()) / 7, hour=pl.lit(None, pl.Float64))
    model = ClosedForm().fit(changed, schema, valid=changed)
    pulls = pulls_by_context(model, read_log(changed, schema))
    assert len(pulls["age"]) == 5
    assert "hour" not in pulls


def test_calibration_bins_hold_all_rows_and_the_truth_lies_in_most_intervals(log):
    rng = np.random.default_rng(0)
    p = rng.beta(1, 20, (20_000, 2))
    labels = (rng.random(p.shape) < p).astype(np.uint8)
    big = replace(log, scores=p, labels=labels)
    for m, bins in enumerate(calibration_of(p, big)):
        assert len(bins) == 10
        assert sum(b.rows for b in bins) == len(p)
        rate = sum(b.rows * b.observed for b in bins) / len(p)
        assert rate == pytest.approx(labels[:, m].mean())
        sums = [b.rows * b.predicted for b in bins]
        np.testing.assert_allclose(sums, sums[0], rtol=0.02)
        assert sum(b.low <= b.predicted <= b.high for b in bins) >= 8


def test_rows_of_no_weight_do_not_count_in_calibration(log):
    weight = np.ones(log.rows)
    weight[:300] = 0
    weighted = replace(log, sample_weight=weight)
    kept = log.take(np.arange(300, 600))
    for ours, theirs in zip(
        calibration_of(log.scores, weighted), calibration_of(kept.scores, kept), strict=True
    ):
        total = [sum(b.rows for b in bins) for bins in (ours, theirs)]
        assert total == [600, 300]
        assert ours[-1].observed == pytest.approx(theirs[-1].observed, abs=0.2)


def test_equal_logs_have_no_drift_and_a_moved_score_has(log):
    assert [(d.psi, d.ks) for d in stability_of(log, log)] == [(0, 0), (0, 0)]
    moved = replace(log, scores=np.column_stack([log.scores[:, 0] / 2, log.scores[:, 1]]))
    buy, like = stability_of(log, moved)
    assert buy.psi > 0.25
    assert buy.ks > 0.3
    assert like.psi == 0
    assert sum(buy.train) == pytest.approx(1)
    assert sum(buy.test) == pytest.approx(1)


def test_ks_is_that_of_scipy(log):
    from scipy.stats import ks_2samp

    other = replace(log, scores=np.random.default_rng(1).beta(2, 4, (500, 2)))
    for m, drift in enumerate(stability_of(log, other)):
        assert drift.ks == pytest.approx(ks_2samp(log.scores[:, m], other.scores[:, m]).statistic)


def test_the_frontier_reaches_each_objective_alone(facts, models, logs):
    model, test = models["harmonrank"], logs[1]
    frontier = facts.frontier
    for alone in np.eye(len(frontier.names)):
        ((place,),) = np.nonzero((frontier.weights > 0).astype(float) @ (1 - alone) == 0)
        fused = model.score(test, weights=dict(zip(frontier.names, alone.tolist(), strict=True)))
        np.testing.assert_allclose(frontier.auc.figures[place], auc(fused, test.truth))
    assert frontier.within
    assert frontier.decisive.volume <= frontier.best.volume


def test_a_method_that_cannot_change_weights_has_no_frontier_and_no_calibration(
    facts, models, logs
):
    alone = {"harmonrank-paper": models["harmonrank-paper"]}
    collected = collect("x", facts.run, facts.board, alone, logs[1])
    assert collected.focus == "harmonrank-paper"
    assert collected.frontier is None
    assert collected.methods["harmonrank-paper"].calibration == ()
    assert collected.drift == ()


def test_attention_adds_up_to_one_and_only_networks_have_it(facts):
    paper = facts.methods["harmonrank-paper"]
    np.testing.assert_allclose(np.sum(paper.attention, axis=1), 1, rtol=1e-6)
    assert facts.methods["closed-form"].attention == ()


def test_attention_is_the_mean_of_what_the_network_attends_to(models, logs):
    import torch

    model, rows = models["harmonrank-paper"], logs[1].take(np.arange(50))
    network = model.network
    with torch.no_grad():
        x = network.scores(torch.from_numpy(rows.scores.astype(np.float32)))
        expected = network.relation_aware.attend(x).double().mean(dim=0).numpy()
    np.testing.assert_allclose(attention_of(model, rows), expected, rtol=1e-6)


def test_a_network_without_self_attention_has_none(table, schema, log):
    plain = hr.HarmonRankPaper(self_attention=False, epochs=1, buckets=8)
    assert attention_of(plain.fit(table, schema, valid=table), log) == ()


def test_every_epoch_is_kept(facts):
    epochs = facts.methods["harmonrank-paper"].epochs
    assert len(epochs) == 2
    assert all(0 <= share <= 1 for _, _, share in epochs)


def test_the_default_is_looked_at_closely(facts):
    assert facts.focus == "harmonrank"
    assert set(facts.context_pulls) == {"hour", "app_version", "age", "gender"}


def test_unseen_context_rare_objectives_and_wrong_scores_are_warned_of(table, schema):
    train = read_log(table, schema)
    odd = table.with_columns(
        age=pl.when(pl.int_range(pl.len()) < 60).then(pl.lit("ancient")).otherwise("age"),
        buy=(pl.int_range(pl.len()) % 100 == 0).cast(pl.UInt8),
    )
    test = read_log(odd, schema)
    facts = data_facts(test, train)
    said = "\n".join(facts.warnings)
    assert "where upstream is not calibrated: buy 28.89% and 1.00%." in said
    assert "in training and in test, where it changed: buy 26.33% and 1.00%." in said
    assert "within requests: buy 90%" in said
    assert facts.requests == 60
    assert facts.context[1].unseen == pytest.approx(0.1)
    assert "effective weight" not in said  # What rules is said by the influence on the order.


def test_a_calm_log_has_no_warnings(logs):
    _, test = logs
    quiet = test.take(np.arange(test.rows))
    calm = replace(quiet, scores=np.tile(quiet.prevalence(), (quiet.rows, 1)))
    said = data_facts(replace(calm, request=None)).warnings
    assert not any("calibrated" in line or "requests" in line for line in said)


def test_without_context_or_requests_nothing_is_said_about_them(table):
    log = read_log(table, hr.Schema({"buy": "p_buy"}))
    facts = data_facts(log)
    assert facts.requests is None
    assert facts.context == ()
    assert facts.objectives[0].one_class is None
    assert facts.objectives[0].effective_weight == 1


def test_the_run_tells_versions():
    run = run_of("harmonrank demo", 3)
    assert run.versions["harmonrank"] == hr.__version__
    assert {"Python", "torch", "numpy", "plotly"} <= set(run.versions)
    assert run.seed == 3


def test_effective_weights_are_those_of_the_fit_as_in_terminal_and_json(facts, models):
    shown = {o.name: o.effective_weight for o in facts.data.objectives}
    assert shown == facts.board.qualities["harmonrank"].effective_weights
    assert shown == models["harmonrank"].explain()["effective_weight"]
