"""Checkpoint: the whole state of a training run in one file, from which it can go on."""

__all__ = ["Checkpoint", "Progress"]

import math
import re
from dataclasses import asdict, dataclass, field
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import msgspec
import torch
from msgspec import Meta
from torch import Tensor, nn

from harmonrank.support.errors import DataError, ModelFileError
from harmonrank.support.storage.arrays import (
    Array,
    array_header,
    array_names,
    digest,
    read_arrays,
    write_arrays,
)
from harmonrank.support.storage.decoding import decode, decode_json
from harmonrank.support.storage.files import new_file, to_json

Whole = Annotated[int, Meta(ge=0, le=2**53)]

_OPTIMIZER, _CHECKSUM = "optimizer/", "sha256"


@dataclass
class Progress:
    """How far a run has come. Epochs and steps count from 0; sums are of the current epoch.

    Attributes:
        history: Mean loss, validation result and share of items with a gradient of each finished
            epoch.
    """

    epoch: Whole = 0
    step: Whole = 0
    loss_sum: float = 0.0
    share_sum: float = 0.0
    shares: Whole = 0
    best_epoch: Whole = 0
    best_valid: float = float("-inf")
    history: list[tuple[float, float, float | None]] = field(default_factory=list)

    @property
    def since_best(self) -> int:
        """Finished epochs after the best one."""
        return self.epoch - self.best_epoch - 1 if self.epoch else 0

    @property
    def mean_loss(self) -> float:
        """The mean loss of this epoch's steps."""
        return self.loss_sum / max(self.step, 1)

    @property
    def mean_share(self) -> float | None:
        """The mean share of items with a gradient, if the loss reports it."""
        return self.share_sum / self.shares if self.shares else None

    def add(self, loss: float, share: float | None) -> None:
        """Count one step."""
        self.step += 1
        self.loss_sum += loss
        if share is not None:
            self.share_sum += share
            self.shares += 1

    def next_epoch(self) -> None:
        """Begin the next epoch."""
        self.epoch += 1
        self.step, self.loss_sum, self.share_sum, self.shares = 0, 0.0, 0.0, 0


class Checkpoint:
    """Saves and loads network, optimiser and the best weights so far as one safetensors file."""

    def __init__(self, network: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        self._network, self._optimizer = network, optimizer
        self._best = self._copy()

    def _copy(self) -> dict[str, Tensor]:
        return {name: value.detach().clone() for name, value in self._network.state_dict().items()}

    def keep_best(self) -> None:
        """Remember the present weights as the best."""
        self._best = self._copy()

    def restore_best(self) -> None:
        """Give the network its best weights."""
        self._network.load_state_dict(self._best)

    def save(self, path: Path, progress: Progress, fingerprint: str) -> None:
        """Write all state with its checksum; the old checkpoint stays until it is complete."""
        tensors = {f"now/{name}": value for name, value in self._network.state_dict().items()}
        tensors |= {f"best/{name}": value for name, value in self._best.items()}
        for index, values in self._optimizer.state_dict()["state"].items():
            tensors |= {f"{_OPTIMIZER}{index}/{name}": value for name, value in values.items()}
        arrays = {name: value.detach().cpu().numpy() for name, value in tensors.items()}
        header = {"progress": to_json(asdict(progress)), "fingerprint": fingerprint}
        header[_CHECKSUM] = digest(arrays, header)
        with new_file(path, overwrite=True) as partial:
            write_arrays(partial, arrays, header)

    def load(self, path: Path, fingerprint: str) -> Progress:
        """Load the state of a complete file that was made with the same data and options."""
        try:
            header = decode(array_header(path), _Header, "its header")
            if header.fingerprint != fingerprint:
                raise ModelFileError(
                    f"The checkpoint '{path}' is of other data, options or seed; "
                    "delete it to start again, or repeat the command it was made with."
                )
            arrays = read_arrays(path, self._declared(array_names(path)))
            texts = {"progress": header.progress, "fingerprint": header.fingerprint}
            if digest(arrays, texts) != header.sha256:
                raise DataError("it does not match its checksum")
            progress = _progress(header.progress)
        except DataError as error:
            reason = str(error).rstrip(".")
            raise ModelFileError(
                f"The checkpoint '{path}' cannot be read ({reason}); delete it to start again."
            ) from None
        try:
            self._take_over({name: torch.from_numpy(array) for name, array in arrays.items()})
        except KeyError as error:
            raise ModelFileError(
                f"The checkpoint '{path}' lacks {error} of the optimiser; delete it to start again."
            ) from None
        return progress

    def _declared(self, names: list[str]) -> dict[str, Array]:
        """Declare the weights of the network, and the optimiser's state of each."""
        declared: dict[str, Array] = {}
        for name, value in self._network.state_dict().items():
            array = _like(value)
            declared |= {f"now/{name}": array, f"best/{name}": array}
        parameters = [p for group in self._optimizer.param_groups for p in group["params"]]
        matches = [re.fullmatch(rf"{_OPTIMIZER}(\d{{1,9}})/(\w+)", name) for name in names]
        known = [match for match in matches if match and int(match[1]) < len(parameters)]
        # An optimiser keeps the same state for every parameter that it has changed.
        for index, key in product({m[1] for m in known}, {m[2] for m in known}):
            like = torch.zeros(()) if key == "step" else parameters[int(index)]
            declared[f"{_OPTIMIZER}{index}/{key}"] = _like(like)
        return declared

    def _take_over(self, tensors: dict[str, Tensor]) -> None:
        state: dict[int, dict[str, Tensor]] = {}
        for name, value in _part(tensors, _OPTIMIZER).items():
            index, key = name.split("/", 1)
            state.setdefault(int(index), {})[key] = value
        self._optimizer.load_state_dict({**self._optimizer.state_dict(), "state": state})
        self._network.load_state_dict(_part(tensors, "now/"))
        self._best = _part(tensors, "best/")


class _Header(msgspec.Struct, forbid_unknown_fields=True):
    """The texts of a checkpoint."""

    progress: str
    fingerprint: str
    sha256: str


def _progress(text: str) -> Progress:
    """Return the progress. JSON has no −∞, so null stands for a missing best result."""
    parts = decode_json(text.encode(), dict[str, Any], "its progress")
    if parts.keys() != vars(Progress()).keys():
        raise DataError("its progress has other parts")
    if parts["best_valid"] is None:
        del parts["best_valid"]
    return decode(parts, Progress, "its progress")


def _like(tensor: Tensor) -> Array:
    dtype = str(tensor.dtype).removeprefix("torch.")
    return Array(tuple(tensor.shape), dtype, low=-math.inf, high=math.inf)


def _part(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {n.removeprefix(prefix): v for n, v in tensors.items() if n.startswith(prefix)}
