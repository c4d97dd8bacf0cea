"""Fitting request weights: rows of a request are compared with each other and with no one else.

What a row function can know of the best score of its request, eq. 4 of docs/per-request.md, is a
regression with request effects, eq. 7 of docs/per-request.md: for each objective the κ whose κ p
differs within a request as κ_m(g) p_m(g) does, in the mean square. The latter are estimated with
the labels of the whole request, by `fit_levels`, so that targets have hardly any label noise.

How far κ may leave the weights over all rows, unseen labels decide: κ is fitted without each part
of the log, and mixtures are tried within the requests of that part.
"""

__all__ = ["fit_request_weights"]

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np

from harmonrank.metrics import request_areas, request_gains, unit_sums
from harmonrank.model.linear.averaging import request_folds
from harmonrank.model.requests.request_levels import fit_levels
from harmonrank.model.requests.request_weights import RequestWeights, put_terms, term_count
from harmonrank.support.kernel import kernel
from harmonrank.support.logistic import clipped, logit
from harmonrank.support.parallel import each_part

_ENDS = (0.001, 0.999)  # Quantiles beyond which z stays as it is.
# Of the mean square of a column within requests: rounding, and what the data leave open.
_RIDGE = 1e-6
_SHARES = np.array([0.0, 0.25, 0.5, 0.75, 1.0])
_DRAWS = 256
_LEAST_GAIN = 5e-4  # Of AUC, per objective; for less, scoring is not made slower.


@dataclass(frozen=True)
class _Rows:
    """Rows whose requests lie together.

    Attributes:
        p: (rows, M) probabilities of heads that look at rows alone.
        request: (rows,) ascending numbers.
        labels: (rows, M).
        weight: (rows,).
        unit: (rows,) what alone is independent: the user, or else the request.
    """

    p: np.ndarray
    request: np.ndarray
    labels: np.ndarray
    weight: np.ndarray
    unit: np.ndarray

    def taken(self, rows: np.ndarray) -> Self:
        """Return the rows of some requests."""
        request = np.unique(self.request[rows], return_inverse=True)[1].reshape(-1)
        about = self.labels[rows], self.weight[rows], self.unit[rows]
        return type(self)(self.p[rows], request, *about)


def fit_request_weights(
    p: np.ndarray,
    request: np.ndarray,
    labels: np.ndarray,
    sign: np.ndarray,
    sample_weight: np.ndarray | None = None,
    fold: np.ndarray | None = None,
    user: np.ndarray | None = None,
) -> RequestWeights | None:
    """Fit κ so that κ p orders each request as well as a function of the row can.

    Args:
        p: (rows, M) probabilities of heads that look at rows alone, and did not learn from these.
        request: (rows,) numbers or names of requests.
        labels: (rows, M) of 0 and 1.
        sign: (M,) −1 of unwanted objectives, 1 of others. All count alike, so that a fit for other
            weights is the same model.
        sample_weight: (rows,).
        fold: (rows,) the part of the log of each row; a request is in one of them. Thirds of the
            rows if left out.
        user: (rows,) who asked, where that is known: no two rows of one are independent.

    Returns:
        None where κ would hardly change the order within requests.
    """
    order = np.argsort(request, kind="stable")
    w = np.ones(len(p)) if sample_weight is None else sample_weight.astype(np.float64)
    rows = _Rows(clipped(p), request, labels, w, request if user is None else user).taken(order)
    fold = request_folds(rows.request) if fold is None else fold[order]
    share = _proven_share(rows, fold, sign)
    if share == 0:
        return None
    mixed = _mixed(*_straight_and_bent(rows), share, rows.p)
    # What an event is worth on average: rows count by their probability.
    return replace(mixed, mean=(rows.weight @ mixed.parts(rows.p)) / (rows.weight @ rows.p))


def _straight_and_bent(rows: _Rows) -> tuple[RequestWeights, RequestWeights]:
    """Return the weights over all rows, and those of the regression."""
    p, w = rows.p, rows.weight
    starts = np.concatenate([[0], np.cumsum(np.bincount(rows.request))])
    h = logit(p)
    inside = fit_levels(h, starts, rows.labels, w).probabilities
    target = request_gains(inside, rows.request) * inside
    centre, unit = h.mean(axis=0), np.maximum(h.std(axis=0), 1e-6)
    low, high = np.quantile((h - centre) / unit, _ENDS, axis=0)
    terms = np.zeros((p.shape[1], term_count(p.shape[1])))
    straight = RequestWeights(centre, unit, low, high, terms, np.ones(p.shape[1]))
    bent = replace(straight, terms=_regressed(straight, p, starts, w, target))
    pi = (w @ p) / w.sum()
    terms[:, 0] = 1 / (pi * (1 - pi))
    return straight, bent


def _mixed(
    straight: RequestWeights,
    bent: RequestWeights,
    share: float,
    p: np.ndarray,
) -> RequestWeights:
    """Return a mixture of scores that vary alike."""
    sizes = [each.parts(p).std(axis=0).sum() for each in (straight, bent)]
    if not sizes[1] > 0:  # No request has two rows.
        return straight
    terms = (1 - share) * straight.terms + share * (sizes[0] / sizes[1]) * bent.terms
    return replace(straight, terms=terms)


def _proven_share(rows: _Rows, fold: np.ndarray, sign: np.ndarray) -> float:
    """Return the mean of the shares that are best within requests that are drawn anew, by user.

    So it is as near to 0, to 1 and to the middle as unseen labels can tell. It is 0 where κ gains
    less than a standard error, or next to nothing.
    """
    if rows.p.shape[1] == 1:
        return 0.0  # One objective alone is ordered by its probability.
    parts = [_tried(rows, fold == k, sign) for k in np.unique(fold)]
    won, say = (np.concatenate(each) for each in zip(*parts, strict=True))
    drawn = np.random.default_rng(0).poisson(1.0, (_DRAWS, len(say))).astype(np.float64)
    total = (drawn @ say)[:, None]  # (draws, 1, M)
    areas = np.einsum("dg,gsm->dsm", drawn, won, optimize=True)
    sums = np.divide(areas, total, out=np.zeros_like(areas), where=total > 0) @ sign
    gains = sums - sums[:, :1]
    share = float(_SHARES[gains.argmax(axis=1)].mean())
    drawn_gain = gains[:, np.abs(_SHARES - share).argmin()]
    gain, error = float(drawn_gain.mean()), float(drawn_gain.std())
    if gain <= max(error, _LEAST_GAIN * len(sign)):
        return 0.0
    # What is hardly more than an error is shrunk to nothing.
    return share * (1 - (error / gain) ** 2)


def _tried(rows: _Rows, held: np.ndarray, sign: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return what mixtures that the other rows give come to in the requests of each held unit.

    Returns:
        Rows times AUC, (units, shares, M), and rows that have an AUC, (units, M).
    """
    learned, unseen = rows.taken(np.flatnonzero(~held)), rows.taken(np.flatnonzero(held))
    both = _straight_and_bent(learned)
    won = []
    for share in _SHARES:
        score = _mixed(*both, share, learned.p).parts(unseen.p) @ sign
        area, size, pairs = request_areas(score, unseen.labels, unseen.request, unseen.weight)
        say = size * (pairs > 0)
        won.append(say * area)
    by_unit = partial(unit_sums, groups=unseen.request, units=unseen.unit)
    return by_unit(np.stack(won, axis=1)), by_unit(say)


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
