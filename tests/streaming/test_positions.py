"""Feedback of a stream counts as if every place had been looked at."""

from dataclasses import replace
from datetime import timedelta

import numpy as np
import polars as pl
import pytest
from batches import hour

from harmonrank.data import chances_at, read_log
from harmonrank.metrics import auc
from harmonrank.streaming import Batch, LearnerSettings, Prequential, StreamConfig, new_learner
from harmonrank.streaming.learners.training import StreamTraining
from harmonrank.worlds import as_frame, world, world_schema
from harmonrank_lab.worlds import with_places

WORLD = world("qkvideo").subset(["click", "long_view"])
SCHEMA = replace(world_schema(WORLD), position="position", time="time")
SETTINGS = LearnerSettings(opening_rows=5_000)
ROWS = 8_000


def shown(number, rows=ROWS):
    """Return rows of an hour that were shown by the first score; few look further down."""
    sample = WORLD.sample(rows, seed=number)
    frame = with_places(as_frame(WORLD, sample), WORLD, sample, 1.0, seed=number)
    return frame.with_columns(
        pl.col("request_id").cast(pl.String) + f" of {number}",
        item=pl.int_range(pl.len()).cast(pl.String),
        time=pl.lit(hour(number)),
    )


@pytest.fixture(scope="module")
def trained():
    """The training after each of three hours; the default goes on by sums from the first on."""
    config = StreamConfig(learner=SETTINGS)
    begun = StreamTraining(
        SCHEMA, config, new_learner("harmonrank", {}, SCHEMA, SETTINGS), Prequential()
    )
    result = [begun]
    for number in range(3):
        ends = hour(number), hour(number) + timedelta(hours=1)
        result.append(result[-1].learned(Batch(*ends, shown(number))))
    return result


def test_what_is_learned_by_sums_is_what_users_want(trained):
    learner = trained[-1].learner
    assert learner.continuation is not None
    assert chances_at(learner.model.schema.examination, np.array([10])) < 0.4  # in truth 0.29
    test = read_log(as_frame(WORLD, WORLD.sample(20_000, seed=9)), world_schema(WORLD))
    said, true = learner.model.probabilities(test).mean(axis=0), test.truth.mean(axis=0)
    assert said == pytest.approx(true, rel=0.12)
    assert (read_log(shown(9), SCHEMA).prevalence() < 0.6 * true).all()


def test_guard_rows_judge_as_if_all_had_been_looked_at(trained):
    model, log = trained[-1].candidate()
    assert log.inverse is not None
    assert log.schema.examination == model.schema.examination
    true = log.truth.mean(axis=0)
    assert log.prevalence() == pytest.approx(true, rel=0.25)
    assert (log.labels.mean(axis=0) < 0.6 * true).all()


def test_prequential_quality_is_corrected_and_the_exact_one_needs_no_correction(trained):
    before, after = trained[-2:]
    quality = Prequential(1, after.quality.batches[-1:]).quality(SCHEMA)
    rows = read_log(shown(2), SCHEMA)
    fused = before.learner.model.score(rows)
    exact = auc(fused, rows.truth)
    assert list(quality.exact_auc.values()) == pytest.approx(exact.tolist())
    naive = auc(fused, rows.labels)
    values = np.array(list(quality.auc.values()))
    assert (abs(values - exact) < abs(naive - exact)).all()
