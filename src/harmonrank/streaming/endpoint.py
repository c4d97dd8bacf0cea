"""Endpoint: answers GET /metrics on this machine while a stream runs."""

__all__ = ["metrics_endpoint"]

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from harmonrank.support.errors import UsageError
from harmonrank.support.prometheus import CONTENT_TYPE

_HOST = "127.0.0.1"
_PATH = "/metrics"


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
