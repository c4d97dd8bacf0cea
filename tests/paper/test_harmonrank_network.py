from dataclasses import replace

import numpy as np
import pytest

import harmonrank as hr
from harmonrank.data import read_log
from harmonrank.metrics import auc, best_score, logit
from harmonrank.worlds import world
from harmonrank.worlds.simulation import as_frame, world_schema

QUICK = {"epochs": 5, "batch_rows": 1000}
QKVIDEO = world("qkvideo")
SCHEMA = world_schema(QKVIDEO)


def rows(count, start):
    return read_log(as_frame(QKVIDEO, QKVIDEO.sample(count, seed=7, start=start)), SCHEMA)


@pytest.fixture(scope="module")
def parts():
    return rows(20_000, 0), rows(10_000, 20_000), rows(20_000, 30_000)


@pytest.fixture(scope="module")
def model(parts):
    return hr.HarmonRankNetwork(**QUICK).fit(parts[0], SCHEMA, valid=parts[1])


def regret(fused, exam):
    return float((auc(best_score(exam.truth), exam.truth) - auc(fused, exam.truth)).sum())


def test_it_learns_what_the_closed_form_cannot(model, parts):
    train, valid, exam = parts
    closed = hr.ClosedForm().fit(train, SCHEMA, valid=valid)
    assert regret(model.score(exam), exam) < 0.8 * regret(closed.score(exam), exam)


def test_the_rank_loss_trains_the_heads_too_and_is_worse(model, parts, tmp_path):
    train, valid, exam = parts
    ranked = hr.HarmonRankNetwork(**QUICK, loss="rank", ridge=300.0).fit(train, SCHEMA, valid=valid)
    best = hr.ClosedForm().fit(train, SCHEMA, valid=valid)
    # It moves away from where it begins, the closed form.
    assert np.abs(logit(ranked.probabilities(train)) - logit(best.probabilities(train))).max() > 0.1
    assert regret(ranked.score(train), train) < 0.1
    assert regret(model.score(exam), exam) < regret(ranked.score(exam), exam)
    ranked.save(tmp_path / "model")
    assert hr.load(tmp_path / "model").config.loss == "rank"


def test_all_paths_are_alive_and_the_context_counts(model, parts, tmp_path):
    health = model.health
    assert health.dead == ()
    assert min(health.relation_aware, health.gated, health.linear) > 0.02
    assert min(health.self_attention, health.cross_attention) > 0.02
    assert health.context > 0.01
    exam = parts[2]
    codes = model.fitted.encoder.encode(exam.context)
    shuffled = codes[np.random.default_rng(0).permutation(len(codes))]
    score = model.state.probabilities
    moved = logit(score(exam.scores, shuffled)) - logit(score(exam.scores, codes))
    assert moved.std(axis=0).max() > 0.02
    model.save(tmp_path / "model")
    assert hr.load(tmp_path / "model").health == health


def test_a_residual_that_is_only_noise_is_not_kept(parts):
    train, valid, exam = parts
    rng = np.random.default_rng(0)
    # Each score says all about its own objective, and the training rows are few.
    few = train.take(np.arange(1500))
    few, valid, exam = (with_true_scores(log, rng) for log in (few, valid, exam))
    network = hr.HarmonRankNetwork(**QUICK).fit(few, SCHEMA, valid=valid)
    closed = hr.ClosedForm().fit(few, SCHEMA, valid=valid)
    assert regret(network.score(exam), exam) < regret(closed.score(exam), exam) + 0.01
    assert min(network.explain()["residual_share"].values()) < 0.5


def with_true_scores(log, rng):
    labels = (rng.random(log.truth.shape) < log.truth).astype(np.uint8)
    labels[:2] = [[0], [1]]
    return replace(log, scores=log.truth, labels=labels)


def test_weights_change_the_trade_off_after_the_fit(model, parts):
    exam = parts[2]
    first, last = SCHEMA.names[1], SCHEMA.names[-1]
    areas = {
        name: auc(model.score(exam, weights={first: 0, last: 0, name: 50}), exam.truth)
        for name in (first, last)
    }
    assert areas[first][1] > areas[last][1]
    assert areas[last][-1] > areas[first][-1]


def test_probabilities_are_calibrated(model, parts):
    exam = parts[2]
    p = model.probabilities(exam)
    np.testing.assert_allclose(p.mean(0), exam.truth.mean(0), rtol=0.15)


def test_a_fit_that_was_interrupted_goes_on_to_the_same_weights(parts, tmp_path):
    train, valid, _ = parts

    class KilledError(Exception):
        pass

    def kill(event):  # once two epochs are over
        if type(event).__name__ == "EpochEnded" and event.epoch == 1:
            raise KilledError("now")

    def fitted(**more):
        return hr.HarmonRankNetwork(**QUICK).fit(
            train.take(np.arange(3000)), SCHEMA, valid=valid, **more
        )

    whole, place = fitted(), tmp_path / "checkpoint"
    with pytest.raises(KilledError, match="now"):
        fitted(checkpoint=place, on_event=kill)
    seen = []
    again = fitted(checkpoint=place, on_event=seen.append)
    assert type(seen[0]).__name__ == "Resumed"
    assert again.history == whole.history
    for name, array in whole.state.weights.items():
        np.testing.assert_array_equal(again.state.weights[name], array)
