from datetime import UTC, datetime, timedelta

import pytest

from harmonrank.streaming import IntervalCompleted, read_history
from harmonrank.streaming.loop_events import Publication, ScoreMove
from harmonrank.streaming.state.files import HISTORY, History
from harmonrank.support import DataError

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def record(hour=0, **parts):
    start = NOON + timedelta(hours=hour)
    return IntervalCompleted(start=start, end=start + timedelta(hours=1), rows=10, **parts)


def test_records_are_read_back_as_they_were(tmp_path):
    made = Publication(3, "auc buy: …", recalibrated=True)
    moved = {"p_buy": ScoreMove(0.4, 1.2, "replaced", None)}
    full = record(1, moves=moved, replaced=["p_buy"], evidence=["it moved"], version=made)
    history = History(tmp_path, 0)
    history.add(record())
    history.add(full)
    history.flush()
    assert read_history(tmp_path) == [record(), full]


def test_lines_that_no_commit_knows_of_are_cut_off(tmp_path):
    history = History(tmp_path, 0)
    history.add(record(0))
    history.flush()
    committed = history.length
    history.add(record(1))
    history.flush()
    with (tmp_path / HISTORY).open("ab") as stream:
        stream.write(b'{"event": "inter')
    again = History(tmp_path, committed)
    again.add(record(2))
    again.flush()
    assert read_history(tmp_path) == [record(0), record(2)]


def test_a_flush_that_failed_is_tried_again(tmp_path):
    history = History(tmp_path, 0)
    history.add(record(0))
    (tmp_path / HISTORY).mkdir()
    with pytest.raises(IsADirectoryError):
        history.flush()
    (tmp_path / HISTORY).rmdir()
    (tmp_path / HISTORY).write_bytes(b"half a li")
    history.flush()
    assert read_history(tmp_path) == [record(0)]


def test_a_history_that_is_shorter_than_its_commit_is_refused(tmp_path):
    (tmp_path / HISTORY).write_bytes(b"{}\n")
    with pytest.raises(DataError, match="has 3 bytes; expected at least 10, as the last commit"):
        History(tmp_path, 10)


def test_a_line_that_is_none_of_ours_is_refused_with_its_number(tmp_path):
    history = History(tmp_path, 0)
    history.add(record(0))
    history.flush()
    with (tmp_path / HISTORY).open("ab") as stream:
        stream.write(b'{"event": "party"}\n')
    with pytest.raises(DataError, match="Line 2 of '.*history.jsonl'"):
        read_history(tmp_path)
    with pytest.raises(DataError, match="name the state folder of a stream"):
        read_history(tmp_path / "nowhere")
