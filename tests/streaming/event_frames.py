"""Events for tests: a schema, rows by hand, and frames of them."""

from datetime import UTC, datetime, timedelta

import polars as pl

from harmonrank import Schema
from harmonrank.streaming import EventForm
from harmonrank.streaming.sources.event_reading import read_frame

SCHEMA = Schema({"buy": "p_buy", "like": "p_like"}, context=["age"], request="request_id")
FORM = EventForm(SCHEMA, {"age": "text"})
START = datetime(2026, 11, 1, tzinfo=UTC)


def minute(number):
    return START + timedelta(minutes=number)


def exposure(request, time, item="a", **rest):
    return {
        "event": "exposure",
        "request": request,
        "item": item,
        "time": minute(time),
        "p_buy": 0.1,
        "p_like": 0.2,
        "age": "old",
        **rest,
    }


def feedback(request, time, objective="buy", item="a", **rest):
    return {
        "event": "feedback",
        "request": request,
        "item": item,
        "time": minute(time),
        "objective": objective,
        **rest,
    }


def events(*rows):
    """Return the canonical frame of some rows."""
    return read_frame(FORM, pl.DataFrame(rows, infer_schema_length=None), now=minute(10**6))
