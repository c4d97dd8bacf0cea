"""Load: a process that sends one prepared request again and again, bounded in count and time."""

__all__ = ["Load", "send_load"]

import json
import socket
import subprocess
import sys
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Load:
    """How to ask.

    Attributes:
        request: The file that holds the bytes of a request.
        rate: Requests a second in all; None for each as soon as the last answer has come.
        seconds: How long.
        most: How many at most.
    """

    port: int
    request: str
    connections: int
    seconds: float
    rate: float | None = None
    most: int = 100_000


@dataclass(frozen=True)
class LoadResult:
    """What came back; seconds count from when a request was due, so that waiting counts."""

    answered: int
    failed: int
    seconds: float
    p50: float
    p99: float


def send_load(load: Load) -> LoadResult:
    """Send it from another process."""
    command = [sys.executable, "-m", __spec__.name, json.dumps(asdict(load))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=load.seconds + 120)
    if done.returncode:
        raise RuntimeError(f"the load failed: {done.stderr.strip()[-300:]}")
    return LoadResult(**json.loads(done.stdout))


def _run(load: Load) -> dict[str, Any]:
    request, times = Path(load.request).read_bytes(), []
    failed, lock, sent = [0], threading.Lock(), [0]
    begun = time.perf_counter()

    def due() -> float | None:
        """Return when the next request is due; None when there are no more."""
        with lock:
            number, now = sent[0], time.perf_counter() - begun
            at = now if load.rate is None else number / load.rate
            if number >= load.most or max(at, now) >= load.seconds:
                return None
            sent[0] += 1
            return begun + at

    def client() -> None:
        with socket.create_connection(("127.0.0.1", load.port), timeout=60) as connection:
            while (at := due()) is not None:
                if (wait := at - time.perf_counter()) > 0:
                    time.sleep(wait)
                good = ask(connection, request)
                times.append(time.perf_counter() - at)
                failed[0] += not good

    threads = [threading.Thread(target=client) for _ in range(load.connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    p50, p99 = np.quantile(times, [0.5, 0.99]).tolist()
    took = time.perf_counter() - begun
    return asdict(LoadResult(len(times), failed[0], took, p50, p99))


def ask(connection: socket.socket, request: bytes) -> bool:
    """Send a request, read its answer, and return whether its status is 200."""
    connection.sendall(request)
    got = b""
    while b"\r\n\r\n" not in got:
        piece = connection.recv(1 << 18)
        if not piece:
            raise ConnectionResetError("the server has closed the connection")
        got += piece
    head, _, rest = got.partition(b"\r\n\r\n")
    left = int(head.lower().partition(b"content-length:")[2].split()[0]) - len(rest)
    while left > 0:
        left -= len(connection.recv(1 << 18))
    return head.split()[1] == b"200"


if __name__ == "__main__":
    sys.stdout.write(json.dumps(_run(Load(**json.loads(sys.argv[1])))))
