"""WebStore: a server on loopback of the files of a folder, as those of the web and of S3 are."""

import re
from contextlib import contextmanager, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import parse_qs, urlsplit


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
            return self._send(HTTPStatus.OK, self._listed(path, asked.query), {}, body)
        if not path.is_file():
            return self._send(HTTPStatus.NOT_FOUND, b"", {}, body)
        content = path.read_bytes()
        span = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        if span is None or not store.ranges:
            more = {"Accept-Ranges": "bytes"} if store.ranges else {}
            return self._send(HTTPStatus.OK, content, more, body)
        # A range without a beginning is of so many bytes at the end.
        low = int(span[1]) if span[1] else max(len(content) - int(span[2]), 0)
        high = min(int(span[2]), len(content) - 1) if span[1] and span[2] else len(content) - 1
        more = {"Content-Range": f"bytes {low}-{high}/{len(content)}"}
        return self._send(HTTPStatus.PARTIAL_CONTENT, content[low : high + 1], more, body)

    def _listed(self, bucket, query):
        """Return what a bucket of S3 says that it holds."""
        prefix = parse_qs(query).get("prefix", [""])[0]
        files = sorted(each for each in bucket.rglob("*") if each.is_file())
        entries = [(each.relative_to(bucket).as_posix(), each.stat().st_size) for each in files]
        contents = "".join(
            f"<Contents><Key>{key}</Key><Size>{size}</Size>"
            "<LastModified>2026-11-01T00:00:00.000Z</LastModified></Contents>"
            for key, size in entries
            if key.startswith(prefix)
        )
        return f"<ListBucketResult>{contents}</ListBucketResult>".encode()

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
def bucket_of(folder, monkeypatch):
    """Yield the URL of a folder as a bucket of S3, and the server behind it."""
    with web_store(folder.parent) as store:
        for name, value in {
            "AWS_ENDPOINT_URL": store.url,
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "word",
        }.items():
            monkeypatch.setenv(name, value)
        yield f"s3://{folder.name}", store


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
