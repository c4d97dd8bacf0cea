"""Chance: p-values of the normal and the chi-square."""

__all__ = ["chi_square_p", "holm", "two_sided_p"]

from collections.abc import Sequence
from math import erfc, exp, lgamma, log, sqrt


def two_sided_p(z: float) -> float:
    """Return P(|Z| ≥ |z|) for a standard normal Z.

    >>> round(two_sided_p(-1.959964), 6)
    0.05
    """
    return erfc(abs(z) / sqrt(2))


def chi_square_p(x: float, degrees: int) -> float:
    """Return P(χ² ≥ x), the regularised upper gamma Q(degrees/2, x/2).

    Q(½, h) = erfc √h, Q(1, h) = e^−h, and Q(a + 1, h) = Q(a, h) + h^a e^−h / Γ(a + 1).

    >>> round(chi_square_p(5.991465, degrees=2), 6), chi_square_p(0.0, degrees=3)
    (0.05, 1.0)
    """
    h = x / 2
    if h <= 0:
        return 1.0
    a, q = (0.5, erfc(sqrt(h))) if degrees % 2 else (1.0, exp(-h))
    while a < degrees / 2:
        q += exp(a * log(h) - h - lgamma(a + 1))
        a += 1
    return min(q, 1.0)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted so that the chance of any false alarm stays below the level.

    The smallest is multiplied by their number, the next by one less, and none may fall below the
    one before it (Holm 1979). What is not a number stays so and does not count.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    known = sorted((p, i) for i, p in enumerate(p_values) if p == p)
    adjusted, highest = [float("nan")] * len(p_values), 0.0
    for place, (p, i) in enumerate(known):
        highest = max(highest, min(1.0, p * (len(known) - place)))
        adjusted[i] = highest
    return adjusted
