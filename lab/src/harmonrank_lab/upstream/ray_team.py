"""RayTeam: workers that Ray Train starts at once, and starts again, all of them, if one is lost.

Ray Train places the workers, notices which are lost and restarts all. Arrays go between them by
Gloo, which listens on the address that Ray itself has on a machine; what is kept on the way is up
to the work, as nothing of Ray's own checkpoints, which it would unpickle, is used.
"""

__all__ = ["run_in_parallel"]

import os
import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import ray
import torch
from ray.train import (
    FailureConfig,
    RunConfig,
    ScalingConfig,
    TrainingFailedError,
    get_context,
)
from ray.train.collective import broadcast_from_rank_zero
from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer

from harmonrank.support import errors
from harmonrank.support.errors import EngineError, HarmonRankError
from harmonrank.support.threads import limited_threads
from harmonrank_lab.upstream.team import Alone, Team

_RETRIES = 16
_PATIENCE = timedelta(minutes=30)
"""How long a worker waits for the others, one of which may be reading or saving."""

_REFUSAL = "refusal.json"
_OURS = {
    # Files are named as this process names them, so workers stay in its folder.
    "RAY_CHDIR_TO_TRIAL_DIR": "0",
    "RAY_TRAIN_METRICS_ENABLED": "0",
    "RAY_TRAIN_HEALTH_CHECK_INTERVAL_S": "0.5",
    # A process of its own that would announce what is noticed anyway when it happens.
    "RAY_TRAIN_ENABLE_PREEMPTION_WATCHER": "0",
    # On a busy machine several processes at once load their libraries for longer than a minute.
    "RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S": "600",
}


def run_in_parallel(
    workers: int, function: Callable[..., Any], folder: Path, given: tuple[Any, ...]
) -> Any:
    """Return what `function(team, *given)` returns on the first of so many workers.

    Args:
        workers: How many run it at once.
        function: One that can be imported. It is called again from the start if a worker is lost.
        folder: For what Ray Train writes meanwhile, seen by all machines; removed at the end.
        given: What all are given.
    """
    shutil.rmtree(folder, ignore_errors=True)  # of a run that was killed
    folder.mkdir(parents=True)
    trainer = DataParallelTrainer(
        partial(_work, function, folder.absolute(), given),
        scaling_config=ScalingConfig(num_workers=workers, resources_per_worker={"CPU": 1}),
        run_config=RunConfig(
            name="run",
            storage_path=str(folder.absolute()),
            failure_config=FailureConfig(max_failures=_RETRIES),
        ),
    )
    try:
        with _environment():
            refusal, value = _waited(trainer.fit).return_value
    except TrainingFailedError as error:
        text = " ".join(str(error).split())[:200]
        raise EngineError(
            f"The Ray cluster lost workers more often than {_RETRIES} times ({text}); repeat the "
            "command, which goes on from its last checkpoint."
        ) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if refusal is not None:
        raise refusal.error()
    return value


def _waited(work: Callable[[], Any]) -> Any:
    """Return the result of a call on another thread: Ray Train would take Ctrl-C for itself."""
    found: list[Any] = []

    def run() -> None:
        try:
            found.extend((work(), None))
        except BaseException as error:
            found.extend((None, error))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join()
    value, error = found
    if error is not None:
        raise error
    return value


class _Refusal(msgspec.Struct):
    """An error of our own that another attempt would meet again."""

    kind: str
    text: str

    def error(self) -> HarmonRankError:
        """Return the error."""
        known = getattr(errors, self.kind, HarmonRankError)
        found: HarmonRankError = known(self.text)
        return found


def _work(function: Callable[..., Any], folder: Path, given: tuple[Any, ...]) -> Any:
    """Run the function on a worker; return a refusal of it, if any, and its value."""
    refusal = folder / _REFUSAL
    rank = get_context().get_world_rank()
    if broadcast_from_rank_zero(refusal.is_file() if rank == 0 else None):
        return msgspec.json.decode(refusal.read_bytes(), type=_Refusal), None
    with limited_threads(1):
        torch.set_num_threads(1)
        team = _joined()
        try:
            return None, function(team, *given)
        except HarmonRankError as error:
            # The others wait for this worker in vain: all are started again, and find this.
            found = msgspec.json.encode(_Refusal(type(error).__name__, str(error)))
            partial_file = refusal.with_suffix(f".{rank}")
            partial_file.write_bytes(found)
            partial_file.replace(refusal)
            raise


def _joined() -> Team:
    """Meet the other workers."""
    rank, size = get_context().get_world_rank(), get_context().get_world_size()
    if size == 1:
        return Alone()
    torch_group: Any = import_module("torch.distributed")
    mine: str = ray.util.get_node_ip_address()  # type: ignore[no-untyped-call]
    door = socket.create_server((mine, 0)) if rank == 0 else None
    host, port = broadcast_from_rank_zero(door and door.getsockname()[:2])
    # Left alone, the store would listen on all interfaces of the machine, and Gloo on another.
    listening = None if door is None else door.detach()
    store = torch_group.TCPStore(
        host, port, size, rank == 0, timeout=_PATIENCE, master_listen_fd=listening
    )
    gloo = torch_group.ProcessGroupGloo
    options = gloo._Options()
    options._devices = [gloo.create_device(hostname=mine)]
    options._timeout = _PATIENCE
    return RayTeam(rank, size, gloo(store, rank, size, options))


class RayTeam:
    """Workers that exchange arrays by Gloo."""

    def __init__(self, rank: int, size: int, group: Any) -> None:
        self.rank, self.size, self._group = rank, size, group

    def gathered(self, array: np.ndarray) -> list[np.ndarray]:
        """Return the arrays of all, by rank."""
        own = np.ascontiguousarray(array)
        lengths = [int(n) for n in self._exchanged(torch.tensor([own.nbytes]))]
        padded = torch.zeros(max(lengths), dtype=torch.uint8)
        padded[: own.nbytes] = torch.from_numpy(own.reshape(-1).view(np.uint8))
        return [
            found.numpy()[:length].view(own.dtype).reshape(-1, *own.shape[1:])
            for found, length in zip(self._exchanged(padded), lengths, strict=True)
        ]

    def _exchanged(self, tensor: torch.Tensor) -> list[torch.Tensor]:
        found = [torch.empty_like(tensor) for _ in range(self.size)]
        if tensor.numel():
            self._group.allgather([found], [tensor]).wait()
        return found


@contextmanager
def _environment() -> Iterator[None]:
    """Set what Ray Train reads in the environment, unless someone has."""
    mine = {name: value for name, value in _OURS.items() if name not in os.environ}
    os.environ.update(mine)
    try:
        yield
    finally:
        for name in mine:
            del os.environ[name]
