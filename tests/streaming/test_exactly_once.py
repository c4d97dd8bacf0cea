"""A stream that is killed at any moment, again and again, ends as one that was left alone."""

import random
import shutil
import time

import polars as pl
import pytest
from redis_servers import RedisServer, need_redis_server
from small_stream import SCHEMA, Place, events_of

from harmonrank.registry import Registry
from harmonrank.streaming import open_sink, read_history
from harmonrank.streaming.sources.folder import FolderSink
from harmonrank.streaming.state.files import HISTORY
from nursery import Nursery


@pytest.fixture(scope="module")
def events(tmp_path_factory):
    """Return a folder of events, in files of some hundred."""
    folder = tmp_path_factory.mktemp("events")
    result = events_of(7, 800, swap=3)
    sink = FolderSink(folder, "parquet")
    for first in range(0, len(result), 900):
        sink.write(result[first : first + 900])
    (folder / "schema.toml").write_text(SCHEMA.to_toml(), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def nursery(tmp_path_factory):
    with Nursery(tmp_path_factory.mktemp("nursery")) as nursery:
        yield nursery


class Killing:
    """A stream that was left alone once, and is now killed."""

    def __init__(self, nursery, folder, source, *options):
        self._nursery, self._folder, self._source = nursery, folder, source
        (folder / "settings.toml").write_text("[stream]\nchunk = 1000\n", encoding="utf-8")
        settings = ("--settings", folder / "settings.toml")
        self._options = ("--set", "first_rows=200", *settings, *options)
        self.run("first")
        begun = time.monotonic()
        self.expected = self.run("whole")
        # Of the second time: the first one may have waited for a nursery that was still importing.
        self.seconds = time.monotonic() - begun

    def place(self, name):
        return Place(self._folder / name, None)

    def start(self, name, **options):
        place = self.place(name)
        folders = ("--registry", place.registry, "--state", place.state)
        return self._nursery.start(
            *("stream", "--source", self._source(name), *folders, "--once", "-q"),
            *self._options,
            within=self._folder / name,
            **options,
        )

    def run(self, name):
        """Run a stream to its end; return all that came of it."""
        code, errors = self.start(name).wait()
        assert code == 0, errors
        return self.place(name).content()

    def kill(self, name, kills, rng):
        """Kill a stream at random moments, start it again, and so on; then let it end."""
        for _ in range(kills):
            child = self.start(name)
            time.sleep(self.seconds * rng.uniform(0.0, 0.7))
            child.kill()
            child.wait()
            self.is_whole(name)
        self.hold(name)

    def hold(self, name):
        """Let a stream end; it must end as if nothing had been."""
        assert self.run(name) == self.expected
        assert list((self._folder / name).rglob(".*")) == []
        shutil.rmtree(self._folder / name)

    def is_whole(self, name):
        """What a killed stream left can be read."""
        place = self.place(name)
        registry = Registry(place.registry)
        for number in registry.numbers():
            registry.load(number)
        notes = [version.note for version in registry.versions()]
        assert len(notes) == len(set(notes))
        if (place.state / HISTORY).exists():
            read_history(place.state)


CLOSED_FORM = ("--method", "closed-form")
SUMS = ("--method", "harmonrank", "--set", "opening_rows=1500", "--set", "reservoir_rows=3000")


@pytest.fixture(scope="module")
def killing(nursery, events, tmp_path_factory):
    folder = tmp_path_factory.mktemp("kill")
    return Killing(nursery, folder, lambda _: str(events), *CLOSED_FORM)


@pytest.fixture(scope="module")
def killing_sums(nursery, events, tmp_path_factory):
    """Return streams of the default, which learns by sums after the second hour."""
    return Killing(nursery, tmp_path_factory.mktemp("sums"), lambda _: str(events), *SUMS)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    need_redis_server()
    server = RedisServer(tmp_path_factory.mktemp("redis"))
    server.start()
    yield server
    server.end()


@pytest.fixture(scope="module")
def killing_redis(nursery, server, events, tmp_path_factory):
    """Return streams that each read the same events from Redis, with a group of its own."""
    sink = open_sink(server.address())
    for file in sorted(events.glob("*.parquet")):
        sink.write(pl.read_parquet(file))
    sink.close()
    schema = ("--schema", events / "schema.toml")

    def source(name):
        return server.address(group=name)

    return Killing(nursery, tmp_path_factory.mktemp("redis"), source, *CLOSED_FORM, *schema)


def kill_with_server(killing, server, name, kills, rng):
    """Kill the stream, the server or both, at random moments, and start them again."""
    for _ in range(kills):
        child, victims = killing.start(name), rng.choice(["stream", "server", "both"])
        time.sleep(killing.seconds * rng.uniform(0.0, 0.7))
        if victims != "stream":
            server.kill()
        if victims != "server":
            time.sleep(killing.seconds * rng.uniform(0.0, 0.3))
            child.kill()
        if victims != "stream":
            server.start()
        child.wait()
        killing.is_whole(name)
    killing.hold(name)


def test_the_stream_learns_publishes_and_leaves_rows_to_judge(killing):
    record = killing.expected["record"]
    assert record["learner"]["learned_rows"] > 3000
    assert record["published"] == len(killing.expected["versions"]) == 6
    assert "guard.parquet" in killing.expected["files"]


def test_a_killed_stream_learns_every_row_once_and_publishes_every_version_once(killing):
    killing.kill("some", 4, random.Random(1))


def test_a_killed_stream_of_the_default_does_so_too(killing_sums):
    assert killing_sums.expected["history"][-1]["learner"]["reservoir_rows"] == 3000
    killing_sums.kill("some", 3, random.Random(1))


def test_a_stream_and_its_redis_server_may_both_be_killed(killing_redis, killing, server):
    assert killing_redis.expected["record"]["digest"] == killing.expected["record"]["digest"]
    kill_with_server(killing_redis, server, "some", 3, random.Random(2))


@pytest.mark.parametrize("first", [1, 20, 45, 70])
def test_a_stream_that_dies_before_a_change_of_a_file_ends_the_same(killing, first):
    code, errors = killing.start(f"death-{first}", die_at=first).wait()
    assert code == -9, errors
    killing.is_whole(f"death-{first}")
    killing.hold(f"death-{first}")


@pytest.mark.slow
@pytest.mark.parametrize("learner", ["killing", "killing_sums"], ids=["closed-form", "harmonrank"])
def test_50_kills_of_a_stream_end_the_same(request, learner, record_property):
    killing, rng = request.getfixturevalue(learner), random.Random(0)
    for trial in range(10):
        killing.kill(f"kill-{trial}", 5, rng)
    record_property("kills", 50)


@pytest.mark.slow
def test_50_kills_of_a_stream_and_its_redis_server_end_the_same(
    killing_redis, server, record_property
):
    rng = random.Random(0)
    for trial in range(10):
        kill_with_server(killing_redis, server, f"kill-{trial}", 5, rng)
    record_property("kills", 50)


@pytest.mark.slow
def test_a_stream_that_dies_before_changes_of_files_ends_the_same(killing, record_property):
    deaths = 0
    for place in range(2, 10_000, 4):
        code, errors = killing.start(f"death-{place}", die_at=place).wait()
        if code == 0:
            break
        assert code == -9, errors
        killing.is_whole(f"death-{place}")
        killing.hold(f"death-{place}")
        deaths += 1
    record_property("deaths", deaths)
    assert deaths >= 90
