"""The whole service: processes, sockets, and clients that others have written."""

import json
import os
import random
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from http.client import HTTPException
from pathlib import Path

import numpy as np
import pytest
from service import expected, order_of, rank_body, serving

from harmonrank.registry import Guardrails, Registry


@pytest.fixture(scope="module")
def place(tmp_path_factory, models, default_model):
    place = tmp_path_factory.mktemp("service")
    rules = Guardrails(tolerance=1, calibration=None, shift=None, scale=None)
    Registry.create(place / "registry", rules).publish(default_model)
    return place


@pytest.fixture(scope="module")
def service(place):
    settings = place / "settings.toml"
    settings.write_text("[serve]\nmax-bytes = 2_000_000\n", encoding="utf-8")
    with serving(place / "registry", "--workers", 2, "--settings", settings) as service:
        yield service


def wait_for(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


def test_rank_over_http(service, default_model, table):
    status, answer = service.ask("POST", "/v1/rank", rank_body(table))
    assert status == 200
    assert order_of(answer) == expected(default_model, table)[0]


@pytest.mark.parametrize("binary", [True, False])
def test_an_unmodified_triton_client_works(service, default_model, table, binary):
    import tritonclient.http as triton

    client = triton.InferenceServerClient(f"{service.host}:{service.port}")
    try:
        assert client.is_server_live()
        assert client.is_server_ready()
        assert client.is_model_ready("harmonrank")
        assert client.get_server_metadata()["name"] == "harmonrank"
        names = [part["name"] for part in client.get_model_metadata("harmonrank")["inputs"]]
        assert names == ["p_buy", "p_like", "hour", "age"]
        rows = table.head(50)
        inputs = []
        for name, kind, values in (
            ("p_buy", "FP64", rows["p_buy"].to_numpy()),
            ("p_like", "FP64", rows["p_like"].to_numpy()),
            ("hour", "INT64", rows["hour"].to_numpy()),
            ("age", "BYTES", np.array(rows["age"].to_list(), dtype=object)),
        ):
            inputs.append(triton.InferInput(name, [50], kind))
            inputs[-1].set_data_from_numpy(values, binary_data=binary)
        asked = [triton.InferRequestedOutput(n, binary_data=binary) for n in ("fused", "like")]
        result = client.infer("harmonrank", inputs, outputs=asked, request_id="9")
        assert result.as_numpy("fused").tolist() == default_model.score(rows).tolist()
        chances = default_model.probabilities(rows)
        assert result.as_numpy("like").tolist() == chances[:, 1].tolist()
        assert result.get_response()["id"] == "9"
        every = client.infer("harmonrank", inputs)
        assert every.as_numpy("buy").tolist() == chances[:, 0].tolist()
        with pytest.raises(triton.InferenceServerException, match="Input 'hour' is missing"):
            client.infer("harmonrank", inputs[:2])
    finally:
        client.close()


def test_metrics_are_of_all_workers(service, table):
    connections = [service.connect() for _ in range(8)]
    for connection in connections:
        service.ask("POST", "/v1/rank", rank_body(table), connection=connection)
    seen = set()
    for connection in connections:
        text = service.ask("GET", "/metrics", connection=connection)[1].decode()
        line = next(x for x in text.splitlines() if x.startswith("harmonrank_candidates_total"))
        seen.add(line)
        connection.close()
    assert len(seen) == 1
    assert "harmonrank_ready_workers 2" in text


def test_a_worker_imports_neither_pytorch_nor_training_code(service):
    for event in [e for e in service.events if e["event"] == "worker started"]:
        try:
            maps = Path(f"/proc/{event['process']}/maps").read_text()
        except OSError:  # replaced since
            continue
        assert "torch" not in maps
        assert "polars" in maps


def test_what_a_worker_imports(tmp_path):
    code = (
        "import sys, harmonrank.serving.worker\n"
        "heavy = ('torch', 'harmonrank.paper.losses', 'harmonrank.paper.training',"
        " 'harmonrank.evaluation',"
        " 'harmonrank.cli', 'harmonrank.reports', 'rich', 'pyarrow', 'pandas')\n"
        "print(*[name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_bytes_that_are_no_http_and_huge_lengths_harm_nobody(service, table):
    rng = random.Random(0)
    wrong = [rng.randbytes(200) for _ in range(20)]
    wrong += [
        b"POST /v1/rank HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999\r\n\r\n{}",
        b"POST /v1/rank HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"POST /v1/rank HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n",
        b"GET " + b"a" * 100_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
    ]
    for raw in wrong:
        with socket.create_connection((service.host, int(service.port)), timeout=30) as link:
            link.sendall(raw)
            link.shutdown(socket.SHUT_WR)
            answer = b""
            while piece := link.recv(65536):
                answer += piece
        assert not answer.startswith(b"HTTP/1.1 5"), answer[:200]
    with socket.create_connection((service.host, int(service.port)), timeout=30) as link:
        link.sendall(b"POST /v1/rank HTTP/1.1\r\nHost: x\r\nContent-Length: 3000000\r\n\r\nx")
        assert link.recv(65536).startswith(b"HTTP/1.1 413")
    assert service.ask("POST", "/v1/rank", rank_body(table))[0] == 200


class Load:
    """Asks over some connections until told to stop, and keeps every answer."""

    def __init__(self, service, table, connections=2):
        self._service, self._stop = service, threading.Event()
        self._body = json.dumps(rank_body(table))
        self.answers, self.errors = [], []
        self._threads = [threading.Thread(target=self._run) for _ in range(connections)]

    def _run(self):
        connection = self._service.connect()
        while not self._stop.is_set():
            try:
                self.answers.append(
                    self._service.ask("POST", "/v1/rank", self._body, connection=connection)
                )
            except (OSError, HTTPException) as error:
                self.errors.append(error)
                connection.close()
                connection = self._service.connect()
        connection.close()

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        for thread in self._threads:
            thread.join()


def hold_reloads(tmp_path, models, table, count):
    rules = Guardrails(tolerance=1, calibration=None, shift=None, scale=None)
    registry = Registry.create(tmp_path / "registry", rules)
    for model in models:
        registry.publish(model)
    wanted = {str(n): expected(model, table) for n, model in enumerate(models, 1)}
    with serving(registry.path, "--workers", 2) as service, Load(service, table) as load:
        for _ in range(count):
            to = registry.rollback().number
            wait_for(lambda to=to: load.answers and load.answers[-1][1]["version"] == str(to))
    assert load.errors == []
    assert {status for status, _ in load.answers} == {200}
    for _, answer in load.answers:
        best, fused = wanted[answer["version"]]
        assert order_of(answer) == best
        assert [row["fused"] for row in answer["ranked"]] == fused
    assert {answer["version"] for _, answer in load.answers} == set(wanted)


def test_reloads_under_load_fail_no_request_and_mix_no_versions(tmp_path, models, table):
    hold_reloads(tmp_path, models, table, 4)


@pytest.mark.slow
def test_50_reloads_under_load_fail_no_request_and_mix_no_versions(
    tmp_path, models, table, record_property
):
    hold_reloads(tmp_path, models, table, 50)
    record_property("reloads", 50)


def happened(service, event):
    return [e for e in service.events if e["event"] == event]


@pytest.mark.parametrize("kills", [1, pytest.param(20, marks=pytest.mark.slow)])
def test_a_killed_worker_is_replaced_and_only_its_own_requests_fail(place, table, kills):
    with serving(place / "registry", "--workers", 2) as service:
        with Load(service, table) as load:
            wait_for(lambda: len(load.answers) > 20)
            for kill in range(kills):
                # The oldest of the workers of the service started above that still runs.
                ended = {e["process"] for e in happened(service, "worker died")}
                running = [e["process"] for e in happened(service, "worker started")]
                os.kill(next(p for p in running if p not in ended), signal.SIGKILL)
                wait_for(lambda n=kill + 1: len(happened(service, "worker died")) == n)
                wait_for(lambda n=kill + 3: len(happened(service, "worker started")) == n)
                before = len(load.answers)
                wait_for(lambda n=before: len(load.answers) > n + 20)
        assert len(load.errors) <= 2 * kills, "at most one request in flight per connection"
        assert {status for status, _ in load.answers} == {200}


def test_a_service_that_is_stopped_ends_what_it_has_begun(place, table):
    body = json.dumps(rank_body(table)).encode()
    with serving(place / "registry") as service:
        head = f"POST /v1/rank HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
        link = socket.create_connection((service.host, int(service.port)), timeout=60)
        link.sendall(head.encode() + body[:50])
        time.sleep(0.3)  # until the worker has begun to read it
        service.process.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        link.sendall(body[50:])
        answer = link.recv(65536)
        link.close()
        assert answer.startswith(b"HTTP/1.1 200"), answer[:200]
        assert service.process.wait(60) == 0


def test_workers_end_when_their_supervisor_is_killed(place):
    with serving(place / "registry") as service:
        wait_for(lambda: any(e["event"] == "worker started" for e in service.events))
        worker = next(e["process"] for e in service.events if e["event"] == "worker started")
        service.process.kill()
        service.process.wait()

        def ended():
            try:
                return Path(f"/proc/{worker}/stat").read_text().split()[2] == "Z"
            except OSError:
                return True

        wait_for(ended)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost"
    names = ["-addext", "subjectAltName=IP:127.0.0.1"]
    files = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    try:
        subprocess.run([*command.split(), *names, *files], check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("openssl is not installed")
    return folder


def test_tls_and_a_key(place, certificate, table):
    files = ("--tls-cert", certificate / "cert.pem", "--tls-key", certificate / "key.pem")
    with serving(place / "registry", *files, env={"HARMONRANK_API_KEY": "secret"}) as service:
        assert service.address.startswith("https://")
        context = ssl.create_default_context(cafile=certificate / "cert.pem")
        link = service.connect(context)
        assert service.ask("POST", "/v1/rank", rank_body(table), connection=link)[0] == 401
        key = {"Authorization": "Bearer secret"}
        assert service.ask("POST", "/v1/rank", rank_body(table), key, link)[0] == 200
        link.close()
        assert "secret" not in "".join(service.lines)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("none",), "There is no saved model 'none'"),
        (("registry", "--host", "0.0.0.0"), "can be reached from other machines"),
        (("registry", "--workers", "0"), "Option 'workers' of serve must be"),
        (("registry", "--point", "sales"), "--point takes NAME:A=2,B=1"),
        (("registry", "--point", "sales:bye=2"), "Did you mean 'buy'?"),
        (("registry", "--at", "sales"), "There is no operating point 'sales'. There are none."),
        (("registry", "--tls-cert", "x"), "TLS needs both files"),
        (("registry", "--tls-cert", "x", "--tls-key", "y"), "cannot be used"),
        (("registry", "--api-key-file", "none"), "cannot be read"),
        (("empty",), "has no current version"),
        (("model", "--recalibrate", "auto"), "needs a registry"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(
    run, place, models, monkeypatch, arguments, sentence
):
    monkeypatch.chdir(place)
    if not (place / "model").exists():
        models[0].save(place / "model")
        Registry.create(place / "empty")
    done = run("serve", *arguments, "--port", "0")
    assert done.code == 2
    assert sentence in done.err


def test_a_port_that_is_taken_is_one_sentence(run, place):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = run("serve", place / "registry", "--port", taken.getsockname()[1])
    assert done.code == 2
    assert "cannot be used: Address already in use; choose another" in done.err
