"""`harmonrank simulate --stream`."""

import json

import polars as pl
import pytest
from redis_servers import RedisServer, need_redis_server

from harmonrank import Schema
from harmonrank.streaming import open_source

SMALL = ("simulate", "conflict", "--rows", 2000, "--hours", 4)


def _stream(key):
    return f"[simulate]\n{key}"


def events_of(address, schema):
    source, after, frames = open_source(str(address), schema), None, []
    while (chunk := source.read(after, 10_000)) is not None:
        after = chunk.offset
        frames.append(chunk.events)
    source.close()
    return pl.concat(frames)


@pytest.mark.parametrize("form", ["parquet", "jsonl"])
def test_events_and_their_schema_are_in_the_folder(run, tmp_path, form):
    folder = tmp_path / "events"
    done = run(*SMALL, "--stream", folder, "--json", "-", settings=_stream(f'format = "{form}"'))
    assert done.code == 0, done
    numbers = json.loads(done.out)
    names = sorted(path.name for path in folder.iterdir())
    assert names == [f"events-000000000001.{form}", "schema.toml"]
    schema = Schema.read(folder / "schema.toml")
    assert list(schema.truth) == list(schema.names)
    events = events_of(folder, schema)
    assert events["fault"].null_count() == events.height
    assert (events["event"] == "exposure").sum() == numbers["exposures"] == 2000
    assert (events["event"] == "feedback").sum() == numbers["feedback"]
    assert f"Wrote 2,000 exposures and {numbers['feedback']:,} feedback events of 4" in done.err


def test_drift_swap_disorder_start_and_seed_each_give_other_events(run, tmp_path):
    options = {
        "plain": ((), ""),
        "same": ((), ""),
        "drift": (("--drift", 1), ""),
        "swap": ((), "swap = 2"),
        "disorder": ((), "disorder = 0.1"),
        "start": ((), 'start = "2025-06-01T12:00"'),
        "seed": (("--seed", 1), ""),
    }
    read = {}
    for name, (option, key) in options.items():
        done = run(*SMALL, "--stream", tmp_path / name, "-q", *option, settings=_stream(key))
        assert done.code == 0, done
        read[name] = (tmp_path / name / "events-000000000001.parquet").read_bytes()
    assert read["plain"] == read["same"]
    assert len(set(read.values())) == 6


class Clock:
    """A clock that only sleep moves."""

    now = 0.0

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


def test_a_rate_spreads_events_over_time(run, tmp_path, monkeypatch):
    clock = Clock()
    monkeypatch.setattr("harmonrank_lab.cli.simulate_stream.time", clock)
    assert (
        run(*SMALL, "--stream", tmp_path / "events", "-q", settings=_stream("rate = 500")).code == 0
    )
    files = sorted((tmp_path / "events").glob("*.parquet"))
    heights = [pl.read_parquet(file).height for file in files]
    assert clock.now == pytest.approx(sum(heights) / 500)
    assert set(heights[:-1]) == {500}


def test_a_sink_that_is_away_is_waited_for(run, tmp_path, monkeypatch):
    need_redis_server()
    server, clock = RedisServer(tmp_path), Clock()
    monkeypatch.setattr("harmonrank_lab.cli.simulate_stream.time", clock)
    monkeypatch.setattr(clock, "sleep", lambda seconds: server.start())
    try:
        done = run(*SMALL, "--stream", server.address(), "--json", "-")
    finally:
        server.end()
    assert done.code == 0, done
    assert "is away: " in done.err
    assert "It is tried again in 0.5 s." in done.err


def test_events_go_to_redis_too(run, tmp_path):
    need_redis_server()
    server = RedisServer(tmp_path)
    server.start()
    try:
        address = server.address()
        done = run(*SMALL, "--stream", address, "-o", tmp_path / "s", "--json", "-")
        assert done.code == 0, done
        assert json.loads(done.out)["stream"] == address
        run(*SMALL, "--stream", tmp_path / "events", "-q")
        schema = Schema.read(tmp_path / "s" / "schema.toml")
        assert events_of(address, schema).equals(events_of(tmp_path / "events", schema))
    finally:
        server.end()


@pytest.mark.parametrize(
    ("arguments", "message", "key"),
    [
        (("--hours", 4), "--hours is for a stream; name one with --stream.", ""),
        (("-o", "x"), "format is for a stream; name one with --stream.", 'format = "jsonl"'),
        ((), "A log needs a folder to be written to; name one with -o.", ""),
        (("--stream", "x", "--hours", 0), "`hours` must be above 0, up to a million. Got 0.", ""),
        (("--stream", "x"), "swap must lie in the 24 hours. Got 30.", "swap = 30"),
        (("--stream", "x"), "start must be a time such as 2026-01-01T00:00.", 'start = "soon"'),
        (("--stream", "x"), "taken for broken clocks", 'start = "2200-01-01"'),
        (("--stream", "x"), "`disorder` must lie in [0, 1]. Got 3.", "disorder = 3"),
        (("--stream", "x", "-o", "y"), "-o is for the schema of a stream in Redis", ""),
        (("--stream", "x", "--position-bias", 1), "--position-bias does not apply to a stream", ""),
        (("--stream", "mqtt://x"), "There is no source of events of the kind 'mqtt://'", ""),
    ],
)
def test_what_does_not_fit_is_refused(run, tmp_path, monkeypatch, arguments, message, key):
    monkeypatch.chdir(tmp_path)
    done = run("simulate", "conflict", "--rows", 100, *arguments, settings=_stream(key))
    assert done.code == 2
    assert message in done.err
    assert list(tmp_path.iterdir()) == []


def test_a_folder_of_events_is_replaced_only_when_asked(run, tmp_path):
    folder = tmp_path / "events"
    assert run(*SMALL, "--stream", folder, "-q").code == 0
    done = run(*SMALL, "--stream", folder, "-q")
    assert done.code == 2
    assert "exists already" in done.err
    assert (
        run(
            *SMALL, "--stream", folder, "-q", "--overwrite", settings=_stream('format = "jsonl"')
        ).code
        == 0
    )
    assert [path.suffix for path in sorted(folder.iterdir())] == [".jsonl", ".toml"]
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine.txt").touch()
    done = run(*SMALL, "--stream", tmp_path / "other", "-q", "--overwrite")
    assert "is a folder without schema.toml, so it is not overwritten" in done.err
