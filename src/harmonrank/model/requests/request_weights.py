"""Request weights: what a unit of probability is worth in the request that a row is likely to have.

Within a request the best score is Σ_m w_m κ_m(g) p_m(g), eq. 4 of docs/per-request.md, which knows
the request. A score that looks at the row alone can at best have the same differences within a
request on average: eq. 6 of docs/per-request.md,

    s = Σ_m w_m κ_m(z) p_m,   κ_m(z) = c_m + Σ_j a_mj z_j + Σ_j≤k B_mjk z_j z_k,

with p_m the heads' probabilities and z_j their standardised logits, kept within the range of the
fit. `harmonrank.model.requests.request_fit` finds the coefficients.
"""

__all__ = ["RequestWeights", "put_terms", "term_count"]

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from harmonrank.support.kernel import inline_kernel, kernel
from harmonrank.support.logistic import SMALLEST_PROBABILITY, logit_of
from harmonrank.support.storage.arrays import Array

_EACH = Array(("M",), low=-1e9, high=1e9)


@dataclass(frozen=True)
class RequestWeights:
    """κ of every objective as a function of the heads' logits.

    Attributes:
        centre, unit: (M,) z = (logit − centre)/unit.
        low, high: (M,) ends of z.
        terms: (M, 1 + M + M(M + 1)/2): c, a, then B row by row.
        mean: (M,) mean of κ over the rows of the fit, each by its p: what an event is worth.
    """

    centre: Annotated[np.ndarray, _EACH]
    unit: Annotated[np.ndarray, Array(("M",), low=1e-9, high=1e9)]
    low: Annotated[np.ndarray, _EACH]
    high: Annotated[np.ndarray, _EACH]
    terms: Annotated[np.ndarray, Array(("M", "terms"), low=-1e12, high=1e12)]
    mean: Annotated[np.ndarray, _EACH]

    def parts(self, p: np.ndarray) -> np.ndarray:
        """Return κ_m(z) p_m, what an objective of weight 1 adds to the score, (rows, M)."""
        out = np.empty(p.shape)
        given = self.centre, 1 / self.unit, self.low, self.high, self.terms
        _write_parts(np.ascontiguousarray(p, np.float64), *given, out)
        return out


def term_count(M: int) -> int:
    """Return how many terms κ has."""
    return 1 + M + M * (M + 1) // 2


@inline_kernel
def put_terms(p: Any, centre: Any, inverse: Any, low: Any, high: Any, z: Any, out: Any) -> None:
    """Write 1, z and the products of z of one row."""
    M = p.size
    out[0], place = 1.0, 1 + M
    for j in range(M):
        logit = logit_of(p[j], SMALLEST_PROBABILITY)
        z[j] = min(max((logit - centre[j]) * inverse[j], low[j]), high[j])
        out[1 + j] = z[j]
    for j in range(M):
        for k in range(j + 1):
            out[place] = z[j] * z[k]
            place += 1


@kernel
def _write_parts(
    p: Any, centre: Any, inverse: Any, low: Any, high: Any, terms: Any, out: Any
) -> None:
    """Write κ_m(z) p_m of every row."""
    rows, M = p.shape
    z, x = np.empty(M), np.empty(terms.shape[1])
    for i in range(rows):
        put_terms(p[i], centre, inverse, low, high, z, x)
        for m in range(M):
            kappa = 0.0
            for k in range(x.size):
                kappa += terms[m, k] * x[k]
            out[i, m] = kappa * p[i, m]
