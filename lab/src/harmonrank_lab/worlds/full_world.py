"""World: a world that may change over time, lose objectives, or break an assumption."""

__all__ = ["Unseen", "World"]

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from harmonrank.support import UsageError, did_you_mean
from harmonrank.worlds import (
    Additive,
    Draws,
    PlainWorld,
    View,
    block_generator,
    conditional,
    mean_sigmoid,
    runs_of,
)
from harmonrank_lab.worlds.checks import check_parts
from harmonrank_lab.worlds.parts import (
    Codes,
    Floats,
    Hidden,
    Interactions,
    Swap,
    WorldDrift,
    category_of,
)
from harmonrank_lab.worlds.shared_effects import RequestEffects, Users

_NEGLIGIBLE = 1e-14
"""Hidden classes less likely than this change no probability by 1e-13."""


@dataclass(frozen=True, eq=False)
class LabView(View):
    """What holds at some rows.

    Attributes:
        gain: (rows, factors), how much the common factors weigh.
        missed: (rows, objectives), what time has added to the mean logits unseen by upstream.
    """

    gain: Floats
    missed: Floats


@dataclass(frozen=True, eq=False)
class Unseen:
    """The randomness of rows that no column tells.

    Attributes:
        backbone: (rows,), standard normal: the noise that all upstream models share.
        hidden: (rows,), uniform; it decides on the hidden class.
        request: (rows, effects), standard normal, equal within a request.
    """

    backbone: Floats
    hidden: Floats
    request: Floats


@dataclass(frozen=True, eq=False)
class World(PlainWorld):
    """A plain world, and what may be added to it.

    Means may drift and upstream models be swapped over time. Four parts each break an assumption
    of a plain world: `backbone` correlates the ε, `hidden` makes z and ε mixtures, `interactions`
    adds to z what is no sum of effects, and `requests` adds to z and o what the rows of a request
    share. z | p̂, c, t stays a finite mixture of normals, so `posterior` is exact.

    >>> tiny = World(
    ...     name="tiny", objectives=("buy", "like"), categories={"gender": np.array([0.7, 0.3])},
    ...     loadings=np.array([[1.0], [0.5]]), own=np.ones(2), mu=Additive(np.zeros(2)),
    ...     log_tau=Additive(np.zeros(2)), a=np.ones(2), b=Additive(np.zeros(2)))
    >>> sample = tiny.with_prevalence([0.01, 0.3]).sample(1000, seed=1)
    >>> sample.labels.mean(0), sample.truth.mean(0).round(4)
    (array([0.006, 0.319]), array([0.0099, 0.3019]))

    Attributes:
        drift: how μ moves over time.
        swaps: replacements of upstream models, applied in order.
        backbone: κ, (objectives,): noise that upstream models share, so that the noise of m and n
            has the correlation κ_m κ_n. None: they share none.
        hidden: classes of rows that nobody sees.
        interactions: effects that do not add up.
        requests: effects that the rows of a request share.
        users: who asks, where users come back.
        item_columns: by context features that differ from one candidate to the next, the share of
            candidates that have the same category as others of their request.
        nested: by a context feature, the one that it lies in, and in which category of it each of
            its own lies.
        hidden_at: the truth of samples is given that what is hidden from upstream adds so many of
            its standard deviations to each logit; None: it is averaged over that.
    """

    drift: WorldDrift | None = None
    swaps: tuple[Swap, ...] = ()
    backbone: Floats | None = None
    hidden: Hidden | None = None
    interactions: Interactions | None = None
    requests: RequestEffects | None = None
    users: Users | None = None
    item_columns: Mapping[str, float] = field(default_factory=dict)
    nested: Mapping[str, tuple[str, NDArray[np.int16]]] = field(default_factory=dict)
    hidden_at: float | None = None

    def __post_init__(self) -> None:
        check_parts(self)

    @classmethod
    def of(cls, plain: PlainWorld) -> Self:
        """Return the same world, ready for changes."""
        return cls(**{field.name: getattr(plain, field.name) for field in fields(PlainWorld)})

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

    def at(self, context: Codes, time: Floats) -> LabView:
        """Return means, noise and upstream scale at rows with this context and time."""
        plain = PlainWorld.at(self, context, time)
        gain = np.ones((len(time), self.loadings.shape[1]))
        if self.interactions is not None:
            gain = np.exp(self.interactions.gain.at(context, len(time)))
        missed = np.zeros_like(plain.mu)
        view = LabView(plain.mu, plain.tau, plain.a, plain.b, gain, missed)
        if self.drift is not None:
            moved = view.mu if self.drift.followed else view.missed
            # The last block has rows beyond the horizon, which no sample takes.
            moved[:] += self.drift.at(np.minimum(time, 1.0), context)
        for swap in self.swaps:
            columns = np.array(self._columns(swap.objectives))
            cells = np.ix_(np.flatnonzero(time >= swap.at), columns)
            view.a[cells] *= swap.a
            view.b[cells] += swap.b
            view.tau[cells] *= swap.tau_scale
        return view

    def effect(self, o: Floats, view: LabView, context: Codes) -> Floats:
        """Return h, what is added to the latent logits after upstream, (rows, objectives)."""
        if self.interactions is None:
            return view.missed
        return view.missed + self.interactions.at(o - view.mu, context)

    def latent(self, view: LabView, draws: Draws, unseen: Unseen) -> tuple[Floats, Floats]:
        """Return the logits of the labels and what upstream observes, each (rows, objectives)."""
        hidden, shared, effects = self.classes, self.shared_noise, self.request_effects
        kind = category_of(hidden.shares, unseen.hidden)
        z = view.mu + (view.gain * draws.factors) @ self.loadings.T + self.own * draws.own
        z += hidden.chance[kind]
        noise = np.sqrt(1 - shared**2) * draws.noise + shared * unseen.backbone[:, None]
        o = z + hidden.score[kind] + view.tau * hidden.noise[kind, None] * noise
        z += self.effect(o, view, draws.context)
        z += effects.chances(unseen.request) + effects.unseen(unseen.request)
        return z, o + effects.scores(unseen.request)

    def latent_block(self, seed: int, block: int) -> Floats:
        """Return the logits of the labels of a block at time 0, (rows, objectives)."""
        draws = self._drawn(seed, block)
        return self._latent(self.at(draws.context, np.zeros(len(draws.request))), draws)[0]

    def _drawn(self, seed: int, block: int) -> Draws:
        draws, rng = super()._drawn(seed, block), block_generator(seed, block, 0, 2)
        if self.users is not None:
            for name, uniform in self.users.drawn(seed, draws.request)[1].items():
                draws.context[name][:] = category_of(self.categories[name], uniform)
        for name, share in self.item_columns.items():
            own, uniform = rng.random((2, len(draws.request)))
            category = category_of(self.categories[name], uniform)
            draws.context[name] = np.where(own < share, draws.context[name], category)
        for name, (parent, codes) in self.nested.items():
            draws.context[parent] = codes[draws.context[name]]
        return draws

    def _unseen(self, draws: Draws) -> Unseen:
        rng = block_generator(draws.seed, draws.block, 0, 0)
        rows, firsts = len(draws.request), np.diff(draws.request, prepend=-1) != 0
        backbone, hidden = rng.standard_normal(rows), rng.random(rows)
        rng = block_generator(draws.seed, draws.block, 0, 1)
        every = rng.standard_normal((firsts.sum(), self.request_effects.count))
        shared = every[np.cumsum(firsts) - 1]
        if self.users is not None:
            shared[:, -self.users.effects :] = self.users.drawn(draws.seed, draws.request)[0]
        return Unseen(backbone, hidden, shared)

    def _latent(self, view: View, draws: Draws) -> tuple[Floats, Floats]:
        assert isinstance(view, LabView)
        return self.latent(view, draws, self._unseen(draws))

    def _truth(self, scores: Floats, view: View, draws: Draws) -> Floats:
        assert isinstance(view, LabView)
        drawn = None if self.requests is None else self._unseen(draws).request
        return self._posterior(scores, view, draws.context, drawn)

    def posterior(
        self,
        scores: Floats,
        context: Codes,
        time: Floats | None = None,
        *,
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
            request: (rows, effects), what each row's request has drawn; p_m is then given what
                upstream observes of it, and else averaged over it, given the row alone.
        """
        view = self.at(context, np.zeros(len(scores)) if time is None else time)
        return self._posterior(scores, view, context, request)

    def _posterior(
        self, scores: Floats, view: LabView, context: Codes, request: Floats | None
    ) -> Floats:
        o = (np.log(scores) - np.log1p(-scores) - view.b) / view.a
        if np.isnan(o).any():
            if self.interactions is not None:
                raise UsageError(
                    f"The world '{self.name}' has interactions of all scores, so that its exact "
                    "probabilities need all of them. Got some that are missing."
                )
            view = replace(view, tau=np.where(np.isnan(o), np.inf, view.tau))
            o = np.where(np.isnan(o), view.mu, o)
        effect, unknown = self.effect(o, view, context), self.request_effects
        if request is not None:
            o = o - unknown.scores(request) + unknown.chances(request)
            view = replace(view, mu=view.mu + unknown.chances(request))
            unknown = replace(RequestEffects.none(o.shape[1]), hidden=unknown.hidden)
        if self.hidden_at is not None:
            effect = effect + self.hidden_at * np.sqrt(unknown.hidden_variance)
            unknown = replace(unknown, hidden=None)
        return self._mixture(o, view, effect, unknown)

    def _mixture(self, o: Floats, view: LabView, effect: Floats, unknown: RequestEffects) -> Floats:
        """Return p_m = E[σ(z_m + h_m) | o] over the hidden classes, (rows, objectives).

        In class k, z | o is normal with mean μ_k + ΣA⁻¹(o − μ_k − score_k), μ_k = μ + chance_k,
        A = Σ + noise_k² N and N the covariance of the noise. The classes weigh
        share_k · N(o; μ_k + score_k, A). Of requests whose effects are unknown, ΓΓᵀ is added to Σ,
        EEᵀ to A, and HHᵀ to the covariance of z | o.
        """
        hidden, shared, _M = self.classes, self.shared_noise, o.shape[1]
        run, firsts = runs_of(view.tau, view.gain)
        loadings = self.loadings * view.gain[firsts, None, :]  # (runs, M, factors)
        prior = loadings @ loadings.transpose(0, 2, 1) + np.diag(self.own**2) + unknown.covariance
        tau, common = view.tau[firsts], np.outer(shared, shared)
        np.fill_diagonal(common, 1.0)
        with np.errstate(invalid="ignore"):
            noise = tau[:, :, None] * tau[:, None, :] * common  # (runs, M, M)
        given = [
            conditional(o - view.mu - chance - score, run, prior, level**2 * noise + unknown.noise)
            for chance, score, level in zip(hidden.chance, hidden.score, hidden.noise, strict=True)
        ]
        weights = np.array([one.log_density for one in given])
        weights += np.log(np.maximum(hidden.shares, 1e-300))[:, None]
        # The largest is taken out first, so that no exponential overflows and one of them is 1.
        weights = np.exp(weights - weights.max(axis=0))
        weights /= weights.sum(axis=0)
        p = np.zeros_like(o)
        for one, chance, weight in zip(given, hidden.chance, weights, strict=True):
            rows = np.flatnonzero(weight > _NEGLIGIBLE)
            mean = (view.mu + effect + chance + one.shift)[rows]
            spread = np.sqrt(one.spread**2 + unknown.hidden_variance)
            p[rows] += weight[rows, None] * mean_sigmoid(mean, spread, run[rows])
        return p

    def with_prevalence(self, prevalence: Sequence[float]) -> Self:
        """Return the world whose intercepts give each objective this share of positives."""
        from harmonrank_lab.worlds.redraws import intercepts

        return replace(self, mu=Additive(intercepts(self, prevalence), self.mu.effects))

    def subset(self, objectives: Sequence[str]) -> Self:
        """Return the world of these objectives only: p_m is then given their scores only.

        Its samples are the columns of this world's samples of the same seed.
        """
        keep = self._columns(objectives)
        swaps = tuple(
            replace(swap, objectives=tuple(o for o in swap.objectives if o in objectives))
            for swap in self.swaps
            if set(swap.objectives) & set(objectives)
        )
        arrays = ("loadings", "own", "a", "backbone")
        parts = ("mu", "log_tau", "b", "drift", "hidden", "interactions", "requests")
        had = {name: part for name in arrays + parts if (part := getattr(self, name)) is not None}
        kept = {n: part[keep] if n in arrays else part.take(keep) for n, part in had.items()}
        return replace(self, **kept, objectives=tuple(objectives), swaps=swaps)

    def with_upstream(
        self, objectives: Sequence[str], *, a: float = 1.0, b: float = 0.0, tau_scale: float = 1.0
    ) -> Self:
        """Return the world after the upstream models of these objectives were replaced."""
        return self.drifting(swap=Swap(0.0, tuple(objectives), a, b, tau_scale))

    def drifting(self, *, mu_amplitude: float = 0.0, swap: Swap | None = None) -> Self:
        """Return the world whose μ moves over time and whose upstream is swapped once.

        Δμ_m(t) = ±A t + A/2 (sin 2π(t + m/M) − sin 2πm/M), the sign alternating from one
        objective to the next, so that effective weights and prevalences move apart.
        """
        M = len(self.objectives)
        m = np.arange(M)
        slope = np.where(m % 2, -mu_amplitude, mu_amplitude)
        drift = WorldDrift(Additive(slope), np.full(M, mu_amplitude / 2), m / M)
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
