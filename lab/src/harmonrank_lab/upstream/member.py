"""Member: one trained network with its calibration and what is known of it."""

__all__ = ["Clock", "Member", "MemberFacts"]

from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, Self

import msgspec
import numpy as np
import torch

from harmonrank.paper.training import Event, Finished
from harmonrank.support.errors import DataError
from harmonrank.support.events import BatchEnded, EpochEnded, Resumed
from harmonrank.support.storage import (
    Array,
    new_file,
    read_arrays,
    read_json,
    sha256,
    write_arrays,
    write_json,
)
from harmonrank_lab.upstream.calibrator import CalibrationFacts, Calibrator, Whole
from harmonrank_lab.upstream.config import PredictorConfig
from harmonrank_lab.upstream.embedding import Layout, Rows
from harmonrank_lab.upstream.network import PredictorNetwork

_ONLY_TRAINING = "embedding.squares"


@dataclass(frozen=True)
class MemberFacts:
    """How a training went.

    Attributes:
        valid_auc: AUC of each objective on the validation rows; None where it has one class. Empty
            if the network has learned from them.
        calibration: Error of each objective before and after; empty likewise.
        seconds: Of the process that trained it. Times are not stored, so that a fit that was
            interrupted leaves the same bytes as one that was not.
        rows_per_second: Training rows, reading included, validation not; nor is this stored.
    """

    epochs: Whole
    best_epoch: Whole
    valid_auc: tuple[float | None, ...]
    calibration: tuple[CalibrationFacts, ...]
    seconds: float | None = None
    rows_per_second: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return what is stored, as plain values."""
        return {k: v for k, v in asdict(self).items() if k not in ("seconds", "rows_per_second")}


class Clock:
    """Counts epochs, and the seconds that this process trained rather than validated."""

    def __init__(self) -> None:
        self.epochs = self.best = self._before = 0
        self.training = 0.0
        self.started = self._mark = perf_counter()

    def hear(self, event: Event) -> None:
        """Take note of an event of the training loop."""
        now = perf_counter()
        if isinstance(event, BatchEnded):
            self.training += now - self._mark
        elif isinstance(event, Resumed):
            self.epochs = self._before = event.epoch
        elif isinstance(event, EpochEnded):
            self.epochs = event.epoch + 1
        elif isinstance(event, Finished):
            self.best = event.best_epoch
        self._mark = now

    def facts(self, rows: int) -> MemberFacts:
        """Return the facts of a training whose epochs have so many rows."""
        speed = rows * (self.epochs - self._before) / max(self.training, 1e-9)
        return MemberFacts(self.epochs, self.best, (), (), perf_counter() - self.started, speed)


class _Stored(msgspec.Struct, forbid_unknown_fields=True):
    """A network's calibration and facts, and the checksum of its weights."""

    calibrator: Calibrator
    facts: MemberFacts
    sha256: str


@dataclass(frozen=True)
class Member:
    """A network and the map from its scores to probabilities."""

    network: PredictorNetwork
    calibrator: Calibrator
    facts: MemberFacts

    def score(self, rows: Rows) -> np.ndarray:
        """Return calibrated probabilities, (rows, objectives) float32."""
        return self.calibrator(self.network.score(rows))

    def save(self, folder: Path, name: str) -> None:
        """Write the weights, then the facts, which say that the member is complete."""
        tensors = self.network.state_dict()
        tensors.pop(_ONLY_TRAINING)
        weights = folder / f"{name}.safetensors"
        write_arrays(weights, {k: v.numpy() for k, v in tensors.items()})
        parts = {
            "calibrator": asdict(self.calibrator),
            "facts": self.facts.to_dict(),
            "sha256": sha256(weights),
        }
        with new_file(folder / f"{name}.json", overwrite=True) as partial:
            write_json(partial, parts)

    @classmethod
    def load(
        cls, folder: Path, name: str, layout: Layout, objectives: int, config: PredictorConfig
    ) -> Self:
        """Read what `save` wrote.

        Raises:
            DataError: Weights or facts are missing, damaged, or of another network.
        """
        form = read_json(folder / f"{name}.json", _Stored)
        weights = folder / f"{name}.safetensors"
        if not weights.is_file() or sha256(weights) != form.sha256:
            raise DataError(f"'{weights.name}' does not match its checksum")
        network = PredictorNetwork(layout, np.full(objectives, 0.5), config, torch.Generator())
        state = network.state_dict()
        squares = state.pop(_ONLY_TRAINING)
        declared = {n: Array(tuple(value.shape), "float32") for n, value in state.items()}
        arrays = read_arrays(weights, declared)
        network.load_state_dict(
            {n: torch.from_numpy(array) for n, array in arrays.items()} | {_ONLY_TRAINING: squares}
        )
        form.calibrator.check(objectives)
        return cls(network, form.calibrator, form.facts)
