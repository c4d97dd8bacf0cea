from datetime import UTC, datetime
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest
from small_stream import Place, events_of

from harmonrank.streaming.loop_events import EventsRead, RetryPlanned, StreamStarted
from harmonrank.streaming.metrics import StreamTotals, metrics_endpoint, stream_metrics
from harmonrank.support import UsageError


def read(**parts):
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    plain = {"events": 1, "total": 9, "waiting": None, "watermark": moment, "lag_seconds": 2.5}
    return EventsRead(**(plain | {"aside": {}} | parts))


def ask(address, path="/metrics"):
    connection = HTTPConnection(urlsplit(address).netloc, timeout=10)
    connection.request("GET", path)
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    return answer.status, answer.headers["content-type"], body


def test_all_that_is_known_of_a_stream_is_told(tmp_path):
    totals = StreamTotals()
    for event in Place(tmp_path, events_of(5, 800)).run():
        totals.event(event)
    lines = stream_metrics(totals).splitlines()
    values = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    assert values["harmonrank_stream_learned_rows_total"] == str(totals.learned_rows)
    assert values['harmonrank_stream_versions_total{outcome="published"}'] == "4"
    assert values['harmonrank_stream_versions_total{outcome="refused"}'] == "0"
    assert float(values['harmonrank_stream_auc{objective="like"}']) > 0.5
    assert float(values['harmonrank_stream_request_auc{objective="like"}']) > 0.5
    assert float(values["harmonrank_stream_request_auc_sum"]) > 1
    assert float(values['harmonrank_stream_psi{score="p_like"}']) < 0.2
    told = {line.split()[2] for line in lines if line.startswith("# TYPE")}
    assert {name.partition("{")[0] for name in values} <= told


def test_what_is_not_known_is_left_out():
    values = [s for s in stream_metrics(StreamTotals()).splitlines() if not s.startswith("#")]
    assert not any("auc" in line or "lag" in line or "waiting" in line for line in values)


def test_totals_go_on_from_those_of_the_state():
    totals = StreamTotals()
    totals.event(
        StreamStarted(
            stream="a", method="m", objectives=[], events=5, learned_rows=4, published=3, refused=2
        )
    )
    assert (totals.events, totals.learned_rows) == (5, 4)
    assert (totals.published, totals.refused) == (3, 2)
    totals.event(read(aside={"late": 3}))
    assert 'harmonrank_stream_aside_total{reason="late"} 3' in stream_metrics(totals)
    assert "harmonrank_stream_watermark_seconds 1767225600.0" in stream_metrics(totals)


def test_trouble_is_counted_and_over_when_something_goes_well():
    totals = StreamTotals()
    totals.event(RetryPlanned(what="the source", reason="It is away.", seconds=1.0))
    assert totals.trouble.reason == "It is away."
    totals.event(read())
    assert totals.trouble is None
    assert 'harmonrank_stream_retries_total{what="the source"} 1' in stream_metrics(totals)


def test_the_endpoint_answers_on_this_machine_while_the_stream_runs():
    with metrics_endpoint(0, lambda: "a_metric 1\n") as address:
        assert address.startswith("http://127.0.0.1:")
        kind = "text/plain; version=0.0.4; charset=utf-8"
        assert ask(address) == (200, kind, "a_metric 1\n")
        assert ask(address, "/")[0] == 404
        with (
            pytest.raises(UsageError, match="cannot be used for --metrics: Address already in use"),
            metrics_endpoint(urlsplit(address).port, str),
        ):
            pass
    with pytest.raises(ConnectionRefusedError):
        ask(address)
