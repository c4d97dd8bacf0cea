"""Starting an engine: this process, a Ray cluster of this machine, or one that runs already.

A Ray that is started for a command has a folder of its own, which is removed at its end, or by the
next command if the process was killed.
"""

__all__ = ["open_engine", "session_folder"]

import os
import socket
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from harmonrank.engine.engine import Engine, LocalEngine
from harmonrank.support.errors import EngineError, UsageError, shown
from harmonrank.support.extras import import_extra, require_extra
from harmonrank.support.storage.staging import staged
from harmonrank.support.threads import thread_count

_OURS = {
    # Ray would else listen on all interfaces of a machine, for other machines to join.
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_METRICS_COLLECTION": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    # One thread per worker, whatever library it is that counts the cores.
    "OMP_NUM_THREADS": "1",
    "POLARS_MAX_THREADS": "1",
}
_LOOPBACK = "127.0.0.1"
_ANSWER_SECONDS = 10.0


@contextmanager
def session_folder() -> Iterator[Path]:
    """Yield an empty folder, ours alone; those that killed processes have left are removed."""
    # Names of sockets are bounded, so this folder is not below a user's own.
    with staged(Path(tempfile.gettempdir()) / "hr-ray") as folder:
        yield folder


@contextmanager
def open_engine(
    name: Literal["local", "ray"] = "local",
    *,
    workers: int | None = None,
    address: str | None = None,
    verbose: bool = False,
    for_states: bool = False,
) -> Iterator[Engine]:
    """Yield an engine, and close it at the end.

    Without an address, a Ray cluster is started that listens on the loopback interface alone and
    ends with the block. Nobody but this machine can reach it, and nothing of it is left.

    Args:
        name: 'local', or 'ray', which needs the extra `ray`.
        workers: How many calls run at once; of Ray one per core if left out.
        address: Of a cluster that runs: 'auto', 'HOST:PORT' or 'ray://HOST:PORT'. The package must
            be installed on its machines, and they must see the same files.
        verbose: Let Ray and its workers print.
        for_states: Workers are to keep states, as those of a fit do, and make ready for that.
    """
    if name == "local":
        if workers is not None or address is not None:
            raise UsageError("Only Ray has workers and an address; add --engine ray.")
        yield LocalEngine()
        return
    if name != "ray":
        raise UsageError(f"`engine` must be 'local' or 'ray'. Got {shown(name)}.")
    require_extra("ray", who="--engine ray")
    started = _connect(address, verbose) if address else _start(workers or thread_count(), verbose)
    with started, _hushed(verbose):
        from harmonrank.engine.ray_engine import RayEngine

        ready: Literal["calls", "states"] = "states" if for_states else "calls"
        yield RayEngine(workers, eager=None if address else ready)


@contextmanager
def _connect(address: str, verbose: bool) -> Iterator[None]:
    ray = import_extra("ray", who="--engine ray")
    if ray.is_initialized():
        yield
        return
    try:
        _require_answer(address)
        ray.init(address=address, **_voice(verbose))
    except (OSError, ValueError, RuntimeError) as error:
        text = " ".join(str(error).split())[:200].rstrip(".")
        raise EngineError(
            f"There is no Ray cluster at '{address}' ({text}); start one with `ray start --head`, "
            "or leave --address out to start workers on this machine."
        ) from None
    try:
        yield
    finally:
        ray.shutdown()


def _require_answer(address: str) -> None:
    """Ask first whether anyone listens: Ray itself would wait for minutes."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if host and port.isdigit():
        with socket.create_connection((host.strip("[]"), int(port)), timeout=_ANSWER_SECONDS):
            pass


@contextmanager
def _start(workers: int, verbose: bool) -> Iterator[None]:
    with _environment(_OURS):
        # Ray reads the environment when it is imported, and its processes inherit it.
        ray = import_extra("ray", who="--engine ray")
        running = ray.is_initialized()  # by the program that calls us, which goes on with it
    if running:
        yield
        return
    with session_folder() as folder:
        with _environment(_OURS), _alone():
            ray.init(
                num_cpus=workers,
                include_dashboard=False,
                _temp_dir=str(folder),
                **_voice(verbose),
            )
        try:
            _require_loopback(ray)
            yield
        finally:
            ray.shutdown()


@contextmanager
def _changed(place: Any, name: str, value: Any) -> Iterator[None]:
    """Let something of Ray's have another value for a while."""
    before = getattr(place, name)
    setattr(place, name, value)
    try:
        yield
    finally:
        setattr(place, name, before)


def _alone() -> AbstractContextManager[None]:
    """Let a Ray that was imported before know what it would have read in the environment."""
    return _changed(import_module("ray._private.ray_constants"), "ENABLE_RAY_CLUSTER", False)


def _hushed(verbose: bool) -> AbstractContextManager[None]:
    """Keep Ray from printing to standard output what it does about a lost worker."""
    worker, name = import_module("ray._private.worker"), "print_to_stdstream"
    if verbose or not hasattr(worker, name):
        return nullcontext()
    return _changed(worker, name, lambda *_, **__: None)


def _require_loopback(ray: Any) -> None:
    """Refuse to work where others could reach the workers, which run whatever they are sent."""
    if any(node["NodeManagerAddress"] != _LOOPBACK for node in ray.nodes()):
        raise EngineError(
            "Ray would listen beyond this machine, so it was stopped; use the version that "
            "constraints.txt names, or start a cluster yourself and give its --address."
        )


def _voice(verbose: bool) -> dict[str, Any]:
    return {"log_to_driver": verbose, "logging_level": "INFO" if verbose else "ERROR"}


@contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    """Set variables for the processes that are started within."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
