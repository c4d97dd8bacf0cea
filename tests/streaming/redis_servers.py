"""Redis servers for tests: real ones, on a free port of the loopback, with an append-only file."""

import os
import shutil
import socket
import subprocess
import time

import pytest

PATIENCE = 60.0


class RedisServer:
    """A server that can be killed and started again with the same data."""

    def __init__(self, folder):
        self._folder, self._process = folder, None
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]

    def address(self, stream="events", **options):
        query = "&".join(f"{name}={value}" for name, value in options.items())
        return f"redis://127.0.0.1:{self.port}/0/{stream}?{query}"

    def client(self):
        import redis

        return redis.Redis("127.0.0.1", self.port, protocol=2)

    def start(self):
        import redis

        command = ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1"]
        command += ["--dir", str(self._folder), "--save", "", "--appendonly", "yes"]
        command += ["--appendfsync", "always", "--daemonize", "no"]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        deadline = time.monotonic() + PATIENCE
        with self.client() as client:
            while True:
                try:
                    client.ping()
                    return
                except redis.exceptions.ConnectionError:
                    assert self._process.poll() is None, (self._folder / "log").read_text()
                    assert time.monotonic() < deadline, "the server does not answer"

    def kill(self):
        """End it as a power cut would."""
        self._process.kill()
        self._process.wait()

    def end(self):
        if self._process is not None and self._process.poll() is None:
            self.kill()


def need_redis_server():
    """Skip where there is no server; in CI there must be one."""
    if shutil.which("redis-server") is None and os.environ.get("CI") != "true":
        pytest.skip("redis-server is not installed")
