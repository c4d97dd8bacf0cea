"""WebStore: a web server on loopback that serves the files of a folder by ranges of bytes."""

import re
from contextlib import contextmanager, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import urlsplit


class WebStore(ThreadingHTTPServer):
    """Serves a folder, lists what is in it, and counts the bytes that it has sent.

    Args:
        folder: What is served.
        ranges: Whether parts of a file can be asked for.
        query: What must stand behind the question mark of a URL, as a signature does.
    """

    def __init__(self, folder, *, ranges=True, query=""):
        super().__init__(("127.0.0.1", 0), _Answer)
        self.folder, self.ranges, self.query = Path(folder), ranges, query
        self.sent, self.asked = 0, []

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Answer(BaseHTTPRequestHandler):
    def do_HEAD(self):
        self._answer(body=False)

    def do_GET(self):
        self._answer(body=True)

    def log_message(self, *_):
        pass

    def _answer(self, *, body):
        store, asked = self.server, urlsplit(self.path)
        path = store.folder / asked.path.strip("/")
        store.asked.append((self.command, self.path, self.headers.get("Range")))
        if store.query and asked.query != store.query:
            return self._send(HTTPStatus.FORBIDDEN, b"", {}, body)
        if path.is_dir():
            names = "".join(f'<a href="{each.name}">x</a>' for each in sorted(path.iterdir()))
            return self._send(HTTPStatus.OK, names.encode(), {"Content-Type": "text/html"}, body)
        if not path.is_file():
            return self._send(HTTPStatus.NOT_FOUND, b"", {}, body)
        content = path.read_bytes()
        found = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if found is None or not store.ranges:
            more = {"Accept-Ranges": "bytes"} if store.ranges else {}
            return self._send(HTTPStatus.OK, content, more, body)
        low, high = int(found[1]), min(int(found[2]), len(content) - 1)
        more = {"Content-Range": f"bytes {low}-{high}/{len(content)}"}
        return self._send(HTTPStatus.PARTIAL_CONTENT, content[low : high + 1], more, body)

    def _send(self, status, content, headers, body):
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        if body:
            self.server.sent += len(content)
            with suppress(ConnectionError):  # who asked for less has read enough
                self.wfile.write(content)


@contextmanager
def web_store(folder, **rest):
    """Yield a server that answers until the block ends."""
    with WebStore(folder, **rest) as store:
        thread = Thread(target=store.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield store
        finally:
            store.shutdown()
            thread.join()
