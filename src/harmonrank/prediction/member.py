"""Member: one trained network with its calibration and what is known of it."""

__all__ = ["Member", "MemberFacts"]

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from safetensors.torch import load_file, save_file

from harmonrank.data.files import read_json, write_json
from harmonrank.prediction.calibrator import CalibrationFacts, Calibrator
from harmonrank.prediction.config import PredictorConfig
from harmonrank.prediction.embedding import Layout, Rows
from harmonrank.prediction.network import Network

_ONLY_TRAINING = "embedding.squares"


@dataclass(frozen=True)
class MemberFacts:
    """How a training went.

    Attributes:
        rows_per_second: Training rows, reading included, validation not.
        valid_auc: AUC of each objective on the validation rows; None where it has one class. Empty
            if the network has learned from them.
        calibration: Error of each objective before and after; empty likewise.
    """

    epochs: int
    best_epoch: int
    seconds: float
    rows_per_second: float
    valid_auc: tuple[float | None, ...]
    calibration: tuple[CalibrationFacts, ...]

    @classmethod
    def from_dict(cls, parts: Mapping[str, Any]) -> Self:
        """Build what `asdict` returned."""
        known = dict(parts)
        known["valid_auc"] = tuple(known["valid_auc"])
        known["calibration"] = tuple(CalibrationFacts(**c) for c in known["calibration"])
        return cls(**known)


@dataclass(frozen=True)
class Member:
    """A network and the map from its scores to probabilities."""

    network: Network
    calibrator: Calibrator
    facts: MemberFacts

    def score(self, rows: Rows) -> np.ndarray:
        """Return calibrated probabilities, (rows, objectives) float32."""
        return self.calibrator(self.network.score(rows))

    def save(self, folder: Path, name: str) -> None:
        """Write the weights, then the facts, which say that the member is complete."""
        tensors = self.network.state_dict()
        tensors.pop(_ONLY_TRAINING)
        save_file({k: v.contiguous() for k, v in tensors.items()}, folder / f"{name}.safetensors")
        parts = {"calibrator": self.calibrator.to_dict(), "facts": asdict(self.facts)}
        partial = folder / f"{name}.json.partial"
        write_json(partial, parts)
        partial.replace(folder / f"{name}.json")

    @classmethod
    def load(
        cls, folder: Path, name: str, layout: Layout, objectives: int, config: PredictorConfig
    ) -> Self:
        """Read what `save` wrote."""
        parts = read_json(folder / f"{name}.json")
        network = Network(layout, np.full(objectives, 0.5), config, torch.Generator())
        tensors = load_file(folder / f"{name}.safetensors")
        tensors[_ONLY_TRAINING] = network.embedding.squares
        network.load_state_dict(tensors)
        calibrator = Calibrator.from_dict(parts["calibrator"])
        return cls(network, calibrator, MemberFacts.from_dict(parts["facts"]))
