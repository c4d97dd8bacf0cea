"""Interactions: effects on the latent logits that do not add up."""

__all__ = ["Interactions"]

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harmonrank.support import UsageError
from harmonrank.worlds import Additive
from harmonrank_lab.worlds.changes import Floats


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
