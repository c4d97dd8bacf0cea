"""Requests that are wrong in every way: 4xx with one sentence, never 5xx, memory flat."""

import json
import random
import resource
from pathlib import Path

import numpy as np
import pytest
from service import ask, rank_body, serving

INFER = "/v2/models/harmonrank/infer"
RANK = "/v1/rank"
LENGTH = "inference-header-content-length"
STRANGE = [
    *(None, True, -1, 0, 1.5, 2**31, 2**63, 10**40, -0.0, 1e-300, "", "x", "\ud7ff", "NaN", [], {}),
    *([[]], [None], {"": 1}, "9" * 300, [0.1] * 3, ["a", 1], 10**400, -1e308, {"buy": 1e308}),
]


def good_inference(table, rows):
    part = table.head(rows)
    kinds = {"p_buy": "FP64", "p_like": "FP64", "hour": "INT64", "age": "BYTES"}
    return {
        "inputs": [
            {"name": name, "datatype": kind, "shape": [rows], "data": part[name].to_list()}
            for name, kind in kinds.items()
        ]
    }


def more_fields(rng):
    """Return some of the fields that a request may have besides scores and context."""
    fields = {
        "ids": ["a", 2, "c", 4],
        "weights": {"buy": 2.0, "like": 0.5},
        "value": {"buy": 3, "like": -1},
        "point": "sales",
        "shares": True,
    }
    return {name: fields[name] for name in fields if rng.random() < 0.3}


def many(rng, one):
    """Return a body of one request, or of several at once."""
    return one if rng.random() < 0.7 else {"requests": [one, one]}


def altered(rng, value):
    """Change one part of a JSON document, at any depth."""
    if isinstance(value, dict) and value and rng.random() < 0.8:
        key = rng.choice(list(value))
        if rng.random() < 0.1:
            return {k: v for k, v in value.items() if k != key}
        return {**value, key: altered(rng, value[key])}
    if isinstance(value, list) and value and rng.random() < 0.8:
        place = rng.randrange(len(value))
        return [*value[:place], altered(rng, value[place]), *value[place + 1 :]]
    return rng.choice(STRANGE)


def flipped(rng, raw):
    """Cut a body, or change some of its bytes."""
    raw = bytearray(raw)
    if rng.random() < 0.3:
        return bytes(raw[: rng.randrange(len(raw) + 1)])
    for _ in range(rng.randint(1, 8)):
        raw[rng.randrange(len(raw))] = rng.randrange(256)
    return bytes(raw)


def binary_request(rng, table):
    body = good_inference(table, 5)
    blob = table["p_buy"].head(5).to_numpy().tobytes()
    body["inputs"][0].pop("data")
    size = rng.choice([len(blob), len(blob), 0, 7, 2**62, -1])
    body["inputs"][0]["parameters"] = {"binary_data_size": size}
    head = json.dumps(body).encode()
    length = rng.choice([len(head), len(head), len(head) + 1, 0, 10**18])
    return head + flipped(rng, blob), {LENGTH: str(length)}


def a_request(rng, table):
    """Return path, body and headers of a request that is probably wrong."""
    kind = rng.randrange(5)
    if kind == 0:
        return rng.choice([RANK, INFER]), rng.randbytes(rng.randrange(200)), {}
    if kind == 1:
        good = many(rng, rank_body(table, rows=4, **more_fields(rng)))
        return RANK, json.dumps(altered(rng, good)).encode(), {}
    if kind == 2:
        asked = {"parameters": more_fields(rng), "outputs": [{"name": "fused"}], "id": "7"}
        good = good_inference(table, 4) | {k: v for k, v in asked.items() if rng.random() < 0.5}
        return INFER, json.dumps(altered(rng, good)).encode(), {}
    if kind == 3:
        return INFER, *binary_request(rng, table)
    good = json.dumps(rank_body(table, rows=4)).encode()
    return rng.choice([RANK, INFER]), flipped(rng, good), {}


def memory(process="self"):
    """Return the resident memory of a process, in megabytes."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def fuzz(app, table, count, seed):
    rng, statuses, before = random.Random(seed), {}, None
    for number in range(count):
        path, body, headers = a_request(rng, table)
        status, answer = ask(app, "POST", path, body, headers)
        statuses[status] = statuses.get(status, 0) + 1
        assert status in (200, 400, 413, 415), (status, path, body[:300], headers, answer)
        if status != 200:
            assert "\n" not in answer["error"], answer
            assert len(answer["error"]) < 1000, answer
        if number == count // 4:
            before = memory()
    assert app.events == []
    assert statuses[400] > count / 3
    assert memory() - before < 100, "memory grew"
    return statuses


def test_wrong_requests_get_a_sentence(app, table):
    fuzz(app, table, 1500, seed=0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 5))
def test_200_000_wrong_requests_get_a_sentence(app, table, seed, record_property):
    fuzz(app, table, 50_000, seed)
    record_property("requests", 50_000)


def test_numbers_at_the_edges_are_scored_or_refused(app):
    for value in (0.0, 1.0, 5e-324, np.nextafter(1, 0), -1e-300, np.nextafter(1, 2), 1e308):
        body = {"scores": {"p_buy": [value], "p_like": [value]}, "k": 1}
        body["context"] = {"hour": 2**62, "age": "\0"}
        status, _ = ask(app, "POST", RANK, body)
        assert status == (200 if 0 <= value <= 1 else 400)


def fuzz_over_http(service, table, count, seed):
    """Send wrong requests to a running service; its workers answer all, and stay."""
    rng = random.Random(seed)
    workers = [e["process"] for e in service.events if e["event"] == "worker started"]
    connection, statuses, before = service.connect(), {}, None
    for number in range(count):
        path, body, headers = a_request(rng, table)
        status, answer = service.ask("POST", path, body, headers, connection)
        statuses[status] = statuses.get(status, 0) + 1
        assert status in (200, 400, 413, 415), (status, path, body[:300], headers, answer)
        if number == count // 4:
            before = [memory(worker) for worker in workers]
    connection.close()
    assert statuses[400] > count / 3
    after = [memory(worker) for worker in workers]
    assert all(now - then < 50 for now, then in zip(after, before, strict=True)), "memory grew"
    assert [e for e in service.events if e["level"] != "info"] == []


@pytest.mark.parametrize("count", [300, pytest.param(20_000, marks=pytest.mark.slow)])
def test_wrong_requests_over_http_get_a_sentence(default_model, tmp_path, table, count):
    default_model.save(tmp_path / "m")
    with serving(tmp_path / "m") as service:
        fuzz_over_http(service, table, count, seed=9)


@pytest.mark.slow
def test_schemathesis_finds_no_5xx(default_model, tmp_path, record_property):
    schemathesis = pytest.importorskip("schemathesis")
    from hypothesis import HealthCheck, given, settings

    default_model.save(tmp_path / "m")
    asked = {}
    with serving(tmp_path / "m") as service:
        schema = schemathesis.openapi.from_url(f"{service.address}/openapi.json")
        for operation in (result.ok() for result in schema.get_all_operations()):

            @given(case=operation.as_strategy())
            @settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
            def hold(case):
                answer = case.call()
                asked[answer.status_code] = asked.get(answer.status_code, 0) + 1
                assert answer.status_code < 500, answer.text

            hold()
        assert [e for e in service.events if e["level"] != "info"] == []
    assert sum(asked.values()) > 400
    assert asked[400] > 50
    assert asked[200] > 5, asked
    record_property("requests", sum(asked.values()))
