"""Averaging: the default's heads beside simpler ones, each by its evidence on rows it has not seen.

A head may leave a simpler one only as far as unseen rows bear it out. The ladder has three rungs:
the full head, a plain logistic regression on all scores and the context, and a calibration of the
objective's own score. Each is fitted without one of three consecutive parts of the log and tried on
that part. Rows of a request are not independent, so requests are: with ℓ_g the log-likelihoods of
request g on all rungs, their sum e has covariance C = Σ_g (ℓ_g − ℓ̄)(ℓ_g − ℓ̄)ᵀ, and the weights
E softmax(e + z + prior) with z ~ N(0, C), eq. 16 of docs/default-method.md, are near 1 for a rung
that is surely the best one (pseudo-BMA+, Yao et al. 2018).

All rungs are linear in the same numbers but for the residual, so their average on the scale of
logits is again `Heads`: nothing more is stored, and scoring takes as long.
"""

__all__ = ["EVIDENCE_FOLDS", "averaged", "rung_weights"]

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from harmonrank.data.rows.blocks import Blocks
from harmonrank.model.fit_rows import FitRows, cut_rows
from harmonrank.model.linear.heads import Heads

EVIDENCE_FOLDS = 3

_FEWEST_ROWS = 1000  # Fewer tell nothing about rungs; the full head is taken.
_RUNS = 256  # Runs of the log that stand for requests where no column names them.
_DRAWS = 256
_PRIOR = 4.0  # Nats by which the full head is thought better beforehand.
_CHUNK_ROWS = 8192


def averaged(rungs: Sequence[Heads], weights: np.ndarray) -> Heads:
    """Return the heads whose logits are the averages of those of the rungs.

    Args:
        rungs: The first one may have a residual.
        weights: (rungs, M), which add up to 1 for each objective.
    """
    full, part = rungs[0], weights[0]
    residual = full.residual
    # What the residual adds for the linear logit itself is taken into the linear coefficients.
    theta = (part * (1 + residual.linear[:, 1]))[:, None] * full.theta
    for rung, weight in zip(rungs[1:], weights[1:], strict=True):
        theta = theta + weight[:, None] * rung.theta
    linear = part[:, None] * residual.linear
    linear[:, 1] = 0.0
    arrays = {
        name: np.einsum("m,m...->m...", part, getattr(residual, name))
        for name in ("value", "curve", "slope", "surface", "pair")
    }
    return replace(full, theta=theta, residual=replace(residual, linear=linear, **arrays))


def rung_weights(
    rows: FitRows,
    log_rows: int,
    fit: Callable[[Blocks[FitRows]], Sequence[Heads]],
    on_fold: Callable[[int], None] = lambda _: None,
) -> np.ndarray | None:
    """Return (rungs, M) weights; None where too few rows have all scores.

    Args:
        rows: Some of a log, in its order.
        log_rows: How many rows the log has. Full heads gain most by more rows, so they are thought
            better beforehand by so many times as much.
        fit: Returns the rungs that are fitted to some rows.
        on_fold: Called with the number of folds that are done.
    """
    whole = np.flatnonzero(~np.isnan(rows.scores).any(axis=1))
    if len(whole) < _FEWEST_ROWS:
        return None
    known = rows.taken(whole)
    fold = np.arange(known.rows) * EVIDENCE_FOLDS // known.rows
    parts = []
    for k in range(EVIDENCE_FOLDS):
        rungs = fit(_cut(known.taken(fold != k)))
        parts.append(_log_likelihoods(rungs, known.taken(fold == k)))
        on_fold(k + 1)
    of_row = np.concatenate(parts, axis=1)  # (rungs, rows, M)
    codes = _requests(known)
    evidence = np.stack([_summed(codes, each) for each in of_row])  # (rungs, requests, M)
    prior = _PRIOR * log_rows / rows.rows
    return np.stack([_weights(each, prior) for each in np.moveaxis(evidence, 2, 0)], axis=1)


def _cut(rows: FitRows) -> Blocks[FitRows]:
    given = rows.scores, rows.codes, rows.labels, rows.weight, rows.shares
    return cut_rows(*given, are_logits=rows.are_logits)


def _requests(rows: FitRows) -> np.ndarray:
    """Return the number of each row's request; of a run of rows where none is known."""
    if rows.request is None:
        return np.arange(rows.rows) * min(_RUNS, rows.rows) // rows.rows
    codes: np.ndarray = np.unique(rows.request, return_inverse=True)[1].reshape(-1)
    return codes


def _log_likelihoods(rungs: Sequence[Heads], rows: FitRows) -> np.ndarray:
    """Return the log-likelihood of each label by each rung, (rungs, rows, M)."""
    result = np.empty((len(rungs), *rows.labels.shape))
    counts = rows.counts()
    for part in _chunks(rows.rows):
        some = rows.taken(part)
        logits, labels = some.logits(), some.labels
        for k, rung in enumerate(rungs):
            h = rung.logits(logits, some.codes)
            result[k, part] = labels * h - np.logaddexp(0.0, h)
    if counts is not None:
        result *= counts if counts.ndim == 2 else counts[:, None]
    return result


def _chunks(rows: int) -> Iterator[slice]:
    for first in range(0, rows, _CHUNK_ROWS):
        yield slice(first, min(first + _CHUNK_ROWS, rows))


def _summed(codes: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the sums over the rows of each request, (requests, M)."""
    return np.stack([np.bincount(codes, column) for column in values.T], axis=1)


def _weights(evidence: np.ndarray, prior: float = _PRIOR) -> np.ndarray:
    """Return the weight of each rung for one objective, by (rungs, requests) log-likelihoods.

    >>> better = np.array([[0.0] * 50, [-1.0] * 50])
    >>> _weights(better).round(3)
    array([1., 0.])
    """
    total = evidence.sum(axis=1)
    # What all rungs share does not count, and its noise would drown the rest.
    apart = evidence - evidence.mean(axis=0)
    apart -= apart.mean(axis=1, keepdims=True)
    variance, axes = np.linalg.eigh(apart @ apart.T)
    root = axes * np.sqrt(np.maximum(variance, 0.0))
    drawn = np.random.default_rng(0).standard_normal((_DRAWS, len(total))) @ root.T
    drawn += total - total.max()
    drawn[:, 0] += prior
    say = np.exp(drawn - drawn.max(axis=1, keepdims=True))
    weights: np.ndarray = (say / say.sum(axis=1, keepdims=True)).mean(axis=0)
    return weights
