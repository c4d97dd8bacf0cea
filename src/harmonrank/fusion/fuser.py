"""Fuser: scores and context codes to fused scores, and to what each objective adds to them."""

__all__ = ["Fuser", "require_probabilities"]

from collections.abc import Mapping
from dataclasses import dataclass
from math import fsum
from typing import Any

import numpy as np

from harmonrank.data import Log, Schema
from harmonrank.data.values import either
from harmonrank.fusion.fitted import Fitted
from harmonrank.fusion.protocol import State, Traits
from harmonrank.fusion.weights import Weights, weighted_sum
from harmonrank.support.errors import DataError, UsageError


@dataclass(frozen=True, eq=False)
class Fuser:
    """A fitted model as a function of arrays.

    Arguments of its methods are scores, (rows, M), and codes of the context, (rows, features), or
    (1, features) where all rows share one.

    Attributes:
        name: Of the method.
        schema: Which objectives there are, and of which kinds.
        traits: What the method can do.
        fitted: What every model keeps.
        state: What the method has learned.
        optimises: Which AUC the fit is for, over "all" rows or within "requests".
    """

    name: str
    schema: Schema
    traits: Traits
    fitted: Fitted
    state: State
    optimises: str = "all"

    def weights(
        self, weights: Mapping[str, float] | None = None, value: Mapping[str, float] | None = None
    ) -> Weights:
        """Return what each objective counts; as in the schema where nothing is given."""
        either(weights, value)
        worth = self.schema.values_with(value) if weights is None else None
        if worth is None:
            return Weights(self.schema.weights_with(weights))
        self.require_probabilities("rank by value")
        pi = self.fitted.prevalence
        return Weights(worth * pi * (1 - pi), by_value=True)

    def asked(
        self, weights: Mapping[str, float] | None, value: Mapping[str, float] | None
    ) -> Weights:
        """Return the weights that a call asks for, or else those of the fit."""
        if weights is not None:
            self.require_probabilities("change its weights")
        return self.weights(weights, value)

    def effective(self, weights: Weights) -> dict[str, float]:
        """Return what a unit of each objective's probability counts, as shares of 1."""
        counted = self.per_unit(weights)
        shares = counted / np.abs(counted).sum()
        return dict(zip(self.schema.names, shares.tolist(), strict=True))

    def require_probabilities(self, purpose: str = "give them") -> None:
        """Refuse what a method without probabilities cannot do."""
        require_probabilities(self.name, self.traits, purpose)

    @property
    def request_weights(self) -> Any:
        """What a unit of probability counts in a row, where the fit is for requests."""
        return getattr(self.state, "request_weights", None)

    def _request_weights(self, weights: Weights) -> Any:
        """Return the same for these weights; values per event have a best score of their own."""
        return None if weights.by_value else self.request_weights

    def score(self, scores: np.ndarray, codes: np.ndarray, weights: Weights) -> np.ndarray:
        """Return fused scores as they are given out: mapped, if they are aligned."""
        fused = self.fused(scores, codes, weights)
        curve = self.fitted.map_of(weights.counted) if self.fitted.maps else None
        return fused if curve is None else _finite(curve(fused))

    def fused(self, scores: np.ndarray, codes: np.ndarray, weights: Weights) -> np.ndarray:
        """Return fused scores: eq. 10 of docs/default-method.md where the method knows p.

        With the true probabilities it is the best score there is for Σ_m w_m AUC_m.
        """
        scores = self._expected(scores, codes)
        if not self.traits.probabilities:
            return _finite(self.state.scores(scores, codes))
        plain = self.fitted.kinds is None and self._request_weights(weights) is None
        if plain and hasattr(self.state, "fused"):
            return _finite(self.state.fused(scores, codes, self.per_unit(weights)))
        heads = self.state.probabilities(scores, codes)
        return _finite(weighted_sum(*self._terms(heads, weights)))

    def heads(self, scores: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Return what the method says of each objective, (rows, M)."""
        heads: np.ndarray = self.state.probabilities(self._expected(scores, codes), codes)
        return heads

    def amounts(self, heads: np.ndarray) -> np.ndarray:
        """Return heads as people read them: graded objectives in their own units."""
        kinds = self.fitted.kinds
        return heads if kinds is None else kinds.amounts(self.schema, heads)

    def parts(self, heads: np.ndarray, weights: Weights) -> np.ndarray:
        """Return what each objective adds to the fused score of rows with these heads, (rows, M).

        w_m p_m/(π_m(1−π_m)), or v_m p_m with values; where the fit is for requests w_m κ_m(z) p_m
        of `RequestWeights`.
        """
        terms, counted = self._terms(heads, weights)
        parts: np.ndarray = terms * counted
        return parts

    def parts_of(self, p: np.ndarray, weights: Weights) -> np.ndarray:
        """Return the same of what `Method.probabilities` gives."""
        kinds = self.fitted.kinds
        return self.parts(p if kinds is None else kinds.heads(self.schema, p), weights)

    def gains(self, log: Log, weights: np.ndarray) -> np.ndarray:
        """Return what a unit of weight adds to each row, (rows, M): Σ_m w_m gains_m is the score.

        p_m/(π_m(1−π_m)) of plain events. Whether a conditional objective is alone decides about
        its gains, so that they depend on which weights are 0.
        """
        heads = self.heads(log.scores, self.fitted.codes(log))
        terms, _ = self._terms(heads, Weights(weights))
        if self.request_weights is not None:
            return terms
        gains: np.ndarray = terms * self.per_unit(Weights(np.ones(len(weights))))
        return gains

    def contributions(self, scores: np.ndarray, codes: np.ndarray, weights: Weights) -> np.ndarray:
        """Return the parts of each row, which add up to its fused score to the last bit."""
        parts = self.parts(self.heads(scores, codes), weights)
        for row, total in zip(parts, self.fused(scores, codes, weights).tolist(), strict=True):
            _add_up(row, total)
        return parts

    def per_unit(self, weights: Weights) -> np.ndarray:
        """Return what a unit of probability counts, (M,); the mean where that differs by row."""
        if (own := self._request_weights(weights)) is not None:
            counted: np.ndarray = weights.counted * own.mean
            return counted
        return weights.per_unit(self.fitted.prevalence)

    def _expected(self, scores: np.ndarray, codes: np.ndarray) -> np.ndarray:
        return self.fitted.expected(scores, codes, missing=self.traits.missing)

    def _terms(self, heads: np.ndarray, weights: Weights) -> tuple[np.ndarray, np.ndarray]:
        """Return columns, (rows, M), and what each of them counts, (M,)."""
        if (own := self._request_weights(weights)) is not None:
            parts: np.ndarray = own.parts(heads)
            return parts, weights.counted
        fitted = self.fitted
        terms = weights.terms(self.schema, heads, fitted.prevalence, fitted.kinds)
        return terms, self.per_unit(weights)


def require_probabilities(name: str, traits: Traits, purpose: str) -> None:
    """Refuse what needs probabilities of a method that has none."""
    if not traits.probabilities:
        raise UsageError(
            f"{name} knows no probability of an objective, so it cannot {purpose} after the fit; "
            "use a method such as harmonrank."
        )


def _finite(fused: np.ndarray) -> np.ndarray:
    """Return fused scores, or refuse those that no ranking can use."""
    if not np.isfinite(fused).all():
        raise DataError(
            "Some fused scores are not finite: the weights are too large, or the model is damaged; "
            "use weights around 1, or fit the model again."
        )
    return fused


def _add_up(row: np.ndarray, total: float) -> None:
    """Let a row add up to its total, from which it is a few roundings away."""
    size = np.abs(row)
    # On a small part, which is rounded finely; one that is next to nothing would be changed.
    least = int(np.where(size >= 1e-6 * size.max(), size, np.inf).argmin())
    for _ in range(3):
        left = fsum([total, *(-row).tolist()])
        if left == 0.0 or fsum(row.tolist()) == total:
            break
        row[least] += left
