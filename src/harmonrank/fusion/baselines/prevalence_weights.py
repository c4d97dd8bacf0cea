"""Prevalence weights: the scores as they come, each divided by how common its objective is."""

__all__ = ["PrevalenceWeights", "PrevalenceWeightsConfig"]

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from harmonrank.fusion.fitting.rows import TrainingRows
from harmonrank.fusion.method import Method
from harmonrank.fusion.protocol import Traits


@dataclass(frozen=True)
class AsTheyCome:
    """p̂_m is what upstream gave."""

    def probabilities(self, scores: np.ndarray, codes: np.ndarray) -> np.ndarray:  # noqa: ARG002
        """Return the scores."""
        return scores.astype(np.float64, copy=False)


@dataclass(frozen=True)
class PrevalenceWeightsConfig:
    """There is nothing to choose."""

    name: ClassVar[str] = "prevalence-weights"
    traits: ClassVar[Traits] = Traits(validates=False, workers=True)
    state: ClassVar[type] = AsTheyCome

    def fit(self, rows: TrainingRows) -> AsTheyCome:  # noqa: ARG002
        """Learn nothing: the prevalences are known."""
        return AsTheyCome()


class PrevalenceWeights(Method):
    """s = Σ_m w_m p̂_m / (π_m(1−π_m)), p̂_m what upstream gave: takes upstream at its word.

    All it learns is the prevalence π, so it cannot over-fit: on little data it is hard to beat.
    """

    Config = PrevalenceWeightsConfig
