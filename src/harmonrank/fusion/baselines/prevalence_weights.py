"""Prevalence weights: the scores as they come, each divided by how common its objective is."""

__all__ = ["PrevalenceWeights", "PrevalenceWeightsConfig"]

from dataclasses import dataclass
from typing import Any

import numpy as np

from harmonrank.data import Log
from harmonrank.fusion.fitting.fit import Fit
from harmonrank.fusion.fitting.row_blocks import RowsInBlocks
from harmonrank.fusion.probability import ProbabilityMethod
from harmonrank.fusion.state import NoState


@dataclass(frozen=True)
class PrevalenceWeightsConfig:
    """There is nothing to choose."""


class PrevalenceWeights(ProbabilityMethod):
    """s = Σ_m w_m p̂_m / (π_m(1−π_m)), p̂_m what upstream gave: takes upstream at its word.

    All it learns is the prevalence π, so it cannot over-fit: on little data it is hard to beat.
    """

    name = "prevalence-weights"
    uses_valid = False
    takes = ("graded", "given")
    fits_on_workers = True
    Config = PrevalenceWeightsConfig

    fits_blocks = True

    def _fit(self, fit: Fit) -> None:
        del fit

    def _fit_blocks(self, fit: RowsInBlocks) -> None:
        del fit

    def _probabilities(self, log: Log) -> np.ndarray:
        return log.scores.astype(np.float64, copy=False)

    def _state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        return {}, {}

    def _restore(self, state: NoState, arrays: dict[str, np.ndarray]) -> None:
        del state, arrays
