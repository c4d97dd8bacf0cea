"""A folder as a source: files in the order of their names, each once, whatever happens."""

import json

import polars as pl
import pytest
from check_source import check_source, drained
from event_frames import FORM, SCHEMA, events, exposure, feedback
from polars.testing import assert_frame_equal

from harmonrank.streaming import open_sink, open_source
from harmonrank.support import DataError, SourceError, UsageError
from harmonrank.support.extras import plugins

FORMS = ["parquet", "jsonl"]


def numbered(first, last):
    return events(*(exposure(f"r{number}", number) for number in range(first, last)))


def fill(folder, *frames, form="parquet"):
    sink = open_sink(str(folder), form=form)
    for frame in frames:
        sink.write(frame)
    sink.close()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("most", [1, 3, 7, 1000])
def test_events_are_read_in_order_in_chunks_of_any_size(tmp_path, form, most):
    fill(tmp_path, numbered(0, 5), numbered(5, 6), numbered(6, 20), form=form)
    source = open_source(str(tmp_path), SCHEMA)
    assert source.waiting() == 3
    chunks = drained(source, most=most)
    assert all(chunk.events.height <= most for chunk in chunks)
    assert_frame_equal(pl.concat([chunk.events for chunk in chunks]), numbered(0, 20))
    assert source.waiting() == 0


@pytest.mark.parametrize("form", FORMS)
def test_a_folder_is_a_source(tmp_path, form):
    fill(tmp_path, numbered(0, 5), numbered(5, 11), form=form)
    check_source(lambda: open_source(str(tmp_path), SCHEMA), numbered(0, 11))


def test_files_that_come_later_are_read_later_and_each_once(tmp_path):
    source = open_source(str(tmp_path), SCHEMA)
    assert source.read(None, 10) is None
    numbered(0, 2).write_parquet(tmp_path / "m.parquet")
    first = source.read(None, 10)
    assert source.read(first.offset, 10) is None
    numbered(2, 4).write_parquet(tmp_path / "z.parquet")
    numbered(4, 6).write_parquet(tmp_path / "a.parquet")  # a name before what was read
    second = source.read(first.offset, 10)
    assert second.events["request"].to_list() == ["r4", "r5", "r2", "r3"]
    assert source.read(second.offset, 10) is None


def test_hidden_and_other_files_are_passed_over(tmp_path):
    for name in (".a.parquet", "_b.parquet", "c.parquet.partial", "d.csv", ".x.jsonl"):
        numbered(0, 2).write_parquet(tmp_path / name)
    (tmp_path / "schema.toml").write_text(SCHEMA.to_toml())
    source = open_source(str(tmp_path), SCHEMA)
    assert source.read(None, 10) is None
    assert source.waiting() == 0


def test_names_of_files_that_are_gone_are_forgotten(tmp_path):
    fill(tmp_path, *(numbered(n, n + 1) for n in range(5)))
    source = open_source(str(tmp_path), SCHEMA)
    (chunk,) = drained(source)
    assert len(chunk.offset["taken"]) == 5
    for path in sorted(tmp_path.iterdir())[:4]:
        path.unlink()
    fill(tmp_path, numbered(5, 6))
    (later,) = drained(source, chunk.offset)
    assert later.events["request"].to_list() == ["r5"]
    assert len(later.offset["taken"]) == 2


@pytest.mark.parametrize("name", ["b.parquet", "b.jsonl"])
def test_a_file_that_cannot_be_read_is_tried_again_then_passed_over(tmp_path, name):
    numbered(0, 2).write_parquet(tmp_path / "a.parquet")
    if name.endswith("parquet"):
        (tmp_path / name).write_bytes(b"PAR1 half of a file")
    else:
        (tmp_path / name).mkdir()
    numbered(2, 4).write_parquet(tmp_path / "c.parquet")
    source = open_source(str(tmp_path), SCHEMA)
    first = source.read(None, 10)
    assert first.events.height == 2
    for _ in range(2):
        with pytest.raises(SourceError, match=f"{name}' cannot be read .* It will be tried again"):
            source.read(first.offset, 10)
    second = source.read(first.offset, 10)
    assert second.events.height == 0
    (note,) = second.notes
    assert "It is passed over; put it there under another name" in note
    (refused,) = second.offset["refused"]
    assert refused["file"] == name
    assert "cannot be read" in refused["reason"]
    third = source.read(second.offset, 10)
    assert third.events["request"].to_list() == ["r2", "r3"]
    # Another try with the same position, as by a backfill that ends there, has no new trouble.
    assert source.read(second.offset, 1).events["request"].to_list() == ["r2"]
    assert source.read(third.offset, 10) is None


def test_a_file_that_goes_bad_while_it_is_read_is_told_with_its_rows(tmp_path):
    numbered(0, 6).write_parquet(tmp_path / "a.parquet")
    numbered(6, 8).write_parquet(tmp_path / "b.parquet")
    source = open_source(str(tmp_path), SCHEMA)
    first = source.read(None, 4)
    (tmp_path / "a.parquet").write_bytes(b"nothing")
    for _ in range(2):
        with pytest.raises(SourceError, match="a.parquet' cannot be read"):
            source.read(first.offset, 4)
    second = source.read(first.offset, 4)
    assert "It is passed over after 4 rows" in second.notes[0]
    third = source.read(second.offset, 4)
    assert third.events["request"].to_list() == ["r6", "r7"]
    assert source.read(third.offset, 4) is None


def test_a_read_that_is_repeated_gives_the_same_events(tmp_path):
    fill(tmp_path, *(numbered(n, n + 2) for n in range(0, 10, 2)))
    source = open_source(str(tmp_path), SCHEMA)
    first = source.read(None, 3)
    for _ in range(3):
        assert source.read(first.offset, 3).events["request"].to_list() == ["r3", "r4", "r5"]
    assert source.read(None, 3).events.equals(first.events)


def test_a_file_that_was_mended_in_time_is_read(tmp_path):
    (tmp_path / "a.parquet").write_bytes(b"")
    source = open_source(str(tmp_path), SCHEMA)
    with pytest.raises(SourceError, match="cannot be read"):
        source.read(None, 10)
    numbered(0, 2).write_parquet(tmp_path / "a.parquet")
    assert source.read(None, 10).events.height == 2


def test_a_damaged_file_does_not_bring_down_the_reader(tmp_path):
    numbered(0, 500).write_parquet(tmp_path / "a.parquet")
    whole = (tmp_path / "a.parquet").read_bytes()
    for place in range(8, len(whole), 97):
        raw = bytearray(whole)
        raw[place] ^= 0xFF
        (tmp_path / "a.parquet").write_bytes(raw)
        source = open_source(str(tmp_path), SCHEMA)
        for _ in range(3):
            try:
                chunk = source.read(None, 1000)
                break
            except SourceError:
                continue
        assert chunk.events.height or chunk.notes


def test_malformed_rows_and_empty_lines_do_not_stop_a_file(tmp_path):
    lines = ['{"event": "exposure"', "", "[]", "   "]
    text = "\n".join([*lines, json.dumps(feedback("r", 0) | {"time": 1793491200})])
    (tmp_path / "a.jsonl").write_text(text)
    (chunk,) = drained(open_source(str(tmp_path), SCHEMA))
    why = "the line is not a JSON object"
    assert chunk.events["fault"].to_list() == [why, why, None]


def test_kinds_that_were_settled_stay(tmp_path):
    fill(tmp_path, numbered(0, 2))
    (chunk,) = drained(open_source(str(tmp_path), SCHEMA))
    assert chunk.offset["kinds"] == {"age": "text"}
    fill(tmp_path, numbered(2, 3).with_columns(age=7))
    (later,) = drained(open_source(str(tmp_path), SCHEMA), chunk.offset)
    assert later.events["fault"].to_list() == ["context 'age' must be text, as it was at first"]


def test_feedback_alone_settles_nothing(tmp_path):
    fill(tmp_path, events(feedback("r", 0)), numbered(1, 2), form="jsonl")
    first, second = drained(open_source(str(tmp_path), SCHEMA), most=1)[:2]
    assert first.offset["kinds"] == {}
    assert second.offset["kinds"] == {"age": "text"}
    assert second.events["fault"].null_count() == 1


def test_a_sink_goes_on_behind_what_is_there(tmp_path):
    fill(tmp_path, numbered(0, 1))
    fill(tmp_path, numbered(1, 2), FORM.empty(), numbered(2, 3), form="jsonl")
    names = [path.name for path in sorted(tmp_path.iterdir())]
    assert names == [
        "events-000000000001.parquet",
        "events-000000000002.jsonl",
        "events-000000000003.jsonl",
    ]


def test_what_is_no_source_is_refused(tmp_path):
    with pytest.raises(DataError, match="There is no folder '.*nowhere'; make it, or check"):
        open_source(str(tmp_path / "nowhere"), SCHEMA)
    with pytest.raises(UsageError, match=r"no source of events of the kind 'kafka://'"):
        open_source("kafka://host/topic", SCHEMA)
    with pytest.raises(UsageError, match=r"no files of the form 'csv'. Known: parquet, jsonl."):
        open_sink(str(tmp_path), form="csv")
    with pytest.raises(DataError, match="A position: expected int, got str at rows"):
        open_source(str(tmp_path), SCHEMA).read({"rows": "many"}, 10)


def test_an_installed_package_may_add_a_kind_of_source(tmp_path, monkeypatch):
    info = tmp_path / "other-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[harmonrank.sources]\nother = other_source\n")
    code = "def open_source(address, schema, kinds):\n    return address, schema, kinds\n"
    (tmp_path / "other_source.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    plugins.cache_clear()  # what is installed is looked up once
    assert open_source("other://x", SCHEMA) == ("other://x", SCHEMA, {})


@pytest.mark.parametrize("most", [7, 100_000])
def test_a_context_whose_first_value_comes_late_in_a_file_is_read(tmp_path, most):
    """However many lines of feedback come before the first exposure."""
    given = {"event": "feedback", "request": "r", "item": 1, "time": 1767225600}
    shown = {**given, "event": "exposure", "p_buy": 0.5, "p_like": 0.5}
    before = 10_001 if most > 10_001 else 0
    lines = [given | {"objective": "buy"}] * before
    lines += [shown | {"request": f"r{n}", "age": None if n < 9 else "old"} for n in range(12)]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, lines)), "utf-8")
    chunks = drained(open_source(str(tmp_path), SCHEMA), most=most)
    ages = [age for chunk in chunks for age in chunk.events["age"].to_list()]
    assert ages == [None] * (before + 9) + ["old"] * 3
    assert chunks[-1].offset["kinds"] == {"age": "text"}
