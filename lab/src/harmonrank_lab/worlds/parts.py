"""What may be added to a plain world: changes, hidden classes of rows, interactions."""

__all__ = ["Hidden", "Interactions", "Swap", "WorldDrift", "category_of"]

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harmonrank.support import UsageError
from harmonrank.worlds import Additive

Floats = NDArray[np.float64]
Codes = Mapping[str, NDArray[Any]]


def category_of(shares: Floats, uniform: Floats) -> NDArray[np.intp]:
    """Return the category of every row, given draws that are uniform in [0, 1).

    >>> category_of(np.array([0.9, 0.1]), np.array([0.2, 0.95]))
    array([0, 1])
    """
    return np.searchsorted(np.cumsum(shares)[:-1], uniform, side="right")


@dataclass(frozen=True, eq=False)
class WorldDrift:
    """A slow, known movement of μ that is zero at time 0.

    Δμ_m(c, t) = speed_m(c) t + wave_m (sin 2π(t + phase_m) − sin 2π phase_m)

    >>> drift = WorldDrift(Additive(np.array([0.4])), wave=np.zeros(1), phase=np.zeros(1))
    >>> drift.at(np.array([0.0, 0.5]), {})
    array([[0. ], [0.2]])

    Attributes:
        speed: one value per objective, which the context may change.
        followed: Whether upstream models observe it. If not, they stay those of time 0.
    """

    speed: Additive
    wave: Floats
    phase: Floats
    followed: bool = True

    def at(self, time: Floats, context: Codes) -> Floats:
        """Return Δμ at every row, (rows, objectives)."""
        turn = np.sin(2 * np.pi * (time[:, None] + self.phase)) - np.sin(2 * np.pi * self.phase)
        speed = self.speed.at(context, len(time))
        return np.asarray(speed * time[:, None] + self.wave * turn)

    def take(self, columns: Sequence[int]) -> "WorldDrift":
        """Keep these objectives."""
        keep = list(columns)
        wave, phase = self.wave[keep], self.phase[keep]
        return replace(self, speed=self.speed.take(keep), wave=wave, phase=phase)


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


@dataclass(frozen=True, eq=False)
class Hidden:
    """Classes of rows that no fusion sees.

    A row of class k has the latent logits z + chance_k, upstream observes them moved by score_k,
    and its noise is noise_k times as large.

    Attributes:
        shares: (classes,), which sum to 1.
        chance: (classes, objectives), added to the latent logits.
        score: (classes, objectives), added to what upstream observes and not to the logits.
        noise: (classes,), factors on τ, above 0.
    """

    shares: Floats
    chance: Floats
    score: Floats
    noise: Floats

    def __post_init__(self) -> None:
        if np.min(self.shares) < 0 or abs(np.sum(self.shares) - 1) > 1e-9:
            raise UsageError(f"Hidden.shares must be shares that sum to 1. Got {self.shares}.")
        if not np.all(self.noise > 0):
            raise UsageError(f"Hidden.noise must be above 0. Got {self.noise}.")

    @classmethod
    def none(cls, objectives: int) -> "Hidden":
        """Return the one class of a world in which nothing is hidden."""
        zeros = np.zeros((1, objectives))
        return cls(np.ones(1), zeros, zeros, np.ones(1))

    def crossed(self, other: "Hidden") -> "Hidden":
        """Return the classes of both at once: all pairs, independent of each other."""
        return Hidden(
            np.multiply.outer(self.shares, other.shares).ravel(),
            (self.chance[:, None] + other.chance).reshape(-1, self.chance.shape[1]),
            (self.score[:, None] + other.score).reshape(-1, self.score.shape[1]),
            np.multiply.outer(self.noise, other.noise).ravel(),
        )

    def take(self, columns: Sequence[int]) -> "Hidden":
        """Keep these objectives."""
        keep = list(columns)
        return replace(self, chance=self.chance[:, keep], score=self.score[:, keep])

    def scaled(self, factor: Floats) -> "Hidden":
        """Multiply what is added to each objective."""
        return replace(self, chance=self.chance * factor, score=self.score * factor)


@dataclass(frozen=True, eq=False)
class Interactions:
    """Effects of score × score, score × context and context × context on the latent logits.

    h_m(o, c) = Σ_{(j, k)} Q_jk,m(c) r_j r_k + S_m(c) r_m + Σ_{(f, g)} W_fg[c_f, c_g, m],
    r = tanh((o − μ(c, t)) / spread),  Q_jk,m(c) = Q_jk,m + Σ_f P_f[c_f, jk, m],
    S_m(c) = Σ_f S_f[c_f, m] + Σ_{(f, g)} V_fg[c_f, c_g, m].

    They act through what upstream observes, o, so h is known to whoever sees the scores and the
    context. The common factors also weigh more in some contexts: Λ(c) = Λ diag exp(gain(c)).

    Attributes:
        spread: (objectives,), the usual spread of o in a context.
        pairs: the pairs of scores (j, k).
        products: Q, (pairs, objectives).
        slopes: S, per objective.
        cells: W by pairs of context features, each (categories, categories, objectives).
        gain: one value per common factor.
        product_effects: P by context features, each (categories, pairs, objectives).
        slope_cells: V by pairs of context features, shaped as W.
    """

    spread: Floats
    pairs: tuple[tuple[int, int], ...]
    products: Floats
    slopes: Additive
    cells: Mapping[tuple[str, str], Floats]
    gain: Additive
    product_effects: Mapping[str, Floats] = field(default_factory=dict)
    slope_cells: Mapping[tuple[str, str], Floats] = field(default_factory=dict)

    def at(self, deviation: Floats, context: Codes) -> Floats:
        """Return h at every row, (rows, objectives), given o − μ."""
        r = np.tanh(deviation / self.spread)
        left, right = (list(side) for side in zip(*self.pairs, strict=True))
        product, slope = r[:, left] * r[:, right], self.slopes.at(context, len(r))
        for (f, g), cell in self.slope_cells.items():
            slope += cell[context[f], context[g]]
        h: Floats = product @ self.products + slope * r
        for f, effect in self.product_effects.items():
            h += np.einsum("rp,rpm->rm", product, effect[context[f]])
        for (f, g), cell in self.cells.items():
            h += cell[context[f], context[g]]
        return h

    def take(self, columns: Sequence[int]) -> "Interactions":
        """Refuse fewer objectives: without their scores h is unknown, and with it the truth."""
        if list(columns) != list(range(len(self.spread))):
            raise UsageError(
                "A world with interactions knows its truth only given all scores, so it has no "
                f"sub-set: expected all {len(self.spread)} objectives in their order. "
                f"Got {len(columns)}; choose another world or keep all of them."
            )
        return self

    def scaled(self, factor: Floats) -> "Interactions":
        """Multiply h_m, where o − μ was multiplied by the same factor."""
        tables: dict[str, Any] = {
            name: {key: table * factor for key, table in getattr(self, name).items()}
            for name in ("cells", "product_effects", "slope_cells")
        }
        return replace(
            self,
            spread=self.spread * factor,
            products=self.products * factor,
            slopes=self.slopes.scaled(factor),
            **tables,
        )
