"""How long a stream waits, and how that is written."""

from datetime import timedelta

import pytest

from harmonrank.streaming import Windows
from harmonrank.streaming.config import parse_duration
from harmonrank.support import UsageError


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
    windows = Windows(windows={"buy": 86_400}, window=1800)
    assert windows.of("like") == 1800
    assert windows.longest(["buy", "like"]) == 86_400


def test_a_window_of_no_objective_is_refused():
    with pytest.raises(UsageError, match="window for 'bye', which is no objective. Did you mean"):
        Windows(windows={"bye": 86_400}).longest(["buy", "like"])


@pytest.mark.parametrize(
    ("parts", "name"),
    [
        ({"every": 0.5}, "every"),
        ({"every": 400 * 86_400}, "every"),
        ({"lateness": -1}, "lateness"),
        ({"windows": {"buy": "5"}}, "windows"),
        ({"window": -1}, "window"),
    ],
)
def test_windows_have_bounds(parts, name):
    with pytest.raises(UsageError, match=f"'{name}' of A stream must be"):
        Windows(**parts)
