"""The metrics of a stream: gathered from its events, in the text format of Prometheus."""

__all__ = ["StreamTotals", "metrics_endpoint", "stream_metrics"]

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from harmonrank.streaming.loop_events import (
    BatchLearned,
    EventsRead,
    LoopEvent,
    Publication,
    QualityFacts,
    RetryPlanned,
    ScoreMove,
    StreamStarted,
)
from harmonrank.support.errors import UsageError
from harmonrank.support.prometheus import CONTENT_TYPE, Kind, family

_HOST, _PATH = "127.0.0.1", "/metrics"
_NUMBERS = (
    ("events_total", "Events that were read.", "events"),
    ("learned_rows_total", "Labelled rows that were learned.", "learned_rows"),
    ("batches_total", "Batches that were learned since the process started.", "batches"),
    ("commit", "The newest commit of the state.", "commit"),
    ("guard_rows", "Rows that wait to be learned until they have judged a model.", "guard_rows"),
    ("waiting", "Events, or files, that wait in the source.", "waiting"),
    ("lag_seconds", "From the newest event to now.", "lag_seconds"),
    ("rows_per_second", "Of the last batch: joined, scored and learned.", "rows_per_second"),
)
"""The names and texts of single numbers, and what totals call them."""


class StreamTotals:
    """The newest of everything; a terminal and the metrics show it.

    What events call by the name of an attribute is kept under that name.

    Attributes:
        retries: How often each of source, registry and state was tried again.
        trouble: What is being tried again; None if all goes well.
    """

    def __init__(self) -> None:
        self.events = self.learned_rows = self.batches = 0
        self.published = self.refused = self.commit = 0
        self.waiting: int | None = None
        self.watermark: datetime | None = None
        self.lag_seconds: float | None = None
        self.rows_per_second: float | None = None
        self.guard_rows = 0
        self.aside: dict[str, int] = {}
        self.window: QualityFacts | None = None
        self.moves: dict[str, ScoreMove] = {}
        self.replaced: list[str] = []
        self.version: Publication | None = None
        self.held: str | None = None
        self.retries: Counter[str] = Counter()
        self.trouble: RetryPlanned | None = None

    def event(self, event: LoopEvent) -> None:
        """Take in an event."""
        if isinstance(event, RetryPlanned):
            self.retries[event.what] += 1
            self.trouble = event
            return
        if not isinstance(event, StreamStarted):
            self.trouble = None
        last = self.version
        for name in event.__struct_fields__:
            if name in vars(self):
                setattr(self, name, getattr(event, name))
        self.batches += isinstance(event, BatchLearned)
        if isinstance(event, EventsRead):
            self.events = event.total  # its `events` are those of a chunk
        made, self.version = getattr(event, "version", None), self.version or last
        if made is not None:
            self.published += made.refused is None
            self.refused += made.refused is not None


def stream_metrics(totals: StreamTotals) -> str:
    """Return all metrics; what is not known yet is left out."""
    lines: list[str] = []
    for name, text, label, values in _families(totals):
        known = [({label: of} if label else {}, v) for of, v in values.items() if v is not None]
        kind: Kind = "counter" if name.endswith("_total") else "gauge"
        lines += family(kind, f"stream_{name}", text, known)
    return "\n".join([*lines, ""])


def _families(totals: StreamTotals) -> Iterator[tuple[str, str, str, Mapping[str, float | None]]]:
    """Yield the name and text of each metric, its label and its values by the label."""
    window, moves, watermark = totals.window, totals.moves, totals.watermark
    for name, text, attribute in _NUMBERS:
        yield name, text, "", {"": getattr(totals, attribute)}
    seconds = None if watermark is None else watermark.timestamp()
    yield "watermark_seconds", "The watermark, since 1970.", "", {"": seconds}
    within = None if window is None else window.requests
    request_sum = None if within is None else within.auc_sum
    yield "request_auc_sum", "Weighted sum of the AUCs within requests.", "", {"": request_sum}
    auc_sum = None if window is None else window.auc_sum
    yield "auc_sum", "Weighted sum of the AUCs over all rows.", "", {"": auc_sum}
    text = "Scores whose upstream model was replaced in the last interval."
    yield "upstream_replaced", text, "", {"": len(totals.replaced)}
    outcomes = {"published": totals.published, "refused": totals.refused}
    yield "versions_total", "Versions that were offered to the registry.", "outcome", outcomes
    yield "aside_total", "Events set aside.", "reason", totals.aside
    yield "retries_total", "What was tried again.", "what", totals.retries
    text = "Prequential AUC of the sliding window, within requests."
    yield "request_auc", text, "objective", {} if within is None else within.auc
    text = "Prequential AUC of the sliding window, over all rows."
    yield "auc", text, "objective", {} if window is None else window.auc
    text = "Population stability index of a score against the last learned batch."
    yield "psi", text, "score", {name: move.psi for name, move in moves.items()}
    text = "Change of a score's median, in standard deviations."
    yield "drift_offset", text, "score", {name: move.offset for name, move in moves.items()}
    text = "Spread of a score over that of the fit."
    yield "drift_scale", text, "score", {name: move.scale for name, move in moves.items()}


@contextmanager
def metrics_endpoint(port: int, text: Callable[[], str]) -> Iterator[str]:
    """Answer with a text for as long as the block lasts, and yield the address.

    Args:
        port: 0 takes any that is free. Other machines cannot ask.
        text: Called for every request, in a thread of its own.

    Raises:
        UsageError: The port is taken.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path.partition("?")[0] != _PATH:
                self.send_error(404, f"Ask for {_PATH}")
                return
            body = text().encode()
            self.send_response(200)
            self.send_header("content-type", CONTENT_TYPE)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Say nothing: standard error is the stream's own."""

    try:
        server = ThreadingHTTPServer((_HOST, port), Handler)
    except OSError as error:
        reason = error.strerror or error
        raise UsageError(
            f"Port {port} cannot be used for --metrics: {reason}; choose another."
        ) from None
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True)
    thread.start()
    try:
        yield f"http://{_HOST}:{server.server_port}{_PATH}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
