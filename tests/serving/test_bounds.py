"""Bodies and queues with bounds, without a server."""

import asyncio
import json

import pytest
from service import application, rank_body


@pytest.fixture
def make(default_model, tmp_path):
    default_model.save(tmp_path / "m")

    def made(**settings):
        return application(tmp_path / "m", tmp_path / "s", **settings)

    return made


async def call(app, *pieces, headers=(), wait=None, path="/v1/rank", method="POST"):
    """Send a body in pieces; return status, headers and JSON of the answer."""
    sent, left = [], list(pieces)

    async def receive():
        if wait is not None and len(left) < len(pieces):
            await wait.wait()
        if not left:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": left.pop(0), "more_body": bool(left)}

    async def send(message):
        sent.append(message)

    raw = [(name.encode(), text.encode()) for name, text in headers]
    scope = {"type": "http", "method": method, "path": path, "query_string": b"", "headers": raw}
    await app(scope, receive, send)
    if not sent:
        return None
    start, body = sent
    result = {name.decode(): text.decode() for name, text in start["headers"]}
    assert result["content-length"] == str(len(body["body"])) or method == "HEAD"
    return start["status"], result, json.loads(body["body"] or b"null")


def test_a_body_may_come_in_pieces(make, table):
    app = make()
    raw = json.dumps(rank_body(table)).encode()
    status, _, whole = asyncio.run(call(app, raw))
    assert status == 200
    assert asyncio.run(call(app, raw[:10], raw[10:50], raw[50:]))[2] == whole
    assert app.counters.total("candidates") == 40
    assert app.counters.total("requests")[1, 0] == 2


def test_a_body_beyond_the_limit_is_refused_before_it_is_read(make):
    app = make(max_bytes=1024)
    for pieces, headers in (
        ((b"x",), [("content-length", str(10**18))]),
        ((b"x",), [("content-length", "-5")]),
        ((b"x" * 800, b"x" * 800, b"never read"), []),
    ):
        status, result, answer = asyncio.run(call(app, *pieces, headers=headers))
        assert status == 413
        assert result["connection"] == "close"
        assert answer["error"] == "A body may have 1,024 bytes; send less at once."


def test_of_a_request_without_the_key_no_body_is_read(make):
    app = make(key="secret")
    status, headers, _ = asyncio.run(call(app))
    assert (status, headers["connection"]) == (401, "close")
    assert asyncio.run(call(app, headers=[("x-api-key", "secret")])) is None


def test_a_compressed_body_is_refused(make):
    app = make()
    headers = [("content-encoding", "gzip")]
    assert asyncio.run(call(app, b"x", headers=headers))[0] == 415


def test_a_body_that_does_not_come_times_out(make):
    app = make(timeout=0.05)

    async def slow():
        return await call(app, b"{", b"}", wait=asyncio.Event())

    status, _, answer = asyncio.run(slow())
    assert status == 408
    assert "within 0.05 seconds" in answer["error"]
    assert app.counters.total("waiting") == 0


def test_a_client_that_goes_away_gets_no_answer(make):
    app = make()
    assert asyncio.run(call(app)) is None


def test_more_than_the_queue_holds_are_told_to_come_again(make, table):
    app = make(queue=3)
    raw = json.dumps(rank_body(table)).encode()

    async def burst():
        return await asyncio.gather(*(call(app, raw) for _ in range(10)))

    result = asyncio.run(burst())
    assert [status for status, _, _ in result].count(200) == 3
    refused = [answer for answer in result if answer[0] == 429]
    assert len(refused) == 7
    assert all(headers["retry-after"] == "1" for _, headers, _ in refused)
    assert not any("connection" in headers for _, headers, _ in refused), "the body was read"
    assert app.counters.total("waiting") == 0
    assert asyncio.run(call(app, raw))[0] == 200


def test_a_service_whose_queue_is_full_says_that_it_runs(make, table):
    app = make(queue=1)
    raw = json.dumps(rank_body(table)).encode()

    async def burst():
        asked = [call(app, raw), call(app, raw)]
        health = call(app, b"", path="/v2/health/live", method="GET")
        return await asyncio.gather(*asked, health)

    assert [status for status, _, _ in asyncio.run(burst())] == [200, 429, 200]


def test_head_has_no_body(make):
    app = make()
    status, headers, body = asyncio.run(call(app, b"", path="/v2", method="HEAD"))
    assert (status, body) == (200, None)
    assert int(headers["content-length"]) > 0


def test_an_access_log_tells_route_status_and_time_and_nothing_of_the_body(make, table):
    app = make(access_log=True)
    raw = json.dumps(rank_body(table, ids=[f"secret {n}" for n in range(20)])).encode()
    assert asyncio.run(call(app, raw))[0] == 200
    ((event, facts),) = app.events
    assert (event, set(facts)) == ("request", {"route", "status", "seconds"})
    assert "secret" not in str(facts)
