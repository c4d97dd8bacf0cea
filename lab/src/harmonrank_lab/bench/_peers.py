"""Peers: packages that do the same work, where they are installed."""

__all__ = ["compiled", "on_one_thread", "onnx_runtime", "peer"]

import contextlib
import io
import logging
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from harmonrank_lab.bench._result import Work

Arrays = tuple[np.ndarray, ...]


def peer(name: str) -> Any | None:
    """Import a package; None if it is not there or cannot be loaded.

    >>> peer("a_package_that_nobody_wrote") is None
    True
    """
    with _hushed():
        try:
            return import_module(name)
        except Exception:
            # A package that cannot be imported cannot be measured, whatever its reason.
            return None


def on_one_thread(work: Work) -> Work:
    """Return the work with PyTorch kept to one thread.

    On a busy machine its threads wait for each other, and one of them alone is faster.
    """

    def run() -> None:
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            work()
        finally:
            torch.set_num_threads(threads)

    return run


def compiled(network: nn.Module, example: tuple[Tensor, ...]) -> nn.Module | None:
    """Return the network by torch.compile; None where there is no compiler."""
    with _hushed():
        try:
            torch._dynamo.reset()
            fast = torch.compile(network)
            fast(*example)
        except Exception:
            return None
    assert isinstance(fast, nn.Module)
    return fast


def onnx_runtime(
    network: nn.Module, example: tuple[Tensor, ...]
) -> Callable[[Arrays], np.ndarray] | None:
    """Return a function that runs the exported network in ONNX Runtime, if it is installed."""
    runtime = peer("onnxruntime")
    if runtime is None or peer("onnx") is None or peer("onnxscript") is None:
        return None
    with TemporaryDirectory() as folder, _hushed():
        path = Path(folder) / "network.onnx"
        try:
            _export(network, example, path)
            session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        except Exception:
            return None
    names = [entry.name for entry in session.get_inputs()]

    def run(arrays: Arrays) -> np.ndarray:
        fused: np.ndarray = session.run(None, dict(zip(names, arrays, strict=True)))[0]
        return fused

    return run


def _export(network: nn.Module, example: tuple[Tensor, ...], path: Path) -> None:
    rows = torch.export.Dim("rows", min=2)
    shapes = tuple({0: rows} for _ in example)
    program = torch.onnx.export(network, example, dynamo=True, dynamic_shapes=shapes, verbose=False)
    assert program is not None
    program.save(str(path))


@contextlib.contextmanager
def _hushed() -> Iterator[None]:
    """Keep what peers print and warn of away from the tables."""
    disabled = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(disabled)
