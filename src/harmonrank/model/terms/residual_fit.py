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

Curves and surfaces are smooth a priori: their knots have the covariance of a Matérn process, of
which the leading directions are kept. So the coefficients that are shrunk are ω with θ = L ω.
"""

__all__ = ["fit_residual"]

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace

import numpy as np

from harmonrank.model.terms.residual import CURVE_KNOTS, SURFACE_KNOTS, Residual, residual_shapes
from harmonrank.model.terms.residual_blocks import Answer, Ask, Look, ResidualBlocks
from harmonrank.model.terms.residual_sums import CURVE, KINDS, PAIR, SURFACE, Group, groups_of

# Nats that a group must gain, and what is added to them for a head of one positive: of few, the
# evidence, which takes the likelihood for a quadratic, is less reliable.
_GAIN, _GAIN_OF_ONE = 3.0, 600.0
_LENGTH = 0.25  # Part of the range over which a curve may bend.
_CURVE_DIRECTIONS, _SURFACE_DIRECTIONS = 10, 16
_PRECISIONS = np.geomspace(1e-2, 1e6, 49)
_LEAST, _MOST = 1e-2, 1e6
_NEWTON_STEPS, _ROUNDS = 5, 8
_CURVATURES = 2  # Steps for which the curvature is added up again; later it hardly changes.
_ENOUGH = 0.15  # Posterior standard deviations.


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
    shapes = residual_shapes(M, rows.slots)
    found = {name: np.zeros(shapes[name]) for name in ("linear", *KINDS)}
    flat = {name: array.reshape(M, -1) for name, array in found.items()}
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
    return Residual(rows.slots, rows.low, rows.high, **found)


@dataclass(frozen=True)
class _Look:
    """A first look at a head: what each group alone would gain.

    Attributes:
        value: Log-likelihood of the linear head.
        gradient: Of all groups there.
        gains: (groups, precisions) evidence, in nats.
        held: (groups,) log-likelihood that each half of the log gains by what the other says.
        enough: What a group must gain by itself.
    """

    value: float
    gradient: np.ndarray
    gains: np.ndarray
    held: np.ndarray
    enough: float


@dataclass(frozen=True)
class _Head:
    """The admitted groups of one head and their coefficients."""

    groups: list[Group]
    theta: np.ndarray


_Steps = Generator[Ask, Answer, _Head]
"""The fit of one head: asks about its likelihood, is answered, and returns what it found."""


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
    value = looks[m].value
    keep, precision = _admitted(looks, m)
    theta = np.zeros(len(looks[m].gradient))
    groups, theta, gradient = _kept(groups, keep, theta, looks[m].gradient, M)
    if not groups:
        return _Head(groups, theta)
    # The linear coefficients are a group of their own, but for intercept and own slope.
    precision = np.concatenate([[1e-6, 10.0, 100.0], precision])
    answer = yield Ask(m, groups, theta, groups)
    for step_number in range(_NEWTON_STEPS):
        if step_number < _CURVATURES:
            assert answer.curvature is not None
            prior, curvature = _Prior(groups, M), answer.curvature
        new, precision, change = _settled(theta, gradient, curvature, prior, precision)
        ended = change < _ENOUGH
        again = step_number + 1 < _CURVATURES and not ended
        keep = [bool(p < _MOST / 10) or not again for p in precision[3:]]
        left = [group for group, k in zip(groups, keep, strict=True) if k]
        step, before = 1.0, value - prior.penalty(theta, precision)
        while True:
            trial = theta + step * (new - theta)
            answer = yield Ask(m, groups, trial, left if again else None)
            value = answer.value
            if value - prior.penalty(trial, precision) > before - 1e-3 or step < 0.1:
                break
            step /= 2
        theta, gradient = trial, answer.gradient
        if ended:
            break
        groups, theta, gradient = _kept(groups, keep, theta, gradient, M)
        precision = precision[[True] * 3 + keep]
    return _Head(groups, theta)


def _look(found: Look, groups: list[Group], M: int, positives: float, mass: float) -> _Look:
    """Return what every group alone would gain with each precision."""
    prior = _Prior(groups, M)
    gains, held = np.empty((len(groups), len(_PRECISIONS))), np.empty(len(groups))
    dispersion = _pair_dispersion(found, groups, prior)
    for g, (group, block) in enumerate(zip(groups, found.blocks, strict=True)):
        halves, curved = _halves(found.periods[:, prior.of_theta(3 + g)]), block
        if group.kind == PAIR:
            halves, curved = halves / dispersion, curved / dispersion
        if 3 + g in prior.roots:
            L = prior.roots[3 + g]
            curved, axes = np.linalg.eigh(L.T @ block.reshape(group.size, group.size) @ L)
            halves = halves @ L @ axes
        curved = np.maximum(curved, 0.0)
        # The gain of eq. 8 of docs/default-method.md, for every precision at once.
        total = curved + _PRECISIONS[:, None]
        pull = halves.sum(axis=0)
        gains[g] = 0.5 * (pull**2 / total - np.log(total / _PRECISIONS[:, None])).sum(axis=1)
        held[g] = _held(halves[0], halves[1], curved / 2, _PRECISIONS[gains[g].argmax()])
    fewer = max(min(positives, mass - positives), 1.0)
    enough = _GAIN + _GAIN_OF_ONE / fewer
    return _Look(found.value, found.periods.sum(axis=0), gains, held, enough)


def _pair_dispersion(found: Look, groups: list[Group], prior: "_Prior") -> float:
    """Return how much more the gradient in pairs of context values varies, at least 1.

    This is eq. 9 of docs/default-method.md. Of independent rows the gradient has the variance of
    its curvature, in all and in each period, apart from its mean and from what an intercept of
    the period's own would explain.
    """
    varied, curved, count = 0.0, 0.0, len(found.periods)
    for g, (group, block) in enumerate(zip(groups, found.blocks, strict=True)):
        if group.kind == PAIR:
            share = block / max(block.sum(), 1e-300)
            pull = found.periods[:, prior.of_theta(3 + g)] - found.periods[:, :1] * share
            varied += float(pull.var(axis=0, ddof=1).sum()) * count
            curved += float(block.sum())
    return max(1.0, varied / max(curved, 1e-300))


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
        alone = bool(own[best] > looks[m].enough and looks[m].held[g] > 0)
        others = total[g, common] - own[common]
        agreed = sum(look.held[g] for look in looks) > 0
        joined = bool(others > _GAIN and own[common] > 0 and agreed)
        keep.append(alone or joined)
        if keep[-1]:
            precision.append(_PRECISIONS[best if alone else common])
    return keep, np.array(precision)


def _kept(
    groups: list[Group], keep: list[bool], theta: np.ndarray, gradient: np.ndarray, M: int
) -> tuple[list[Group], np.ndarray, np.ndarray]:
    """Return some groups, with their coefficients and gradients."""
    chosen = [np.full(g.size, k) for g, k in zip(groups, keep, strict=True)]
    mask = np.concatenate([np.ones(2 + M, bool), *chosen])
    return [g for g, k in zip(groups, keep, strict=True) if k], theta[mask], gradient[mask]


def _matern_root(knots: int) -> np.ndarray:
    """Return L with L Lᵀ the covariance of a Matérn process (ν = 3/2) at even knots."""
    place = np.linspace(0.0, 1.0, knots)
    far = np.sqrt(3.0) * np.abs(place[:, None] - place) / _LENGTH
    variance, axes = np.linalg.eigh((1 + far) * np.exp(-far))
    root: np.ndarray = axes[:, ::-1] * np.sqrt(np.maximum(variance[::-1], 0.0))
    return root


def _leading(root: np.ndarray, directions: int) -> np.ndarray:
    order = np.argsort(-(root**2).sum(axis=0), kind="stable")
    return np.ascontiguousarray(root[:, order[:directions]])


_CURVE_ROOT = _leading(_matern_root(CURVE_KNOTS), _CURVE_DIRECTIONS)
_SURFACE_ROOT = _leading(
    np.kron(_matern_root(SURFACE_KNOTS), _matern_root(SURFACE_KNOTS)), _SURFACE_DIRECTIONS
)


class _Prior:
    """The prior of a head's coefficients: θ = L ω with ω normal of its group's precision."""

    def __init__(self, groups: list[Group], M: int) -> None:
        roots = {CURVE: _CURVE_ROOT, SURFACE: _SURFACE_ROOT}
        self.roots = {3 + i: roots[g.kind] for i, g in enumerate(groups) if g.kind in roots}
        sizes = [1, 1, M, *(g.size for g in groups)]
        ranks = [self.roots[g].shape[1] if g in self.roots else n for g, n in enumerate(sizes)]
        self._theta, self._omega = np.cumsum([0, *sizes]), np.cumsum([0, *ranks])
        self.group = np.repeat(np.arange(len(ranks)), ranks)

    def of_theta(self, g: int) -> slice:
        return slice(self._theta[g], self._theta[g + 1])

    def _of_omega(self, g: int) -> slice:
        return slice(self._omega[g], self._omega[g + 1])

    def whitened(self, rows: np.ndarray) -> np.ndarray:
        """Return Lᵀ times rows that belong to θ."""
        white = np.empty((self._omega[-1], *rows.shape[1:]))
        for g in range(len(self._theta) - 1):
            part = rows[self.of_theta(g)]
            white[self._of_omega(g)] = self.roots[g].T @ part if g in self.roots else part
        return white

    def coloured(self, omega: np.ndarray) -> np.ndarray:
        """Return θ of ω."""
        theta = np.empty(self._theta[-1])
        for g in range(len(self._theta) - 1):
            part = omega[self._of_omega(g)]
            theta[self.of_theta(g)] = self.roots[g] @ part if g in self.roots else part
        return theta

    def white(self, theta: np.ndarray) -> np.ndarray:
        """Return ω of θ."""
        omega = np.empty(self._omega[-1])
        for g in range(len(self._theta) - 1):
            part = theta[self.of_theta(g)]
            if g in self.roots:
                L = self.roots[g]
                part = (L.T @ part) / (L**2).sum(axis=0)  # The columns are orthogonal.
            omega[self._of_omega(g)] = part
        return omega

    def penalty(self, theta: np.ndarray, precision: np.ndarray) -> float:
        """Return ½ Σ λ ω²."""
        return float(0.5 * (precision[self.group] * self.white(theta) ** 2).sum())


def _settled(
    theta: np.ndarray,
    gradient: np.ndarray,
    curvature: np.ndarray,
    prior: _Prior,
    precision: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, float]:
    """Return coefficients and precisions that fit each other on the quadratic at theta.

    The change is the largest, in posterior standard deviations.
    """
    curved = prior.whitened(prior.whitened(curvature).T)
    start = prior.white(theta)
    pull = prior.whitened(gradient) + curved @ start
    omega = start
    for _ in range(_ROUNDS):
        decay = precision[prior.group]
        covariance = np.linalg.inv(curved + np.diag(decay))
        before, omega = omega, covariance @ pull
        spread = np.maximum(np.diagonal(covariance), 1e-30)
        known = np.bincount(prior.group, 1 - decay * spread)
        energy = np.bincount(prior.group, omega**2)
        new = np.clip(np.maximum(known, 1e-3) / np.maximum(energy, 1e-12), _LEAST, _MOST)
        new[:2] = precision[:2]
        moved = float((np.abs(omega - before) / np.sqrt(spread)).max())
        precision = new
        if moved < _ENOUGH:
            break
    change = float((np.abs(omega - start) / np.sqrt(spread)).max())
    return prior.coloured(omega), precision, change
