"""The loop of a stream: what it learns, publishes and keeps, whatever happens to it."""

import hashlib
import shutil
import threading
from dataclasses import replace

import polars as pl
import pytest
from small_stream import CONFIG, SCHEMA, ListSource, Place, events_of

from harmonrank.registry import Registry
from harmonrank.streaming import BatchLearned, IntervalCompleted, Join, StreamConfig, read_history
from harmonrank.streaming.join.join import Batch
from harmonrank.streaming.loop_events import (
    RetryPlanned,
    SourceNoted,
    StateCommitted,
    StreamStarted,
    StreamStopped,
)
from harmonrank.support import OutputError, SourceError, UsageError


@pytest.fixture(scope="module")
def events():
    """Return five hours of events, some of them twice and one too late."""
    result = events_of(5, 800)
    late = result[:1].with_columns(request=pl.lit("late"))
    return pl.concat([result[:500], result[100:120], result[500:], late])


@pytest.fixture(scope="module")
def whole(events, tmp_path_factory):
    """Return the place of a stream that nothing has disturbed."""
    place = Place(tmp_path_factory.mktemp("whole"), events)
    list(place.run())
    return place


def joined(events):
    """Return the labelled rows of all closed intervals."""
    join = Join(SCHEMA, CONFIG)
    join.add(events)
    return [step.rows for step in join.ready() if isinstance(step, Batch)]


def names_digest(names):
    """Return the digest of rows that were learned in these portions."""
    result = ""
    for part in names:
        result = hashlib.sha256("\n".join([result, *part]).encode()).hexdigest()
    return result


def test_every_labelled_row_is_learned_once_or_waits_as_a_guard_row(whole, events):
    rows = pl.concat(joined(events))
    batches = [line for line in read_history(whole.state) if isinstance(line, BatchLearned)]
    assert sum(batch.rows for batch in batches) == rows.height
    last = batches[-1]
    assert last.learned_rows + last.guard_rows == rows.height
    assert sum(batch.learned for batch in batches) == last.learned_rows
    assert whole.content()["record"]["learner"]["learned_rows"] == last.learned_rows


def test_the_digest_is_of_the_names_of_the_learned_rows_in_order(whole, events):
    from harmonrank.streaming.learners.training import is_guard

    portions, waiting = [], []
    for rows in joined(events):
        judges = is_guard(rows[SCHEMA.request], CONFIG.guard_share, CONFIG.seed)
        names = rows.select(pl.concat_str(SCHEMA.request, "item", separator="\t")).to_series()
        portions.append([*waiting, *names.filter(~pl.Series(judges))])
        waiting = names.filter(pl.Series(judges)).to_list()
    assert whole.content()["record"]["digest"] == names_digest(portions)


def test_a_version_is_published_for_every_batch_with_its_window(whole):
    batches = [line for line in read_history(whole.state) if isinstance(line, BatchLearned)]
    registry = Registry(whole.registry)
    assert [batch.version.version for batch in batches] == registry.numbers()
    assert registry.version(1).window == "2023-11-14T22:00/2023-11-14T23:00"
    assert registry.version(3).window == "2023-11-14T22:00/2023-11-15T01:00"
    assert all(batch.held is None for batch in batches)


def test_quality_is_of_rows_that_the_model_had_not_learned(whole):
    first, second, *_ = [
        line for line in read_history(whole.state) if isinstance(line, BatchLearned)
    ]
    assert (first.window, first.batch) == (None, None)
    assert second.window.rows == second.rows
    assert second.batch.exact_auc_sum == pytest.approx(1.3, abs=0.2)
    assert second.batch.ceiling > second.batch.exact_auc_sum


def test_every_interval_has_its_drift(whole):
    intervals = [line for line in read_history(whole.state) if isinstance(line, IntervalCompleted)]
    assert intervals[0].moves == {}
    assert set(intervals[-1].moves) == set(SCHEMA.score_columns)
    assert intervals[-1].moves["p_like"].psi >= 0


def test_what_counts_for_nothing_is_kept_with_its_reason(whole):
    reasons = [row["reason"] for row in whole.aside()]
    assert (reasons.count("duplicate"), reasons.count("late")) == (20, 1)


@pytest.mark.parametrize("most", [161, 1000, 100_000])
def test_results_do_not_depend_on_how_events_are_cut_into_chunks(whole, events, tmp_path, most):
    place = Place(tmp_path, events, most=most)
    list(place.run())
    assert place.content() == whole.content()


def test_a_stream_that_is_dropped_after_any_event_goes_on_as_if_nothing_had_been(
    whole, events, tmp_path
):
    place = Place(tmp_path, events, most=1000)
    for count in range(1, 200):
        run = place.run()
        seen = [event for event, _ in zip(run, range(count), strict=False)]
        run.close()
        if isinstance(seen[-1], StreamStopped):
            break
    assert isinstance(seen[-1], StreamStopped)
    assert count > 8
    assert place.content() == whole.content()


def test_a_stop_finishes_the_step_commits_and_the_next_run_goes_on(whole, events, tmp_path):
    place, stop = Place(tmp_path, events), threading.Event()
    told = []
    for event in place.run(stop=stop):
        told.append(event)
        if isinstance(event, BatchLearned):
            stop.set()
    assert [type(event) for event in told[-2:]] == [StateCommitted, StreamStopped]
    assert told[-1].why == "stopped as asked"
    again = list(place.run())
    assert again[0].commit == told[-1].commit
    assert again[0].learned_rows == told[-1].learned_rows > 0
    assert place.content() == whole.content()


def test_a_stream_without_anything_new_changes_nothing(whole):
    before = whole.content()
    told = list(whole.run())
    assert [type(event) for event in told] == [StreamStarted, StreamStopped]
    assert whole.content() == before


def test_the_source_is_told_what_is_safe_and_told_again_by_the_next_start(events, tmp_path):
    place = Place(tmp_path, events, most=1000)
    for event in place.run():
        if isinstance(event, StateCommitted):
            break
    assert place.source.acknowledged is None  # it is told after the commit, and was dropped there
    run = place.run()
    next(run), next(run)
    assert place.source.acknowledged > 0
    run.close()


def test_without_a_registry_the_same_is_learned_and_nothing_published(whole, events, tmp_path):
    place = Place(tmp_path, events)
    told = place.told(BatchLearned, registry=False)
    assert all(batch.version is None for batch in told)
    mine, theirs = place.content(), whole.content()
    assert mine["versions"] == []
    assert mine["files"] == theirs["files"]
    assert mine["record"]["digest"] == theirs["record"]["digest"]


def test_the_last_model_alone_can_be_published(whole, events, tmp_path):
    place = Place(tmp_path, events)
    (stopped,) = place.told(StreamStopped, publish="last")
    assert stopped.version.version == 1
    theirs = Registry(whole.registry).versions()[-1]
    assert Registry(place.registry).version().checksums == theirs.checksums
    (again,) = place.told(StreamStopped, publish="last")
    assert again.version == stopped.version
    assert Registry(place.registry).numbers() == [1]


class Flaky(ListSource):
    """A source that is away every other time it is asked."""

    asked = 0

    def _fail(self):
        self.asked += 1
        if self.asked % 2:
            raise SourceError("The source is away.")

    def read(self, after, most):
        self._fail()
        return super().read(after, most)

    def committed(self, offset):
        self._fail()
        super().committed(offset)

    def waiting(self):
        raise SourceError("The source is away.")


def test_a_source_that_is_away_is_asked_again_and_nothing_is_lost(whole, events, tmp_path):
    place = Place(tmp_path, events)
    told = list(place.run(source=Flaky(events, 1000)))
    retries = [event for event in told if isinstance(event, RetryPlanned)]
    assert {(retry.what, retry.reason) for retry in retries} == {
        ("the source", "The source is away.")
    }
    assert any(isinstance(event, SourceNoted) for event in told)
    assert place.content() == whole.content()


def test_a_source_that_stays_away_ends_the_stream_after_its_patience(events, tmp_path):
    class Away(ListSource):
        def read(self, after, most):
            raise SourceError("The source is away.")

    place = Place(tmp_path, events)
    with pytest.raises(SourceError, match="The source is away"):
        list(place.run(source=Away(events), patience=0.02))


def test_a_stop_while_something_is_tried_again_stops_at_once(whole, events, tmp_path):
    place, stop = Place(tmp_path, events), threading.Event()
    shutil.rmtree(place.registry)
    place.registry.write_text("no folder")
    for event in place.run(stop=stop):
        if isinstance(event, RetryPlanned):
            assert event.what == "the registry"
            stop.set()
    assert "stopped as asked while the registry failed" in event.why
    place.registry.unlink()
    fresh = Place(tmp_path, events)
    list(fresh.run())
    assert fresh.content() == whole.content()


@pytest.mark.parametrize("method", ["closed-form", "harmonrank"])
def test_hours_of_few_rows_and_of_none_are_learned_too(method, tmp_path):
    first = 1_700_000_000 // 3600
    quiet = [
        events_of(1, 10, seed=hour, start=first + 4 + 2 * hour).with_columns(
            pl.concat_str(pl.lit(f"q{hour}-"), "request").alias("request")
        )
        for hour in range(4)
    ]
    lost = quiet[2].with_columns(pl.lit(None, pl.Float64).alias("p_like"))
    events = pl.concat([events_of(4, 800), *quiet[:2], lost, quiet[3]], how="vertical_relaxed")
    learner = replace(CONFIG.learner, opening_rows=1500)
    place = Place(tmp_path, events, config=replace(CONFIG, method=method, learner=learner))
    batches = place.told(BatchLearned)
    assert [batch.rows for batch in batches] == [800] * 4 + [10] * 3
    assert batches[-1].learned_rows + batches[-1].guard_rows == 3230


def test_other_settings_are_refused_with_their_names(events, tmp_path):
    list(Place(tmp_path, events[:10]).run())
    other = StreamConfig(method="closed-form", every=60.0, learner=CONFIG.learner)
    expected = "was begun with every 3600.0. Got 60.0; use the settings that it was begun with"
    with pytest.raises(UsageError, match=expected):
        list(Place(tmp_path, events, config=other).run())


def test_a_state_without_a_commit_may_begin_with_other_settings(events, tmp_path):
    place = Place(tmp_path, events[:10])
    run = place.run()
    first = next(run)
    run.close()
    other = StreamConfig(method="closed-form", every=60.0, learner=CONFIG.learner)
    again = next(Place(tmp_path, events, config=other).run())
    assert again.stream != first.stream
    assert next(Place(tmp_path, events, config=other).run()).stream == again.stream


def test_a_second_stream_on_one_state_is_refused(events, tmp_path):
    place = Place(tmp_path, events[:10])
    run = place.run()
    next(run)
    with pytest.raises(UsageError, match="Another stream is at work on the state"):
        list(place.run())
    run.close()
    assert list(place.run())


def test_a_folder_of_something_else_is_no_state(events, tmp_path):
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "letters").touch()
    with pytest.raises(OutputError, match="is a folder of something else"):
        list(Place(tmp_path, events).run())


def test_weights_of_rows_are_refused(tmp_path):
    from harmonrank.streaming.stream import stream

    schema = replace(SCHEMA, sample_weight="w")
    with pytest.raises(UsageError, match="Rows of a stream have no weights"):
        list(stream("list://", schema, CONFIG, tmp_path / "s", registry=None))
