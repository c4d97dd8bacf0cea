"""Elementary functions of whole arrays in float64, as loops that compile to vector instructions.

The library's log and exp are called once per number. These have no branch and no call, so several
numbers go through at once. Arrays are changed in place, and NaN stays NaN.

    log x = k ln 2 + 2 artanh t      x = 2ᵏ m with √½ ≤ m < √2, t = (m − 1)/(m + 1)
    exp x = 2ᵏ eᶠ                    k whole, |f| ≤ ln 2 / 2

Both polynomials interpolate at Chebyshev points. A logarithm is off by 1e-13 at most, or by the
rounding of a float64 where that is more; an exponential by 1e-13 of itself.
"""

__all__ = ["take_logarithms", "take_logits", "take_sigmoids"]

from typing import Any

import numpy as np

from harmonrank.kernel import inline_kernel, product_kernel
from harmonrank.model.coordinate import SMALLEST_SCORE

_LN2, _LOG2E = 0.6931471805599453, 1.4426950408889634
# ln 2 in two parts: the first has few digits, so that k times it is exact.
_LN2_HIGH, _LN2_LOW = 0.6931471803691238, 1.9082149292705877e-10
_ROUND = 1.5 * 2.0**52  # Adding it rounds a small float to a whole number, in its last bits.
_FARTHEST = 700.0  # Beyond, eˣ or e⁻ˣ is no float64.

# (2 artanh t − 2t)/t³ as a polynomial in t².
_L0, _L1, _L2 = 0.6666666666737509, 0.3999999879733759, 0.28571754535914196
_L3, _L4 = 0.22191400830322033, 0.19362653713999542
# (eᶠ − 1 − f)/f² as a polynomial in f.
_E0, _E1, _E2 = 0.4999999999995511, 0.16666666666662586, 0.04166666678626574
_E3, _E4, _E5 = 0.008333333344202987, 0.0013888839110571833, 0.00019841224599647061
_E6, _E7 = 2.4867870179763753e-05, 2.7617564789133644e-06

# A float64 is sign, 11 bits of exponent + 1023, 52 bits of mantissa.
_MANTISSA = np.uint64(52)
_BIAS = np.int64(1023 << 52)
_ROOT_HALF = np.int64(0x3FE6A09E667F3BCD)  # The bits of √½.
# An exponent below these bits is the number 2⁵² + exponent.
_WHOLE, _WHOLE_LESS = np.int64(0x4330000000000000), 2.0**52 + 1023.0


@inline_kernel
def _log(x: Any) -> Any:
    """Return log x of x > 0; NaN if x is not finite."""
    bits = np.float64(x).view(np.int64)
    exponent = np.uint64(bits - _ROOT_HALF + _BIAS) >> _MANTISSA
    m = np.int64(bits - np.int64(exponent << _MANTISSA) + _BIAS).view(np.float64)
    k = np.int64(np.int64(exponent) | _WHOLE).view(np.float64) - _WHOLE_LESS
    # np.divide, as `/` would test for zero and keep the loop from being vectorised.
    t = np.divide(m - 1.0, m + 1.0)
    w = t * t
    rest = _L0 + w * (_L1 + w * (_L2 + w * (_L3 + w * _L4)))
    # No sum of two products: which of them is rounded would be up to the compiler.
    return ((k * _LN2 + (t + t)) + (t * w) * rest) + (x - x)


@inline_kernel
def _exp(x: Any) -> Any:
    """Return eˣ, bounded."""
    x = -_FARTHEST if x < -_FARTHEST else x
    x = _FARTHEST if x > _FARTHEST else x
    rounded = x * _LOG2E + _ROUND
    k = rounded - _ROUND
    f = (x - k * _LN2_HIGH) - k * _LN2_LOW
    rest = _E0 + f * (_E1 + f * (_E2 + f * (_E3 + f * (_E4 + f * (_E5 + f * (_E6 + f * _E7))))))
    p = 1.0 + f * (1.0 + f * rest)
    power = np.uint64(np.float64(rounded).view(np.int64)) << _MANTISSA
    return p * np.int64(np.int64(power) + _BIAS).view(np.float64)


@product_kernel
def take_logits(x: Any) -> None:
    """Replace scores by log(s/(1 − s)), bounded at 0 and 1."""
    for i in range(x.size):
        s = x[i]
        s = SMALLEST_SCORE if s < SMALLEST_SCORE else s
        s = 1.0 - SMALLEST_SCORE if s > 1.0 - SMALLEST_SCORE else s
        x[i] = _log(np.divide(s, 1.0 - s))


@product_kernel
def take_logarithms(x: Any) -> None:
    """Replace finite positive numbers by their logarithms."""
    for i in range(x.size):
        x[i] = _log(x[i])


@product_kernel
def take_sigmoids(x: Any) -> None:
    """Replace logits by 1/(1 + e⁻ˣ)."""
    for i in range(x.size):
        x[i] = np.divide(1.0, 1.0 + _exp(-x[i]))
