"""Fitting the residual: evidence admits groups of coefficients, and decides how far to shrink them.

Each head is fitted on its own, and a pass over the rows takes all of them a step further. A first
pass adds up every group's gradient at the linear head, and from a sample of rows its own block of
curvature. Where the evidence of a normal prior on that group alone gains enough, in this head or in
the others, the group is admitted, if what each half of the log says about it makes the other half
more likely: rows of one user or one day depend on each other, and the evidence takes them for
independent. Few users share a pair of context values, so there the evidence is also divided by how
much more the gradient varies from period to period than that of independent rows. Newton steps then
fit all admitted groups together, with MacKay's (1992) updates, eq. 5 of docs/default-method.md, for
the precision of each group.

What the knots of a curve are too far apart for, a fine curve of the same input may have, if it
gains enough beside the curve. Curves and surfaces are smooth a priori: their knots have the
covariance of a Matérn process, of which the leading directions are kept, of fine curves all. So the
coefficients that are shrunk are ω with θ = L ω.
"""

__all__ = ["fit_residual"]

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace

import numpy as np

from harmonrank.model.terms.residual import (
    CURVE_KNOTS,
    FINE_KNOTS,
    REFINED,
    SURFACE_KNOTS,
    Residual,
    residual_shapes,
)
from harmonrank.model.terms.residual_blocks import Answer, Ask, Look, ResidualBlocks
from harmonrank.model.terms.residual_kernels import SLOPE
from harmonrank.model.terms.residual_sums import CURVE, FINE, KINDS, PAIR, SURFACE, Group, groups_of
from harmonrank.support.newton import (
    MOST,
    SINGLE_ROUNDING,
    Likelihood,
    Maximum,
    Prior,
    Rounds,
    Step,
    maximising,
    settled,
)

# Nats that a group must gain, and what is added to them for a head of one positive: of few, the
# evidence, which takes the likelihood for a quadratic, is less reliable.
_GAIN, _GAIN_OF_ONE = 3.0, 600.0
# A fine curve bends as chance does, and one of them makes the tables of all curves larger.
_GAIN_OF_FINE = 10.0
# Few rows lie between its knots, and there the quadratic of one unlikely label would pay for an
# effect of any size; a prior of this precision, one logit wide, does not believe in one.
_LEAST_OF_FINE = 1.0
# Part of the range over which a curve may bend, and over which a fine one may.
_LENGTH, _FINE_LENGTH = 0.25, 0.015
_CURVE_DIRECTIONS, _SURFACE_DIRECTIONS = 10, 16
_PRECISIONS = np.geomspace(1e-2, 1e6, 49)
_NEWTON_STEPS = 20
_ENOUGH = 0.15  # Posterior standard deviations.
_ROUNDS = Rounds(most=8, enough=_ENOUGH)


def fit_residual(
    rows: ResidualBlocks,
    on_head: Callable[[int], None] = lambda _: None,
    dispersion: np.ndarray | None = None,
) -> Residual:
    """Fit the residual of every head.

    Heads do not depend on each other, so that one pass over the rows serves a step of all.

    Args:
        rows: With the logits of the linear heads.
        on_head: Called with the number of heads that are done, less one.
        dispersion: (M,) how much more the gradient of each head varies than its curvature says,
            as rows that stand for several do; its evidence counts so much less.
    """
    M = len(rows.theta)
    every = rows if dispersion is None else replace(rows, dispersion=dispersion)
    groups = groups_of(M, rows.slots)
    shapes = residual_shapes(M, rows.slots) | {"fine": (M, 2 * M + 1, FINE_KNOTS)}
    tables = {name: np.zeros(shapes[name]) for name in ("linear", *KINDS)}
    flat = {name: array.reshape(M, -1) for name, array in tables.items()}
    looks = [
        _look(look, groups, M, positives, every.mass[m] / every.dispersion[m])
        for m, (look, positives) in enumerate(
            zip(every.looks(groups), every.positives / every.dispersion, strict=True)
        )
    ]
    fits = [_fit_head(m, M, groups, looks) for m in range(M)]
    for done, (m, head) in enumerate(_fit_heads(every, fits)):
        flat["linear"][m] = head.theta[: 2 + M]
        start = 2 + M
        for group in head.groups:
            there = slice(group.first, group.first + group.size)
            flat[KINDS[group.kind]][m, there] = head.theta[start : start + group.size]
            start += group.size
        on_head(done)
    fine = tables.pop("fine")
    if fine.any():
        tables["curve"] = tables["curve"] @ REFINED.T + fine
    return Residual(rows.slots, rows.low, rows.high, **tables)


@dataclass(frozen=True)
class _Look:
    """A first look at a head: what each group alone would gain.

    Attributes:
        gains: (groups, precisions) evidence, in nats.
        held: (groups,) log-likelihood that each half of the log gains by what the other says.
        least: (groups,) what the other heads must gain by a group to have it admitted here.
        rare: What is added to that for a group to be admitted by its own gain.
    """

    gains: np.ndarray
    held: np.ndarray
    least: np.ndarray
    rare: float


@dataclass(frozen=True)
class _Head:
    """The admitted groups of one head and their coefficients."""

    groups: list[Group]
    theta: np.ndarray


_Steps = Generator[Ask, Answer, _Head]
"""The fit of one head: asks about its likelihood, is answered, and returns the fitted head."""


def _fit_heads(rows: ResidualBlocks, fits: list[_Steps]) -> Iterator[tuple[int, _Head]]:
    """Take all fits a step further with each pass over the rows; yield those that are done."""
    answers: dict[int, Answer | None] = dict.fromkeys(range(len(fits)))
    while answers:
        asks: list[Ask] = []
        for m, answer in answers.items():
            try:
                asks.append(next(fits[m]) if answer is None else fits[m].send(answer))
            except StopIteration as ended:
                yield m, ended.value
        answers = dict(zip([ask.head for ask in asks], rows.answers(asks), strict=True))


def _fit_head(m: int, M: int, groups: list[Group], looks: list[_Look]) -> _Steps:
    keep, precision = _admitted(looks, m)
    groups = [group for group, k in zip(groups, keep, strict=True) if k]
    head, top = yield from _fit_groups(m, M, groups, precision)
    coarse = np.array([group.kind != FINE for group in groups], bool)
    if not (top is None or top.converged or coarse.all()):
        # Where chances are near 0 and 1 a fine curve may have steps overshoot for ever.
        groups = [group for group in groups if group.kind != FINE]
        head, top = yield from _fit_groups(m, M, groups, precision[coarse])
    if top is not None:
        top.checked(f"What the linear head {m} leaves")
    return head


def _fit_groups(
    m: int, M: int, groups: list[Group], precision: np.ndarray
) -> Generator[Ask, Answer, tuple[_Head, Maximum | None]]:
    """Fit these groups of head m; also return where its steps ended, if there were any."""
    if not groups:
        return _Head(groups, np.zeros(2 + M)), None
    # The linear coefficients are a group of their own, but for intercept and own slope.
    basis, precision = _Basis(groups, M), np.concatenate([[10.0, 100.0], precision])
    top, precision = yield from _climbed(m, basis, precision, np.zeros((1, basis.size)), 1)
    if not top.converged:
        # From here on the curvature hardly changes, unless effects are strong.
        kept = np.append(True, (precision < MOST / 10) | (np.arange(len(precision)) < 2))
        mask = kept[1 + basis.group]
        curvature = top.there.curvature[:, mask][:, :, mask]
        groups = [group for group, k in zip(groups, kept[3:], strict=True) if k]
        basis, start = _Basis(groups, M), top.theta[:, mask]
        given = basis, precision[kept[1:]], start, _NEWTON_STEPS - 1, curvature
        top, precision = yield from _climbed(m, *given)
        if not top.converged:
            top, _ = yield from _climbed(m, basis, precision, top.theta, _NEWTON_STEPS)
    return _Head(groups, basis.coloured(top.theta[0])), top


def _climbed(
    m: int,
    basis: "_Basis",
    precision: np.ndarray,
    start: np.ndarray,
    steps: int,
    curvature: np.ndarray | None = None,
) -> Generator[Ask, Answer, tuple[Maximum, np.ndarray]]:
    """Take steps of head m in ω; the curvature is added up only where none is given.

    Return where they end, and the precisions there.
    """
    prior = Prior(np.zeros(basis.size), precision, basis.group)

    def propose(omega: np.ndarray, here: Likelihood) -> Step:
        nonlocal prior
        near = here if curvature is None else here._replace(curvature=curvature)
        step, prior, far = settled(
            omega, prior, lambda prior: prior.top(omega, near), _updated, _ROUNDS
        )
        return step._replace(last=far < _ENOUGH)

    asking = maximising(start, propose, steps, SINGLE_ROUNDING)
    omega, curved = next(asking), basis.groups if curvature is None else None
    try:
        while True:
            answer = yield Ask(m, basis.groups, basis.coloured(omega[0]), curved)
            omega = asking.send(basis.likelihood(answer))
    except StopIteration as ended:
        return ended.value, prior.precision


def _updated(prior: Prior, omega: np.ndarray, variance: np.ndarray) -> Prior:
    return prior.updated(omega, variance, kept=1)


def _look(sums: Look, groups: list[Group], M: int, positives: float, mass: float) -> _Look:
    """Return what every group alone would gain with each precision."""
    basis = _Basis(groups, M)
    gains, held = np.empty((len(groups), len(_PRECISIONS))), np.empty(len(groups))
    dispersions, roots = _dispersions(sums, groups), basis.roots[3:]
    coarse: dict[int, float] = {}  # The precision of each input's curve.
    for g, (group, L, pull) in enumerate(zip(groups, roots, sums.pulls(groups), strict=True)):
        halves, curved = _halves(pull), sums.blocks[g]
        halves, curved = halves / dispersions[group.kind], curved / dispersions[group.kind]
        if L is not None:
            curved = curved.reshape(group.size, group.size)
            if group.kind == FINE:
                halves, curved = _left_by_curve(halves, curved, coarse[group.a])
            curved, axes = np.linalg.eigh(L.T @ curved @ L)
            halves = halves @ L @ axes
        curved = np.maximum(curved, 0.0)
        # The gain of eq. 8 of docs/default-method.md, for every precision at once.
        total = curved + _PRECISIONS[:, None]
        gains[g] = 0.5 * (
            halves.sum(axis=0) ** 2 / total - np.log(total / _PRECISIONS[:, None])
        ).sum(axis=1)
        if group.kind == FINE:
            gains[g, _PRECISIONS < _LEAST_OF_FINE] = -np.inf
        best = float(_PRECISIONS[gains[g].argmax()])
        held[g] = _held(halves[0], halves[1], curved / 2, best)
        if group.kind == CURVE:
            coarse[group.a] = best
    fewer = max(min(positives, mass - positives), 1.0)
    least = np.array([_GAIN_OF_FINE if group.kind == FINE else _GAIN for group in groups])
    return _Look(gains, held, least, _GAIN_OF_ONE / fewer)


def _left_by_curve(
    halves: np.ndarray, curved: np.ndarray, precision: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return what the halves of the log say of a fine curve beside a coarse one, on quadratics."""
    coarse = REFINED @ _CURVE_ROOT  # (FINE_KNOTS, directions)
    across = curved @ coarse
    inside = coarse.T @ across + precision * np.eye(coarse.shape[1])
    taken = across @ np.linalg.inv(inside)
    return halves - halves @ coarse @ taken.T, curved - taken @ across.T


def _dispersions(look: Look, groups: list[Group]) -> np.ndarray:
    """Return how much more the gradient of each kind of group varies, at least 1.

    This is eq. 9 of docs/default-method.md. Of independent rows the gradient has the variance of
    its curvature, in all and in each period, apart from its mean and from what an intercept of
    the period's own, of slopes a slope, would explain.
    """
    varied, curved, count = np.zeros(PAIR + 1), np.zeros(PAIR + 1), len(look.periods)
    for group, block, pull in zip(groups, look.blocks, look.pulls(groups), strict=True):
        whole = block.reshape(group.size, -1)
        own = block if whole.shape[1] == 1 else np.diagonal(whole)
        share = whole.sum(axis=1) / max(whole.sum(), 1e-300)
        shared = look.periods[:, 2 + group.a if group.kind == SLOPE else 0]
        rest = pull - shared[:, None] * share
        varied[group.kind] += float(rest.var(axis=0, ddof=1).sum()) * count
        curved[group.kind] += float(own.sum())
    return np.maximum(1.0, varied / np.maximum(curved, 1e-300))


def _halves(periods: np.ndarray) -> np.ndarray:
    """Return (2, …) sums of the older and of the newer half of the periods."""
    half = len(periods) // 2
    return np.stack([periods[:half].sum(axis=0), periods[half:].sum(axis=0)])


def _held(older: np.ndarray, newer: np.ndarray, curved: np.ndarray, precision: float) -> float:
    """Return what the coefficients of each half gain on the other half, on the quadratics there."""
    a, b = older / (curved + precision), newer / (curved + precision)
    return float(newer @ a + older @ b - 0.5 * curved @ (a**2 + b**2))


def _admitted(looks: list[_Look], m: int) -> tuple[list[bool], np.ndarray]:
    """Return which groups head m has, and the precision at which each of them starts.

    A group is admitted by its own evidence, or by that of the other heads if its own does not
    speak against it at the precision which suits all: a rare objective can prove little alone.
    The halves of the log must agree about it, those of all heads together if others admit it.
    """
    keep, precision = [], []
    every = np.stack([look.gains for look in looks])  # (M, groups, precisions)
    total = every.sum(axis=0)
    for g, own in enumerate(looks[m].gains):
        best, common = int(own.argmax()), int(total[g].argmax())
        least = looks[m].least[g]
        alone = bool(own[best] > least + looks[m].rare and looks[m].held[g] > 0)
        others = total[g, common] - own[common]
        agreed = sum(look.held[g] for look in looks) > 0
        joined = bool(others > least and own[common] > 0 and agreed)
        keep.append(alone or joined)
        if keep[-1]:
            precision.append(_PRECISIONS[best if alone else common])
    return keep, np.array(precision)


def _matern_root(knots: int, length: float = _LENGTH) -> np.ndarray:
    """Return L with L Lᵀ the covariance of a Matérn process (ν = 3/2) at even knots."""
    place = np.linspace(0.0, 1.0, knots)
    far = np.sqrt(3.0) * np.abs(place[:, None] - place) / length
    variance, axes = np.linalg.eigh((1 + far) * np.exp(-far))
    root: np.ndarray = axes[:, ::-1] * np.sqrt(np.maximum(variance[::-1], 0.0))
    return root


def _leading(root: np.ndarray, directions: int) -> np.ndarray:
    order = np.argsort(-(root**2).sum(axis=0), kind="stable")
    return np.ascontiguousarray(root[:, order[:directions]])


_CURVE_ROOT = _leading(_matern_root(CURVE_KNOTS), _CURVE_DIRECTIONS)
_FINE_ROOT = _matern_root(FINE_KNOTS, _FINE_LENGTH)
_SURFACE_ROOT = _leading(
    np.kron(_matern_root(SURFACE_KNOTS), _matern_root(SURFACE_KNOTS)), _SURFACE_DIRECTIONS
)


class _Basis:
    """The coefficients of a head: θ = L ω, with ω independent a priori."""

    def __init__(self, groups: list[Group], M: int) -> None:
        roots = {CURVE: _CURVE_ROOT, FINE: _FINE_ROOT, SURFACE: _SURFACE_ROOT}
        sizes = [1, 1, M, *(g.size for g in groups)]
        self.groups = groups
        self.roots = [None, None, None, *(roots.get(g.kind) for g in groups)]
        ranks = [n if L is None else L.shape[1] for L, n in zip(self.roots, sizes, strict=True)]
        self._sizes, self._ranks, self.size = np.cumsum(sizes), np.cumsum(ranks), sum(ranks)
        # The group of each ω; −1 is the intercept, 0 the own slope, 1 the other linear ones.
        self.group = np.repeat(np.arange(len(ranks)) - 1, ranks)

    def whitened(self, rows: np.ndarray) -> np.ndarray:
        """Return Lᵀ times rows that belong to θ."""
        pairs = zip(self.roots, np.split(rows, self._sizes[:-1]), strict=True)
        return np.concatenate([part if L is None else L.T @ part for L, part in pairs])

    def coloured(self, omega: np.ndarray) -> np.ndarray:
        """Return θ of ω."""
        pairs = zip(self.roots, np.split(omega, self._ranks[:-1]), strict=True)
        return np.concatenate([part if L is None else L @ part for L, part in pairs])

    def likelihood(self, answer: Answer) -> Likelihood:
        """Return the likelihood in ω."""
        curvature = answer.curvature
        if curvature is not None:
            curvature = self.whitened(self.whitened(curvature).T)[None]
        return Likelihood(np.array([answer.value]), self.whitened(answer.gradient)[None], curvature)
