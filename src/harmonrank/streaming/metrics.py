"""The metrics of a stream in the text format of Prometheus, and where they can be asked for."""

__all__ = ["metrics_endpoint", "stream_metrics"]

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from harmonrank.streaming.totals import StreamTotals
from harmonrank.support.errors import UsageError
from harmonrank.support.prometheus import CONTENT_TYPE, Kind, family

_HOST, _PATH = "127.0.0.1", "/metrics"

Values = Mapping[str, float | None]


def stream_metrics(totals: StreamTotals) -> str:
    """Return all metrics; what is not known yet is left out."""
    lines: list[str] = []
    for kind, name, text, label, values in _families(totals):
        known = [
            ({label: of} if label else {}, value)
            for of, value in values.items()
            if value is not None
        ]
        lines += family(kind, f"stream_{name}", text, known)
    return "\n".join([*lines, ""])


def _families(totals: StreamTotals) -> Iterator[tuple[Kind, str, str, str, Values]]:
    """Yield the kind, name and text of each metric, its label and its values by the label."""

    def one(value: float | None) -> Values:
        return {"": value}

    window, moves, watermark = totals.window, totals.moves, totals.watermark
    outcomes = {"published": totals.published, "refused": totals.refused}
    yield "counter", "events_total", "Events that were read.", "", one(totals.events)
    text = "Labelled rows that were learned."
    yield "counter", "learned_rows_total", text, "", one(totals.learned_rows)
    text = "Batches that were learned since the process started."
    yield "counter", "batches_total", text, "", one(totals.batches)
    yield "gauge", "commit", "The newest commit of the state.", "", one(totals.commit)
    text = "Rows that wait to be learned until they have judged a model."
    yield "gauge", "guard_rows", text, "", one(totals.guard_rows)
    text = "Events, or files, that wait in the source."
    yield "gauge", "waiting", text, "", one(totals.waiting)
    yield "gauge", "lag_seconds", "From the newest event to now.", "", one(totals.lag_seconds)
    text = "Of the last batch: joined, scored and learned."
    yield "gauge", "rows_per_second", text, "", one(totals.rows_per_second)
    seconds = None if watermark is None else watermark.timestamp()
    yield "gauge", "watermark_seconds", "The watermark, since 1970.", "", one(seconds)
    text = "Weighted sum of the prequential AUCs."
    yield "gauge", "auc_sum", text, "", one(None if window is None else window.auc_sum)
    text = "Scores whose upstream model was replaced in the last interval."
    yield "gauge", "upstream_replaced", text, "", one(len(totals.replaced))
    text = "Versions that were offered to the registry."
    yield "counter", "versions_total", text, "outcome", outcomes
    yield "counter", "aside_total", "Events set aside.", "reason", totals.aside
    yield "counter", "retries_total", "What was tried again.", "what", totals.retries
    text = "Prequential AUC over the sliding window."
    yield "gauge", "auc", text, "objective", {} if window is None else window.auc
    text = "Population stability index of a score against the last learned batch."
    yield "gauge", "psi", text, "score", {score: move.psi for score, move in moves.items()}
    text = "Change of a score's median, in standard deviations."
    yield "gauge", "drift_offset", text, "score", {name: m.offset for name, m in moves.items()}
    text = "Spread of a score over that of the fit."
    yield "gauge", "drift_scale", text, "score", {name: m.scale for name, m in moves.items()}


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
