"""Redis Streams as a source: each entry counts once, whatever happens to server and reader."""

import polars as pl
import pytest
from check_source import check_source, drained, joined
from event_frames import SCHEMA, events, exposure, feedback
from polars.testing import assert_frame_equal
from redis_servers import RedisServer, need_redis_server

from harmonrank import Schema
from harmonrank.streaming import open_sink, open_source
from harmonrank.streaming.sources.redis_streams import RedisAddress
from harmonrank.support import DataError, SourceError, UsageError

KINDS = {"age": "text"}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    need_redis_server()
    server = RedisServer(tmp_path_factory.mktemp("redis"))
    server.start()
    yield server
    server.end()


@pytest.fixture
def address(server, request):
    """Return the address of a stream of this test's own."""
    server.end()
    server.start()
    with server.client() as client:
        client.flushall()
    return server.address()


def numbered(first, last):
    rows = [exposure(f"r{number}", number) for number in range(first, last)]
    return events(*rows, *(feedback(f"r{number}", number) for number in range(first, last, 3)))


def fill(address, *frames, batch=4):
    sink = open_sink(f"{address}&batch={batch}")
    for frame in frames:
        sink.write(frame)
    sink.close()


def pending(server):
    with server.client() as client:
        return client.xpending("events", "harmonrank")["pending"]


@pytest.mark.parametrize("batch", [1, 4, 1000])
@pytest.mark.parametrize("most", [1, 5, 1000])
def test_events_are_read_in_order(address, batch, most):
    fill(address, numbered(0, 20), numbered(20, 50), batch=batch)
    source = open_source(address, SCHEMA, kinds=KINDS)
    chunks = drained(source, most=most)
    assert_frame_equal(joined(chunks), pl.concat([numbered(0, 20), numbered(20, 50)]))
    assert max(chunk.events.height for chunk in chunks) < most + batch * min(most, 64)
    assert source.waiting() == 0
    source.close()


@pytest.mark.parametrize("batch", [1, 3])
def test_a_stream_is_a_source(address, batch):
    fill(address, numbered(0, 10), batch=batch)
    check_source(lambda: open_source(address, SCHEMA), numbered(0, 10))


def test_entries_are_acknowledged_when_they_are_committed_and_not_before(server, address):
    fill(address, numbered(0, 20), batch=1)
    source = open_source(address, SCHEMA)
    first, *rest = drained(source, most=10)
    assert pending(server) == 27
    source.committed(first.offset)
    assert pending(server) == 27 - first.events.height
    source.committed(rest[-1].offset)
    assert pending(server) == 0


def test_what_was_read_and_not_committed_is_read_again(server, address):
    fill(address, numbered(0, 40))
    first, *lost = drained(open_source(address, SCHEMA), most=10)
    fill(address, numbered(40, 50))
    again = drained(open_source(address, SCHEMA), first.offset, most=7)
    expected = pl.concat([joined(lost), numbered(40, 50)])
    assert_frame_equal(joined(again), expected)
    # What was committed and not acknowledged, as the reader was killed between, is so now.
    with server.client() as client:
        (oldest,) = client.xpending_range("events", "harmonrank", "-", "+", 1)
    oldest, known = oldest["message_id"].decode(), first.offset["id"]
    assert tuple(map(int, oldest.split("-"))) > tuple(map(int, known.split("-")))


def test_a_position_counts_for_more_than_what_the_group_was_given(server, address):
    fill(address, numbered(0, 10))
    source = open_source(address, SCHEMA)
    first, *_ = drained(source, most=1)
    source.committed(drained(source, first.offset)[-1].offset)
    # Acknowledged, but the state is an older one that was put back.
    assert_frame_equal(joined(drained(open_source(address, SCHEMA), None)), numbered(0, 10))
    # The group is gone, or set back: what is known already is passed over.
    with server.client() as client:
        client.xgroup_setid("events", "harmonrank", "0")
    rest = drained(open_source(address, SCHEMA), first.offset)
    assert joined([first, *rest]).equals(numbered(0, 10))
    with server.client() as client:
        client.xgroup_destroy("events", "harmonrank")
    rest = drained(open_source(address, SCHEMA), first.offset)
    assert joined([first, *rest]).equals(numbered(0, 10))


def test_a_group_that_is_lost_while_it_is_read_is_made_again(server, address):
    fill(address, numbered(0, 10), batch=1)
    source = open_source(address, SCHEMA)
    first = source.read(None, 5)
    with server.client() as client:
        client.xgroup_destroy("events", "harmonrank")
    with pytest.raises(SourceError, match="NOGROUP"):
        source.read(first.offset, 5)
    assert joined([first, *drained(source, first.offset)]).equals(numbered(0, 10))


def test_a_server_that_is_killed_and_started_again_loses_nothing(server, address):
    fill(address, numbered(0, 20), numbered(20, 40))
    source = open_source(address, SCHEMA)
    first = source.read(None, 8)
    source.committed(first.offset)
    second = source.read(first.offset, 8)
    server.kill()
    for _ in range(2):
        with pytest.raises(SourceError, match=f"'{address.partition('?')[0]}' is away: "):
            source.read(second.offset, 8)
        with pytest.raises(SourceError, match="is away: "):
            source.committed(second.offset)
    with pytest.raises(SourceError, match="is away: "):
        fill(address, numbered(40, 50))
    server.start()
    fill(address, numbered(40, 50))
    rest = drained(source, second.offset, most=8)
    expected = pl.concat([numbered(0, 20), numbered(20, 40), numbered(40, 50)])
    assert_frame_equal(joined([first, second, *rest]), expected)
    source.committed(rest[-1].offset)
    assert pending(server) == 0


def test_entries_that_were_trimmed_before_they_were_read_are_told(server, address):
    fill(address, numbered(0, 20), batch=1)
    source = open_source(address, SCHEMA)
    first = source.read(None, 3)
    with server.client() as client:
        client.xtrim("events", maxlen=24, approximate=False)
        second = source.read(first.offset, 3)
        client.xtrim("events", maxlen=10, approximate=False)
    # 27 entries came; at first just those were removed that had been read.
    assert first.notes == second.notes == ()
    third, *rest = drained(source, second.offset)
    assert third.notes == (
        f"11 entries of '{address.partition('?')[0]}' were removed from it before they were read, "
        "and are lost; let it keep more.",
    )
    assert third.events.height == 10
    assert not any(chunk.notes for chunk in rest)


def test_fields_of_an_entry_are_read_as_what_they_are(server, address):
    shown = {"event": "exposure", "request": "7", "item": "1", "time": "1793491200", "age": "old"}
    entries = [
        shown | {"p_buy": "0.25", "p_like": "", "position": "2"},
        {"event": "feedback", "request": 7, "item": 1, "time": 1793491260, "objective": "buy"},
        shown | {"p_buy": "much"},
        {"events": b'{"event": "click"}\n\n\xff{\n'},
    ]
    with server.client() as client:
        for entry in entries:
            client.xadd("events", entry)
    (chunk,) = drained(open_source(address, SCHEMA))
    rows = chunk.events.rows(named=True)
    assert (rows[0]["request"], rows[0]["p_buy"], rows[0]["p_like"]) == ("7", 0.25, None)
    assert (rows[0]["position"], rows[1]["value"]) == (2, 1.0)
    assert chunk.events["fault"].to_list() == [
        None,
        None,
        "'p_buy' must be a number",
        "`event` must be exposure or feedback",
        "the line is not a JSON object",
    ]
    assert rows[4]["raw"] == "\ufffd{"


def test_contexts_settle_as_numbers_where_they_look_so(server, address):
    schema = Schema({"buy": "p_buy"}, context=["age", "price", "city"])
    shown = {"event": "exposure", "request": "7", "item": "1", "time": "1793491200"}
    with server.client() as client:
        client.xadd("events", shown | {"age": "3", "price": "2.5", "city": "Graz"})
        client.xadd("events", shown | {"age": "4", "price": "3", "city": "7"})
    (chunk,) = drained(open_source(address, schema))
    assert chunk.offset["kinds"] == {"age": "integer", "price": "number", "city": "text"}
    assert chunk.events.select("age", "price", "city").rows() == [(3, 2.5, "Graz"), (4, 3.0, "7")]


@pytest.mark.parametrize("most", [1, 100])
def test_the_first_value_of_a_context_settles_it_however_entries_are_read(server, address, most):
    schema = Schema({"buy": "p_buy"}, context=["price"])
    shown = {"event": "exposure", "request": "7", "time": "1793491200", "p_buy": "0.5"}
    with server.client() as client:
        for item, price in enumerate(["", "3", "3.5"]):
            client.xadd("events", shown | {"item": str(item), "price": price})
    chunks = drained(open_source(address, schema), most=most)
    assert chunks[-1].offset["kinds"] == {"price": "integer"}
    prices = [price for chunk in chunks for price in chunk.events["price"].to_list()]
    assert prices == [None, 3, None]
    assert chunks[-1].events["fault"][-1] == "context 'price' must be integer, as it was at first"


def test_an_empty_stream_has_nothing_to_read(address):
    source = open_source(address, SCHEMA)
    assert source.waiting() == 0
    assert source.read(None, 10) is None
    fill(address, numbered(0, 3))
    assert source.waiting() == 1
    assert source.read(None, 10).events.height == 4


def test_a_key_that_is_no_stream_is_refused(server, address):
    with server.client() as client:
        client.set("events", "text")
    with pytest.raises(DataError, match="is no stream: WRONGTYPE"):
        open_source(address, SCHEMA).read(None, 10)


def test_a_server_that_wants_a_password_is_told_one(server, address):
    with server.client() as client:
        client.config_set("requirepass", "secret:/ word")
    try:
        with pytest.raises(DataError, match=r"refuses us: .*; check user and password"):
            open_source(address, SCHEMA).read(None, 10)
        known = address.replace("redis://", "redis://:secret%3A%2F%20word@")
        assert open_source(known, SCHEMA).read(None, 10) is None
    finally:
        with RedisAddress.parse(known).client() as client:
            client.config_set("requirepass", "")


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("redis://localhost/events", "must name host, database and stream, as in redis://"),
        ("redis:///0/events", "must name host, database and stream"),
        ("redis://localhost:99999/0/events", "must name host, database and stream"),
        ("redis://localhost/0/events?gruop=a", "has no 'gruop'. Did you mean 'group'"),
        ("redis://localhost/0/events?batch=0", "`batch` must be a whole number from 1"),
    ],
)
def test_an_address_is_checked(address, message):
    with pytest.raises(UsageError, match=message):
        open_source(address, SCHEMA)


def test_a_password_is_never_shown():
    address = RedisAddress.parse("redis://me:secret@127.0.0.1:1/0/events")
    assert "secret" not in f"{address} {address!r}"
    with pytest.raises(SourceError, match="is away") as caught:
        open_source("redis://me:secret@127.0.0.1:1/0/events", SCHEMA).read(None, 1)
    assert "secret" not in str(caught.value)
