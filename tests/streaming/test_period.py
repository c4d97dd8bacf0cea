from datetime import UTC, datetime

import polars as pl
import pytest
from small_stream import ListSource, Place, events_of

from harmonrank.streaming import Period
from harmonrank.streaming.sources.source import PeriodSource


@pytest.fixture(scope="module")
def events():
    return events_of(5, 800)


def at(hour, minute=0):
    return datetime(2023, 11, 14 + (22 + hour) // 24, (22 + hour) % 24, minute, tzinfo=UTC)


def taken(source, most):
    """Return all events of a source and the position behind them."""
    parts, offset = [], None
    while (chunk := source.read(offset, most)) is not None:
        parts.append(chunk.events)
        offset = chunk.offset
    return parts, offset


@pytest.mark.parametrize("most", [10, 700, 100_000])
def test_it_ends_before_the_first_event_that_is_too_late(events, most):
    result, offset = taken(PeriodSource(ListSource(events), Period(until=at(3))), most)
    count = sum(map(len, result))
    assert count == (events["time"] < at(3)).arg_min()
    assert offset == {"row": count}


def test_a_malformed_event_of_a_late_time_does_not_end_it(events):
    broken = events[100:101].with_columns(time=pl.lit(at(9)), fault=pl.lit("ahead of the clock"))
    mixed = pl.concat([events[:100], broken.select(events.columns), events[100:]])
    _, offset = taken(PeriodSource(ListSource(mixed), Period(until=at(3))), 700)
    assert offset == {"row": (events["time"] < at(3)).arg_min() + 1}


def test_older_events_are_left_out_and_read_all_the_same(events):
    source = PeriodSource(ListSource(events), Period(since=at(1)))
    result, offset = taken(source, 700)
    assert sum(map(len, result)) == (events["time"] >= at(1)).sum()
    assert offset == {"row": len(events)}


def test_a_source_that_cannot_be_cut_there_ends_earlier(events):
    class Coarse(ListSource):
        def read(self, after, most):
            return super().read(after, max(most, 500))

    _, offset = taken(PeriodSource(Coarse(events), Period(until=at(3))), 500)
    assert offset["row"] % 500 == 0
    assert 0 < offset["row"] < (events["time"] < at(3)).arg_min()


def test_the_state_is_the_one_that_the_stream_had(events, tmp_path):
    """What comes of a period is what came of the stream when it had read so much."""
    cut = int((events["time"] < at(4, 10)).arg_min())
    live = Place(tmp_path / "live", events[:cut], most=900)
    list(live.run())
    replay = Place(tmp_path / "replay", events)
    list(replay.run(registry=False, period=Period(until=at(4, 10))))
    mine, theirs = replay.content(), live.content()
    assert mine["files"] == theirs["files"]
    for name in ("offset", "events", "learner", "digest", "since", "until"):
        assert mine["record"][name] == theirs["record"][name]
    # The stream goes on from it.
    list(replay.run())
    list(Place(tmp_path / "live", events).run())
    assert replay.content()["files"] == live.content()["files"]
