"""Raw rows become events, or say what is wrong with them."""

import json
from datetime import UTC, datetime, timedelta

import polars as pl
import pytest
from event_frames import FORM, SCHEMA, START, exposure, feedback, minute
from polars.testing import assert_frame_equal

from harmonrank import Schema
from harmonrank.streaming import EventForm
from harmonrank.streaming.sources.event_reading import read_frame, read_lines, settled_by, to_lines
from harmonrank.support import UsageError

NOW = minute(10_000)
SHOWN = {
    "event": "exposure",
    "request": "r",
    "item": "a",
    "time": "2026-11-01T00:00:00Z",
    "p_buy": 0.1,
    "p_like": 0.2,
    "age": "old",
}
GIVEN = {"event": "feedback", "request": "r", "item": "a", "time": "2026-11-01", "objective": "buy"}


def of_lines(*rows, form=FORM):
    return read_lines(form, [json.dumps(row).encode() for row in rows], now=NOW)


def of_frame(*rows, form=FORM):
    return read_frame(form, pl.DataFrame(rows, infer_schema_length=None), now=NOW)


@pytest.mark.parametrize("read", [of_lines, of_frame])
def test_an_event_is_a_row_of_the_canonical_frame(read):
    events = read(SHOWN | {"user": 7, "position": 3}, GIVEN)
    assert dict(events.schema) == FORM.types
    assert events["fault"].null_count() == 2
    first, second = events.iter_rows(named=True)
    assert (first["time"], first["user"], first["position"]) == (START, "7", 3)
    assert (second["objective"], second["value"], second["p_buy"]) == ("buy", 1.0, None)


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        (SHOWN | {"event": "click"}, "`event` must be exposure or feedback"),
        ({k: v for k, v in SHOWN.items() if k != "event"}, "`event` must be exposure or feedback"),
        (SHOWN | {"request": None}, "there is no `request`"),
        (SHOWN | {"request": 1.5}, "`request` must be text or a whole number"),
        (SHOWN | {"item": ""}, "`item` must be text or a whole number"),
        (SHOWN | {"item": True}, "`item` must be text or a whole number"),
        (SHOWN | {"time": "yesterday"}, "`time` must be a time since 1970"),
        (SHOWN | {"time": None}, "there is no `time`"),
        (SHOWN | {"time": -5}, "`time` must be a time since 1970"),
        (SHOWN | {"time": 4e9}, "`time` is more than an hour ahead of the clock"),
        (SHOWN | {"position": 1.5}, "`position` must be a whole number"),
        (SHOWN | {"p_buy": 1.5}, r"'p_buy' must lie in [0, 1]"),
        (SHOWN | {"p_buy": "much"}, "'p_buy' must be a number"),
        (SHOWN | {"age": 7}, "context 'age' must be text, as it was at first"),
        (GIVEN | {"objective": "buyy"}, "`objective` must be one of the schema's"),
        (GIVEN | {"objective": None}, "`objective` must be one of the schema's"),
        (GIVEN | {"value": 0.5}, "`value` must be 0 or 1"),
        (GIVEN | {"value": "yes"}, "`value` must be 0 or 1"),
    ],
)
@pytest.mark.parametrize("read", [of_lines, of_frame])
def test_a_malformed_row_says_why_and_keeps_what_came(read, row, fault):
    events = read(row)
    assert events["fault"].to_list() == [fault]
    assert json.loads(events["raw"][0]) == row


def test_a_row_among_others_fares_as_it_does_alone():
    rows = [
        SHOWN,
        SHOWN | {"request": 3, "time": 1793491200, "p_buy": None},
        SHOWN | {"time": 1793491200.5, "position": 2.0, "p_buy": 1},
        SHOWN | {"time": 2**80, "request": 2**80},
        SHOWN | {"time": 1793491200_000_000_001, "item": 2**62 + 1},
        SHOWN | {"p_buy": True, "user": [1]},
        SHOWN | {"p_buy": 2**70},
        GIVEN | {"value": True},
        GIVEN | {"value": 0},
    ]
    of_rows = of_lines(*rows)
    assert_frame_equal(of_rows, pl.concat([of_lines(row) for row in rows]))
    faults = [fault is not None for fault in of_rows["fault"]]
    assert faults == [False, False, False, True, False, True, True, False, False]


def test_lines_that_are_no_objects_are_malformed():
    good = json.dumps(SHOWN).encode()
    events = read_lines(FORM, [good, b"{", b"[]", b"\xff\xfe", good + b"\r\n"], now=NOW)
    why = "the line is not a JSON object"
    assert events["fault"].to_list() == [None, why, why, why, None]
    assert events["raw"].to_list() == [None, "{", "[]", "\ufffd\ufffd", None]


def test_events_written_as_lines_are_read_back():
    events = of_frame(exposure("r", 0, user=1), feedback("r", 1.5), exposure("s", 2))
    assert_frame_equal(read_lines(FORM, to_lines(events), now=NOW), events)


def test_times_may_be_any_that_a_log_has():
    times = ["2026-11-01T01:00:00+01:00", 1793491200, 1793491200_000, "2026-11-01 00:00:00"]
    events = of_lines(*(SHOWN | {"time": time} for time in times))
    assert events["time"].to_list() == [START] * 4
    naive = datetime(2026, 11, 1)
    assert of_frame(SHOWN | {"time": naive})["time"].to_list() == [START]


def test_an_hour_ahead_of_the_clock_is_allowed():
    now = datetime.now(UTC)
    times = [(now + timedelta(minutes=m)).isoformat() for m in (50, 70)]
    lines = [json.dumps(SHOWN | {"time": time}).encode() for time in times]
    assert [fault is None for fault in read_lines(FORM, lines)["fault"]] == [True, False]


def test_scores_are_held_to_their_scale():
    schema = Schema({"a": "s", "b": "t", "c": "u"}, scale={"s": "percent", "t": "logit"})
    row = {k: SHOWN[k] for k in ("event", "request", "item", "time")}
    rows = [row | {"s": 97.0, "t": -8.0}, row | {"s": 101.0}, row | {"t": float("inf")}]
    faults = of_frame(*rows, form=EventForm(schema))["fault"].to_list()
    assert faults == [None, "'s' must lie in [0, 100]", "'t' must be finite"]


def test_missing_scores_are_malformed_where_the_schema_says_so():
    schema = Schema({"buy": "p_buy"}, missing="error", truth={"buy": "true_buy"})
    form = EventForm(schema)
    rows = [SHOWN | {"true_buy": 0.5}, SHOWN, SHOWN | {"p_buy": float("nan"), "true_buy": 1.0}]
    faults = of_frame(*rows, form=form)["fault"].to_list()
    assert faults == [None, "there is no 'true_buy'", "there is no 'p_buy'"]


def test_exposures_need_a_place_where_the_schema_has_positions():
    form = EventForm(Schema({"buy": "p_buy"}, position="place"))
    faults = of_frame(SHOWN | {"position": 1}, SHOWN, GIVEN, SHOWN | {"position": -1}, form=form)
    assert faults["fault"].to_list()[:3] == [None, "there is no `position`", None]
    assert faults["fault"][3].startswith("`position` must lie in [0, ")


def test_first_values_settle_what_a_context_holds():
    schema = Schema({"buy": "p_buy"}, context=["a", "b", "c", "d", "time:hour", "position"])
    form = EventForm(schema)
    assert form.unsettled() == ["a", "b", "c", "d"]
    lines = [b'{"a": 1, "b": 2, "c": "x"}', b'{"a": null, "b": 2.5}']
    assert settled_by(form, lines).kinds == {"a": "integer", "b": "integer", "c": "text"}
    settled = settled_by(form, lines, every=True)
    assert settled.kinds == {"a": "integer", "b": "number", "c": "text"}
    assert settled.unsettled() == ["d"]
    later = settled.settled(pl.DataFrame({"d": [True], "a": ["text"]}))
    assert later.kinds == settled.kinds | {"d": "integer"}


def test_whole_numbers_stay_whole_where_a_table_has_made_them_fractions():
    form = EventForm(Schema({"buy": "p_buy"}, context=["age"]), {"age": "integer"})
    row = {k: SHOWN[k] for k in ("event", "request", "item", "time")}
    rows = [row | {"age": 3.0, "user": 5.0}, row | {"age": 3.5}, row | {"age": None}]
    events = of_frame(*rows, form=form)
    assert events["age"].to_list() == [3, None, None]
    assert events["user"].to_list() == ["5", None, None]
    assert events["fault"][1] == "context 'age' must be integer, as it was at first"


@pytest.mark.parametrize(
    "parts",
    [
        {"objectives": {"buy": "value"}},
        {"objectives": {"item": "p"}},
        {"objectives": {"buy": "p"}, "context": ["objective"]},
        {"objectives": {"buy": "p"}, "context": ["id"], "request": "id"},
    ],
)
def test_columns_that_a_stream_has_itself_are_refused(parts):
    with pytest.raises(UsageError, match="A stream has a column '.*' already; rename the one"):
        EventForm(Schema(**parts))


def test_kinds_are_checked():
    with pytest.raises(UsageError, match=r"'aeg', which is no context column. Did you mean 'age'"):
        EventForm(SCHEMA, {"aeg": "text"})
    with pytest.raises(UsageError, match="must be one of text, integer, number"):
        EventForm(SCHEMA, {"age": "date"})
