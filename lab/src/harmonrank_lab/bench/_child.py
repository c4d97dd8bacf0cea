"""Child: work in a process of its own, whose memory, start and answers can be measured."""

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np

_MEGABYTE = 1e6
_WARM_ROWS = 20_000


# Whatever this package imports for a benchmark must not help a first score.
_FIRST_SCORE = """
from sys import argv
from time import perf_counter
started = perf_counter()
import harmonrank
harmonrank.load(argv[1]).score(argv[2])
print(perf_counter() - started)
"""


def first_score(model: Path, data: Path, *, compiling: bool = False) -> float:
    """Return the seconds that a new process takes to import, load and score.

    Args:
        model: Folder of a saved model.
        data: What is scored.
        compiling: Whether no kernel has been kept, so that all are compiled.
    """
    command = [sys.executable, "-c", _FIRST_SCORE, str(model), str(data)]
    with TemporaryDirectory() as empty:
        environment = os.environ | ({"NUMBA_CACHE_DIR": empty} if compiling else {})
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return float(done.stdout)


def in_child(task: str, *, timeout: float | None = None, **arguments: Any) -> dict[str, Any]:
    """Run a task of this file in a new process; return its numbers."""
    text = json.dumps(arguments, default=str)
    done = subprocess.run(
        [sys.executable, "-m", __spec__.name, task, text],
        capture_output=True, text=True, timeout=timeout,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"the {task} of {text} failed: {done.stderr.strip()[-500:]}")
    numbers: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return numbers


def score_file(model: str, data: str, output: str) -> dict[str, float]:
    """Score a parquet file into another one."""
    from harmonrank.fusion import load
    from harmonrank.fusion import score_file as score

    fitted = load(model)
    before, started = _peak_mb(), perf_counter()
    score(fitted, data, output)
    return {"seconds": perf_counter() - started, "before_mb": before, "peak_mb": _peak_mb()}


def fit(method: str, data: str, objectives: int, options: dict[str, Any]) -> dict[str, float]:
    """Fit a method on a file; its kernels are loaded before the clock starts."""
    from harmonrank.fusion import method_class
    from harmonrank_lab.bench._result import schema_of, table_of

    schema, kind = schema_of(objectives), method_class(method)
    # A network's fit on few rows would not use the kernels.
    enough = {**options, "epochs": 20, "patience": 20} if "epochs" in options else options
    kind(**enough).fit(table_of(_WARM_ROWS, objectives), schema)
    before, started = _peak_mb(), perf_counter()
    kind(**options).fit(data, schema)
    return {"seconds": perf_counter() - started, "before_mb": before, "peak_mb": _peak_mb()}


def _peak_mb() -> float:
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # Linux counts kilobytes, macOS bytes.
    return peak / _MEGABYTE if sys.platform == "darwin" else peak * 1024 / _MEGABYTE


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
    return LoadResult(**in_child("ask_often", timeout=load.seconds + 120, **asdict(load)))


def ask_often(**how: Any) -> dict[str, float]:
    """Ask as a `Load` of these fields says."""
    load = Load(**how)
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

    with ThreadPoolExecutor(load.connections) as pool:
        for done in [pool.submit(client) for _ in range(load.connections)]:
            done.result()
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


_TASKS = {task.__name__: task for task in (score_file, fit, ask_often)}

if __name__ == "__main__":
    done: Callable[..., dict[str, float]] = _TASKS[sys.argv[1]]
    sys.stdout.write(json.dumps(done(**json.loads(sys.argv[2]))) + "\n")
