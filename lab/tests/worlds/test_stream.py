"""The events of a simulated world: all of its rows and labels, in order of arrival."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from harmonrank.streaming import Batch, Join, Windows
from harmonrank.streaming.sources.event_reading import read_frame
from harmonrank.support import UsageError
from harmonrank.worlds import as_frame, world
from harmonrank_lab.worlds import Swap
from harmonrank_lab.worlds.stream import SimulatedStream

ROWS = 70_000
STREAM = SimulatedStream(world("conflict"), ROWS, hours=6, seed=3)


@pytest.fixture(scope="module")
def events():
    return pl.concat(STREAM.chunks())


def test_every_row_is_an_exposure_and_every_label_feedback(events):
    sample = STREAM.world.sample(ROWS, seed=3, horizon=ROWS)
    shown = events.filter(event="exposure")
    columns = [*STREAM.schema.score_columns, *STREAM.schema.truth.values(), *STREAM.schema.context]
    expected = as_frame(STREAM.world, sample).select(columns)
    assert_frame_equal(shown.select(columns), expected, check_dtypes=False)
    assert shown["request"].cast(int).to_list() == sample.request.tolist()
    given = events.filter(event="feedback")["objective"].value_counts()
    assert dict(given.iter_rows()) == dict(
        zip(STREAM.schema.names, sample.labels.sum(axis=0, dtype=int).tolist(), strict=True)
    )


def test_events_are_well_formed_and_in_order(events):
    assert read_frame(STREAM.form, events)["fault"].null_count() == events.height
    assert events["time"].is_sorted()
    shown = events.filter(event="exposure")["time"]
    assert shown[0] == STREAM.start
    assert timedelta(hours=5.99) < shown[-1] - STREAM.start < timedelta(hours=6)
    assert events.filter(event="exposure")["position"].min() == 1


def test_most_but_not_all_feedback_comes_within_the_hour(events):
    shown = events.filter(event="exposure").select("item", shown="time")
    given = events.filter(event="feedback").join(shown, on="item")
    share = ((given["time"] - given["shown"]) <= timedelta(hours=1)).mean()
    assert 0.9 < share < 0.999


def test_the_join_finds_every_label_that_came_in_time(events):
    join = Join(STREAM.schema, Windows(window=48 * 3600.0))
    last = events.tail(1).with_columns(event=pl.lit("exposure"), item=pl.lit("end"))
    join.add(events)
    join.add(last.with_columns(pl.col("time") + timedelta(hours=60)))
    rows = pl.concat(one.rows for one in join.ready() if isinstance(one, Batch))
    sample = STREAM.world.sample(ROWS, seed=3, horizon=ROWS)
    assert np.array_equal(rows.select(STREAM.schema.names).to_numpy(), sample.labels)
    assert join.counts["counted"] == sample.labels.sum(dtype=int)
    assert not join.take_aside().height


def test_the_same_seed_draws_the_same_events_and_another_others(events):
    assert_frame_equal(pl.concat(STREAM.chunks()), events)
    other = pl.concat(replace(STREAM, seed=4).chunks())
    assert not other.head(100).equals(events.head(100))


def test_disorder_makes_some_events_late_and_some_come_twice(events):
    stream = replace(STREAM, disorder=0.2)
    mixed = pl.concat(stream.chunks())
    assert not mixed["time"].is_sorted()
    twice = mixed.height - mixed.unique().height
    assert 0.01 < twice / events.height < 0.03
    assert_frame_equal(mixed.unique().sort(pl.all()), events.sort(pl.all()), check_exact=True)
    join = Join(stream.schema, Windows())
    join.add(mixed)
    counts = join.counts
    assert counts["duplicate"] > 500
    assert counts["late"] > 10


def test_an_upstream_swap_comes_at_its_hour():
    swap = Swap(at=0.5, objectives=("buy",), a=0.7, b=1.0)
    stream = replace(STREAM, world=STREAM.world.drifting(swap=swap))
    before = pl.concat(STREAM.chunks()).filter(event="exposure")["p_buy"]
    shown = pl.concat(stream.chunks()).filter(event="exposure")
    moved = (shown["p_buy"] != before).to_numpy()
    half = stream.start + timedelta(hours=3)
    assert np.array_equal(moved, (shown["time"] >= half).to_numpy())


def test_a_stream_that_would_reach_into_the_future_is_refused():
    now = datetime.now(UTC)
    with pytest.raises(UsageError, match="events from the future are taken for broken clocks"):
        SimulatedStream(world("conflict"), 100, hours=10, start=now - timedelta(hours=8))
    with pytest.raises(UsageError, match=r"`hours` must be above 0, up to a million. Got 0."):
        SimulatedStream(world("conflict"), 100, hours=0)
    with pytest.raises(UsageError, match=r"`disorder` must lie in \[0, 1\]. Got 2."):
        SimulatedStream(world("conflict"), 100, hours=1, disorder=2)
