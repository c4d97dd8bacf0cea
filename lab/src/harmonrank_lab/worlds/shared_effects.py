"""What rows have in common: effects of their request, and users who come back."""

__all__ = ["RequestEffects", "Users"]

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harmonrank_lab.worlds.parts import Floats

# Numbers of requests times the first, modulo the second, are spread evenly.
_SPREAD, _WHOLE = 2_654_435_761, 1 << 32


@dataclass(frozen=True, eq=False)
class RequestEffects:
    """Normal effects that all rows of a request have in common.

    With f, e and h standard normal, one draw per request, its latent logits are z + Γf + Hh, and
    upstream observes o + Γf + Ee. So what upstream says about a whole request may be worth less, or
    more, than what it says about one candidate beside another; of h nobody learns anything.

    >>> busy = RequestEffects(chance=np.array([[1.0], [0.5]]), score=np.array([[0.3], [0.0]]))
    >>> busy.count, busy.scores(np.array([[2.0, 1.0]]))
    (2, array([[2.3, 1. ]]))

    Attributes:
        chance: Γ, (objectives, effects).
        score: E, (objectives, errors).
        hidden: H, (objectives, hidden effects); None: there are none.
    """

    chance: Floats
    score: Floats
    hidden: Floats | None = None

    @classmethod
    def none(cls, objectives: int) -> "RequestEffects":
        """Return those of a world whose requests are no more alike than any rows."""
        return cls(np.zeros((objectives, 0)), np.zeros((objectives, 0)))

    @property
    def count(self) -> int:
        """How many numbers a request draws: f, e, then h."""
        hidden = 0 if self.hidden is None else self.hidden.shape[1]
        return int(self.chance.shape[1] + self.score.shape[1] + hidden)

    def chances(self, drawn: Floats) -> Floats:
        """Return Γf, what is added to the latent logits and seen, (rows, objectives)."""
        return np.asarray(self._split(drawn)[0] @ self.chance.T)

    def scores(self, drawn: Floats) -> Floats:
        """Return Γf + Ee, what is added to what upstream observes, (rows, objectives)."""
        return np.asarray(self.chances(drawn) + self._split(drawn)[1] @ self.score.T)

    def unseen(self, drawn: Floats) -> Floats:
        """Return Hh, what is added to the latent logits and not seen, (rows, objectives)."""
        none = np.zeros((len(self.chance), 0))
        return np.asarray(self._split(drawn)[2] @ (none if self.hidden is None else self.hidden).T)

    def _split(self, drawn: Floats) -> list[Floats]:
        first = self.chance.shape[1]
        return np.split(drawn, [first, first + self.score.shape[1]], axis=1)

    @property
    def covariance(self) -> Floats:
        """ΓΓᵀ, (objectives, objectives)."""
        return np.asarray(self.chance @ self.chance.T)

    @property
    def noise(self) -> Floats:
        """EEᵀ, (objectives, objectives)."""
        return np.asarray(self.score @ self.score.T)

    @property
    def hidden_variance(self) -> Floats:
        """The diagonal of HHᵀ, (objectives,)."""
        return np.zeros(len(self.chance)) if self.hidden is None else (self.hidden**2).sum(axis=1)

    def take(self, columns: Sequence[int]) -> "RequestEffects":
        """Keep these objectives."""
        return self._each(lambda part: part[list(columns)])

    def scaled(self, factor: Floats) -> "RequestEffects":
        """Multiply what is added to each objective."""
        return self._each(lambda part: part * factor[:, None])

    def _each(self, act: Callable[[Floats], Floats]) -> "RequestEffects":
        hidden = None if self.hidden is None else act(self.hidden)
        return RequestEffects(act(self.chance), act(self.score), hidden)


@dataclass(frozen=True)
class Users:
    """Who asks: users who come back, some far more often than others.

    >>> Users(count=1000, columns=("age",), effects=1).of(np.array([0, 17, 41]))
    array([  0, 360, 197])

    Attributes:
        count: How many there are.
        columns: Context features that all requests of a user share.
        effects: How many of the last hidden effects are drawn once per user.
    """

    count: int
    columns: tuple[str, ...]
    effects: int

    def of(self, request: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the user of every row, given the number of its request."""
        uniform = request * _SPREAD % _WHOLE / _WHOLE
        return (self.count * uniform**1.5).astype(np.int64)

    def drawn(self, seed: int, request: NDArray[np.int64]) -> tuple[Floats, dict[str, Floats]]:
        """Return the effects of every row's user, and what decides on the user's columns."""
        rng, user = np.random.default_rng([seed, _SPREAD]), self.of(request)
        effects = rng.standard_normal((self.count, self.effects))[user]
        return effects, {name: rng.random(self.count)[user] for name in self.columns}
