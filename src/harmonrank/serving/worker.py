"""Worker: a process that answers requests on the socket that it was given."""

__all__ = ["main"]

import asyncio
import os
import socket
import ssl
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import uvicorn

from harmonrank.data.files import read_json
from harmonrank.serving.application import Application
from harmonrank.serving.asgi import Asgi
from harmonrank.serving.live import Live
from harmonrank.serving.logs import log_event
from harmonrank.serving.sample import Sample
from harmonrank.serving.service import CONFIG, COUNTERS, KEY, sample_form
from harmonrank.serving.settings import ServeConfig, decode_config
from harmonrank.serving.shared import Counters, Slot


def main(folder: Path, worker: int, descriptor: int) -> None:
    """Serve until told to stop, or until the service's first process is gone.

    Args:
        folder: What the processes of the service share.
        worker: The number of this one.
        descriptor: Of the socket that all workers listen on.
    """
    config = decode_config(read_json(folder / CONFIG))
    counters = Counters(folder / COUNTERS)
    slot = Slot(counters, worker)

    def on_event(event: str, facts: Mapping[str, Any]) -> None:
        slot.add("reloads", event == "reloaded")
        slot.add("refused_reloads", event == "reload refused")
        log_event(event, facts)

    live = Live(config, on_event)
    form = sample_form(folder)
    sample = None if form is None else Sample(folder, *form)
    key = os.environ.pop(KEY, None)
    application = Application(config, live, counters, sample, folder, worker, key, on_event)
    server = uvicorn.Server(_settings(config, Asgi(application, config, slot, on_event)))
    for field, value in (("waiting", 0), ("pid", os.getpid()), ("ready", 1)):
        slot.set(field, value)
    loop = server.config.get_loop_factory()
    with socket.socket(fileno=descriptor) as listener, asyncio.Runner(loop_factory=loop) as runner:
        runner.run(_serve(server, listener, live, config))
    slot.set("ready", 0)


def _settings(config: ServeConfig, application: Asgi) -> uvicorn.Config:
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
    server: uvicorn.Server, listener: socket.socket, live: Live, config: ServeConfig
) -> None:
    watch = asyncio.create_task(_watch(server, live, config, os.getppid()))
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
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
