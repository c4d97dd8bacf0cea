"""Worker: a process that answers requests on the socket that it was given."""

__all__ = ["main"]

import asyncio
import gc
import os
import socket
import ssl
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import uvicorn

from harmonrank.serving import settings
from harmonrank.serving.application import Application
from harmonrank.serving.counters import Counters, Slot
from harmonrank.serving.drift import RecentRows
from harmonrank.serving.live import Live
from harmonrank.serving.routes import Service
from harmonrank.serving.settings import OnEvent, ServeConfig, log_event
from harmonrank.support.errors import HarmonRankError
from harmonrank.support.storage.files import read_json

_LOOK = 0.005


def main(folder: Path, worker: int, descriptor: int, parent: int) -> None:
    """Serve until told to stop, or until the service's first process is gone.

    Args:
        folder: What the processes of the service share.
        worker: The number of this one.
        descriptor: Of the socket that all workers listen on.
        parent: The service's first process.
    """
    config = read_json(folder / settings.CONFIG, ServeConfig)

    def on_event(event: str, facts: Mapping[str, Any]) -> None:
        slot.add("reloads", event == "reloaded")
        slot.add("refused_reloads", event == "reload refused")
        log_event(event, facts)

    live = _loaded(config, on_event, folder, parent)
    counters = Counters(folder / settings.COUNTERS)
    slot = Slot(counters, worker)
    service = Service(config, live, counters, RecentRows.shared(folder), folder, worker)
    application = Application(service, os.environ.pop(settings.KEY, None), on_event)
    server = _Server(_settings(config, application), slot)
    slot.set("waiting", 0)
    # What is loaded by now stays: no request waits while the collector looks through it.
    gc.collect()
    gc.freeze()
    loop = server.config.get_loop_factory()
    with socket.socket(fileno=descriptor) as listener, asyncio.Runner(loop_factory=loop) as runner:
        runner.run(_serve(server, listener, live, config, parent))
    slot.set("ready", 0)


class _Server(uvicorn.Server):
    """A server that counts as ready when it listens, and no sooner."""

    def __init__(self, config: uvicorn.Config, slot: Slot) -> None:
        super().__init__(config)
        self._slot = slot

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._slot.set("ready", 1)


def _loaded(config: ServeConfig, on_event: OnEvent, folder: Path, parent: int) -> Live:
    """Load what is served while the first process does so too, and wait until it has.

    A model that cannot be served is reported there, to who started the service.
    """
    try:
        live = Live(config, on_event)
    except HarmonRankError as error:
        _wait_for(folder / settings.STATE, parent)
        log_event("worker not started", {"reason": str(error)})
        sys.exit(1)
    _wait_for(folder / settings.STATE, parent)
    return live


def _wait_for(file: Path, parent: int) -> None:
    """Wait until a file is there; end this process if the one that writes it has ended."""
    while not file.exists():
        if os.getppid() != parent:
            sys.exit(1)
        time.sleep(_LOOK)


def _settings(config: ServeConfig, application: Application) -> uvicorn.Config:
    return uvicorn.Config(
        application,
        http="httptools",
        loop="uvloop",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=65,
        timeout_graceful_shutdown=int(config.grace) or 1,
        ssl_certfile=config.tls_cert,
        ssl_keyfile=config.tls_key,
        ssl_version=ssl.PROTOCOL_TLS_SERVER,
    )


async def _serve(
    server: uvicorn.Server, listener: socket.socket, live: Live, config: ServeConfig, parent: int
) -> None:
    watch = asyncio.create_task(_watch(server, live, config, parent))
    await server.serve(sockets=[listener])
    watch.cancel()


async def _watch(server: uvicorn.Server, live: Live, config: ServeConfig, parent: int) -> None:
    """Look for a new version, and whether the service's first process is still there."""
    while not server.should_exit:
        await asyncio.sleep(config.poll_seconds)
        # In a thread: requests are answered while a version is loaded and warmed up.
        await asyncio.to_thread(live.refresh)
        if os.getppid() != parent:
            server.should_exit = True


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
