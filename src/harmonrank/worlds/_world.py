"""A world: a simulated log whose best possible ranking is known."""

__all__ = ["World"]

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harmonrank.support.errors import UsageError, did_you_mean
from harmonrank.worlds._checks import check_parts, check_shape
from harmonrank.worlds._hidden import Hidden
from harmonrank.worlds._interactions import Interactions
from harmonrank.worlds._normal import NODES
from harmonrank.worlds._parts import Additive, Floats, Swap, WorldDrift
from harmonrank.worlds._posterior import conditional_probabilities
from harmonrank.worlds._prevalence import intercepts
from harmonrank.worlds._request_effects import RequestEffects
from harmonrank.worlds._sampling import Sample, draw
from harmonrank.worlds._view import View, view_of


@dataclass(frozen=True, eq=False)
class World:
    """Logs with context c, latent logits z, labels y and upstream scores p̂, all known.

    z = μ(c, t) + Λf + σ⊙δ,  y_m ~ Bernoulli(sigmoid z_m),
    p̂_m = sigmoid(a_m o_m + b_m(c)),  o_m = z_m + τ_m(c) ε_m,  f, δ, ε standard normal.

    Four optional parts each break one of these assumptions: `backbone` correlates the ε,
    `hidden` makes z and ε mixtures, `interactions` adds to z what is no sum of effects, and
    `requests` adds to z and o what the rows of a request share.

    Given context and time the rows are independent, and z | p̂, c, t is normal in closed form, or
    a finite mixture of normals, so `posterior` is exact.

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
        backbone: κ, (objectives,): noise that upstream models share, so that the noise of m and n
            has the correlation κ_m κ_n. None: they share none.
        hidden: classes of rows that nobody sees.
        interactions: effects that do not add up.
        requests: effects that the rows of a request share.
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
    drift: WorldDrift | None = None
    swaps: tuple[Swap, ...] = ()
    backbone: Floats | None = None
    hidden: Hidden | None = None
    interactions: Interactions | None = None
    requests: RequestEffects | None = None

    def __post_init__(self) -> None:
        check_parts(self)

    @property
    def context(self) -> dict[str, int]:
        """The number of categories of every context feature."""
        return {name: len(share) for name, share in self.categories.items()}

    @property
    def classes(self) -> Hidden:
        """The hidden classes: a single one if nothing is hidden."""
        return Hidden.none(len(self.objectives)) if self.hidden is None else self.hidden

    @property
    def shared_noise(self) -> Floats:
        """κ, (objectives,): 0 without a backbone."""
        return np.zeros(len(self.objectives)) if self.backbone is None else self.backbone

    @property
    def request_effects(self) -> RequestEffects:
        """What the rows of a request share: nothing, if the world does not say."""
        none = RequestEffects.none(len(self.objectives))
        return none if self.requests is None else self.requests

    @property
    def covariance(self) -> Floats:
        """Σ = ΛΛᵀ + diag σ², the covariance of the latent logits given context and class."""
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
        return view_of(self, context, time)

    def effect(self, o: Floats, view: View, context: Mapping[str, NDArray[Any]]) -> Floats:
        """Return h, what interactions add to the latent logits, (rows, objectives)."""
        if self.interactions is None:
            return np.zeros_like(o)
        return self.interactions.at(o - view.mu, context)

    def posterior(
        self,
        scores: Floats,
        context: Mapping[str, NDArray[Any]],
        time: Floats | None = None,
        *,
        nodes: int = NODES,
        request: Floats | None = None,
    ) -> Floats:
        """Return p_m given all scores, the context and the time, (rows, objectives): exact.

        A fusion does not see the time, so under drift this is a little more than it could know;
        nor does it see what a request has drawn.

        Args:
            scores: (rows, objectives), strictly inside (0, 1); NaN where one is missing: p_m is
                then given the others. Interactions, which depend on all scores, rule that out.
            context: category numbers of every feature, one per row.
            time: 0 for all rows if left out.
            nodes: size of the Gauss–Hermite rule.
            request: (rows, effects), what each row's request has drawn; p_m is then given that too,
                and else averaged over what it may be, given the row alone.
        """
        check_shape("scores", scores, (len(scores), len(self.objectives)))
        view = self.at(context, np.zeros(len(scores)) if time is None else time)
        o = (np.log(scores) - np.log1p(-scores) - view.b) / view.a
        missing = np.isnan(o)
        if missing.any():
            if self.interactions is not None:
                raise UsageError(
                    f"The world '{self.name}' has interactions of all scores, so that its exact "
                    "probabilities need all of them. Got some that are missing."
                )
            o = np.where(missing, view.mu, o)
            view = replace(view, tau=np.where(missing, np.inf, view.tau))
        effect = self.effect(o, view, context)
        effects = self.request_effects
        if request is None:
            return conditional_probabilities(self, o, view, effect, nodes, effects)
        o = o - effects.scores(request) + effects.chances(request)
        view = replace(view, mu=view.mu + effects.chances(request))
        return conditional_probabilities(self, o, view, effect, nodes)

    def with_prevalence(self, prevalence: Sequence[float]) -> "World":
        """Return the world whose intercepts give each objective this share of positives."""
        return replace(self, mu=Additive(intercepts(self, prevalence), self.mu.effects))

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
            backbone=None if self.backbone is None else self.backbone[keep],
            hidden=None if self.hidden is None else self.hidden.take(keep),
            interactions=None if self.interactions is None else self.interactions.take(keep),
            requests=None if self.requests is None else self.requests.take(keep),
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
        drift = WorldDrift(slope, np.full(M, mu_amplitude / 2), m / M)
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
