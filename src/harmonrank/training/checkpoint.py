"""Checkpoint: all state of a training run in one file that survives a kill."""

__all__ = ["Checkpoint", "Progress"]

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from harmonrank.data.files import new_file
from harmonrank.errors import ModelFileError


@dataclass
class Progress:
    """How far a run is; epochs and steps count from 0, sums are of the running epoch.

    Attributes:
        history: Of every finished epoch its mean loss, validation result and share of items with
            a gradient.
    """

    epoch: int = 0
    step: int = 0
    loss_sum: float = 0.0
    share_sum: float = 0.0
    shares: int = 0
    best_epoch: int = 0
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
        """The mean share of items with a gradient, where the loss tells it."""
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
    """Network, optimiser and the best weights so far, to and from one safetensors file."""

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
        """Write all state; the old checkpoint stays until the new one is complete."""
        tensors = {f"now/{name}": value for name, value in self._network.state_dict().items()}
        tensors |= {f"best/{name}": value for name, value in self._best.items()}
        for index, values in self._optimizer.state_dict()["state"].items():
            tensors |= {f"optimizer/{index}/{name}": value for name, value in values.items()}
        header = {"progress": json.dumps(asdict(progress)), "fingerprint": fingerprint}
        tensors = {name: value.contiguous().clone() for name, value in tensors.items()}
        with new_file(path, overwrite=True) as partial:
            save_file(tensors, partial, metadata=header)

    def load(self, path: Path, fingerprint: str) -> Progress:
        """Take over the state of a file, if it is of the same data and options."""
        try:
            with safe_open(path, framework="pt") as file:
                header = file.metadata()
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        except (SafetensorError, OSError) as error:
            raise ModelFileError(
                f"The checkpoint '{path}' cannot be read ({error}); delete it to start again."
            ) from None
        if header["fingerprint"] != fingerprint:
            raise ModelFileError(
                f"The checkpoint '{path}' is of other data, options or seed; "
                "delete it to start again, or repeat the command it was made with."
            )
        self._network.load_state_dict(_part(tensors, "now/"))
        self._best = _part(tensors, "best/")
        self._load_optimizer(_part(tensors, "optimizer/"))
        return Progress(**json.loads(header["progress"]))

    def _load_optimizer(self, tensors: dict[str, Tensor]) -> None:
        state: dict[int, dict[str, Tensor]] = {}
        for name, value in tensors.items():
            index, key = name.split("/", 1)
            state.setdefault(int(index), {})[key] = value
        self._optimizer.load_state_dict({**self._optimizer.state_dict(), "state": state})


def _part(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {n.removeprefix(prefix): v for n, v in tensors.items() if n.startswith(prefix)}
