"""Sums of the density: what it needs to know of rows, so that old rows need not be kept.

The density is made of means and second moments given the context, and moments are sums over rows.
So the sums of two logs add up to those of both, a factor below 1 lets old rows fade, and
`DensitySums.density` turns them into the density of eq. 1 to eq. 3 of docs/default-method.md.
"""

__all__ = ["DensitySums", "Unseen", "density_of", "fit_density"]

from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np

from harmonrank.data.rows.blocks import Blocks, HeldBlocks
from harmonrank.model.density.density import Density, distinct_contexts, slot_counts
from harmonrank.model.density.density_spread import with_spread
from harmonrank.support.kernel import kernel
from harmonrank.support.storage.arrays import Array

_MEAN_RIDGE = 10.0


@dataclass(frozen=True)
class Unseen:
    """What rows with missing logits add to the second moments, beside what they were filled with.

    Attributes:
        covariance: (M, M) sum of their conditional covariances.
        squares: (contexts, M) its diagonal, by context.
    """

    covariance: np.ndarray
    squares: np.ndarray


@dataclass(frozen=True)
class DensitySums:
    """Moments of logits, taken from an origin near their mean so that no digits are lost.

    Attributes:
        contexts: (contexts, features) distinct codes, in order.
        mass: (contexts,) weight of the rows of each context.
        total: (contexts, M) sum of their logits, less the origin.
        squares: (contexts, M) sum of their squares.
        products: (M, M) sum of all products.
        origin: (M,).
    """

    contexts: Annotated[np.ndarray, Array(("contexts", "features"), "int64", low=0, high=1e6)]
    mass: Annotated[np.ndarray, Array(("contexts",), low=0.0)]
    total: Annotated[np.ndarray, Array(("contexts", "M"))]
    squares: Annotated[np.ndarray, Array(("contexts", "M"), low=0.0)]
    products: Annotated[np.ndarray, Array(("M", "M"))]
    origin: Annotated[np.ndarray, Array(("M",), low=-1e6, high=1e6)]

    @classmethod
    def of(
        cls,
        logits: np.ndarray,
        codes: np.ndarray,
        slots: tuple[int, ...],
        weight: np.ndarray | None = None,
        unseen: Unseen | None = None,
        origin: np.ndarray | None = None,
    ) -> "DensitySums":
        """Add up (rows, M) logits with (rows, features) context codes."""
        contexts, of_row = distinct_contexts(codes, slots)
        w = np.ones(len(logits)) if weight is None else weight
        origin = w @ logits / w.sum() if origin is None else origin
        away = logits - origin

        def per_context(power: int) -> np.ndarray:
            parts = [np.bincount(of_row, w * v**power, len(contexts)) for v in away.T]
            return np.stack(parts, axis=1)

        mass = np.bincount(of_row, w, len(contexts))
        weighed = away if weight is None else w[:, None] * away
        products, squares = weighed.T @ away, per_context(2)
        if unseen is not None:
            products, squares = products + unseen.covariance, squares + unseen.squares
        return cls(contexts, mass, per_context(1), squares, products, origin)

    def __add__(self, other: "DensitySums") -> "DensitySums":
        """Return the sums of both logs, which have the same origin."""
        both = np.concatenate([self.contexts, other.contexts])
        contexts, place = np.unique(both, axis=0, return_inverse=True)
        here, there = np.split(place.reshape(-1), [len(self.contexts)])

        def joined(a: np.ndarray, b: np.ndarray) -> np.ndarray:
            sums = np.zeros((len(contexts), *a.shape[1:]))
            sums[here] += a
            sums[there] += b
            return sums

        return DensitySums(
            contexts,
            joined(self.mass, other.mass),
            joined(self.total, other.total),
            joined(self.squares, other.squares),
            self.products + other.products,
            self.origin,
        )

    def faded(self, factor: float) -> "DensitySums":
        """Return the sums of rows that count so much less."""
        return replace(
            self,
            mass=factor * self.mass,
            total=factor * self.total,
            squares=factor * self.squares,
            products=factor * self.products,
        )

    def recoded(self, codes: list[np.ndarray]) -> "DensitySums":
        """Return the sums with other codes: `codes[f]` is the new one of each old one."""
        contexts = np.stack([new[self.contexts[:, f]] for f, new in enumerate(codes)], axis=1)
        order = np.lexsort(contexts.T[::-1])
        return replace(
            self,
            contexts=contexts[order],
            mass=self.mass[order],
            total=self.total[order],
            squares=self.squares[order],
        )

    def counts(self, slots: tuple[int, ...]) -> np.ndarray:
        """Return how much weight each context value has, (slots,)."""
        return slot_counts(self.contexts, slots, self.mass)

    def squares_about(self, centre: np.ndarray) -> np.ndarray:
        """Return second moments about (contexts, M) points, given from the origin."""
        mass = self.mass[:, None]
        about: np.ndarray = self.squares - 2 * centre * self.total + mass * centre**2
        return about

    def density(self, slots: tuple[int, ...], steady: np.ndarray | None = None) -> Density:
        """Return the density of rows with these moments; see `density_of`."""
        return density_of(HeldBlocks([self]), slots, steady)


def density_of(
    parts: Blocks[DensitySums], slots: tuple[int, ...], steady: np.ndarray | None = None
) -> Density:
    """Return the density of rows whose moments are kept block by block, all of one origin.

    All that it needs are sums over contexts, of which each block has its own: however many
    contexts there are in all, tables of them do not grow.

    Args:
        parts: The moments.
        slots: Codes per context feature.
        steady: (M,) the part of each variance that no context changes, if it is known.
    """
    first = np.cumsum([0, *slots])[:-1].astype(np.int64)
    rows, total, gram, right, slot_mass = parts.total(_margins, first, sum(slots))
    origin = parts[0].origin
    shift = total / rows
    base = origin + shift
    mean = _additive(gram, _MEAN_RIDGE, right - slot_mass[:, None] * shift)
    M = len(base)
    density = Density(
        first=first,
        base=base,
        mean=mean,
        log_variance=np.zeros(M),
        steady=np.zeros(M),
        spread=np.zeros_like(mean),
        covariance=np.eye(M),
        excess=np.zeros(M),
        centre_base=base,
        centre=mean,
        scale=np.ones(M),
    )
    squares, products = parts.total(_centred, density, shift)
    np.fill_diagonal(products, np.maximum(squares, 0.0))
    covariance = products / rows
    density = replace(
        density, log_variance=np.log(np.diag(covariance) + 1e-12), covariance=covariance
    )
    return with_spread(parts, density, rows, shift, steady)


def _margins(sums: DensitySums, first: np.ndarray, size: int) -> tuple[Any, ...]:
    """Return mass and total of all rows, and of each context value and each pair of them."""
    gram, right = np.zeros((size, size)), np.zeros((size, sums.total.shape[1]))
    slot_mass = np.zeros((size, 1))
    _add_pairs(first, sums.contexts, sums.mass, gram)
    _add_to_slots(first, sums.contexts, sums.total, right)
    _add_to_slots(first, sums.contexts, sums.mass[:, None], slot_mass)
    return sums.mass.sum(), sums.total.sum(axis=0), gram, right, slot_mass[:, 0]


def _centred(
    sums: DensitySums, density: Density, shift: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return squares and products about each context's mean, of all rows."""
    centre = shift + density.mean_of(sums.contexts)
    across = sums.total.T @ centre
    products = sums.products - across - across.T + (sums.mass[:, None] * centre).T @ centre
    return sums.squares_about(centre).sum(axis=0), products


def fit_density(
    logits: np.ndarray,
    codes: np.ndarray,
    slots: tuple[int, ...],
    weight: np.ndarray | None = None,
    unseen: Unseen | None = None,
    steady: np.ndarray | None = None,
) -> Density:
    """Estimate the density of (rows, M) logits given (rows, features) context codes."""
    return DensitySums.of(logits, codes, slots, weight, unseen).density(slots, steady)


@kernel
def _add_pairs(first: Any, contexts: Any, mass: Any, gram: Any) -> None:
    """Add up how much weight each pair of context values has together."""
    for c in range(len(contexts)):
        for a in range(len(first)):
            row = gram[first[a] + contexts[c, a]]
            for b in range(len(first)):
                row[first[b] + contexts[c, b]] += mass[c]


@kernel
def _add_to_slots(first: Any, contexts: Any, values: Any, of_slot: Any) -> None:
    """Add the (contexts, M) values of each context to those of its context values."""
    for c in range(len(contexts)):
        for f in range(len(first)):
            row = of_slot[first[f] + contexts[c, f]]
            for m in range(values.shape[1]):
                row[m] += values[c, m]


def _additive(gram: np.ndarray, ridge: float, right: np.ndarray) -> np.ndarray:
    """Return the ridge fit of additive effects to the totals of each context value."""
    if not len(gram):
        return right
    solution: np.ndarray = np.linalg.solve(gram + ridge * np.eye(len(gram)), right)
    return solution
