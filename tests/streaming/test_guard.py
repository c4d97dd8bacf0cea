from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from small_stream import SCHEMA, WORLD

from harmonrank.streaming.learners.training import GuardRows, is_guard
from harmonrank.worlds import as_frame


def rows(count=2000, seed=0):
    frame = as_frame(WORLD, WORLD.sample(count, seed=seed))
    return frame.with_columns(**{SCHEMA.request: pl.Series(np.arange(count) // 10)})


def without(frame, name):
    return frame.with_columns(pl.lit(0, pl.UInt8).alias(name))


def test_a_share_of_the_requests_judges_with_all_their_rows():
    requests = pl.Series([f"request-{i // 7}" for i in range(70_000)])
    judges = is_guard(requests, 0.2, seed=0)
    assert judges.mean() == pytest.approx(0.2, abs=0.01)
    assert (judges.reshape(-1, 7).all(axis=1) == judges.reshape(-1, 7).any(axis=1)).all()
    assert np.array_equal(judges[:700], is_guard(requests[:700], 0.2, seed=0))


def test_numbered_requests_are_chosen_evenly():
    numbers = pl.Series(np.arange(50_000))
    judges = is_guard(numbers, 0.2, seed=3)
    parts = judges.reshape(50, 1000).mean(axis=1)
    assert parts.min() > 0.14
    assert parts.max() < 0.26


def test_another_seed_chooses_others_and_no_share_chooses_none():
    requests = pl.Series(np.arange(10_000))
    one, other = (is_guard(requests, 0.5, seed=seed) for seed in (0, 1))
    assert 0.4 < (one == other).mean() < 0.6
    assert not is_guard(requests, 0.0, seed=0).any()


def test_rows_that_have_judged_are_learned_and_others_wait():
    guard = GuardRows().with_rows(rows())
    left, learned = guard.released(10_000)
    assert (left.count, learned) == (2000, None)
    left, learned = replace(guard, judged=True).released(10_000)
    assert (left.count, learned.height) == (0, 2000)


def test_rows_of_two_batches_wait_together_in_order():
    guard = GuardRows().with_rows(rows(seed=0)).with_rows(rows(seed=1))
    assert guard.rows.equals(pl.concat([rows(seed=0), rows(seed=1)]))
    assert not guard.judged


def test_of_too_many_the_oldest_are_learned_without_having_judged():
    guard = GuardRows().with_rows(rows(seed=0)).with_rows(rows(seed=1))
    left, learned = guard.released(2500)
    assert learned.equals(rows(seed=0)[:1500])
    assert left.count == 2500
    assert guard.released(2500, all_of_them=True)[1].height == 4000


def test_rows_without_a_class_say_nothing_of_an_objective():
    name = SCHEMA.names[-1]
    assert GuardRows().lacking(SCHEMA) == "there are no guard rows yet"
    assert GuardRows().with_rows(rows(20_000)).lacking(SCHEMA) is None
    lacking = GuardRows().with_rows(without(rows(20_000), name)).lacking(SCHEMA)
    assert lacking == f"no positive label of '{name}' among the 20,000 guard rows yet"
