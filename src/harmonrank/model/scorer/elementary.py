"""Elementary functions in float64, eight numbers at a time (`harmonrank.support.simd`).

The library's log and exp are called once per number. These have no branch and no call, so several
numbers go through at once. Arrays are changed in place, and NaN stays NaN.

    log x = k ln 2 + 2 artanh t      x = 2ᵏ m with √½ ≤ m < √2, t = (m − 1)/(m + 1)
    exp x = 2ᵏ eᶠ                    k whole, |f| ≤ ln 2 / 2

Both polynomials interpolate at Chebyshev points. A logarithm is off by 1e-13 at most, or by the
rounding of a float64 where that is more; an exponential by 1e-13 of itself.
"""

__all__ = ["take_logarithms", "take_logits", "take_sigmoids"]

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from harmonrank.support.kernel import lane_function
from harmonrank.support.logistic import SMALLEST_SCORE
from harmonrank.support.simd import SINGLES, Lanes, double_lanes, in_all, put_lanes, vector_type

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
_MANTISSA, _BIAS = 52, 1023 << 52
_ROOT_HALF = 0x3FE6A09E667F3BCD  # The bits of √½.
# An exponent below these bits is the number 2⁵² + exponent.
_WHOLE, _WHOLE_LESS = 0x4330000000000000, 2.0**52 + 1023.0

_DOUBLES, _BITS = Lanes(types.float64, SINGLES), Lanes(types.int64, SINGLES)


class _Eight:
    """Eight numbers while LLVM's instructions for them are written, with the usual operators.

    A product and a sum may be rounded once. Where two products are added, which of them is rounded
    would be up to the compiler, so there is no such sum here.
    """

    def __init__(self, builder: Any, value: Any) -> None:
        self.builder = builder
        whole = isinstance(value, int)
        kind = ir.IntType(64) if whole else ir.DoubleType()
        if whole or isinstance(value, float):
            value = in_all(builder, _BITS if whole else _DOUBLES, ir.Constant(kind, value))
        self.value = value

    def _with(self, on_floats: str, on_bits: str, other: Any) -> "_Eight":
        other = other if isinstance(other, _Eight) else _Eight(self.builder, other)
        if self.value.type == vector_type(_BITS):
            return _Eight(self.builder, getattr(self.builder, on_bits)(self.value, other.value))
        emit = getattr(self.builder, on_floats)
        return _Eight(self.builder, emit(self.value, other.value, flags=("contract",)))

    def __add__(self, other: Any) -> "_Eight":
        return self._with("fadd", "add", other)

    def __sub__(self, other: Any) -> "_Eight":
        return self._with("fsub", "sub", other)

    def __mul__(self, other: Any) -> "_Eight":
        return self._with("fmul", "mul", other)

    def __truediv__(self, other: Any) -> "_Eight":
        return self._with("fdiv", "udiv", other)

    def shifted(self, by: int) -> "_Eight":
        """Move bits up, or down if the number is negative."""
        places = _Eight(self.builder, abs(by)).value
        shift = self.builder.shl if by > 0 else self.builder.lshr
        return _Eight(self.builder, shift(self.value, places))

    def bits(self) -> "_Eight":
        """Return the bits of floats."""
        return _Eight(self.builder, self.builder.bitcast(self.value, vector_type(_BITS)))

    def floats(self) -> "_Eight":
        """Return the floats of bits."""
        return _Eight(self.builder, self.builder.bitcast(self.value, vector_type(_DOUBLES)))

    def bounded(self, low: float, high: float) -> "_Eight":
        """Move what is below or above to the bounds; NaN stays."""
        found = self.value
        for sign, bound in (("<", low), (">", high)):
            end = _Eight(self.builder, bound).value
            found = self.builder.select(self.builder.fcmp_ordered(sign, found, end), end, found)
        return _Eight(self.builder, found)


def _polynomial(x: _Eight, *coefficients: float) -> _Eight:
    """Return Σ c_i xⁱ."""
    total = _Eight(x.builder, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = x * total + coefficient
    return total


def _log(x: _Eight) -> _Eight:
    """Return log x of x > 0; NaN if x is not finite."""
    bits = x.bits()
    exponent = (bits - _ROOT_HALF + _BIAS).shifted(-_MANTISSA)
    m = (bits - exponent.shifted(_MANTISSA) + _BIAS).floats()
    k = (exponent + _WHOLE).floats() - _WHOLE_LESS
    t = (m - 1.0) / (m + 1.0)
    w = t * t
    rest = _polynomial(w, _L0, _L1, _L2, _L3, _L4)
    return ((k * _LN2 + (t + t)) + (t * w) * rest) + (x - x)


def _exp(x: _Eight) -> _Eight:
    """Return eˣ, bounded."""
    x = x.bounded(-_FARTHEST, _FARTHEST)
    rounded = x * _LOG2E + _ROUND
    k = rounded - _ROUND
    f = (x - k * _LN2_HIGH) - k * _LN2_LOW
    rest = _polynomial(f, _E0, _E1, _E2, _E3, _E4, _E5, _E6, _E7)
    p = f * (f * rest + 1.0) + 1.0
    return p * (rounded.bits().shifted(_MANTISSA) + _BIAS).floats()


def _logit(s: _Eight) -> _Eight:
    s = s.bounded(SMALLEST_SCORE, 1.0 - SMALLEST_SCORE)
    return _log(s / (_Eight(s.builder, 1.0) - s))


def _sigmoid(x: _Eight) -> _Eight:
    one = _Eight(x.builder, 1.0)
    return one / (one + _exp(_Eight(x.builder, x.builder.fneg(x.value))))


def _function(of: Any) -> Any:
    """Let kernels call a function of eight numbers."""

    def build(_typing: Any, x: Any) -> Any:

        def emit(_context: Any, builder: Any, _signature: Any, given: Any) -> Any:
            return of(_Eight(builder, given[0])).value

        return x(x), emit

    return intrinsic(build)


_logarithms, _logits, _sigmoids = _function(_log), _function(_logit), _function(_sigmoid)


@lane_function
def take_logits(x: Any) -> None:
    """Replace scores by log(s/(1 − s)), bounded at 0 and 1; the size is a multiple of eight."""
    for i in range(0, x.size, SINGLES):
        put_lanes(x, i, _logits(double_lanes(x, i)))


@lane_function
def take_logarithms(x: Any) -> None:
    """Replace finite positive numbers by their logarithms; the size is a multiple of eight."""
    for i in range(0, x.size, SINGLES):
        put_lanes(x, i, _logarithms(double_lanes(x, i)))


@lane_function
def take_sigmoids(x: Any) -> None:
    """Replace logits by 1/(1 + e⁻ˣ); the size is a multiple of eight."""
    for i in range(0, x.size, SINGLES):
        put_lanes(x, i, _sigmoids(double_lanes(x, i)))
