"""A service of a saved model or a registry, without HTTP or with all its processes."""

import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPSConnection

import numpy as np

from harmonrank.serving import ServeConfig
from harmonrank.serving.application import Application
from harmonrank.serving.counters import Counters
from harmonrank.serving.drift import RecentRows
from harmonrank.serving.http import Request
from harmonrank.serving.live import Live
from harmonrank.serving.routes import Service as Answering
from harmonrank.serving.settings import COUNTERS


def application(target, folder, key=None, **settings):
    """Return the application of a worker, and the events that it reports."""
    folder.mkdir(exist_ok=True)
    config = ServeConfig(str(target), **settings)
    events = []
    live = Live(config, lambda event, facts: events.append((event, facts)))
    counters = Counters(folder / COUNTERS, config.workers)
    model = live.runtime.model
    if config.recalibrate != "off":
        RecentRows.new(
            folder, model.schema, model.fitted.encoder, config.workers, config.sample_rows
        )
    service = Answering(config, live, counters, RecentRows.shared(folder), folder, 0)
    app = Application(service, key, lambda *event: events.append(event))
    app.live, app.events, app.sample, app.counters = live, events, service.sample, counters
    return app


def ask(app, method, path, body=b"", headers=None):
    """Return the status and the JSON of an answer."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    answer = app.answer(Request(method, path, headers or {}, raw))
    return answer.status, json.loads(answer.body) if answer.body[:1] in b"{[" else answer.body


def rank_body(table, k=5, rows=20, **rest):
    """Return a request of the first rows of a table."""
    part = table.head(rows)
    return {
        "scores": {name: part[name].to_list() for name in ("p_buy", "p_like")},
        "context": {"hour": part["hour"].to_list(), "age": part["age"].to_list()},
        "k": k,
        **rest,
    }


class Service:
    """A running `harmonrank serve`."""

    def __init__(self, process, address):
        self.process, self.address = process, address
        self.host, self.port = address.partition("://")[2].rsplit(":", 1)
        self.lines = []
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stderr:
            self.lines.append(line)

    @property
    def events(self):
        return [json.loads(line) for line in self.lines if line.startswith("{")]

    def connect(self, context=None):
        if context is not None:
            return HTTPSConnection(self.host, int(self.port), timeout=60, context=context)
        return HTTPConnection(self.host, int(self.port), timeout=60)

    def ask(self, method, path, body=None, headers=None, connection=None):
        own = connection or self.connect()
        raw = json.dumps(body) if isinstance(body, dict) else body
        own.request(method, path, raw, headers or {})
        answer = own.getresponse()
        content = answer.read()
        if connection is None:
            own.close()
        return answer.status, json.loads(content) if content[:1] in (b"{", b"[") else content


@contextmanager
def serving(target, *options, env=None):
    """Run a service on a free port of this machine; end it in order."""
    command = [sys.executable, "-m", "harmonrank", "serve", str(target), "--port", "0"]
    process = subprocess.Popen(
        [*command, *map(str, options), "--json", "-"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | (env or {}),
    )
    service = None
    try:
        head = "".join(process.stdout.readline() for _ in range(3))
        assert head, process.stderr.read()
        service = Service(process, json.loads(head)["address"])
        yield service
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if service is not None:
            service.reader.join()
        process.stdout.close()
        process.stderr.close()


def order_of(answer):
    return [row["index"] for row in answer["ranked"]]


def expected(model, table, rows=20, k=5, weights=None):
    fused = model.score(table.head(rows), weights=weights)
    best = np.argsort(-fused, kind="stable")[:k]
    return best.tolist(), fused[best].tolist()
