"""Which HTTP server and which JSON library `harmonrank serve` should use.

One worker process serves the same small application: decode 1,000 candidates of five scores, add
them up, answer the best ten. A second process sends prepared requests over a few connections that
stay open. Servers are started in turn, several rounds each, and medians are stored. On a machine
that is busy with other work, only the processor time per request can be compared.

    pip install uvicorn uvloop httptools granian orjson
    python benchmarks/serving_stack.py -o benchmarks/results/serving_stack.json
"""

import argparse
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path
from statistics import median
from typing import Any

import msgspec
import numpy as np

NAMES = ("buy", "comment", "follow", "like", "view")
CANDIDATES, CONNECTIONS = 1000, 4
SERVERS = ("uvicorn-h11", "uvicorn-httptools-uvloop", "granian-asgi", "granian-rsgi")


class Body(msgspec.Struct):
    scores: dict[str, list[float]]


TYPED = msgspec.json.Decoder(Body)


def best_of(columns: np.ndarray) -> bytes:
    fused = columns.sum(axis=0)
    top = np.argsort(-fused)[:10]
    return msgspec.json.encode({"top": top.tolist(), "fused": fused[top].tolist()})


def answer(path: str, body: bytes) -> bytes:
    if path == "/json":
        return best_of(np.array([*TYPED.decode(body).scores.values()]))
    size = struct.unpack_from("<I", body)[0]
    return best_of(np.frombuffer(body, np.float32, offset=4).reshape(len(NAMES), size))


async def asgi(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] != "http":
        return
    body, more = b"", True
    while more:
        message = await receive()
        body += message["body"]
        more = message.get("more_body", False)
    sent = answer(scope["path"], body)
    headers = [(b"content-length", str(len(sent)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": sent})


async def rsgi(scope: Any, protocol: Any) -> None:
    protocol.response_bytes(200, [], answer(scope.path, await protocol()))


def serve(name: str, port: int) -> None:
    if name.startswith("uvicorn"):
        import uvicorn

        fast = name.endswith("uvloop")
        http, loop = ("httptools", "uvloop") if fast else ("h11", "asyncio")
        options: Any = {"http": http, "loop": loop, "log_level": "error", "lifespan": "off"}
        uvicorn.run(asgi, port=port, **options)
        return
    from granian import Granian
    from granian.constants import Interfaces, Loops

    kind = name.removeprefix("granian-")
    Granian(
        f"serving_stack:{kind}",
        port=port,
        interface=Interfaces(kind),
        loop=Loops.uvloop,
        log_enabled=False,
    ).serve()


def requests_of() -> dict[str, bytes]:
    scores = np.random.default_rng(0).random((len(NAMES), CANDIDATES)).astype(np.float32)
    columns = {name: scores[m].tolist() for m, name in enumerate(NAMES)}
    bodies = {
        "json": msgspec.json.encode({"scores": columns}),
        "binary": struct.pack("<I", CANDIDATES) + scores.tobytes(),
    }
    return {
        kind: f"POST /{kind} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        + body
        for kind, body in bodies.items()
    }


def ask(connection: socket.socket, request: bytes) -> None:
    connection.sendall(request)
    got = b""
    while b"\r\n\r\n" not in got:
        piece = connection.recv(65536)
        if not piece:
            raise ConnectionResetError
        got += piece
    head, _, rest = got.partition(b"\r\n\r\n")
    assert head.split()[1] == b"200", head
    length = int(head.lower().partition(b"content-length:")[2].split()[0])
    while len(rest) < length:
        rest += connection.recv(65536)


def load(kind: str, seconds: float, port: int) -> dict[str, float]:
    """Ask over some connections, each as soon as its last answer has come."""
    request, times, end = requests_of()[kind], [], time.perf_counter() + seconds

    def client() -> None:
        with socket.create_connection(("127.0.0.1", port)) as connection:
            while (started := time.perf_counter()) < end:
                ask(connection, request)
                times.append(time.perf_counter() - started)

    threads = [threading.Thread(target=client) for _ in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {
        "requests": len(times),
        "requests_per_second": len(times) / seconds,
        "p50_ms": 1e3 * float(np.quantile(times, 0.5)),
        "p99_ms": 1e3 * float(np.quantile(times, 0.99)),
    }


def measure_server(name: str, seconds: float) -> dict[str, dict[str, float]]:
    here = Path(__file__)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, str(here), "--serve", name, "--port", str(port)]
    process = subprocess.Popen(command, cwd=here.parent, start_new_session=True)
    try:
        while not _answers(port):
            assert process.poll() is None, f"{name} did not start"
            time.sleep(0.05)
        found = {}
        for kind in ("json", "binary"):
            child = [sys.executable, str(here), "--load", kind, "--seconds", str(seconds)]
            child += ["--port", str(port)]
            before = _cpu_seconds(process.pid)
            done = subprocess.run(child, stdout=subprocess.PIPE, text=True, check=True)
            found[kind] = json.loads(done.stdout)
            # Else somebody else on this port was measured.
            assert process.poll() is None, f"{name} ended while it was measured"
            used = 1e3 * (_cpu_seconds(process.pid) - before)
            found[kind]["cpu_ms_per_request"] = used / found[kind].pop("requests")
        return found
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _answers(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
            ask(connection, requests_of()["json"])
            return True
    except (OSError, IndexError):
        return False


def _cpu_seconds(session: int) -> float:
    """Return the processor time of a session, which other work on the machine hardly changes."""
    used = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parts = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(parts[3]) == session:
            used += int(parts[11]) + int(parts[12])
    return used / os.sysconf("SC_CLK_TCK")


def measure_json(rounds: int) -> dict[str, dict[str, float]]:
    """Return milliseconds of processor time to decode a request, and to encode 1,000 scores."""
    import orjson

    body = requests_of()["json"].partition(b"\r\n\r\n")[2]
    scores = np.random.default_rng(1).random(CANDIDATES)
    decoders = {
        "msgspec typed": lambda: np.array([*TYPED.decode(body).scores.values()]),
        "msgspec": lambda: np.array([*msgspec.json.decode(body)["scores"].values()]),
        "orjson": lambda: np.array([*orjson.loads(body)["scores"].values()]),
        "json": lambda: np.array([*json.loads(body)["scores"].values()]),
    }
    encoders = {
        "msgspec typed": lambda: msgspec.json.encode(scores.tolist()),
        "msgspec": lambda: msgspec.json.encode(scores.tolist()),
        "orjson": lambda: orjson.dumps(scores, option=orjson.OPT_SERIALIZE_NUMPY),
        "json": lambda: json.dumps(scores.tolist()).encode(),
    }
    times: dict[str, dict[str, list[float]]] = {n: {"decode": [], "encode": []} for n in decoders}
    for _ in range(rounds * 50):
        for name in decoders:
            for what, work in (("decode", decoders[name]), ("encode", encoders[name])):
                started = time.process_time()
                work()
                times[name][what].append(1e3 * (time.process_time() - started))
    return {n: {f"{w}_cpu_ms": median(v) for w, v in both.items()} for n, both in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--serve")
    parser.add_argument("--load")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve, options.port)
        return
    if options.load:
        print(json.dumps(load(options.load, options.seconds, options.port)))
        return
    # Ended from outside, it still ends the server that it started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    # Not above: a server and a client start without it.
    from harmonrank.support.storage.files import new_file, write_json
    from harmonrank_lab.bench import machine

    rounds: dict[str, list[dict[str, dict[str, float]]]] = {name: [] for name in SERVERS}
    for _ in range(options.rounds):
        for name in SERVERS:
            rounds[name].append(measure_server(name, options.seconds))
    servers = {
        name: {
            kind: {key: median(r[kind][key] for r in found) for key in found[0][kind]}
            for kind in ("json", "binary")
        }
        for name, found in rounds.items()
    }
    result = {
        "machine": machine(),
        "candidates": CANDIDATES,
        "connections": CONNECTIONS,
        "servers": servers,
        "json": measure_json(options.rounds),
    }
    print(json.dumps(result, indent=2))
    if options.output is not None:
        with new_file(options.output, overwrite=True) as made:
            write_json(made, result)


if __name__ == "__main__":
    main()
