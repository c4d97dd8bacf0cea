"""Averaging: the default's heads beside simpler ones, each by its evidence on rows it has not seen.

A head may leave a simpler one only as far as unseen rows bear it out. The ladder has three rungs:
the full head, a plain logistic regression on all scores and the context, and a calibration of the
objective's own score. Each is fitted without one of three consecutive parts of the log and tried on
that part. Rows of a user are not independent, nor are those of a request, so whole users are, or
requests where none are named: with ℓ_g the log-likelihoods of user g on all rungs, their sum e has
covariance C = Σ_g (ℓ_g − ℓ̄)(ℓ_g − ℓ̄)ᵀ, and the weights E softmax(e + z + prior) with z ~ N(0, C),
eq. 16 of docs/default-method.md, are near 1 for a rung that is surely the best one (pseudo-BMA+,
Yao et al. 2018).

All rungs are linear in the same numbers but for the residual, so their average on the scale of
logits is again `Heads`: nothing more is stored, and scoring takes as long.
"""

__all__ = [
    "EVIDENCE_FOLDS",
    "EVIDENCE_ROWS",
    "FEWEST_REQUESTS",
    "FEWEST_ROWS",
    "OutOfFold",
    "averaged",
    "evidence_weights",
    "fit_averaged",
    "in_blocks",
    "request_folds",
    "requests_of",
]

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from harmonrank.data.rows.blocks import Blocks, HeldBlocks
from harmonrank.model.fit_rows import FitRows, RowCounts, drawn_requests
from harmonrank.model.linear.heads import Heads
from harmonrank.model.linear.heads_fit import RUNGS, fit_rungs, steps_of
from harmonrank.model.missing.heads_marginal import MarginalScorer
from harmonrank.support.logistic import sigmoid

EVIDENCE_FOLDS = 3
EVIDENCE_ROWS = 60_000
"""At most about so many are fitted again."""
FEWEST_ROWS = 1000
"""Fewer tell nothing about rungs; the full head is taken."""

FEWEST_REQUESTS = 30
"""Fewer tell nothing about how much requests differ."""
_RUNS = 256  # Runs of the log that stand for requests where no column names them.
_DRAWS = 256
_PRIOR = 4.0  # Nats by which the full head is thought better beforehand.
_CHUNK_ROWS = 8192


@dataclass(frozen=True)
class OutOfFold:
    """Rows, and what heads that did not learn from them say of them.

    Attributes:
        rows: Whole users or requests, where a column names them.
        fold: (rows,) the part of the log that each is in.
        p: (rows, M) probabilities by the average of the rungs.
        weights: (rungs, M) of the rungs in the average.
    """

    rows: FitRows
    fold: np.ndarray
    p: np.ndarray
    weights: np.ndarray


def fit_averaged(
    blocks: Blocks[FitRows],
    slots: tuple[int, ...],
    on_step: Callable[[int, int], None] = lambda *_: None,
    *,
    residual: bool = True,
) -> tuple[Heads, OutOfFold | None]:
    """Fit the rungs to rows in blocks, and average them by what they are worth on unseen rows.

    Returns:
        The heads, and the unseen rows; None where too few rows have all scores.
    """
    counts = RowCounts.of(blocks)
    done = steps_of(counts, residual=residual)
    steps = done + EVIDENCE_FOLDS
    rungs = fit_rungs(blocks, counts, slots, lambda k: on_step(k, steps), residual=residual)
    some = drawn_requests(blocks, counts.rows, EVIDENCE_ROWS)
    unseen = _unseen(some, counts.rows, slots, lambda fold: on_step(done + fold, steps), residual)
    on_step(steps, steps)
    return (rungs[0] if unseen is None else averaged(rungs, unseen.weights)), unseen


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


def _unseen(
    some: FitRows,
    log_rows: int,
    slots: tuple[int, ...],
    on_fold: Callable[[int], None],
    residual: bool,
) -> OutOfFold | None:
    """Fit the rungs without each part of some rows of a log, and try them on that part.

    Full heads gain most by more rows, so they are thought better beforehand by so many times as
    much as the log is longer than what is tried.
    """
    complete = ~np.isnan(some.scores).any(axis=1)
    if complete.sum() < FEWEST_ROWS:
        return None
    request = requests_of(some)
    fold = request_folds(request)
    tried, logits = [], np.zeros((RUNGS, *some.labels.shape))
    for k in range(EVIDENCE_FOLDS):
        others = in_blocks(some.taken(complete & (fold != k)))
        tried.append(fit_rungs(others, RowCounts.of(others), slots, residual=residual))
        here = complete & (fold == k)
        logits[:, here] = _logits(tried[k], some.taken(here))
        on_fold(k + 1)
    rows = some.taken(complete)
    evidence = np.stack([_evidence(request[complete], rows, h[complete]) for h in logits])
    prior = _PRIOR * log_rows / some.rows
    each = [evidence_weights(head, prior) for head in np.moveaxis(evidence, 2, 0)]
    weights = np.stack(each, axis=1)
    p = sigmoid(np.einsum("krm,km->rm", logits, weights))
    for k in range(EVIDENCE_FOLDS):
        gaps = some.taken(~complete & (fold == k))
        if gaps.rows:
            marginal = MarginalScorer(averaged(tried[k], weights))
            p[~complete & (fold == k)] = marginal.probabilities(gaps.scores, gaps.codes)
    return OutOfFold(some, fold, p, weights)


def in_blocks(rows: FitRows) -> Blocks[FitRows]:
    """Return rows as a log of their own."""
    return HeldBlocks([replace(rows, first=0)])


def requests_of(rows: FitRows) -> np.ndarray:
    """Return the number of each row's user, else request; of a run of rows if few are known."""
    if rows.units is not None:
        known, codes = np.unique(rows.units, return_inverse=True)
        if len(known) >= FEWEST_REQUESTS:
            return codes.reshape(-1)
    return np.arange(rows.rows) * min(_RUNS, rows.rows) // rows.rows


def request_folds(request: np.ndarray) -> np.ndarray:
    """Return the part of the log that each row's request, or user, is in, by where its rows are.

    Parts have about as many rows, and follow each other as far as users do: what is learned of
    those who come early is tried on those who come late.

    Args:
        request: (rows,) numbers from 0 on, of requests or users; rows are in the order of the log.
    """
    rows, size = len(request), np.bincount(request)
    order = np.argsort(np.bincount(request, np.arange(rows)) / size, kind="stable")
    part = np.empty(len(size), np.int64)
    part[order] = (np.cumsum(size[order]) - size[order] / 2) * EVIDENCE_FOLDS // rows
    fold: np.ndarray = part[request]
    return fold


def _logits(rungs: Sequence[Heads], rows: FitRows) -> np.ndarray:
    """Return the logits of each rung, (rungs, rows, M)."""
    result = np.empty((len(rungs), *rows.labels.shape))
    for first in range(0, rows.rows, _CHUNK_ROWS):
        part = slice(first, first + _CHUNK_ROWS)
        some = rows.taken(part)
        logits = some.logits()
        for k, rung in enumerate(rungs):
            result[k, part] = rung.logits(logits, some.codes)
    return result


def _evidence(request: np.ndarray, rows: FitRows, logits: np.ndarray) -> np.ndarray:
    """Return the log-likelihood of the labels of each user or request, (units, M)."""
    each, counts = rows.labels * logits - np.logaddexp(0.0, logits), rows.counts()
    if counts is not None:
        each *= counts if counts.ndim == 2 else counts[:, None]
    return np.stack([np.bincount(request, column) for column in each.T], axis=1)


def evidence_weights(evidence: np.ndarray, prior: float = _PRIOR) -> np.ndarray:
    """Return the weight of each rung for one objective, by (rungs, units) log-likelihoods.

    >>> better = np.array([[0.0] * 50, [-1.0] * 50])
    >>> evidence_weights(better).round(3)
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
