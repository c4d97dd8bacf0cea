"""The load that services are measured with."""

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from harmonrank_lab.bench._child import Load, send_load

REQUEST = b"POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"


@pytest.fixture
def server():
    """Return a server that counts, and says 400 to every fifth request."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            self.server.count += 1
            self.send_response(400 if self.server.count % 5 == 0 else 200)
            self.send_header("Content-Length", "3")
            self.end_headers()
            self.wfile.write(b"abc")

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.count = 0
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def load_of(server, tmp_path, **rest):
    (tmp_path / "request").write_bytes(REQUEST)
    return Load(server.server_port, str(tmp_path / "request"), connections=1, **rest)


def test_it_ends_after_so_many_requests_and_counts_failures(server, tmp_path):
    load = send_load(load_of(server, tmp_path, seconds=60, most=20))
    assert (load.answered, load.failed, server.count) == (20, 4, 20)
    assert 0 < load.p50 <= load.p99


def test_it_ends_after_so_long_and_keeps_to_its_rate(server, tmp_path):
    load = send_load(load_of(server, tmp_path, seconds=0.5, rate=20))
    assert 1 <= load.answered <= 10
    assert load.answered == server.count
