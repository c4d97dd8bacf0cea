"""What an application does beside scoring: keys, metrics, reloads, drift."""

from types import SimpleNamespace

import polars as pl
import pytest
from service import application, ask, expected, order_of, rank_body

from harmonrank.registry import Registry
from harmonrank.serving import Candidates
from harmonrank.serving.counters import Slot, metrics_text
from harmonrank.serving.routes import ROUTES
from harmonrank.serving.settings import check_binding, check_key
from harmonrank.support import UsageError


def test_a_key_is_asked_for_everywhere_but_for_health(default_model, tmp_path, table):
    default_model.save(tmp_path / "m")
    app = application(tmp_path / "m", tmp_path / "s", key="secret")
    body = rank_body(table)
    assert ask(app, "GET", "/v2/health/live")[0] == 200
    for path in ("/metrics", "/openapi.json", "/v2", "/nothing"):
        assert ask(app, "GET", path)[0] == 401
    for headers in ({}, {"x-api-key": "wrong"}, {"authorization": "Bearer secrets"}):
        status, answer = ask(app, "POST", "/v1/rank", body, headers)
        assert status == 401
        assert "Send the API key" in answer["error"]
    for headers in ({"x-api-key": "secret"}, {"authorization": "bearer secret"}):
        assert ask(app, "POST", "/v1/rank", body, headers)[0] == 200


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.4", "example.com"])
def test_other_machines_need_a_key_unless_told(host):
    with pytest.raises(UsageError, match=r"can be reached from other machines; set an API key"):
        check_binding(host, key=False, anonymous=False)
    check_binding(host, key=True, anonymous=False)
    check_binding(host, key=False, anonymous=True)


@pytest.mark.parametrize("key", ["schlüssel", "a\nb", " a", "\udcff"])
def test_a_key_that_no_header_can_carry_is_refused(key):
    with pytest.raises(UsageError, match="letters, digits and signs of ASCII"):
        check_key(key)


def test_a_published_version_is_served_and_a_rollback_too(registry, models, tmp_path, table):
    app = application(registry.path, tmp_path / "s")
    body = rank_body(table)
    assert ask(app, "POST", "/v1/rank", body)[1]["version"] == "1"
    registry.publish(models[1])
    app.live.refresh()
    answer = ask(app, "POST", "/v1/rank", body)[1]
    assert answer["version"] == "2"
    assert order_of(answer) == expected(models[1], table)[0]
    registry.rollback()
    app.live.refresh()
    assert ask(app, "POST", "/v1/rank", body)[1]["version"] == "1"
    assert [event for event, _ in app.events] == ["reloaded", "reloaded"]


def test_a_damaged_version_is_refused_and_the_old_one_goes_on(registry, models, tmp_path, table):
    app = application(registry.path, tmp_path / "s")
    registry.publish(models[1])
    file = registry.folder(2) / "model" / "weights.safetensors"
    raw = bytearray(file.read_bytes())
    raw[-1] ^= 1
    file.write_bytes(raw)
    app.live.refresh()
    app.live.refresh()
    assert ask(app, "POST", "/v1/rank", rank_body(table))[1]["version"] == "1"
    ((event, facts),) = app.events
    assert (event, facts["version"]) == ("reload refused", 2)
    assert "does not match its checksum" in facts["reason"]
    registry.rollback()
    registry.publish(models[1])
    app.live.refresh()
    assert ask(app, "POST", "/v1/rank", rank_body(table))[1]["version"] == "3"


def test_a_reload_that_fails_in_any_way_leaves_the_old_version(
    registry, models, tmp_path, table, monkeypatch
):
    app = application(registry.path, tmp_path / "s")
    registry.publish(models[1])
    with monkeypatch.context() as patch:
        patch.setattr(Registry, "load", lambda *_: [][0])
        app.live.refresh()
    ((event, facts),) = app.events
    assert (event, facts["reason"]) == ("reload refused", "IndexError: list index out of range")
    assert ask(app, "POST", "/v1/rank", rank_body(table))[1]["version"] == "1"


def test_a_version_is_served_within_five_seconds_of_the_end_of_a_fault(
    registry, models, tmp_path, monkeypatch
):
    app = application(registry.path, tmp_path / "s")
    registry.publish(models[1])
    clock, tries = [0.0], []

    def fail(*_):
        tries.append(clock[0])
        raise OSError(5, "Input/output error")

    def look(seconds):
        for _ in range(2 * seconds):
            clock[0] += 0.5
            app.live.refresh()

    monkeypatch.setattr("harmonrank.serving.live.time", SimpleNamespace(monotonic=lambda: clock[0]))
    with monkeypatch.context() as patch:
        patch.setattr(Registry, "load", fail)
        look(100)
    assert app.live.runtime.version == "1"
    assert len(tries) < 35, "it is tried later and later"
    look(5)
    assert app.live.runtime.version == "2"
    assert [event for event, _ in app.events] == ["reload refused", "reloaded"]


def test_metrics_count_over_workers(app):
    counters = app.counters
    slot = Slot(counters, 0)
    slot.answered("rank", 200, 0.0007, 1000)
    slot.answered("rank", 400, 9.0, 0)
    drift = {
        "columns": [{"column": 'p_"buy', "offset": 0.5, "scale": 1.25}],
        "replaced": ['p_"buy'],
    }
    text = metrics_text(counters, "3", drift)
    for line in (
        'harmonrank_requests_total{route="rank",status="400"} 1',
        'harmonrank_request_seconds_bucket{route="rank",le="0.0005"} 0',
        'harmonrank_request_seconds_bucket{route="rank",le="0.001"} 1',
        'harmonrank_request_seconds_bucket{route="rank",le="+Inf"} 2',
        'harmonrank_request_seconds_count{route="rank"} 2',
        "harmonrank_candidates_total 1000",
        'harmonrank_version_info{version="3"} 1',
        'harmonrank_drift_offset{score="p_\\"buy"} 0.5',
        'harmonrank_drift_scale{score="p_\\"buy"} 1.25',
        "harmonrank_upstream_replaced 1",
    ):
        assert line in text.splitlines()
    assert ask(app, "GET", "/metrics")[0] == 200


def test_the_openapi_document_has_every_route_and_names_the_columns(app):
    status, document = ask(app, "GET", "/openapi.json")
    assert status == 200
    told = {route.path.replace("{model}", "harmonrank") for route in ROUTES if route.about}
    assert set(document["paths"]) == told
    schemas = document["components"]["schemas"]
    forms = document["paths"]["/v1/rank"]["post"]["requestBody"]["content"]["application/json"]
    names = [form["$ref"].rpartition("/")[2] for form in forms["schema"]["oneOf"]]
    assert names == ["RankRequest", "ManyRequests"]
    rank = schemas["RankRequest"]["properties"]
    assert rank["scores"]["required"] == ["p_buy", "p_like"]
    assert rank["context"]["required"] == ["hour", "age"]
    assert rank["point"]["enum"] == ["sales"]
    assert schemas["Tensor"]["properties"]["name"]["enum"] == ["p_buy", "p_like", "hour", "age"]
    assert schemas["Output"]["properties"]["name"]["enum"] == ["fused", "buy", "like"]


def test_a_mistake_of_ours_is_a_500_whose_log_has_no_payload(app, table, monkeypatch):
    def fail(*_):
        raise RuntimeError("secret payload")

    monkeypatch.setattr("harmonrank.serving.routes.rank", fail)
    status, answer = ask(app, "POST", "/v1/rank", rank_body(table))
    assert status == 500
    ((event, facts),) = app.events
    assert event == "internal error"
    assert "secret" not in str(facts) + str(answer)


def test_the_sample_keeps_the_last_rows_with_their_context(app, table):
    sample, rows = app.sample, table.head(30)
    candidates = Candidates(
        rows.select("p_buy", "p_like").to_numpy(), {"hour": 3}, {"age": rows["age"]}
    )
    for _ in range(3):
        sample.add(0, candidates)
    frame = sample.frame()
    assert frame.height == sample.seen == 90
    assert frame["hour"].unique().to_list() == [3]
    known = set(zip(rows["p_buy"].cast(pl.Float32), rows["age"], strict=True))
    assert set(zip(frame["p_buy"], frame["age"], strict=True)) <= known
    sample.add(0, Candidates(candidates.scores, {"hour": None, "age": "ageless"}))
    assert sample.frame().tail(1).select("hour", "age").row(0) == (None, None)
