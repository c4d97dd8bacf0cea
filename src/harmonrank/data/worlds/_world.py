"""A world: a simulated log whose best possible ranking is known."""

__all__ = ["View", "World"]

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harmonrank.data.worlds._parts import Additive, Drift, Floats, Swap
from harmonrank.data.worlds._prevalence import intercepts
from harmonrank.data.worlds._sampling import Sample, draw
from harmonrank.data.worlds._truth import conditional_probabilities
from harmonrank.errors import UsageError, did_you_mean


@dataclass(frozen=True, eq=False)
class View:
    """What holds at some rows, each (rows, objectives): mean logit, upstream noise and scale."""

    mu: Floats
    tau: Floats
    a: Floats
    b: Floats


@dataclass(frozen=True, eq=False)
class World:
    """Logs with context c, latent logits z, labels y and upstream scores p̂, all known.

    z = μ(c, t) + Λf + σ⊙δ,  y_m ~ Bernoulli(sigmoid z_m),
    p̂_m = sigmoid(a_m o_m + b_m(c)),  o_m = z_m + τ_m(c) ε_m,  f, δ, ε standard normal.

    Given context and time the rows are independent, so z | p̂, c, t is normal in closed form
    and `posterior` is exact.

    >>> tiny = World(
    ...     name="tiny", objectives=("buy", "like"), categories={"gender": np.array([0.7, 0.3])},
    ...     loadings=np.array([[1.0], [0.5]]), own=np.ones(2), mu=Additive(np.zeros(2)),
    ...     log_tau=Additive(np.zeros(2)), a=np.ones(2), b=Additive(np.zeros(2)))
    >>> sample = tiny.with_prevalence([0.01, 0.3]).sample(1000, seed=1)
    >>> sample.labels.mean(0), sample.truth.mean(0).round(4)
    (array([0.006, 0.319]), array([0.0099, 0.3019]))

    Attributes:
        categories: per context feature the share of each category.
        loadings: Λ, (objectives, factors).
        own: σ, (objectives,), above 0.
        mu: mean logit.
        log_tau: log of the spread of the upstream noise.
        a: (objectives,), above 0.
        b: upstream offset.
        request_rows: fewest and most candidates of a request; all sizes between are as likely.
        drift: how μ moves over time.
        swaps: replacements of upstream models, applied in order.
    """

    name: str
    objectives: tuple[str, ...]
    categories: Mapping[str, Floats]
    loadings: Floats
    own: Floats
    mu: Additive
    log_tau: Additive
    a: Floats
    b: Additive
    request_rows: tuple[int, int] = (10, 30)
    drift: Drift | None = None
    swaps: tuple[Swap, ...] = ()

    def __post_init__(self) -> None:
        M = len(self.objectives)
        if M == 0 or len(set(self.objectives)) < M:
            raise UsageError(
                "`objectives` must name at least one objective and each objective once. "
                f"Got {self.objectives}."
            )
        self._expect("loadings", self.loadings, (M, self.loadings.shape[-1]))
        for name in ("own", "a"):
            self._expect(name, getattr(self, name), (M,))
        for name in ("mu", "log_tau", "b"):
            self._check_additive(name, getattr(self, name))
        for name, share in self.categories.items():
            if np.min(share) < 0 or abs(np.sum(share) - 1) > 1e-9:
                raise UsageError(f"categories[{name!r}] must be shares that sum to 1. Got {share}.")
        for name in ("own", "a"):
            if not np.all(getattr(self, name) > 0):
                raise UsageError(f"`{name}` must be above 0. Got {getattr(self, name)}.")
        if not 1 <= self.request_rows[0] <= self.request_rows[1]:
            raise UsageError(f"`request_rows` must be (fewest, most). Got {self.request_rows}.")

    def _check_additive(self, name: str, additive: Additive) -> None:
        self._expect(f"{name}.base", additive.base, (len(self.objectives),))
        for feature, effect in additive.effects.items():
            if feature not in self.categories:
                hint = did_you_mean(feature, self.categories)
                raise UsageError(f"{name} has an effect of the unknown feature {feature!r}. {hint}")
            shape = (len(self.categories[feature]), len(self.objectives))
            self._expect(f"{name}.effects[{feature!r}]", effect, shape)

    @staticmethod
    def _expect(name: str, array: NDArray[Any], shape: tuple[int, ...]) -> None:
        if array.shape != shape:
            raise UsageError(f"`{name}` must have the shape {shape}. Got {array.shape}.")

    @property
    def context(self) -> dict[str, int]:
        """The number of categories of every context feature."""
        return {name: len(share) for name, share in self.categories.items()}

    @property
    def covariance(self) -> Floats:
        """Σ = ΛΛᵀ + diag σ², the covariance of the latent logits given the context."""
        covariance: Floats = self.loadings @ self.loadings.T + np.diag(self.own**2)
        return covariance

    def sample(
        self,
        rows: int,
        *,
        seed: int,
        start: int = 0,
        horizon: int | None = None,
        with_truth: bool = True,
    ) -> Sample:
        """Return rows `start` … `start + rows` of the endless stream that `seed` stands for.

        Samples of one seed that do not overlap are independent parts of the same log. Worlds
        that differ only in upstream have the same contexts and labels for the same seed.

        Args:
            rows: how many.
            seed: 0 or more.
            start: number of the first row.
            horizon: number of the row at which time would be 1; the end of the sample if left out.
            with_truth: also compute the exact probabilities.
        """
        return draw(self, rows, seed, start, horizon, with_truth)

    def at(self, context: Mapping[str, NDArray[Any]], time: Floats) -> View:
        """Return means, noise and upstream scale at rows with this context and time."""
        rows = len(time)
        mu, b = self.mu.at(context, rows), self.b.at(context, rows)
        tau, a = np.exp(self.log_tau.at(context, rows)), np.tile(self.a, (rows, 1))
        if self.drift is not None:
            mu += self.drift.at(time)
        for swap in self.swaps:
            columns = np.array(self._columns(swap.objectives))
            cells = np.ix_(np.flatnonzero(time >= swap.at), columns)
            a[cells] *= swap.a
            b[cells] += swap.b
            tau[cells] *= swap.tau_scale
        return View(mu, tau, a, b)

    def posterior(
        self,
        scores: Floats,
        context: Mapping[str, NDArray[Any]],
        time: Floats | None = None,
    ) -> Floats:
        """Return p_m given all scores, the context and the time, (rows, objectives): exact.

        A fusion does not see the time, so under drift this is a little more than it could know.

        Args:
            scores: (rows, objectives), strictly inside (0, 1).
            context: category numbers of every feature, one per row.
            time: 0 for all rows if left out.
        """
        self._expect("scores", scores, (len(scores), len(self.objectives)))
        view = self.at(context, np.zeros(len(scores)) if time is None else time)
        o = (np.log(scores) - np.log1p(-scores) - view.b) / view.a
        return conditional_probabilities(o, view.mu, view.tau, self.covariance)

    def with_prevalence(self, prevalence: Sequence[float]) -> "World":
        """Return the world whose intercepts give each objective this share of positives."""
        base = intercepts(prevalence, self.mu.effects, self.categories, self.covariance)
        return replace(self, mu=Additive(base, self.mu.effects))

    def subset(self, objectives: Sequence[str]) -> "World":
        """Return the world of these objectives only: p_m is then given their scores only.

        Its samples are the columns of this world's samples of the same seed.
        """
        keep = self._columns(objectives)
        swaps = [
            replace(swap, objectives=tuple(o for o in swap.objectives if o in objectives))
            for swap in self.swaps
        ]
        return replace(
            self,
            objectives=tuple(objectives),
            loadings=self.loadings[keep],
            own=self.own[keep],
            mu=self.mu.take(keep),
            log_tau=self.log_tau.take(keep),
            a=self.a[keep],
            b=self.b.take(keep),
            drift=None if self.drift is None else self.drift.take(keep),
            swaps=tuple(swap for swap in swaps if swap.objectives),
        )

    def with_upstream(
        self, objectives: Sequence[str], *, a: float = 1.0, b: float = 0.0, tau_scale: float = 1.0
    ) -> "World":
        """Return the world after the upstream models of these objectives were replaced."""
        return self.drifting(swap=Swap(0.0, tuple(objectives), a, b, tau_scale))

    def drifting(self, *, mu_amplitude: float = 0.0, swap: Swap | None = None) -> "World":
        """Return the world whose μ moves over time and whose upstream is swapped once.

        Δμ_m(t) = ±A t + A/2 (sin 2π(t + m/M) − sin 2πm/M), the sign alternating from one
        objective to the next, so that effective weights and prevalences move apart.
        """
        M = len(self.objectives)
        m = np.arange(M)
        slope = np.where(m % 2, -mu_amplitude, mu_amplitude)
        drift = Drift(slope, np.full(M, mu_amplitude / 2), m / M)
        if swap is not None:
            self._columns(swap.objectives)
        return replace(
            self,
            drift=drift if mu_amplitude else self.drift,
            swaps=self.swaps if swap is None else (*self.swaps, swap),
        )

    def _columns(self, objectives: Sequence[str]) -> list[int]:
        for name in objectives:
            if name not in self.objectives:
                hint = did_you_mean(name, self.objectives)
                raise UsageError(f"The world {self.name!r} has no objective {name!r}. {hint}")
        return [self.objectives.index(name) for name in objectives]
