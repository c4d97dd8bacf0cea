"""The join: what counts, what is set aside, and that neither depends on chunks."""

from datetime import timedelta

import msgspec
import numpy as np
import polars as pl
import pytest
from event_frames import FORM, SCHEMA, START, events, exposure, feedback, minute
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from harmonrank import Schema
from harmonrank.data import read_log
from harmonrank.streaming import Batch, EventForm, Exposures, Join, Windows
from harmonrank.streaming.join.intervals import JoinRecord
from harmonrank.streaming.sources.event_reading import read_frame
from harmonrank.support import DataError
from reference import join_by_hand

HOUR = timedelta(hours=1)


@pytest.fixture(autouse=True, scope="module")
def tiny_tables():
    """Let tables begin so small that they grow, and forget, all the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("harmonrank.streaming.join.tables._LEAST", 2)
        yield


def windows(every=60, lateness=5, buy=60, like=60):
    waits = {"buy": 60 * buy, "like": 60 * like}
    return Windows(every=60 * every, lateness=60 * lateness, windows=waits)


def joined(*rows, **options):
    """Return what comes of rows by hand: batches, what was set aside, and the join."""
    join = Join(SCHEMA, windows(**options))
    join.add(events(*rows))
    return [one for one in join.ready() if isinstance(one, Batch)], join.take_aside(), join


def reasons(aside):
    return aside.select("reason", "detail").rows()


def test_feedback_within_its_window_labels_its_exposure():
    (batch,), aside, join = joined(
        exposure("r", 0),
        exposure("r", 1, item="b"),
        feedback("r", 30),
        feedback("r", 40, "like", item="b"),
        exposure("s", 126),
    )
    assert (batch.start, batch.end) == (START, START + HOUR)
    assert batch.rows["request_id"].to_list() == ["r", "r"]
    assert batch.rows["item"].to_list() == ["a", "b"]
    assert batch.rows.select("buy", "like").rows() == [(1, 0), (0, 1)]
    assert not aside.height
    assert join.counts["counted"] == 2


def test_rows_have_the_names_of_the_schema():
    (batch,), _, _ = joined(exposure("r", 0, user=3, position=2), exposure("s", 126))
    row = batch.rows.row(0, named=True)
    common = {"request_id": "r", "item": "a", "time": START, "user": "3", "position": 2}
    own = {"p_buy": 0.1, "p_like": 0.2, "age": "old", "buy": 0, "like": 0}
    assert row == common | own


def test_rows_have_the_schemas_names_of_time_and_place_too():
    schema = Schema({"buy": "p_buy"}, context=["shown_at:hour"], time="shown_at", position="place")
    rows = [exposure("r", 0, position=2), exposure("s", 200, position=1)]
    join = Join(schema, Windows())
    join.add(read_frame(EventForm(schema), pl.DataFrame(rows), now=minute(1000)))
    batch = join.ready()[1].rows
    assert batch.columns == ["request", "item", "shown_at", "user", "place", "p_buy", "buy"]
    log = read_log(batch, schema)
    assert (log.context["shown_at:hour"][0], log.labels.tolist()) == (0, [[0]])


def test_an_interval_is_complete_before_its_labels_are_known():
    join = Join(SCHEMA, windows(buy=180))
    join.add(events(exposure("r", 0), exposure("s", 65)))
    (complete,) = join.ready()
    assert isinstance(complete, Exposures)
    assert complete.rows["request_id"].to_list() == ["r"]
    assert not {"buy", "like"} & set(complete.rows.columns)
    join.add(events(exposure("late", 59), feedback("r", 70), exposure("t", 244)))
    assert [type(one) for one in join.ready()] == [Exposures]
    join.add(events(exposure("t", 245)))
    (closed,) = join.ready()
    # What came when the interval was complete already is in its batch all the same.
    assert closed.rows["request_id"].to_list() == ["r", "late"]
    assert closed.rows["buy"].to_list() == [1, 0]


def test_each_objective_has_its_own_window():
    late = [feedback("r", 90, "buy"), feedback("r", 90, "like")]
    (batch, *_), aside, _ = joined(exposure("r", 0), *late, exposure("s", 400), buy=120, like=60)
    assert batch.rows.select("buy", "like").rows() == [(1, 0)]
    assert reasons(aside) == [("late", "its waiting window had closed")]
    assert aside["objective"].to_list() == ["like"]


def test_feedback_at_the_end_of_its_window_counts():
    (batch, *_), aside, _ = joined(exposure("r", 0), feedback("r", 60), exposure("s", 200))
    assert batch.rows["buy"].to_list() == [1]
    assert not aside.height


def test_feedback_that_arrives_when_the_watermark_is_past_its_window_is_late():
    # Given in time, but the newest event is a lateness beyond the window.
    (batch, *_), aside, _ = joined(
        exposure("r", 0), exposure("s", 65), feedback("r", 30), exposure("t", 200)
    )
    assert batch.rows["buy"].to_list() == [0]
    assert reasons(aside) == [("late", "its waiting window had closed")]


def test_feedback_before_its_exposure_is_held():
    (batch, *_), aside, join = joined(
        feedback("r", 20), feedback("r", 21, "like"), exposure("r", 10), exposure("s", 200)
    )
    assert batch.rows.select("buy", "like").rows() == [(1, 1)]
    assert not aside.height
    assert join.counts["counted"] == 2


def test_held_feedback_that_does_not_count_for_its_exposure_is_set_aside():
    _, aside, _ = joined(feedback("r", 20), feedback("r", 30), feedback("r", 5), exposure("r", 10))
    assert sorted(reasons(aside)) == [
        ("duplicate", "the feedback was there already"),
        ("late", "it is dated before its exposure"),
    ]


def test_feedback_whose_exposure_never_comes_is_unmatched():
    batches, aside, join = joined(feedback("r", 20), exposure("s", 124))
    assert not aside.height
    assert join.waiting == {"exposures": 1, "feedback": 1}
    join.add(events(exposure("t", 125)))
    assert reasons(join.take_aside()) == [("unmatched", "no exposure came")]
    assert batches == join.ready() == []
    assert join.waiting == {"exposures": 2, "feedback": 0}


def test_the_first_of_several_counts_and_the_others_are_duplicates():
    (batch, *_), aside, join = joined(
        exposure("r", 0, p_buy=0.3),
        exposure("r", 1, p_buy=0.4),
        feedback("r", 2),
        feedback("r", 2),
        exposure("s", 200),
    )
    assert batch.rows["p_buy"].to_list() == [0.3]
    assert reasons(aside) == [
        ("duplicate", "the exposure was there already"),
        ("duplicate", "the feedback was there already"),
    ]
    assert join.counts["duplicate"] == 2


def test_an_exposure_whose_interval_has_closed_is_late():
    _, aside, _ = joined(exposure("r", 300), exposure("s", 10), feedback("s", 20))
    assert reasons(aside) == 2 * [("late", "its interval had closed")]


def test_a_request_that_comes_back_after_its_interval_has_closed_is_another():
    rows = [exposure("r", 0), exposure("s", 200), exposure("r", 201), exposure("t", 400)]
    batches, aside, _ = joined(*rows)
    assert [batch.rows["request_id"].to_list() for batch in batches] == [["r"], ["s", "r"]]
    assert not aside.height


def test_a_clock_that_goes_backwards_moves_no_watermark():
    join = Join(SCHEMA, windows())
    seen = []
    for time in (100, 50, 90, 10, 120):
        join.add(events(exposure(f"r{time}", time)))
        seen.append(join.watermark)
    assert seen == [minute(95)] * 4 + [minute(115)]
    assert join.counts["late"] == 0


def test_feedback_of_value_0_says_nothing():
    (batch, *_), aside, join = joined(
        exposure("r", 0), feedback("r", 1, value=0), feedback("r", 2), exposure("s", 200)
    )
    assert batch.rows["buy"].to_list() == [1]
    assert not aside.height
    assert join.counts["zero"] == 1


def test_malformed_events_are_set_aside_and_move_nothing():
    _, aside, join = joined(exposure("r", 0), exposure(None, 10_000), feedback("r", 10, "buyy"))
    assert reasons(aside) == [
        ("malformed", "there is no `request`"),
        ("malformed", "`objective` must be one of the schema's"),
    ]
    assert '"objective": "buyy"' in aside["raw"][1]
    assert join.watermark == minute(-5)
    assert join.counts["malformed"] == 2


def test_nothing_comes_of_nothing():
    join = Join(SCHEMA, Windows())
    join.add(FORM.empty())
    assert join.ready() == []
    assert join.watermark is None
    assert join.take_aside().columns[:3] == ["reason", "detail", "event"]


def test_many_objectives_have_a_label_each():
    names = [f"o{m}" for m in range(130)]
    schema = Schema({name: f"p_{name}" for name in names})
    rows = [{"event": "exposure", "request": "r", "item": 1, "time": START}]
    for name in names[::3]:
        rows.append({**rows[0], "event": "feedback", "objective": name})
    rows.append({**rows[0], "request": "s", "time": minute(300)})
    join = Join(schema, Windows())
    raw = pl.DataFrame(rows, infer_schema_length=None)
    join.add(read_frame(EventForm(schema), raw, now=minute(1000)))
    (batch,) = [one for one in join.ready() if isinstance(one, Batch)]
    assert batch.rows.select(names).row(0) == tuple(int(m % 3 == 0) for m in range(130))


def saved(join, options=None):
    """Return what a join is restored to from its record, through JSON, and its frames."""
    record, frames = msgspec.json.encode(join.record()), join.frames()
    record = msgspec.json.decode(record, type=JoinRecord)
    return Join.restored(record, SCHEMA, windows(**(options or {})), frames.__getitem__)


def test_a_state_whose_parts_do_not_fit_is_refused():
    join = Join(SCHEMA, windows())
    join.add(events(exposure("r", 0), exposure("s", 61), feedback("t", 62)))
    record, frames = join.record(), join.frames()
    first, second = record.intervals
    for wrong, why in (
        ([first, first], "Events are in the wrong interval"),
        ([second], "Labels do not fit their rows"),
    ):
        wrong = msgspec.structs.replace(record, intervals=wrong)
        with pytest.raises(DataError, match=f"{why}; the state is damaged"):
            Join.restored(wrong, SCHEMA, windows(), frames.__getitem__)
    names = {name: name.replace(str(first.number), str(second.number)) for name in frames}
    with pytest.raises(DataError, match="Events are in the wrong interval; the state is damaged"):
        Join.restored(record, SCHEMA, windows(), lambda name: frames[names[name]])


def test_frames_that_have_not_changed_stay_the_same_objects():
    join, written, before = Join(SCHEMA, windows()), 0, []
    for number in range(40):
        rows = [exposure(f"r{number}-{i}", number) for i in range(10)]
        join.add(events(*rows, feedback(f"early{number}", number)))
        frames = [frame for name, frame in join.frames().items() if name.startswith("shown")]
        written += sum(f.height for f in frames if not any(f is other for other in before))
        before = frames
        assert len(frames) <= 16
    # 40 commits are less than two powers of eight: each row is written twice at the most.
    assert written <= 2 * 400
    assert saved(join).waiting == join.waiting == {"exposures": 400, "feedback": 40}


@st.composite
def sequences(draw):
    """Draw events (number, kind, key, time, objective) whose times mostly rise."""
    now, parts = draw(st.integers(0, 100)), []
    for number in range(draw(st.integers(1, 30))):
        now += draw(st.sampled_from([0, 0, 0, 1, 5, 20, 70]))
        time = max(0, now - draw(st.sampled_from([0, 0, 0, 3, 10, 60, 130])))
        kind = draw(st.sampled_from(["exposure", "feedback", "feedback", None]))
        key = draw(st.tuples(st.sampled_from("rst"), st.sampled_from("ab")))
        parts.append((number, kind, key, time, draw(st.sampled_from(["buy", "like"]))))
    return parts


def frame_of(sequence):
    rows = []
    for number, kind, (request, item), time, objective in sequence:
        make = feedback if kind == "feedback" else exposure
        rows.append(make(request, time, item=item, user=number))
        rows[-1] |= {"objective": objective} if kind == "feedback" else {}
        rows[-1] |= {"item": None} if kind is None else {}
    return events(*rows)


def taken(join):
    """Return what a join gives out as plain values."""
    given = []
    for one in join.ready():
        interval = (one.start - START) // (one.end - one.start)
        numbers = [int(user) for user in one.rows["user"]]
        labels = None
        if isinstance(one, Batch):
            named = one.rows.select("buy", "like").iter_rows(named=True)
            labels = [{name for name, value in row.items() if value} for row in named]
            labels = dict(zip(numbers, labels, strict=True))
        given.append((interval, labels, numbers))
    return given


choices = st.fixed_dictionaries(
    {
        "every": st.sampled_from([30, 60]),
        "lateness": st.sampled_from([0, 5, 30]),
        "buy": st.sampled_from([0, 60, 200]),
        "like": st.sampled_from([0, 30, 45, 60]),
    }
)


@settings(max_examples=100, deadline=None)
@given(sequences(), choices)
def test_the_join_is_that_by_hand(sequence, options):
    join = Join(SCHEMA, windows(**options))
    join.add(frame_of(sequence))
    waits = {name: options[name] for name in ("buy", "like")}
    given, aside = join_by_hand(sequence, options["every"], options["lateness"], waits)
    assert taken(join) == given
    result = join.take_aside()
    numbers = [int(user) for user in result["user"]]
    assert list(zip(numbers, result["reason"], strict=True)) == aside


@settings(max_examples=40, deadline=None)
@given(sequences(), choices, st.data())
def test_neither_chunks_nor_saving_change_anything(sequence, options, data):
    frame = frame_of(sequence)
    whole = Join(SCHEMA, windows(**options))
    whole.add(frame)
    join, ready, aside, first = Join(SCHEMA, windows(**options)), [], [], 0
    while first < frame.height:
        last = data.draw(st.integers(first + 1, frame.height))
        join.add(frame[first:last])
        if data.draw(st.booleans()):
            ready += join.ready()
            aside.append(join.take_aside())
            if data.draw(st.booleans()):
                join = saved(join, options)
        first = last
    ready += join.ready()
    aside.append(join.take_aside())
    expected = whole.ready()
    assert [type(one) for one in ready] == [type(one) for one in expected]
    for one, other in zip(ready, expected, strict=True):
        assert (one.start, one.end) == (other.start, other.end)
        assert_frame_equal(one.rows, other.rows)
    assert_frame_equal(pl.concat(aside, how="vertical_relaxed"), whole.take_aside())
    assert join.counts == whole.counts
    assert join.watermark == whole.watermark
    assert join.waiting == whole.waiting


def test_tables_that_grow_and_are_cleared_lose_nothing():
    rng = np.random.default_rng(0)
    join, rows, labels = Join(SCHEMA, windows(every=10, lateness=0, buy=10, like=10)), 0, 0
    for time in range(60):
        count = int(rng.integers(500, 1500))
        shown = pl.DataFrame({"request": [f"r{time}"] * count, "item": range(count)})
        shown = shown.with_columns(event=pl.lit("exposure"), time=minute(time), p_buy=0.5)
        picked = shown.sample(fraction=0.3, seed=time)
        given = picked.with_columns(event=pl.lit("feedback"), objective=pl.lit("buy"))
        frame = pl.concat([given.head(50), shown, given[50:]], how="diagonal")
        join.add(read_frame(FORM, frame, now=minute(1000)))
        rows, labels = rows + count, labels + given.height
    join.add(events(exposure("end", 100)))
    batches = [one.rows for one in join.ready() if isinstance(one, Batch)]
    assert sum(batch.height for batch in batches) == rows
    assert sum(batch["buy"].sum() for batch in batches) == labels
    assert not join.take_aside().height
