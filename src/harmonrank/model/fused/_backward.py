"""The backward kernel: scale each row's derivatives by its gradient and add them to the tables."""

__all__ = ["scatter"]

from typing import Any

from numpy.typing import NDArray

from harmonrank.kernel import kernel

Array = NDArray[Any]


@kernel
def scatter(gradient: Array, place: Array, J: Array, M: int, table: Array, context: Array) -> None:
    """Add ∂L/∂table and ∂L/∂context of a batch, given ∂L/∂s of its rows.

    Sums are float64: a popular bucket takes thousands of terms. The last field of a table row is
    added to the score as it is, so its derivative is 1 and not stored.
    """
    blocks, R = len(place), place.shape[2]
    F, W = table.shape[1] - 1, context.shape[1]
    for k in range(blocks):
        start = k * R
        n = min(R, len(gradient) - start)
        for m in range(M):
            for r in range(n):
                g, row = gradient[start + r], place[k, m, r]
                for f in range(F):
                    table[row, f] += g * J[k, m * F + f, r]
                table[row, F] += g
        for m in range(M, place.shape[1]):
            for r in range(n):
                g, row = gradient[start + r], place[k, m, r]
                for c in range(W):
                    context[row, c] += g * J[k, M * F + c, r]
        if place.shape[1] == M:
            # Without features the constant row serves every score.
            for c in range(W):
                for r in range(n):
                    context[0, c] += gradient[start + r] * J[k, M * F + c, r]
