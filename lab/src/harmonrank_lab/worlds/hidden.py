"""Hidden classes: what sets rows apart and no column tells."""

__all__ = ["Hidden"]

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from harmonrank.support import UsageError
from harmonrank_lab.worlds.changes import Floats


@dataclass(frozen=True, eq=False)
class Hidden:
    """Classes of rows that no fusion sees.

    A row of class k has the latent logits z + chance_k, upstream observes them moved by score_k,
    and its noise is noise_k times as large.

    >>> calm_or_loud = Hidden(
    ...     shares=np.array([0.9, 0.1]), chance=np.zeros((2, 1)), score=np.zeros((2, 1)),
    ...     noise=np.array([1.0, 4.0]))
    >>> calm_or_loud.of(np.array([0.2, 0.95]))
    array([0, 1])

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

    def of(self, uniform: Floats) -> NDArray[np.intp]:
        """Return the class of every row, given draws that are uniform in [0, 1)."""
        return np.searchsorted(np.cumsum(self.shares)[:-1], uniform, side="right")

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
