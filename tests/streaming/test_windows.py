"""How long a stream waits, and how that is written."""

from datetime import timedelta

import pytest

from harmonrank.streaming.join.windows import Windows, parse_duration
from harmonrank.support.errors import UsageError


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("5m", 300), (" 1.5h ", 5400), ("2d", 172_800)]
)
def test_durations_are_a_number_and_a_unit(text, seconds):
    assert parse_duration(text, "--every") == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "1", "h", "-1h", "1h30m", "1 hour", "1e3s", "9" * 12 + "d"])
def test_what_is_no_duration_is_refused(text):
    with pytest.raises(UsageError, match="--every must be a number with s, m, h or d, as in 90s"):
        parse_duration(text, "--every")


def test_an_objective_without_a_window_of_its_own_waits_like_the_others():
    windows = Windows(wait={"buy": timedelta(hours=24)}, otherwise=timedelta(minutes=30))
    assert windows.of("like") == timedelta(minutes=30)
    assert windows.longest(["buy", "like"]) == timedelta(hours=24)


def test_a_window_of_no_objective_is_refused():
    windows = Windows(wait={"bye": timedelta(hours=24)})
    with pytest.raises(UsageError, match="window for 'bye', which is no objective. Did you mean"):
        windows.longest(["buy", "like"])


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"every": timedelta(0)}, "`every` must be a time from 0:00:01 to 366 days"),
        ({"every": timedelta(days=400)}, "`every` must be a time from 0:00:01 to 366 days"),
        ({"lateness": timedelta(seconds=-1)}, "`lateness` must be a time from 0:00:00"),
        ({"wait": {"buy": 5}}, "The window of 'buy' must be a time from 0:00:00 to 366 days"),
        ({"otherwise": timedelta(days=-1)}, "The window must be a time from 0:00:00"),
    ],
)
def test_windows_have_bounds(parts, message):
    with pytest.raises(UsageError, match=message):
        Windows(**parts)
