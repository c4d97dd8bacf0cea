"""A service at half load for an hour: memory and errors over time.

    python benchmarks/soak.py --minutes 60 --json benchmarks/results/soak.json

The default is fitted on a world, saved, and served by `harmonrank serve` with one worker. Requests
of candidates, as JSON, are sent from this process at a fixed rate over a few connections. Every so
often the resident memory of the worker and of the service's first process is written down, with
what was answered since. Growth is the mean memory of the last quarter less that of the second one:
the first quarter, in which the sample fills and the allocator settles, is left out. Exit code 1 if
a request failed, or if the service logged a warning.
"""

import json
import signal
import subprocess
import sys
import threading
import time
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from store import options, resident, write

import harmonrank as hr
from harmonrank_lab.worlds import log_of

BODIES = 20
ELIVE = hr.world("elive")


def bodies_of(candidates: int) -> list[bytes]:
    """Return requests that differ in candidates and context."""
    log, bodies = log_of(ELIVE, BODIES * candidates, 0), []
    for start in range(0, log.rows, candidates):
        part = log.scores[start : start + candidates].astype(float)
        scores = dict(zip(log.schema.score_columns, part.T.tolist(), strict=True))
        context = log.context.row(start, named=True)
        bodies.append(json.dumps({"scores": scores, "context": context, "k": 10}).encode())
    return bodies


class Clients:
    """Asks at a fixed rate over some connections; a request that is late is sent at once."""

    def __init__(self, port: int, bodies: list[bytes], rate: float, connections: int) -> None:
        self._port, self._bodies, self._rate = port, bodies, rate
        self._lock, self._stop, self._begun = threading.Lock(), threading.Event(), time.monotonic()
        self._sent, self.seconds, self.failed = 0, [], []
        self._threads = [threading.Thread(target=self._run) for _ in range(connections)]
        for thread in self._threads:
            thread.start()

    def _run(self) -> None:
        connection = HTTPConnection("127.0.0.1", self._port, timeout=60)
        while not self._stop.is_set():
            with self._lock:
                number, self._sent = self._sent, self._sent + 1
            self._stop.wait(max(0.0, self._begun + number / self._rate - time.monotonic()))
            asked = time.monotonic()
            failure = self._ask(connection, self._bodies[number % len(self._bodies)])
            self.seconds.append(time.monotonic() - asked)
            if failure:
                self.failed.append(failure)
        connection.close()

    def _ask(self, connection: HTTPConnection, body: bytes) -> str | None:
        try:
            connection.request("POST", "/v1/rank", body)
            answer = connection.getresponse()
            ranking = json.loads(answer.read())
        except (OSError, HTTPException, ValueError) as error:
            connection.close()
            return type(error).__name__
        whole = answer.status == 200 and len(ranking["ranked"]) == 10
        return None if whole else f"status {answer.status}"

    def end(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()


class Service:
    """A running `harmonrank serve`, and what it logs."""

    def __init__(self, model: Path) -> None:
        command = [sys.executable, "-m", "harmonrank", "serve", str(model), "--port", "0"]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        self.process = subprocess.Popen([*command, "--json", "-"], **pipes, text=True)
        self.events = []
        threading.Thread(target=self._read, daemon=True).start()
        told = "".join(self.process.stdout.readline() for _ in range(3))
        self.port = int(json.loads(told)["address"].rsplit(":", 1)[1])
        self.worker = next(e["process"] for e in self.events if e["event"] == "worker started")

    def _read(self) -> None:
        self.events += (json.loads(line) for line in self.process.stderr if line.startswith("{"))

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


def observed(service: Service, clients: Clients, minutes: float, each: float) -> list[dict]:
    """Write down what is seen, every so many seconds."""
    begun, rows, answered, failed = time.monotonic(), [], 0, 0
    while (passed := time.monotonic() - begun) < 60 * minutes:
        time.sleep(min(each, 60 * minutes - passed))
        seconds, failures = clients.seconds[answered:], clients.failed[failed:]
        answered, failed = answered + len(seconds), failed + len(failures)
        p50, p99 = np.quantile(seconds, [0.5, 0.99]) if seconds else (np.nan, np.nan)
        rows.append(
            {
                "minute": round((time.monotonic() - begun) / 60, 2),
                "answered": len(seconds) - len(failures),
                "failed": failures,
                "p50_ms": round(1e3 * float(p50), 2),
                "p99_ms": round(1e3 * float(p99), 2),
                "worker_mb": resident(service.worker),
                "first_process_mb": resident(service.process.pid),
            }
        )
    return rows


def growth(rows: list[dict], column: str) -> float:
    """Return the mean of the last quarter less that of the second one."""
    values = np.array([row[column] for row in rows])
    quarter = max(len(values) // 4, 1)
    return round(float(values[-quarter:].mean() - values[quarter : 2 * quarter].mean()), 2)


if __name__ == "__main__":
    given = options(
        __doc__, minutes=60.0, rate=100.0, candidates=1000, connections=4, rows=50_000, each=30.0
    )
    log, bodies = log_of(ELIVE, given.rows, 0), bodies_of(given.candidates)
    with TemporaryDirectory() as place:
        hr.HarmonRank().fit(log, log.schema).save(Path(place) / "model")
        service = Service(Path(place) / "model")
        try:
            clients = Clients(service.port, bodies, given.rate, given.connections)
            try:
                rows = observed(service, clients, given.minutes, given.each)
            finally:
                clients.end()
        finally:
            code = service.end()
    figures = {
        "minutes": rows[-1]["minute"],
        "rate": given.rate,
        "candidates": given.candidates,
        "answered": sum(row["answered"] for row in rows),
        "failed": sum(len(row["failed"]) for row in rows),
        "warnings": [e["event"] for e in service.events if e["level"] != "info"],
        "exit_code": code,
        "worker_growth_mb": growth(rows, "worker_mb"),
        "first_process_growth_mb": growth(rows, "first_process_mb"),
    }
    print(figures)
    write(given.json, {**figures, "over_time": rows})
    sys.exit(1 if figures["failed"] or figures["warnings"] or figures["exit_code"] else 0)
