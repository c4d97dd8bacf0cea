"""Fitting request weights: rows of a request are compared with each other and with no one else.

What a row function can know of the best score of its request, eq. 4 of docs/per-request.md, is a
regression with request effects, eq. 7 of docs/per-request.md: for each objective the κ whose κ p
differs within a request as κ_m(g) p_m(g) does, in the mean square. The latter are estimated with
the labels of the whole request, by `fit_levels`, so that targets have hardly any label noise.
"""

__all__ = ["fit_request_weights"]

from dataclasses import replace
from typing import Any

import numpy as np

from harmonrank.metrics import expected_grouped_auc, request_gains
from harmonrank.model.requests.request_levels import fit_levels
from harmonrank.model.requests.request_weights import RequestWeights, put_terms, term_count
from harmonrank.support.kernel import kernel
from harmonrank.support.logistic import clipped, logit
from harmonrank.support.parallel import each_part

_ENDS = (0.001, 0.999)  # Quantiles beyond which z stays as it is.
# Of the mean square of a column within requests: rounding, and what the data leave open.
_RIDGE = 1e-6
_SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
_JUDGED_ROWS = 200_000


def fit_request_weights(
    p: np.ndarray,
    request: np.ndarray,
    labels: np.ndarray,
    weights: np.ndarray,
    sample_weight: np.ndarray | None = None,
) -> RequestWeights:
    """Fit κ so that κ p orders each request as well as a function of the row can.

    Args:
        p: (rows, M) probabilities of heads that look at rows alone.
        request: (rows,) numbers or names of requests.
        labels: (rows, M) of 0 and 1.
        weights: (M,) what each objective counts.
        sample_weight: (rows,).
    """
    codes = np.unique(request, return_inverse=True)[1].reshape(-1)
    order = np.argsort(codes, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(codes))])
    p, codes = clipped(p[order]), codes[order]
    w = np.ones(len(p)) if sample_weight is None else sample_weight[order].astype(np.float64)
    h = logit(p)
    inside = fit_levels(h, starts, labels[order], w).probabilities
    target = request_gains(inside, codes) * inside
    centre, unit = h.mean(axis=0), np.maximum(h.std(axis=0), 1e-6)
    low, high = np.quantile((h - centre) / unit, _ENDS, axis=0)
    found = RequestWeights(
        centre,
        unit,
        low,
        high,
        np.zeros((p.shape[1], term_count(p.shape[1]))),
        np.ones(len(weights)),
    )
    bent = replace(found, terms=_regressed(found, p, starts, w, target))
    pi = (w @ p) / w.sum()
    straight = replace(found, terms=found.terms.copy())
    straight.terms[:, 0] = 1 / (pi * (1 - pi))
    found = _best_between(straight, bent, p, inside, codes, weights)
    # What an event is worth on average: rows count by their probability.
    return replace(found, mean=(w @ found.parts(p)) / (w @ p))


def _regressed(
    scale: RequestWeights, p: np.ndarray, starts: np.ndarray, w: np.ndarray, target: np.ndarray
) -> np.ndarray:
    """Return the terms whose κ p is nearest to the target within requests, (M, terms)."""
    M = p.shape[1]
    terms = np.empty((M, term_count(M)))

    def fit(m: int) -> None:
        gram, pull = np.zeros((term_count(M), term_count(M))), np.zeros(term_count(M))
        wanted = np.ascontiguousarray(target[:, m])
        given = scale.centre, 1 / scale.unit, scale.low, scale.high
        _add_within(m, p, starts, w, wanted, *given, gram, pull)
        size = np.sqrt(np.maximum(np.diagonal(gram), 1e-300))
        whole = gram / np.outer(size, size) + _RIDGE * np.eye(len(pull))
        terms[m] = np.linalg.solve(whole, pull / size) / size

    each_part(fit, M)
    return terms


def _best_between(
    straight: RequestWeights,
    bent: RequestWeights,
    p: np.ndarray,
    inside: np.ndarray,
    codes: np.ndarray,
    weights: np.ndarray,
) -> RequestWeights:
    """Return the mixture of both that orders requests best, by the probabilities within them.

    A regression is nearest in the mean square, which is not quite the best order: where levels do
    not differ, the weights over all rows are often as good. This is the criterion itself.
    """
    # Whole requests, spread evenly over the log.
    some = codes % max(1, -(-len(p) // _JUDGED_ROWS)) == 0
    p, inside, codes = p[some], inside[some], codes[some]
    pull = np.abs(weights)
    sizes = [pull @ each.parts(p).std(axis=0) for each in (straight, bent)]
    if not sizes[1] > 0:  # no request has two rows
        return straight
    reached, mixtures = [], []
    for share in _SHARES:
        terms = (1 - share) * straight.terms + share * (sizes[0] / sizes[1]) * bent.terms
        mixtures.append(replace(straight, terms=terms))
        areas = expected_grouped_auc(mixtures[-1].parts(p) @ weights, inside, codes)
        reached.append(float(np.nansum(weights * areas)))
    return mixtures[int(np.argmax(reached))]


@kernel
def _add_within(
    m: int, p: Any, starts: Any, w: Any, target: Any, centre: Any, inverse: Any, low: Any,
    high: Any, gram: Any, pull: Any,
) -> None:  # fmt: skip
    """Add up Σ x xᵀ and Σ x t of p_m times the terms, each row as its distance from its request."""
    M, width = p.shape[1], pull.size
    longest = np.max(np.diff(starts))
    x, z, mean = np.empty((longest, width)), np.empty(M), np.empty(width)
    for g in range(starts.size - 1):
        first, n = starts[g], starts[g + 1] - starts[g]
        mean[:], level, total = 0.0, 0.0, 0.0
        for i in range(n):
            row = first + i
            put_terms(p[row], centre, inverse, low, high, z, x[i])
            total += w[row]
            level += w[row] * target[row]
            for k in range(width):
                x[i, k] *= p[row, m]
                mean[k] += w[row] * x[i, k]
        if total == 0.0:
            continue
        for i in range(n):
            row = first + i
            away = target[row] - level / total
            for k in range(width):
                x[i, k] -= mean[k] / total
                pull[k] += w[row] * x[i, k] * away
                for j in range(k + 1):
                    gram[k, j] += w[row] * x[i, k] * x[i, j]
    for k in range(width):
        for j in range(k):
            gram[j, k] = gram[k, j]
