"""Disks that are full or read-only, clocks that go backwards: told, tried again, nothing lost."""

import os
import shutil
import subprocess
from contextlib import ExitStack
from datetime import timedelta

import polars as pl
import pytest
from redis_servers import RedisServer, need_redis_server
from small_stream import SCHEMA, Place, events_of

from harmonrank.streaming import open_sink, open_source
from harmonrank.streaming.loop_events import EventsRead, RetryPlanned, SourceNoted


@pytest.fixture(scope="module")
def events():
    return events_of(5, 800)


@pytest.fixture(scope="module")
def whole(events, tmp_path_factory):
    place = Place(tmp_path_factory.mktemp("whole"), events)
    list(place.run())
    return place.content()


@pytest.fixture
def disk(tmp_path):
    """Return a disk of its own."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=4m", "none", str(folder)]
    if os.geteuid() or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("a disk can only be mounted by root, and not everywhere")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def remount(disk, how):
    subprocess.run(["mount", "-o", f"remount,{how}", str(disk)], check=True)


def troubled(place, repair, **options):
    """Run a stream whose trouble somebody mends when it is told; return what was told."""
    told = []
    for event in place.run(most=1000, **options):
        if isinstance(event, RetryPlanned):
            told.append(event)
            if len(told) == 3:
                repair()
    return told


def test_a_full_disk_is_told_and_the_stream_goes_on_when_there_is_room(disk, events, whole):
    place = Place(disk, events)
    filler, pages = disk / "filler", os.statvfs(disk).f_bavail
    filler.write_bytes(b"x" * (pages - 24) * 4096)
    told = troubled(place, filler.unlink)
    assert len(told) >= 3
    assert all("No space left on device" in event.reason for event in told)
    assert {event.what for event in told} <= {"the state", "the registry"}
    assert place.content() == whole


def test_a_read_only_registry_is_told_and_the_stream_goes_on_when_it_can_be_written(
    disk, events, whole, tmp_path
):
    place = Place(tmp_path / "here", events)
    shutil.move(place.registry, disk / "registry")
    place.registry.symlink_to(disk / "registry")
    remount(disk, "ro")
    told = troubled(place, lambda: remount(disk, "rw"))
    assert {event.what for event in told} == {"the registry"}
    assert all("Read-only file system" in event.reason for event in told)
    assert place.content() == whole


def test_a_registry_that_somebody_else_writes_to_is_waited_for(
    events, whole, tmp_path, monkeypatch
):
    from harmonrank.registry import registry
    from harmonrank.support.storage.staging import held

    monkeypatch.setattr(registry, "_LOCK_SECONDS", 0.01)
    place, lock = Place(tmp_path, events), ExitStack()
    assert lock.enter_context(held(place.registry))
    told = troubled(place, lock.close)
    assert {event.what for event in told} == {"the registry"}
    assert all("Another process has been writing to" in event.reason for event in told)
    assert place.content() == whole


def test_a_read_only_state_is_told_too(disk, events, whole):
    place = Place(disk, events)
    begun = iter(place.run(most=1000))
    next(begun)
    remount(disk, "ro")
    told = []
    for event in begun:
        if isinstance(event, RetryPlanned):
            told.append(event)
            remount(disk, "rw")
    assert "Read-only file system" in told[0].reason
    assert place.content() == whole


def test_a_redis_server_that_goes_away_is_asked_again_until_it_is_back(events, whole, tmp_path):
    need_redis_server()
    server = RedisServer(tmp_path)
    server.start()
    sink = open_sink(server.address())
    for first in range(0, len(events), 500):
        sink.write(events[first : first + 500])
    sink.close()
    place, told = Place(tmp_path / "here", events), []
    try:
        for event in place.run(source=open_source(server.address(), SCHEMA), most=1000):
            if isinstance(event, EventsRead) and event.total == event.events:
                server.kill()
            if isinstance(event, RetryPlanned):
                told.append(event)
                if len(told) == 5:
                    server.start()
    finally:
        server.end()
    assert {event.what for event in told} == {"the source"}
    assert f"127.0.0.1:{server.port}" in told[0].reason
    content = place.content()
    assert content["record"]["digest"] == whole["record"]["digest"]
    assert content["record"]["published"] == whole["record"]["published"]


def test_a_clock_that_goes_backwards_makes_events_late_and_loses_none(events, tmp_path, whole):
    back = events[2000:2600].with_columns(
        pl.col("time") - timedelta(hours=5), pl.concat_str(pl.lit("b"), "request").alias("request")
    )
    place = Place(tmp_path, pl.concat([events[:2600], back, events[2600:]]))
    notes = [event.text for event in place.run(most=300) if isinstance(event, SourceNoted)]
    assert any("as when a clock goes backwards" in text for text in notes)
    content = place.content()
    assert [row["reason"] for row in content["aside"]] == ["late"] * 600
    assert content["record"]["digest"] == whole["record"]["digest"]
    assert content["versions"] == whole["versions"]


def test_events_from_the_future_close_no_window(events, tmp_path, whole):
    fault = pl.lit("from the future")
    ahead = events[1000:1200].with_columns(pl.col("time") + timedelta(days=4000), fault=fault)
    place = Place(tmp_path, pl.concat([events[:1200], ahead, events[1200:]]))
    notes = [event.text for event in place.run(most=200) if isinstance(event, SourceNoted)]
    assert any("200 of 200 events" in text for text in notes)
    content = place.content()
    assert [row["reason"] for row in content["aside"]] == ["malformed"] * 200
    assert content["record"]["digest"] == whole["record"]["digest"]
