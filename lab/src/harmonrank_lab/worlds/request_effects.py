"""Request effects: what the rows of a request share and no column tells."""

__all__ = ["RequestEffects"]

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from harmonrank_lab.worlds.changes import Floats


@dataclass(frozen=True, eq=False)
class RequestEffects:
    """Normal effects that all rows of a request have in common.

    With f and e standard normal, one draw per request, its latent logits are z + Γf, and upstream
    observes o + Γf + Ee. So what upstream says about a whole request may be worth less, or more,
    than what it says about one candidate beside another.

    >>> busy = RequestEffects(chance=np.array([[1.0], [0.5]]), score=np.array([[0.3], [0.0]]))
    >>> busy.count, busy.scores(np.array([[2.0, 1.0]]))
    (2, array([[2.3, 1. ]]))

    Attributes:
        chance: Γ, (objectives, effects).
        score: E, (objectives, errors).
    """

    chance: Floats
    score: Floats

    @classmethod
    def none(cls, objectives: int) -> "RequestEffects":
        """Return those of a world whose requests are no more alike than any rows."""
        return cls(np.zeros((objectives, 0)), np.zeros((objectives, 0)))

    @property
    def count(self) -> int:
        """How many numbers a request draws."""
        return int(self.chance.shape[1] + self.score.shape[1])

    def chances(self, drawn: Floats) -> Floats:
        """Return Γf, what is added to the latent logits, (rows, objectives)."""
        moved: Floats = drawn[:, : self.chance.shape[1]] @ self.chance.T
        return moved

    def scores(self, drawn: Floats) -> Floats:
        """Return Γf + Ee, what is added to what upstream observes, (rows, objectives)."""
        moved: Floats = self.chances(drawn) + drawn[:, self.chance.shape[1] :] @ self.score.T
        return moved

    @property
    def covariance(self) -> Floats:
        """ΓΓᵀ, (objectives, objectives)."""
        covariance: Floats = self.chance @ self.chance.T
        return covariance

    @property
    def noise(self) -> Floats:
        """EEᵀ, (objectives, objectives)."""
        noise: Floats = self.score @ self.score.T
        return noise

    def take(self, columns: Sequence[int]) -> "RequestEffects":
        """Keep these objectives."""
        keep = list(columns)
        return RequestEffects(self.chance[keep], self.score[keep])

    def scaled(self, factor: Floats) -> "RequestEffects":
        """Multiply what is added to each objective."""
        return RequestEffects(self.chance * factor[:, None], self.score * factor[:, None])
