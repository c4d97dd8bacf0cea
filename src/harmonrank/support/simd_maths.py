"""SIMD maths: functions of registers besides sums, products and quotients.

Each function writes LLVM's instructions for a whole register, without branches or calls.
"""

__all__ = [
    "counted",
    "exponential",
    "fetched",
    "folded",
    "larger",
    "of_all",
    "sigmoid",
    "smaller",
    "transpose",
    "widened",
]

from collections.abc import Callable
from inspect import signature
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from harmonrank.support.simd import ROWS, SINGLES, Simd, in_all, vector_type, where

_FLOATS, _WHOLES = Simd(types.float32, ROWS), Simd(types.int32, ROWS)
_CONTRACT = ("contract",)

# eˣ = 2ᵏ eᶠ with k whole and |f| ≤ ln 2 / 2.
_LOWEST, _LOG2E = -87.0, 1.4426950408889634
# ln 2 in two parts: the first has few digits, so that k times it is exact.
_LN2_HIGH, _LN2_LOW = 0.693359375, -2.12194440e-4
_ROUND = 12582912.0  # 1.5 · 2²³: adding it rounds a small float to a whole number.
# The polynomial of least relative error, 3e-9, on |f| ≤ ln 2 / 2 that begins with 1 + f.
_POLYNOMIAL = (0.00138146019, 0.00836871703, 0.041668388, 0.166665206, 0.499999934, 1.0, 1.0)
_EXPONENT_BIAS, _MANTISSA = 127 << 23, 23


def _function(result: Callable[..., Any], emit: Callable[..., Any]) -> Any:
    """Let kernels call a function of registers.

    Args:
        result: Returns the type of the result, given those of one or two arguments.
        emit: Writes the instructions, given a builder and the arguments; returns the result.
    """

    def of_any(*kinds: Any) -> Any:
        return result(*kinds)(*kinds), lambda _, builder, _signature, given: emit(builder, *given)

    def of_one(_typing: Any, a: Any) -> Any:
        return of_any(a)

    def of_two(_typing: Any, a: Any, b: Any) -> Any:
        return of_any(a, b)

    # Numba goes by the signature of what it is given.
    return intrinsic(of_one if len(signature(result).parameters) == 1 else of_two)


def _all(builder: Any, number: float) -> Any:
    return in_all(builder, _FLOATS, ir.Constant(ir.FloatType(), number))


def _whole(number: int) -> Any:
    return ir.Constant(vector_type(_WHOLES), [number] * ROWS)


def _fused(builder: Any, a: Any, b: Any, c: Any) -> Any:
    return builder.fadd(builder.fmul(a, b, flags=_CONTRACT), c, flags=_CONTRACT)


def _chosen(sign: str) -> Any:

    def emit(builder: Any, a: Any, b: Any) -> Any:
        return builder.select(builder.fcmp_ordered(sign, a, b), a, b)

    return emit


def _exp(builder: Any, x: Any) -> Any:
    x = _chosen(">")(builder, x, _all(builder, _LOWEST))
    rounded = _fused(builder, x, _all(builder, _LOG2E), _all(builder, _ROUND))
    k = builder.fsub(rounded, _all(builder, _ROUND))
    f = _fused(builder, k, _all(builder, -_LN2_HIGH), x)
    f = _fused(builder, k, _all(builder, -_LN2_LOW), f)
    p = _all(builder, _POLYNOMIAL[0])
    for coefficient in _POLYNOMIAL[1:]:
        p = _fused(builder, p, f, _all(builder, coefficient))
    # k is in the last bits of the sum that rounded it.
    bits = builder.bitcast(rounded, vector_type(_WHOLES))
    power = builder.add(builder.shl(bits, _whole(_MANTISSA)), _whole(_EXPONENT_BIAS))
    return builder.fmul(p, builder.bitcast(power, vector_type(_FLOATS)))


def _sigmoid(builder: Any, x: Any) -> Any:
    # e^−|x| cannot overflow: σ(x) is 1/(1 + e) on one side and e/(1 + e) on the other.
    one = _all(builder, 1.0)
    positive = builder.fcmp_ordered(">=", x, _all(builder, 0.0))
    e = _exp(builder, builder.select(positive, builder.fneg(x), x))
    return builder.fdiv(builder.select(positive, one, e), builder.fadd(one, e))


def _counted(builder: Any, a: Any, b: Any) -> Any:
    return builder.zext(builder.fcmp_ordered("<=", a, b), vector_type(_WHOLES))


def _of_all(_typing: Any, number: Any) -> Any:
    kind = _FLOATS if number == types.float32 else _WHOLES

    def emit(_context: Any, builder: Any, _signature: Any, given: Any) -> Any:
        return in_all(builder, kind, given[0])

    return kind(kind.dtype), emit


def _widened(_typing: Any, x: Any) -> Any:
    whole = isinstance(x.dtype, types.Integer)
    kind = Simd(types.int32 if whole else types.float64, x.width)

    def emit(_context: Any, builder: Any, _signature: Any, given: Any) -> Any:
        widen = builder.zext if whole else builder.fpext
        return widen(given[0], vector_type(kind))

    return kind(x), emit


def _folded(builder: Any, x: Any) -> Any:
    half = x.type.count // 2
    indices = ir.VectorType(ir.IntType(32), half)
    evens, odds = (
        builder.shuffle_vector(x, x, ir.Constant(indices, list(range(first, 2 * half, 2))))
        for first in (0, 1)
    )
    return builder.fadd(evens, odds)


def _fetched(_typing: Any, array: Any, _first: Any, offsets: Any) -> Any:

    def emit(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, given[0]).data
        long, addresses = Simd(types.int64, ROWS), ir.VectorType(data.type, ROWS)
        begin = builder.ptrtoint(builder.gep(data, [given[1]]), ir.IntType(64))
        bytes_on = builder.shl(
            builder.zext(given[2], vector_type(long)), ir.Constant(vector_type(long), [2] * ROWS)
        )
        where_each = builder.inttoptr(
            builder.add(in_all(builder, long, begin), bytes_on), addresses
        )
        floats, mask = vector_type(_FLOATS), ir.VectorType(ir.IntType(1), ROWS)
        gather = ir.FunctionType(floats, [addresses, ir.IntType(32), mask, floats])
        insert: Any = cgutils.get_or_insert_function
        # Before LLVM 16 a pointer has a type, and the name of an intrinsic tells it.
        kind = "" if str(data.type) == "ptr" else "f32"
        name = f"llvm.masked.gather.v{ROWS}f32.v{ROWS}p0{kind}"
        function = insert(builder.module, gather, name)
        align, every = ir.Constant(ir.IntType(32), 4), ir.Constant(mask, [True] * ROWS)
        return builder.call(function, [where_each, align, every, ir.Constant(floats, ir.Undefined)])

    return _FLOATS(array, types.intp, offsets), emit


# Which elements of two registers make two new ones, in each of three rounds, in the order of the
# processor's own instructions.
_TURNS = (
    (1, [0, 8, 1, 9, 4, 12, 5, 13], [2, 10, 3, 11, 6, 14, 7, 15]),
    (2, [0, 1, 8, 9, 4, 5, 12, 13], [2, 3, 10, 11, 6, 7, 14, 15]),
    (4, [0, 1, 2, 3, 8, 9, 10, 11], [4, 5, 6, 7, 12, 13, 14, 15]),
)


def _turned(builder: Any, rows: list[Any]) -> list[Any]:
    """Return the columns of eight rows of eight."""
    indices = ir.VectorType(ir.IntType(32), SINGLES)
    for apart, low, high in _TURNS:
        turned = list(rows)
        for i in range(SINGLES):
            if not i & apart:
                pair = rows[i], rows[i + apart]
                turned[i] = builder.shuffle_vector(*pair, ir.Constant(indices, low))
                turned[i + apart] = builder.shuffle_vector(*pair, ir.Constant(indices, high))
        rows = turned
    # The second round leaves the columns 1 and 2 of each four in each other's place.
    return [rows[i] for i in (0, 2, 1, 3, 4, 6, 5, 7)]


def _transpose(
    _typing: Any, source: Any, _first: Any, _step: Any, target: Any, _to: Any, _stride: Any
) -> Any:

    def emit(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        vector, kinds = ir.VectorType(ir.FloatType(), SINGLES), signature.args

        def at(side: int, i: int) -> Any:
            array, first, step = given[3 * side : 3 * side + 3]
            place = builder.add(first, builder.mul(step, ir.Constant(ir.IntType(64), i)))
            return where(context, builder, kinds[3 * side], array, place, vector)[0]

        rows = [builder.load(at(0, i), align=4) for i in range(SINGLES)]
        for i, column in enumerate(_turned(builder, rows)):
            builder.store(column, at(1, i), align=4)
        return context.get_dummy_value()

    whole = types.intp
    return types.none(source, whole, whole, target, whole, whole), emit


exponential: Any = _function(lambda x: x, _exp)
"""eˣ for x ≤ 0 in float32."""
sigmoid: Any = _function(lambda x: x, _sigmoid)
"""1/(1 + e⁻ˣ)."""
larger: Any = _function(lambda a, _: a, _chosen(">"))
"""The larger of two numbers in each place; the second if one of them is NaN."""
smaller: Any = _function(lambda a, _: a, _chosen("<"))
"""The smaller of two numbers in each place; the second if one of them is NaN."""
counted: Any = _function(lambda _a, _b: _WHOLES, _counted)
"""1 where a ≤ b, else 0."""
of_all: Any = intrinsic(_of_all)
"""A float32 or int32 in every place."""
fetched: Any = intrinsic(_fetched)
"""fetched(array, first, offsets): what lies so many places after `first`."""
widened: Any = intrinsic(_widened)
"""The same numbers in float64; uint16 in int32."""
folded: Any = _function(lambda x: Simd(x.dtype, x.width // 2), _folded)
"""The sums of two neighbours each, half as many."""
transpose: Any = intrinsic(_transpose)
"""transpose(source, first, step, target, to, stride): eight rows of eight numbers become columns.

Row i begins at `first + i · step`; column i is written to `to + i · stride`.
"""
