"""Sums of the law: what it needs to know of rows, so that old rows need not be kept.

The law is made of means and second moments given the context, and moments are sums over rows. So
the sums of two logs add up to those of both, a factor below 1 lets old rows fade, and `LawSums.law`
turns them into the law of eq. 1 to eq. 3 of docs/default-method.md.
"""

__all__ = ["LawSums", "Unseen", "fit_law", "law_sums_arrays"]

from dataclasses import dataclass, replace

import numpy as np

from harmonrank.data.arrays import Array
from harmonrank.model.law import Law, distinct_contexts, slot_counts

_MEAN_RIDGE = 10.0
_VARIANCE_RIDGE = 50.0
_VARIANCE_STEPS = 8


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
class LawSums:
    """Moments of logits, taken from an origin near their mean so that no digits are lost.

    Attributes:
        contexts: (contexts, features) distinct codes, in order.
        mass: (contexts,) weight of the rows of each context.
        total: (contexts, M) sum of their logits, less the origin.
        squares: (contexts, M) sum of their squares.
        products: (M, M) sum of all products.
        origin: (M,).
    """

    contexts: np.ndarray
    mass: np.ndarray
    total: np.ndarray
    squares: np.ndarray
    products: np.ndarray
    origin: np.ndarray

    @classmethod
    def of(
        cls,
        logits: np.ndarray,
        codes: np.ndarray,
        slots: tuple[int, ...],
        weight: np.ndarray | None = None,
        unseen: Unseen | None = None,
        origin: np.ndarray | None = None,
    ) -> "LawSums":
        """Add up (rows, M) logits with (rows, features) context codes."""
        contexts, of_row = distinct_contexts(codes, slots)
        w = np.ones(len(logits)) if weight is None else weight
        origin = w @ logits / w.sum() if origin is None else origin
        away = logits - origin

        def per_context(values: np.ndarray) -> np.ndarray:
            return np.stack([np.bincount(of_row, w * v, len(contexts)) for v in values.T], axis=1)

        mass = np.bincount(of_row, w, len(contexts))
        products, squares = (w[:, None] * away).T @ away, per_context(away**2)
        if unseen is not None:
            products, squares = products + unseen.covariance, squares + unseen.squares
        return cls(contexts, mass, per_context(away), squares, products, origin)

    def __add__(self, other: "LawSums") -> "LawSums":
        """Return the sums of both logs, which have the same origin."""
        both = np.concatenate([self.contexts, other.contexts])
        contexts, place = np.unique(both, axis=0, return_inverse=True)
        here, there = np.split(place.reshape(-1), [len(self.contexts)])

        def joined(a: np.ndarray, b: np.ndarray) -> np.ndarray:
            sums = np.zeros((len(contexts), *a.shape[1:]))
            sums[here] += a
            sums[there] += b
            return sums

        return LawSums(
            contexts,
            joined(self.mass, other.mass),
            joined(self.total, other.total),
            joined(self.squares, other.squares),
            self.products + other.products,
            self.origin,
        )

    def faded(self, factor: float) -> "LawSums":
        """Return the sums of rows that count so much less."""
        return replace(
            self,
            mass=factor * self.mass,
            total=factor * self.total,
            squares=factor * self.squares,
            products=factor * self.products,
        )

    def recoded(self, codes: list[np.ndarray]) -> "LawSums":
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

    def law(self, slots: tuple[int, ...]) -> Law:
        """Return the law of rows with these moments."""
        contexts, mass, rows = self.contexts, self.mass, self.mass.sum()
        first = np.cumsum([0, *slots])[:-1].astype(np.int64)
        shift = self.total.sum(axis=0) / rows
        base = self.origin + shift
        gram = _gram(contexts, mass, first, sum(slots))
        mean = _additive(gram, _MEAN_RIDGE, contexts, self.total - mass[:, None] * shift, first)
        M = len(base)
        law = Law(
            first=first,
            base=base,
            mean=mean,
            log_variance=np.zeros(M),
            spread=np.zeros_like(mean),
            covariance=np.eye(M),
            excess=np.zeros(M),
            centre_base=base,
            centre=mean,
            scale=np.ones(M),
        )
        # Moments about the origin become moments about each context's mean.
        centre = shift + law.mean_of(contexts)
        squares = self.squares - 2 * centre * self.total + mass[:, None] * centre**2
        across = self.total.T @ centre
        products = self.products - across - across.T + (mass[:, None] * centre).T @ centre
        np.fill_diagonal(products, np.maximum(squares.sum(axis=0), 0.0))
        covariance = products / rows
        law = replace(law, log_variance=np.log(np.diag(covariance) + 1e-12), covariance=covariance)
        for _ in range(_VARIANCE_STEPS):
            # Scoring steps of a variance model with log link.
            over = squares / law.variance_of(contexts) - mass[:, None]
            change = _additive(gram, _VARIANCE_RIDGE, contexts, over, first, law.spread)
            law = replace(law, spread=law.spread + change)
        return law


def fit_law(
    logits: np.ndarray,
    codes: np.ndarray,
    slots: tuple[int, ...],
    weight: np.ndarray | None = None,
    unseen: Unseen | None = None,
) -> Law:
    """Estimate the law of (rows, M) logits given (rows, features) context codes."""
    return LawSums.of(logits, codes, slots, weight, unseen).law(slots)


def law_sums_arrays(M: int, features: int, contexts: str = "contexts") -> dict[str, Array]:
    """Declare the arrays of stored `LawSums`; `contexts` names how many contexts there are."""
    return {
        "contexts": Array((contexts, features), "int64", low=0, high=1e6),
        "mass": Array((contexts,), low=0.0),
        "total": Array((contexts, M)),
        "squares": Array((contexts, M), low=0.0),
        "products": Array((M, M)),
        "origin": Array((M,), low=-1e6, high=1e6),
    }


def _gram(contexts: np.ndarray, mass: np.ndarray, first: np.ndarray, size: int) -> np.ndarray:
    gram = np.zeros((size, size))
    for a in range(len(first)):
        for b in range(len(first)):  # How much weight each pair of context values has together.
            np.add.at(gram, (first[a] + contexts[:, a], first[b] + contexts[:, b]), mass)
    return gram


def _additive(
    gram: np.ndarray,
    ridge: float,
    contexts: np.ndarray,
    totals: np.ndarray,
    first: np.ndarray,
    there: np.ndarray | float = 0.0,
) -> np.ndarray:
    """Return the ridge fit of additive effects to each context's total, beside what is there."""
    right = np.zeros((len(gram), totals.shape[1])) - ridge * there
    for feature, start in enumerate(first):
        np.add.at(right, start + contexts[:, feature], totals)
    if not len(gram):
        return right
    solution: np.ndarray = np.linalg.solve(gram + ridge * np.eye(len(gram)), right)
    return solution
