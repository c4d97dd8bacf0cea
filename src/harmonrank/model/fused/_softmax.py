"""The exponential and the softmax of a block of rows, in vector instructions."""

__all__ = ["ONE", "ZERO", "exp", "softmax"]

from typing import Any

import numpy as np
from numpy.typing import NDArray

from harmonrank.kernel import inline_kernel, product_kernel

Array = NDArray[Any]

_LOWEST, _LOG2E = np.float32(-87.0), np.float32(1.4426950408889634)
# ln 2 in two parts: the first has few digits, so that k times it is exact.
_LN2_HIGH, _LN2_LOW = np.float32(0.693359375), np.float32(-2.12194440e-4)
_ROUND = np.float32(12582912.0)  # 1.5 · 2²³: adding it rounds a small float to a whole number.
# The polynomial of least relative error, 3e-9, on |f| ≤ ln 2 / 2 that begins with 1 + f.
_E2, _E3 = np.float32(0.499999934), np.float32(0.166665206)
_E4, _E5, _E6 = np.float32(0.041668388), np.float32(0.00836871703), np.float32(0.00138146019)
ZERO, ONE = np.float32(0), np.float32(1)
_EXPONENT_BIAS, _EXPONENT_SHIFT = np.int32(127), np.int32(23)


@inline_kernel
def exp(x: Any) -> Any:
    """Return eˣ = 2ᵏ eᶠ for x ≤ 0 in float32, without a branch: k whole, |f| ≤ ln 2 / 2."""
    x = max(x, _LOWEST)
    k = (x * _LOG2E + _ROUND) - _ROUND
    f = (x - k * _LN2_HIGH) - k * _LN2_LOW
    p = ONE + f * (ONE + f * (_E2 + f * (_E3 + f * (_E4 + f * (_E5 + f * _E6)))))
    return p * np.int32((np.int32(k) + _EXPONENT_BIAS) << _EXPONENT_SHIFT).view(np.float32)


@product_kernel
def softmax(a: Array, i: int, n: int, inverse: Array, top: Array) -> None:
    """Turn a[i], (objectives, rows), into eᵃ up to a factor; inverse[i] is one over their sum."""
    M = a.shape[1]
    for r in range(n):
        top[0, r] = a[i, 0, r]
        inverse[i, r] = ZERO
    for j in range(1, M):
        # From one row to the other, as a maximum in place would become a slow conditional store.
        here, there = (j - 1) % 2, j % 2
        for r in range(n):
            top[there, r] = max(top[here, r], a[i, j, r])
    last = (M - 1) % 2
    for j in range(M):
        for r in range(n):
            e = exp(a[i, j, r] - top[last, r])
            a[i, j, r] = e
            inverse[i, r] += e
    for r in range(n):
        # np.divide, as `/` would test for zero and keep the loop from being vectorised.
        inverse[i, r] = np.divide(ONE, inverse[i, r])
