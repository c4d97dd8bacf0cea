"""Fitting the heads: Newton steps for the coefficients, the evidence for how far to shrink them.

Every group of coefficients has a normal prior of precision λ. MacKay's update λ = γ/Σ(θ − mean)²
maximises the evidence, γ being the number of coefficients that the data decide: eq. 5 of
docs/default-method.md. Objectives share mean and precision of the first four groups: a rare
objective borrows from common ones. How far the other scores and the context help differs by
objective, so there precisions are alike only as far as the evidence of all of them says
(`pooled_precisions`). A group that explains nothing is shrunk to nothing. So nothing is tuned and
no row is set aside here.
"""

__all__ = [
    "RUNGS",
    "BlockSums",
    "fit_blocks",
    "fit_heads",
    "fit_linear",
    "fit_rungs",
    "steps_of",
]

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count

import numpy as np

from harmonrank.data.rows.blocks import Blocks
from harmonrank.model.coordinate import Coordinate, fit_coordinate
from harmonrank.model.density.density import Density, distinct_contexts
from harmonrank.model.density.density_sums import DensitySums, density_of
from harmonrank.model.fit_rows import FitRows, RowCounts, cut_rows, drawn_from, drawn_requests
from harmonrank.model.linear.clustering import context_clustering
from harmonrank.model.linear.head_columns import GROUPS, INTERCEPT, OWN, SHARED, HeadColumns
from harmonrank.model.linear.head_curve import HeadCurve
from harmonrank.model.linear.head_quadratic import HeadRows
from harmonrank.model.linear.heads import Heads
from harmonrank.model.linear.heads_sums import HeadSums, periods_of
from harmonrank.model.missing.completions import Completions
from harmonrank.model.missing.density_fit import (
    INCOMPLETE_ROWS,
    fit_incomplete_density,
    incomplete_sums,
)
from harmonrank.model.missing.gaps import Gaps
from harmonrank.model.terms.residual import Residual
from harmonrank.model.terms.residual_blocks import ResidualBlocks
from harmonrank.model.terms.residual_fit import fit_residual
from harmonrank.support.logistic import logit
from harmonrank.support.newton import (
    SINGLE_ROUNDING,
    Likelihood,
    Prior,
    Rounds,
    Step,
    maximise,
    settled,
)

_STEPS = 25
_START_PRECISION = (4.0, 4.0, 4.0, 4.0, 100.0, 30.0)
# Posterior standard deviations; smaller steps no longer move the ranking.
_ENOUGH = 0.15
_ROUNDS = Rounds(most=50, enough=_ENOUGH / 10, steady=_ENOUGH / 10, near=2.0)
_COORDINATE_ROWS = 500_000
_CLUSTERED_ROWS = 60_000  # Whole users or requests, on which clustering is measured.
RUNGS = 3
"""How many rungs `fit_rungs` returns."""
# What a plain calibration of each score would be; the first four groups.
_PLAIN = np.array([1.0, 0.0, 0.0, 0.0])
# The precisions of a calibration, whose own slope is free and which has nothing else.
_CALIBRATION = np.array([1e-3, *[1e9] * (len(GROUPS) - 1)])


def fit_heads(
    logits: np.ndarray,
    codes: np.ndarray,
    slots: tuple[int, ...],
    labels: np.ndarray,
    weight: np.ndarray | None = None,
    on_step: Callable[[int, int], None] = lambda *_: None,
    *,
    residual: bool = True,
) -> Heads:
    """Fit coordinates, their density, the heads of all objectives and what these leave unexplained.

    Args:
        logits: (rows, M) of the scores; NaN where one is missing.
        codes: (rows, features) of the context.
        slots: Codes per feature.
        labels: (rows, M) of 0 and 1.
        weight: (rows,) sample weights.
        on_step: Called with the number of the step and the most there can be.
        residual: Without it, heads are linear in the coordinates given the context.
    """
    blocks = cut_rows(logits, codes, labels, weight, are_logits=True)
    return fit_blocks(blocks, slots, on_step, residual=residual)


def fit_blocks(
    blocks: Blocks[FitRows],
    slots: tuple[int, ...],
    on_step: Callable[[int, int], None] = lambda *_: None,
    *,
    residual: bool = True,
) -> Heads:
    """Fit the same to rows in blocks, wherever they are kept.

    Coordinates are of rows drawn at random, `_COORDINATE_ROWS` of a longer log. All else are sums
    over all rows, a block at a time.
    """
    counts = RowCounts.of(blocks)
    steps = steps_of(counts, residual=residual)
    heads, *_ = _fit_full(
        blocks, counts, slots, lambda step: on_step(step, steps), residual=residual
    )
    on_step(steps, steps)
    return heads


def steps_of(counts: RowCounts, *, residual: bool) -> int:
    """Return how many steps a fit has at most."""
    return _STEPS + len(counts.positives) * residual


def fit_rungs(
    blocks: Blocks[FitRows],
    counts: RowCounts,
    slots: tuple[int, ...],
    on_step: Callable[[int], None] = lambda _: None,
    *,
    residual: bool = True,
) -> list[Heads]:
    """Fit the full heads, a plain logistic regression and a calibration of own scores."""
    heads, data, clustering = _fit_full(blocks, counts, slots, on_step, residual=residual)
    plain, sums = _plain(heads.coordinate, heads.density, slots, counts.prevalence), BlockSums(data)
    kept = SHARED.stop - SHARED.start, len(GROUPS)
    return [heads, *(fit_linear(plain, sums, kept=some, clustering=clustering) for some in kept)]


def _fit_full(
    blocks: Blocks[FitRows],
    counts: RowCounts,
    slots: tuple[int, ...],
    on_step: Callable[[int], None],
    *,
    residual: bool,
) -> tuple[Heads, Blocks[HeadSums], np.ndarray]:
    """Fit the full heads; also return the rows as linear heads see them, and their clustering."""
    some = drawn_from(blocks, counts.rows, _COORDINATE_ROWS)
    logits = some.logits()
    coordinate = fit_coordinate(logits, some.labels, some.counts())
    origin = _origin(coordinate(logits), some.weights())
    del some, logits
    density = _density(blocks, counts, coordinate, slots, origin)
    plain = _plain(coordinate, density, slots, counts.prevalence)
    if counts.incomplete:
        return _fit_incomplete(plain, blocks, counts, on_step, residual)
    data = blocks.made(_head_sums, coordinate, density, slots, counts.rows)
    heads = fit_linear(plain, BlockSums(data), on_step)
    clustering = _clustering(heads, blocks, counts)
    if (clustering > 1).any():
        heads = fit_linear(heads, BlockSums(data), clustering=clustering)
    return _with_residual(heads, data, on_step, residual, clustering), data, clustering


def _clustering(heads: Heads, blocks: Blocks[FitRows], counts: RowCounts) -> np.ndarray:
    some = drawn_requests(blocks, counts.rows, _CLUSTERED_ROWS)
    return context_clustering(heads, some, counts.rows)


@dataclass(frozen=True)
class BlockSums:
    """The likelihoods of all blocks, for `fit_linear`."""

    blocks: Blocks[HeadSums]

    def likelihood(self, theta: np.ndarray) -> Likelihood:
        """Return the sums of all blocks, added up in their order."""
        return Likelihood(*self.blocks.total(HeadSums.likelihood, theta))


def _origin(coordinates: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return a point near the mean of what is there, from which moments are taken."""
    there = ~np.isnan(coordinates)
    total = weight @ np.where(there, coordinates, 0.0)
    mean: np.ndarray = total / np.maximum(weight @ there, 1e-300)
    return mean


def _density(
    blocks: Blocks[FitRows],
    counts: RowCounts,
    coordinate: Coordinate,
    slots: tuple[int, ...],
    origin: np.ndarray,
) -> Density:
    if not counts.incomplete:
        return density_of(blocks.made(_density_sums, coordinate, slots, origin), slots)
    # Rounds of expectation and maximisation look at some rows; of a longer log, the last at all.
    stride = max(1, counts.rows // INCOMPLETE_ROWS)
    some = drawn_from(blocks, counts.rows, None, stride)
    density = fit_incomplete_density(coordinate(some.logits()), some.codes, slots, some.weight)
    if stride == 1:
        return density
    return density_of(blocks.made(_density_sums, coordinate, slots, origin, density), slots)


def _coordinates(rows: FitRows, coordinate: Coordinate) -> np.ndarray:
    """Return the coordinates of rows, in place of logits that nobody else needs."""
    logits = rows.logits()
    return coordinate(logits, None if rows.are_logits else logits)


def _density_sums(
    rows: FitRows,
    coordinate: Coordinate,
    slots: tuple[int, ...],
    origin: np.ndarray,
    density: Density | None = None,
) -> DensitySums:
    """Return the moments of a block; what is missing is taken as the density expects it."""
    coordinates = _coordinates(rows, coordinate)
    if density is None:
        return DensitySums.of(coordinates, rows.codes, slots, rows.weight, origin=origin)
    return incomplete_sums(coordinates, rows.codes, slots, rows.weight, density, origin)


def _head_sums(
    rows: FitRows, coordinate: Coordinate, density: Density, slots: tuple[int, ...], log_rows: int
) -> HeadSums:
    coordinates = _coordinates(rows, coordinate)
    given = rows.codes, slots, rows.labels, rows.counts(), _periods(rows, log_rows)
    return HeadSums.of(density, coordinates, *given)


def _periods(rows: FitRows, log_rows: int) -> np.ndarray:
    return periods_of(np.arange(rows.first, rows.first + rows.rows), log_rows)


def _plain(
    coordinate: Coordinate, density: Density, slots: tuple[int, ...], prevalence: np.ndarray
) -> Heads:
    """Return the heads that a fit begins with."""
    M = len(density.base)
    theta = np.zeros((M, HeadColumns(M).total(slots)))
    theta[:, INTERCEPT], theta[:, OWN] = logit(prevalence), 1.0
    none = Residual.none(M, slots)
    precision = np.tile(_START_PRECISION, (M, 1))
    return Heads(coordinate, density, slots, theta, precision, _PLAIN, none)


def _with_residual(
    heads: Heads,
    data: Blocks[HeadSums],
    on_step: Callable[[int], None],
    residual: bool,
    clustering: np.ndarray,
) -> Heads:
    """Fit what linear heads leave unexplained, by evidence that knows of clusters."""
    if not residual:
        return heads
    rows = ResidualBlocks.of(data, heads.slots, heads.theta)
    dispersion = clustering if (clustering > 1).any() else None
    fitted = fit_residual(rows, lambda m: on_step(_STEPS + m + 1), dispersion)
    return replace(heads, residual=fitted)


def _fit_incomplete(
    heads: Heads,
    blocks: Blocks[FitRows],
    counts: RowCounts,
    on_step: Callable[[int], None],
    residual: bool,
) -> tuple[Heads, Blocks[HeadSums], np.ndarray]:
    """Fit heads to rows some of whose coordinates are missing, by the method of weights.

    Also return the rows that stand for them in the end, and the clustering of complete ones.
    """
    data = blocks.made(_filled_sums, heads, counts.rows)
    heads = fit_linear(heads, BlockSums(data))
    clustering = _clustering(heads, blocks, counts)
    for last in (False, True):
        data = blocks.made(_completed_sums, heads, counts.incomplete, counts.rows)
        told = on_step if last else lambda _: None
        heads = fit_linear(heads, BlockSums(data), told, clustering=clustering)
    return _with_residual(heads, data, on_step, residual, clustering), data, clustering


def _completions(rows: FitRows, heads: Heads, incomplete: int) -> Completions:
    coordinates = heads.coordinate(rows.logits())
    given = heads.density, rows.codes, heads.slots, rows.weight
    return Completions.of(coordinates, *given, incomplete=incomplete, seed=rows.first)


def _filled_sums(rows: FitRows, heads: Heads, log_rows: int) -> HeadSums:
    """Return the sums of rows with what is missing at its conditional mean."""
    coordinates = heads.coordinate(rows.logits())
    contexts, of_row = distinct_contexts(rows.codes, heads.slots)
    Gaps.of(coordinates, of_row).fill(coordinates, heads.density, contexts)
    given = rows.codes, heads.slots, rows.labels, rows.counts(), _periods(rows, log_rows)
    return HeadSums.of(heads.density, coordinates, *given)


def _completed_sums(rows: FitRows, heads: Heads, incomplete: int, log_rows: int) -> HeadSums:
    """Return the sums of rows that stand for draws of what they miss."""
    whole = _completions(rows, heads, incomplete)
    counts = whole.weights(heads, rows.codes, rows.labels, rows.shares)
    period = _periods(rows, log_rows)[whole.row]
    given = rows.codes, heads.slots, rows.labels, counts, period, rows.shares
    return whole.sums(heads.density, *given)


def fit_linear(
    heads: Heads,
    data: HeadRows,
    on_step: Callable[[int], None] = lambda _: None,
    *,
    kept: int = 0,
    clustering: np.ndarray | None = None,
) -> Heads:
    """Take Newton steps until they no longer move the ranking.

    So many groups of coefficients are `kept` as a calibration has them. With `clustering`, (M,),
    the evidence for effects of the context is divided by it.
    """
    mean = np.zeros(heads.theta.shape[1])
    mean[SHARED] = _PLAIN if kept else heads.shared
    columns, steps = HeadColumns(len(heads.theta)), count(1)
    by_head = heads.precision.copy()
    by_head[:, :kept] = _CALIBRATION[:kept]
    group, precision = columns.groups(heads.slots), columns.flat(by_head)
    scale = np.ones(heads.theta.shape)
    if clustering is not None:
        scale[:, columns.context] = clustering[:, None]
    prior = Prior(mean, precision, group, columns.pools, scale)
    fixed = kept if kept < len(GROUPS) else len(precision)

    def update(prior: Prior, theta: np.ndarray, variance: np.ndarray) -> Prior:
        return prior.updated(theta, variance, fixed) if fixed else _updated(prior, theta, variance)

    def propose(theta: np.ndarray, there: Likelihood) -> Step:
        nonlocal prior
        step, prior, far = settled(theta, prior, HeadCurve(theta, there).top, update, _ROUNDS)
        on_step(next(steps))
        return step._replace(last=far < _ENOUGH)

    top = maximise(data.likelihood, heads.theta, propose, _STEPS, SINGLE_ROUNDING)
    theta = top.checked("The linear heads").theta
    precision = columns.by_head(prior.precision)
    return replace(heads, theta=theta, precision=precision, shared=prior.mean[SHARED])


def _updated(prior: Prior, theta: np.ndarray, variance: np.ndarray) -> Prior:
    """Return the prior that fits coefficients best, means of the first four groups included.

    These are the means over objectives, shrunk to (1, 0, 0, 0) as by one more objective which is
    what a plain calibration would be.
    """
    mean = prior.mean.copy()
    mean[SHARED] = (theta[:, SHARED].sum(axis=0) + _PLAIN) / (len(theta) + 1)
    return replace(prior, mean=mean).updated(theta, variance)
