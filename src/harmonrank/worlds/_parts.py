"""The parts a world is made of: functions of the context, slow drift, and upstream swaps."""

__all__ = ["Additive", "Floats", "Swap", "WorldDrift", "draw_effects", "draw_shares"]

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harmonrank.support.errors import UsageError

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Additive:
    """A value per objective that depends on the context: base_m + Σ_k effect_k[c_k, m].

    >>> additive = Additive(base=np.zeros(1), effects={"gender": np.array([[-1.0], [1.0]])})
    >>> additive.at({"gender": np.array([1, 0])}, rows=2)
    array([[ 1.], [-1.]])

    Attributes:
        base: (objectives,).
        effects: per context feature (categories, objectives); a feature may be absent.
    """

    base: Floats
    effects: Mapping[str, Floats] = field(default_factory=dict)

    def at(self, context: Mapping[str, NDArray[Any]], rows: int) -> Floats:
        """Return the value at every row, (rows, objectives)."""
        value = np.tile(self.base, (rows, 1))
        for name, effect in self.effects.items():
            value += effect[context[name]]
        return value

    def take(self, columns: Sequence[int]) -> "Additive":
        """Keep these objectives."""
        keep = list(columns)
        return Additive(self.base[keep], {k: e[:, keep] for k, e in self.effects.items()})

    def shifted(self, shift: Floats) -> "Additive":
        """Add a constant per objective."""
        return Additive(self.base + shift, self.effects)

    def scaled(self, factor: Floats) -> "Additive":
        """Multiply by a constant per objective."""
        return Additive(self.base * factor, {k: e * factor for k, e in self.effects.items()})


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


def draw_shares(rng: np.random.Generator, size: int) -> Floats:
    """Draw the shares of a feature's categories, smooth along it and not uniform."""
    share = np.exp(_smooth(0.8 * rng.standard_normal((size, 1)))[:, 0])
    shares: Floats = share / share.sum()
    return shares


def draw_effects(
    rng: np.random.Generator, categories: Mapping[str, Floats], M: int, spread: float
) -> dict[str, Floats]:
    """Draw effects, smooth along each feature, whose sum has this spread over contexts."""
    effects = {}
    for feature, share in categories.items():
        effect = _smooth(rng.standard_normal((share.size, M)))
        effect -= share @ effect
        effects[feature] = effect * (spread / np.sqrt(len(categories) * (share @ effect**2)))
    return effects


def _smooth(values: Floats) -> Floats:
    """Average each category with its neighbours: hours and ages are ordered."""
    for _ in range(len(values) // 4):
        values = (np.roll(values, 1, axis=0) + 2 * values + np.roll(values, -1, axis=0)) / 4
    return values
