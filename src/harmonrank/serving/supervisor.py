"""Supervisor: the first process of a service; it starts workers, replaces them, and stops them."""

__all__ = ["serve"]

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any, Self

from harmonrank.serving import settings
from harmonrank.serving.settings import ServeConfig, log_event
from harmonrank.support.errors import HarmonRankError, UsageError
from harmonrank.support.extras import require_extra
from harmonrank.support.storage.files import write_json
from harmonrank.support.threads import thread_count

if TYPE_CHECKING:
    import numpy as np

    from harmonrank.serving.counters import Counters
    from harmonrank.serving.drift import DriftWatch

_TICK = 0.05
# A worker that has answered is replaced at once; one that never came up after a pause that doubles.
_PAUSE = 0.1
_MOST_FAILURES = 5
_BACKLOG = 2048
_LOW = 10  # How nice the measurement of drift is to what else runs.
_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def serve(
    config: ServeConfig,
    *,
    key: str | None = None,
    anonymous: bool = False,
    on_ready: Callable[[str], None] = lambda _: None,
) -> None:
    """Serve until SIGTERM or SIGINT.

    Args:
        config: How.
        key: The API key, if there is one.
        anonymous: Whether other machines may ask without a key.
        on_ready: Called with the address when all workers answer.
    """
    for package in ("uvicorn", "uvloop", "httptools"):
        require_extra(package, who="harmonrank serve")
    settings.check_key(key)
    settings.check_binding(config.host, key=bool(key), anonymous=anonymous)
    _check_tls(config)
    with _listening(config) as listener:
        folder, watch = Path(mkdtemp(prefix="harmonrank-serve-")), None
        try:
            write_json(folder / settings.CONFIG, asdict(config))
            # Workers load while this process does.
            with _Workers(folder, listener, config, key) as workers:
                counters, watch = _state(folder, config)
                address = _address(config, listener)
                workers.run(lambda: on_ready(address), counters, watch)
            log_event("stopped", {})
        finally:
            if watch is None or not watch.alarmed:
                shutil.rmtree(folder, ignore_errors=True)


def _state(folder: Path, config: ServeConfig) -> "tuple[Counters, DriftWatch | None]":
    """Check what is to be served, and make what the workers share."""
    from harmonrank.registry.target import load_target, registry_of
    from harmonrank.serving.counters import Counters
    from harmonrank.serving.drift import DriftWatch, RecentRows
    from harmonrank.serving.live import runtime_of

    if config.recalibrate == "auto" and registry_of(config.target) is None:
        raise UsageError(
            "--recalibrate auto publishes new versions, so it needs a registry; make one with "
            "`harmonrank registry init`."
        )
    model, version = load_target(config.target)
    runtime_of(config, model, version)
    counters, watch = Counters(folder / settings.COUNTERS, config.workers), None
    if config.recalibrate != "off":
        shape = config.workers, config.sample_rows
        sample = RecentRows.new(folder, model.schema, model.fitted.encoder, *shape)
        watch = DriftWatch(config, folder, sample, log_event)
    (folder / settings.STATE).touch()
    return counters, watch


def _address(config: ServeConfig, listener: socket.socket) -> str:
    scheme = "http" if config.tls_cert is None else "https"
    host, port = listener.getsockname()[:2]
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"


def _check_tls(config: ServeConfig) -> None:
    if (config.tls_cert is None) != (config.tls_key is None):
        raise UsageError("TLS needs both files: --tls-cert and --tls-key.")
    if config.tls_cert is None or config.tls_key is None:
        return
    import ssl

    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(config.tls_cert, config.tls_key)
    except (OSError, ssl.SSLError) as error:
        reason = error.strerror or str(error)
        raise UsageError(f"--tls-cert and --tls-key cannot be used: {reason}.") from None


def _listening(config: ServeConfig) -> socket.socket:
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((config.host, config.port))
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise UsageError(
            f"Port {config.port} of {config.host} cannot be used: {error.strerror or error}; "
            "choose another with --host and --port."
        ) from None
    return listener


@dataclass
class _Worker:
    """A worker by its number, and the process that it is now.

    Attributes:
        failures: How many processes in a row ended before they answered anything.
        due: When the next process may start, once this one has ended.
    """

    number: int
    process: subprocess.Popen[bytes]
    failures: int = 0
    due: float | None = None


class _Workers:
    """The worker processes; all listen on one socket, so that none of its requests is lost."""

    def __init__(
        self, folder: Path, listener: socket.socket, config: ServeConfig, key: str | None
    ) -> None:
        self._folder, self._listener, self._config = folder, listener, config
        each = max(1, thread_count() // config.workers)
        self._environment = os.environ | {
            "OMP_NUM_THREADS": str(each),
            "POLARS_MAX_THREADS": str(each),
        }
        self._environment.pop(settings.KEY, None)
        self._environment |= {} if key is None else {settings.KEY: key}
        self._workers: list[_Worker] = []
        self._stop = threading.Event()

    def __enter__(self) -> Self:
        """Start the workers."""
        self._before = {s: signal.signal(s, lambda *_: self._stop.set()) for s in _SIGNALS}
        for number in range(self._config.workers):
            self._workers.append(_Worker(number, self._started(number)))
        return self

    def __exit__(self, *_: Any) -> None:
        """End them."""
        self._stop.set()
        self._end()
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def run(
        self, on_ready: Callable[[], None], counters: "Counters", watch: "DriftWatch | None"
    ) -> None:
        """Keep workers running until a signal comes."""
        for worker in self._workers:
            _log_started(worker)
        threading.Thread(target=self._look, args=(watch,), daemon=True).start()
        ready, announced = counters.records["ready"], False
        while not self._stop.is_set():
            for worker in self._workers:
                self._replace(worker, ready)
            if all(worker.failures >= _MOST_FAILURES for worker in self._workers):
                raise HarmonRankError("Workers end as soon as they start; the log says why.")
            if not announced and bool((ready == 1).all()):
                announced = True
                on_ready()
            self._stop.wait(_TICK)

    def _started(self, number: int) -> subprocess.Popen[bytes]:
        descriptor = self._listener.fileno()
        arguments = [str(self._folder), str(number), str(descriptor), str(os.getpid())]
        return subprocess.Popen(
            [sys.executable, "-m", "harmonrank.serving.worker", *arguments],
            env=self._environment,
            pass_fds=[descriptor],
            # A key that is pressed in the terminal is for this process, which ends them in order.
            process_group=0,
        )

    def _replace(self, worker: _Worker, ready: "np.ndarray") -> None:
        """Start another process where one has ended; later and later where none has come up."""
        if worker.process.poll() is None:
            return
        now = time.monotonic()
        if worker.due is None:
            facts = {"worker": worker.number, "process": worker.process.pid}
            log_event("worker died", facts | {"code": worker.process.returncode})
            worker.failures = 0 if ready[worker.number] else worker.failures + 1
            ready[worker.number] = 0
            worker.due = now + _PAUSE * (2 ** min(worker.failures, _MOST_FAILURES) - 1)
        if now >= worker.due:
            worker.process, worker.due = self._started(worker.number), None
            _log_started(worker)

    def _end(self) -> None:
        for worker in self._workers:
            worker.process.terminate()
        deadline = time.monotonic() + self._config.grace + 2
        for worker in self._workers:
            try:
                worker.process.wait(max(deadline - time.monotonic(), 0.1))
            except subprocess.TimeoutExpired:
                worker.process.kill()
                worker.process.wait()

    def _look(self, watch: "DriftWatch | None") -> None:
        with suppress(OSError, AttributeError):  # Requests go first, where threads can tell.
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _LOW)
        while watch is not None and not self._stop.wait(self._config.drift_seconds):
            try:
                watch.look()
            except Exception as error:  # Whatever it is, the next look may go well.
                reason = f"{type(error).__name__}: {error}"
                log_event("drift not measured", {"reason": reason})


def _log_started(worker: _Worker) -> None:
    log_event("worker started", {"worker": worker.number, "process": worker.process.pid})
