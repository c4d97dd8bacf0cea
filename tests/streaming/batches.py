"""Batches of a world for learners, and what every learner must do with them."""

from datetime import UTC, datetime, timedelta

import numpy as np

from harmonrank.data import read_log
from harmonrank.streaming import StreamLearner
from harmonrank.streaming.learners.learner import LearnerRecord
from harmonrank.streaming.state.commits import Commits
from harmonrank.support.storage import read_json
from harmonrank.worlds import as_frame, world_schema
from harmonrank_lab.worlds import lab_world as world

CONFLICT = world("conflict")
SCHEMA = world_schema(CONFLICT)
SWAPPED = CONFLICT.with_upstream(("comment", "like"), a=1.5, b=-1.0)


def hour(number):
    """Return the end of an hour of a stream."""
    return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=number)


def batch(seed, rows=6000, place=CONFLICT):
    """Return labelled rows of an hour."""
    return read_log(as_frame(place, place.sample(rows, seed=seed)), SCHEMA)


def stored(learner, folder):
    """Return a learner that was committed and read back."""
    Commits(folder).commit({"record": learner.record(), **learner.parts()})
    return restored(folder, learner.recipe)


def restored(folder, recipe):
    commits = Commits(folder)
    commits.check()
    record = commits.read("record", lambda path: read_json(path, LearnerRecord))
    return StreamLearner.restored(recipe, record, commits)


def check_learner(begun, tmp_path, batches=3, rows=6000):
    """Check that a learner is a value, repeats itself, and is saved and loaded exactly.

    Returns the learner after the last batch.
    """
    test = batch(99, 300)
    assert begun.model is None
    one, other, scores = begun, begun, []
    for number in range(batches):
        rows_of_hour = batch(number, rows)
        one = one.learned(rows_of_hour, seed=number, at=hour(number))
        # The other one is stopped and started between any two batches.
        other = stored(other, tmp_path / f"a{number}")
        other = other.learned(rows_of_hour, seed=number, at=hour(number))
        assert np.array_equal(one.model.score(test), other.model.score(test))
        scores.append(one.model.score(test))
    assert begun.model is None
    assert not np.array_equal(scores[0], scores[-1])
    assert one.facts() == other.facts()
    assert one.facts()["learned_rows"] == batches * rows
    changed = batch(50, 3000, SWAPPED)
    pair = one.recalibrated(changed), other.recalibrated(changed)
    assert np.array_equal(one.model.score(test), scores[-1])
    after = [learner.learned(batch(51, rows, SWAPPED), seed=9, at=hour(9)) for learner in pair]
    assert np.array_equal(*(learner.model.score(test) for learner in after))
    assert one.learned(test.take(np.arange(0)), seed=0, at=hour(0)) is one
    return one
