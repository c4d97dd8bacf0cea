"""Changes over time: means that move slowly, and upstream models that are replaced."""

__all__ = ["Swap", "WorldDrift"]

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harmonrank.support import UsageError

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class WorldDrift:
    """A slow, known movement of μ that is zero at time 0.

    Δμ_m(t) = slope_m t + wave_m (sin 2π(t + phase_m) − sin 2π phase_m)

    >>> drift = WorldDrift(slope=np.array([0.4]), wave=np.zeros(1), phase=np.zeros(1))
    >>> drift.at(np.array([0.0, 0.5]))
    array([[0. ], [0.2]])
    """

    slope: Floats
    wave: Floats
    phase: Floats

    def at(self, time: Floats) -> Floats:
        """Return Δμ at every row, (rows, objectives)."""
        turn = np.sin(2 * np.pi * (time[:, None] + self.phase)) - np.sin(2 * np.pi * self.phase)
        moved: Floats = self.slope * time[:, None] + self.wave * turn
        return moved

    def take(self, columns: Sequence[int]) -> "WorldDrift":
        """Keep these objectives."""
        keep = list(columns)
        return WorldDrift(self.slope[keep], self.wave[keep], self.phase[keep])


@dataclass(frozen=True)
class Swap:
    """The upstream models of some objectives are replaced at a time.

    From `at` on, logit p̂ = (a·a_m) o + (b_m(c) + b) with noise tau_scale·τ_m(c). With a
    tau_scale of 1 the scores only change their scale, so the ceiling stays.

    >>> Swap(at=0.5, objectives=("buy",), a=0.7, b=1.0)
    Swap(at=0.5, objectives=('buy',), a=0.7, b=1.0, tau_scale=1.0)
    """

    at: float
    objectives: tuple[str, ...]
    a: float = 1.0
    b: float = 0.0
    tau_scale: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.at < 1:
            raise UsageError(f"Swap.at must be a time in [0, 1). Got {self.at}.")
        for name in ("a", "tau_scale"):
            if not getattr(self, name) > 0:
                raise UsageError(f"Swap.{name} must be above 0. Got {getattr(self, name)}.")
