"""PlainWorld: a simulated log whose best possible ranking is known."""

__all__ = ["PlainWorld", "View", "upstream_scores"]

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harmonrank.support.logistic import SMALLEST_POSITIVE, logit, sigmoid
from harmonrank.worlds.draws import Additive, Draws, Floats, draw_block
from harmonrank.worlds.normal import conditional, mean_sigmoid, runs_of
from harmonrank.worlds.sample import Sample, sample_blocks

# Scores stay inside (0, 1) in float32 too: its largest number below 1 has a logit of 16.6, its
# smallest normal one −87.3. No preset gets as far as this.
_LOWEST, _HIGHEST = -80.0, 15.0


@dataclass(frozen=True, eq=False)
class View:
    """What holds at rows of a given context and time, each (rows, objectives).

    Attributes:
        mu: the mean logits.
        tau: the spread of the upstream noise.
        a: the upstream scale.
        b: the upstream offset.
    """

    mu: Floats
    tau: Floats
    a: Floats
    b: Floats


@dataclass(frozen=True, eq=False)
class PlainWorld:
    """Logs with context c, latent logits z, labels y and upstream scores p̂, all known.

    z = μ(c) + Λf + σ⊙δ,  y_m ~ Bernoulli(sigmoid z_m),
    p̂_m = sigmoid(a_m o_m + b_m(c)),  o_m = z_m + τ_m(c) ε_m,  f, δ, ε standard normal.

    Given the context the rows are independent and z | p̂, c is normal in closed form, so the truth
    of a sample is exact.

    Attributes:
        categories: per context feature the share of each category.
        loadings: Λ, (objectives, factors).
        own: σ, (objectives,), above 0.
        mu: mean logit.
        log_tau: log of the spread of the upstream noise.
        a: (objectives,), above 0.
        b: upstream offset.
        request_rows: fewest and most candidates of a request; all sizes between are as likely.
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

        def empty(count: int) -> Sample:
            return Sample.empty(self.objectives, self.categories, count, with_truth=with_truth)

        def block_of(block: int, horizon: float) -> Sample:
            return self._block(self._drawn(seed, block), horizon, with_truth=with_truth)

        return sample_blocks(empty, block_of, rows, seed, start, horizon)

    def at(self, context: Mapping[str, NDArray[Any]], time: Floats) -> View:
        """Return means, noise and upstream scale at rows with this context and time."""
        rows = len(time)
        tau, a = np.exp(self.log_tau.at(context, rows)), np.tile(self.a, (rows, 1))
        return View(self.mu.at(context, rows), tau, a, self.b.at(context, rows))

    def _drawn(self, seed: int, block: int) -> Draws:
        factors = self.loadings.shape[1]
        return draw_block(seed, block, self.objectives, self.categories, factors, self.request_rows)

    def _block(self, draws: Draws, horizon: float, *, with_truth: bool) -> Sample:
        time = draws.request / horizon
        view = self.at(draws.context, time)
        z, o = self._latent(view, draws)
        labels = (draws.label < sigmoid(z)).astype(np.uint8)
        scores = upstream_scores(view, o).astype(np.float64)
        # From the scores as stored, not from o: the truth is given what a fusion sees.
        truth = self._truth(scores, view, draws) if with_truth else None
        return Sample(scores, labels, draws.context, draws.request, time, truth)

    def _latent(self, view: View, draws: Draws) -> tuple[Floats, Floats]:
        """Return the logits of the labels and what upstream observes, each (rows, objectives)."""
        z = view.mu + draws.factors @ self.loadings.T + self.own * draws.own
        return z, z + view.tau * draws.noise

    def _truth(self, scores: Floats, view: View, draws: Draws) -> Floats:  # noqa: ARG002
        """Return p_m given all scores and the context, (rows, objectives)."""
        o = (logit(scores, SMALLEST_POSITIVE) - view.b) / view.a
        run, firsts = runs_of(view.tau)
        noise = view.tau[firsts, :, None] ** 2 * np.eye(o.shape[1])
        prior = np.broadcast_to(self.covariance, noise.shape)
        given = conditional(o - view.mu, run, prior, noise)
        return mean_sigmoid(view.mu + given.shift, given.spread, run)


def upstream_scores(view: View, o: Floats) -> NDArray[np.float32]:
    """Return p̂ = σ(a o + b), strictly inside (0, 1)."""
    return sigmoid(np.clip(view.a * o + view.b, _LOWEST, _HIGHEST)).astype(np.float32)
