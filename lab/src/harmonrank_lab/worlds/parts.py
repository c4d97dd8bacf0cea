"""What may be added to a plain world: changes, hidden classes, interactions, request effects."""

__all__ = ["Hidden", "Interactions", "RequestEffects", "Swap", "WorldDrift", "check_parts"]

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from harmonrank.support import UsageError, did_you_mean
from harmonrank.worlds import Additive

if TYPE_CHECKING:
    from harmonrank_lab.worlds.full_world import World

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
        return np.asarray(self.slope * time[:, None] + self.wave * turn)

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


@dataclass(frozen=True, eq=False)
class Interactions:
    """Effects of score × score, score × context and context × context on the latent logits.

    h_m(o, c) = Σ_{(j, k)} Q_jk,m r_j r_k + S_m(c) r_m + Σ_{(f, g)} W_fg[c_f, c_g, m],
    r = tanh((o − μ(c, t)) / spread).

    They act through what upstream observes, o, so h is known to whoever sees the scores and the
    context. The common factors also weigh more in some contexts: Λ(c) = Λ diag exp(gain(c)).

    Attributes:
        spread: (objectives,), the usual spread of o in a context.
        pairs: the pairs of scores (j, k).
        products: Q, (pairs, objectives).
        slopes: S, per objective.
        cells: W by pairs of context features, each (categories, categories, objectives).
        gain: one value per common factor.
    """

    spread: Floats
    pairs: tuple[tuple[int, int], ...]
    products: Floats
    slopes: Additive
    cells: Mapping[tuple[str, str], Floats]
    gain: Additive

    def at(self, deviation: Floats, context: Mapping[str, NDArray[Any]]) -> Floats:
        """Return h at every row, (rows, objectives), given o − μ."""
        r = np.tanh(deviation / self.spread)
        left, right = (list(side) for side in zip(*self.pairs, strict=True))
        h: Floats = (r[:, left] * r[:, right]) @ self.products
        h += self.slopes.at(context, len(r)) * r
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
        return replace(
            self,
            spread=self.spread * factor,
            products=self.products * factor,
            slopes=self.slopes.scaled(factor),
            cells={pair: cell * factor for pair, cell in self.cells.items()},
        )


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
        return np.asarray(drawn[:, : self.chance.shape[1]] @ self.chance.T)

    def scores(self, drawn: Floats) -> Floats:
        """Return Γf + Ee, what is added to what upstream observes, (rows, objectives)."""
        return np.asarray(self.chances(drawn) + drawn[:, self.chance.shape[1] :] @ self.score.T)

    @property
    def covariance(self) -> Floats:
        """ΓΓᵀ, (objectives, objectives)."""
        return np.asarray(self.chance @ self.chance.T)

    @property
    def noise(self) -> Floats:
        """EEᵀ, (objectives, objectives)."""
        return np.asarray(self.score @ self.score.T)

    def take(self, columns: Sequence[int]) -> "RequestEffects":
        """Keep these objectives."""
        keep = list(columns)
        return RequestEffects(self.chance[keep], self.score[keep])

    def scaled(self, factor: Floats) -> "RequestEffects":
        """Multiply what is added to each objective."""
        return RequestEffects(self.chance * factor[:, None], self.score * factor[:, None])


def check_parts(world: "World") -> None:
    """Refuse a world whose parts do not fit together."""
    M = len(world.objectives)
    if M == 0 or len(set(world.objectives)) < M:
        raise UsageError(
            "`objectives` must name at least one objective and each objective once. "
            f"Got {world.objectives}."
        )
    _check_shape("loadings", world.loadings, (M, world.loadings.shape[-1]))
    for name in ("own", "a"):
        _check_shape(name, getattr(world, name), (M,))
        if not np.all(getattr(world, name) > 0):
            raise UsageError(f"`{name}` must be above 0. Got {getattr(world, name)}.")
    for name in ("mu", "log_tau", "b"):
        _check_additive(world, name, getattr(world, name))
    for name, share in world.categories.items():
        if np.min(share) < 0 or abs(np.sum(share) - 1) > 1e-9:
            raise UsageError(f"categories[{name!r}] must be shares that sum to 1. Got {share}.")
    if not 1 <= world.request_rows[0] <= world.request_rows[1]:
        raise UsageError(f"`request_rows` must be (fewest, most). Got {world.request_rows}.")
    _check_violations(world, M)


def _check_violations(world: "World", M: int) -> None:
    if world.backbone is not None:
        _check_shape("backbone", world.backbone, (M,))
        if not np.all(abs(world.backbone) < 1):
            raise UsageError(f"`backbone` must be inside (−1, 1). Got {world.backbone}.")
    if world.hidden is not None:
        classes = len(world.hidden.shares)
        for name in ("chance", "score"):
            _check_shape(f"hidden.{name}", getattr(world.hidden, name), (classes, M))
        _check_shape("hidden.noise", world.hidden.noise, (classes,))
    if world.requests is not None:
        for name in ("chance", "score"):
            effects = getattr(world.requests, name)
            _check_shape(f"requests.{name}", effects, (M, effects.shape[-1]))
        if world.interactions is not None:
            raise UsageError(
                "A world has `requests` or `interactions`, not both: the exact probabilities of "
                "rows with both are not known."
            )
    if world.interactions is not None:
        _check_shape("interactions.spread", world.interactions.spread, (M,))
        products = (len(world.interactions.pairs), M)
        _check_shape("interactions.products", world.interactions.products, products)


def _check_additive(world: "World", name: str, additive: Additive) -> None:
    _check_shape(f"{name}.base", additive.base, (len(world.objectives),))
    for feature, effect in additive.effects.items():
        if feature not in world.categories:
            hint = did_you_mean(feature, world.categories)
            raise UsageError(f"{name} has an effect of the unknown feature {feature!r}. {hint}")
        shape = (len(world.categories[feature]), len(world.objectives))
        _check_shape(f"{name}.effects[{feature!r}]", effect, shape)


def _check_shape(name: str, array: NDArray[Any], shape: tuple[int, ...]) -> None:
    """Refuse an array of another shape."""
    if array.shape != shape:
        raise UsageError(f"`{name}` must have the shape {shape}. Got {array.shape}.")
