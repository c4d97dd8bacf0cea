"""An upstream model is replaced while a stream runs."""

from dataclasses import replace
from datetime import UTC, datetime

import polars as pl
import pytest
from small_stream import CONFIG, Place, events_of

from harmonrank.fusion.drift.drift import ColumnDrift, Drift
from harmonrank.registry import Guardrails, Registry
from harmonrank.streaming import BatchLearned, IntervalCompleted, read_history
from harmonrank.streaming.learners.training import Replacement, Seen, agreed
from harmonrank.streaming.loop_events import StreamStopped

SWAP = 3.0
RULES = Guardrails(tolerance=0.01)


def at(hour):
    return datetime(2023, 11, 14 + (22 + hour) // 24, (22 + hour) % 24, tzinfo=UTC)


def ran(folder, *, swap=SWAP, hours=6, config=CONFIG, **parts):
    place = Place(folder, events_of(hours, 24_000, swap=swap), config=config, rules=RULES, **parts)
    list(place.run())
    history = read_history(place.state)
    intervals = {one.start: one for one in history if isinstance(one, IntervalCompleted)}
    batches = {one.start: one for one in history if isinstance(one, BatchLearned)}
    return place, intervals, batches


@pytest.fixture(scope="module")
def swapped(tmp_path_factory):
    return ran(tmp_path_factory.mktemp("swap"))


def regret(batch):
    return batch.batch.ceiling - batch.batch.exact_auc_sum


def test_it_is_found_when_the_interval_is_complete_and_what_is_served_is_recalibrated(swapped):
    place, intervals, _ = swapped
    assert {start for start, one in intervals.items() if one.replaced} == {at(3)}
    result = intervals[at(3)]
    assert result.replaced == ["p_like"]
    assert result.version.recalibrated
    assert result.version.refused is None
    version = Registry(place.registry).version(result.version.version)
    assert (version.recalibrated, version.metrics) == (True, None)
    assert version.note.endswith("recalibrated at 2023-11-15T02:00:00")
    assert result.moves["p_like"].psi > 1
    assert result.moves["p_long_view"].psi < 0.01


def test_older_rows_that_are_learned_later_do_not_undo_it(swapped):
    place, _, batches = swapped
    # Rows of the hour before are learned after the change was found.
    made = batches[at(2)].version
    assert made.refused is None
    events = events_of(6, 24_000, seed=7, swap=0)
    shown = events.filter(event="exposure")[:24_000]
    model = Registry(place.registry).load(made.version)
    before = Registry(place.registry).load(batches[at(1)].version.version)
    drifts = [one.drift(shown) for one in (before, model)]
    assert [drift.replaced for drift in drifts] == [("p_like",), ()]


def test_no_version_is_refused_and_the_loss_is_of_one_interval(swapped):
    _, _, batches = swapped
    assert all(batch.version.refused is None for batch in batches.values())
    usual, lost, again = (regret(batches[at(hour)]) for hour in (2, 3, 4))
    assert lost > 5 * usual
    assert again < usual + 0.1 * (lost - usual)


def test_a_change_within_an_interval_of_few_rows_is_found_in_the_next_one(tmp_path):
    _, intervals, batches = ran(tmp_path, swap=3.3, hours=6, most=20_000)
    # Half of an hour has too few rows here to tell, so the next hour does.
    assert {start for start, one in intervals.items() if one.replaced} == {at(4)}
    assert regret(batches[at(4)]) > 0.02


def test_a_change_within_a_busy_interval_is_found_in_its_newest_part(tmp_path):
    config = replace(CONFIG, every=7200.0)
    _, intervals, _ = ran(tmp_path, swap=4.5, hours=9, config=config)
    replaced = {start: one for start, one in intervals.items() if one.replaced}
    assert set(replaced) == {at(4)}
    assert replaced[at(4)].version.refused is None


def test_a_change_before_the_first_model_is_found_when_its_rows_are_learned(tmp_path):
    config = replace(CONFIG, windows={"long_view": 3 * 3600.0})
    _, _, batches = ran(tmp_path, swap=2.0, hours=8, config=config)
    assert [batch.version.refused for batch in batches.values()] == [None] * len(batches)


@pytest.mark.slow
def test_a_stream_that_is_dropped_around_a_change_goes_on_as_if_nothing_had_been(
    swapped, tmp_path, record_property
):
    place, drops = Place(tmp_path, swapped[0].source.events, rules=RULES, most=40_000), 0
    for count in range(1, 200):
        run = place.run()
        seen = [event for event, _ in zip(run, range(count), strict=False)]
        run.close()
        if isinstance(seen[-1], StreamStopped):
            break
        drops += 1
    assert place.content() == swapped[0].content()
    record_property("drops", drops)


def test_a_recalibration_that_was_refused_is_not_tried_again(tmp_path):
    rules = Guardrails(tolerance=0.01, require_labels=True)
    place = Place(tmp_path, events_of(7, 24_000, swap=SWAP), rules=rules)
    list(place.run())
    registry = [v for v in Registry(place.registry).versions() if v.recalibrated]
    assert len(registry) == 1
    assert registry[0].refused.startswith("labels: no labelled table was given")


def seen(moved, replaced=()):
    """Return what a model says that sees some of three scores moved, and perhaps replaced."""
    columns = tuple(ColumnDrift(n, 30_000, -2.0 if n in moved else 0.0, 1.0) for n in "abc")
    result = Replacement(at(3), pl.DataFrame()) if replaced else None
    return Seen(Drift(30_000, columns, tuple(replaced), ()), result)


def test_an_older_model_agrees_with_a_newer_one_if_the_same_scores_moved():
    newer = seen("a", replaced="a")
    assert agreed(seen("ab"), newer) is newer
    for older in (seen("b"), seen(""), seen("ab", replaced="ab")):
        assert agreed(older, newer) is older
    older = seen("a")
    assert agreed(older, None) is agreed(older, seen("a")) is older
