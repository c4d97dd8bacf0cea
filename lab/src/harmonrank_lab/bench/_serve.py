"""Serving over loopback, from another process, against a plain FastAPI and PyTorch server."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np

from harmonrank.data import Log
from harmonrank.fusion import Method
from harmonrank.support import is_installed
from harmonrank_lab.bench._child import Load, LoadResult, ask, send_load
from harmonrank_lab.bench._result import Case, Size, Timing, fitted, world_log

_PEER = "FastAPI + torch-eager"
_CONNECTIONS = 4
_RATE = 200.0
_WAIT = 120.0
_STARTS = 5
Server = Callable[[Path, int], list[str]]


def cases(size: Size) -> Iterator[Case]:
    """Latency at a fixed rate, throughput as JSON and binary tensors, and the start."""
    yield Case("serve JSON, p99 at 200 requests/s", partial(_latency, size))
    yield Case("serve JSON, per request", partial(_throughput, size))
    yield Case("serve binary tensors, per request", partial(_wide, size))
    yield Case("serve, start to first answer", partial(_start, size))
    paper = partial(_start, size, paper=True)
    yield Case("serve, start to first answer, harmonrank-paper", paper)


def _ours(model: Path, port: int) -> list[str]:
    options = ["--port", str(port), "--quiet", "--recalibrate", "ask"]
    return [sys.executable, "-m", "harmonrank", "serve", str(model), *options]


def _plain(model: Path, port: int) -> list[str]:
    module = "harmonrank_lab.bench._plain_server"
    return [sys.executable, "-m", module, str(model), str(port)]


@contextmanager
def _running(server: Server, model: Path, request: bytes) -> Iterator[int]:
    """Run a server on a free port until the block ends; it has answered once by then."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    # Ended from outside, it still ends the server that it started.
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(server(model, port), env=os.environ, **quiet)  # type: ignore[call-overload]
    try:
        end = time.monotonic() + _WAIT
        while not _answers(port, request):
            if process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"`{' '.join(process.args[1:4])}` does not answer")
            time.sleep(0.002)
        yield port
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        signal.signal(signal.SIGTERM, before)


def _answers(port: int, request: bytes) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
            return ask(connection, request)
    except (OSError, IndexError):
        return False


def _measured(
    server: Server, model: Method, request: bytes, seconds: float, rate: float | None
) -> LoadResult:
    with TemporaryDirectory() as place:
        folder, file = Path(place) / "model", Path(place) / "request"
        model.save(folder)
        file.write_bytes(request)
        with _running(server, folder, request) as port:
            send_load(Load(port, str(file), _CONNECTIONS, min(seconds, 1.0)))  # warms up
            answers = send_load(Load(port, str(file), _CONNECTIONS, seconds, rate))
    if answers.failed:
        raise RuntimeError(f"{answers.failed} of {answers.answered} requests failed")
    return answers


def _both(size: Size, rate: float | None) -> dict[str, LoadResult]:
    servers = {"ours": _ours}
    if is_installed("fastapi") and is_installed("torch"):
        servers[_PEER] = _plain
    model = fitted("harmonrank", size.head_rows)
    request = _json_request(world_log(size.request_rows))
    how = model, request, size.serve_seconds, rate
    return {name: _measured(server, *how) for name, server in servers.items()}


def _latency(size: Size) -> Timing:
    loads = _both(size, _RATE)
    seconds = {name: answers.p99 for name, answers in loads.items()}
    rates = {n: f"{a.answered / a.seconds:.0f} requests/s" for n, a in loads.items()}
    note = f"Seconds are the 99th percentile. Reached: {_listed(rates)}."
    return Timing(size.request_rows, seconds.pop("ours"), seconds, note=note)


def _throughput(size: Size) -> Timing:
    answers = _both(size, None)
    seconds = {name: a.seconds / a.answered for name, a in answers.items()}
    tails = {name: f"{1e3 * a.p99:.1f} ms" for name, a in answers.items()}
    note = f"{_CONNECTIONS} connections, one worker. p99: {_listed(tails)}."
    return Timing(size.request_rows, seconds.pop("ours"), seconds, note=note)


def _wide(size: Size) -> Timing:
    rows = size.serve_rows
    request = _binary_request(world_log(rows))
    load = _measured(_ours, fitted("harmonrank", size.head_rows), request, size.serve_seconds, None)
    note = f"{load.answered * rows / load.seconds:,.0f} candidates/s, p99 {1e3 * load.p99:.1f} ms."
    return Timing(rows, load.seconds / load.answered, note=note)


def _start(size: Size, *, paper: bool = False) -> Timing:
    """Time from the command to the first ranking; kernels were compiled by a start before."""
    name = "harmonrank-paper" if paper else "harmonrank"
    model = fitted(name, size.request_rows * 10 if paper else size.head_rows)
    request, took = _json_request(world_log(size.request_rows)), []
    with TemporaryDirectory() as place:
        model.save(Path(place) / "model")
        for _ in range(_STARTS + 1):
            begun = time.perf_counter()
            with _running(_ours, Path(place) / "model", request):
                took.append(time.perf_counter() - begun)
    note = f"Median of {_STARTS} starts of one worker, from the command to the first answer."
    return Timing(size.request_rows, median(took[1:]), note=note)


def _listed(facts: dict[str, str]) -> str:
    return ", ".join(f"{name} {fact}" for name, fact in facts.items())


def _http(path: str, body: bytes, **headers: str) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: 127.0.0.1", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


def _json_request(log: Log) -> bytes:
    columns = zip(log.schema.score_columns, log.scores.T, strict=True)
    scores = {name: np.round(values.astype(float), 6).tolist() for name, values in columns}
    body = {"scores": scores, "context": log.context.row(0, named=True), "k": 10}
    return _http("/v1/rank", json.dumps(body).encode(), Content_Type="application/json")


def _binary_request(log: Log) -> bytes:
    """All candidates share the context of the first row, as in a request of a service."""
    columns = {
        name: ("FP32", np.ascontiguousarray(values, "<f4"))
        for name, values in zip(log.schema.score_columns, log.scores.T, strict=True)
    }
    for name, value in log.context.row(0, named=True).items():
        columns[name] = ("INT64", np.full(log.rows, value, "<i8"))
    blobs = [values.tobytes() for _, values in columns.values()]
    inputs = [
        {"name": name, "datatype": kind, "shape": [log.rows],
         "parameters": {"binary_data_size": values.nbytes}}
        for name, (kind, values) in columns.items()
    ]  # fmt: skip
    asked = [{"name": "fused", "parameters": {"binary_data": True}}]
    head = json.dumps({"inputs": inputs, "outputs": asked}).encode()
    length = {"Inference_Header_Content_Length": str(len(head))}
    return _http("/v2/models/harmonrank/infer", b"".join([head, *blobs]), **length)
