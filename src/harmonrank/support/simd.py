"""SIMD: neighbouring numbers of an array in one register, inside kernels.

LLVM turns a long loop over rows into vector instructions by itself, though it takes long to find
them. A loop over the few heads of a model it only unrolls. Kernels with explicit SIMD compile in a
fraction of the time and do not depend on that search:

    sums = simd(out, k) + (simd(table, i) + x * simd(table, j))

Arithmetic is element by element, in the type of the array; a plain number is combined with every
element. A product and a sum may be rounded once instead of twice. `harmonrank.support.simd_maths`
has other functions.
"""

__all__ = [
    "DOUBLES",
    "ROWS",
    "SINGLES",
    "Simd",
    "double_simd",
    "in_all",
    "item",
    "pair_simd",
    "put_item",
    "put_simd",
    "row_simd",
    "simd",
    "vector_type",
    "where",
]

import operator
from typing import Any

from llvmlite import ir
from numba import types
from numba.core.typing.templates import AbstractTemplate, infer_global
from numba.extending import intrinsic, lower_builtin, models, register_model

SINGLES = 8
"""How many float32 or smaller numbers are loaded at once."""
DOUBLES = 4
"""How many float64 are loaded at once."""
ROWS = 16
"""How many rows of float32 or int32 are loaded at once."""

_NUMBERS = {types.float32: ir.FloatType(), types.float64: ir.DoubleType()}


class Simd(types.Type):
    """The type of some numbers of one type, side by side."""

    def __init__(self, dtype: Any, width: int) -> None:
        self.dtype, self.width = dtype, width
        super().__init__(name=f"Simd({dtype}, {width})")


def vector_type(kind: Simd) -> Any:
    """Return LLVM's type of a register; true and false have one bit each."""
    if kind.dtype in _NUMBERS:
        return ir.VectorType(_NUMBERS[kind.dtype], kind.width)
    bits = 1 if kind.dtype == types.boolean else kind.dtype.bitwidth
    return ir.VectorType(ir.IntType(bits), kind.width)


@register_model(Simd)
class _SimdModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Simd) -> None:
        super().__init__(manager, kind, vector_type(kind))  # type: ignore[no-untyped-call]


def where(
    context: Any, builder: Any, array_type: Any, array: Any, first: Any, vector: Any
) -> tuple[Any, int]:
    """Return the address of a register's numbers in an array, and its alignment."""
    data = context.make_array(array_type)(context, builder, array).data
    pointer = builder.bitcast(builder.gep(data, [first]), vector.as_pointer())
    return pointer, array_type.dtype.bitwidth // 8


def _loading(width: int | None) -> Any:

    def load(_typing: Any, array: Any, _first: Any) -> Any:
        own = DOUBLES if array.dtype == types.float64 else SINGLES
        kind = Simd(array.dtype, width or own)

        def emit(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            place, align = where(
                context, builder, signature.args[0], given[0], given[1], vector_type(kind)
            )
            return builder.load(place, align=align)

        return kind(array, types.intp), emit

    return intrinsic(load)


def _storing(_typing: Any, array: Any, _first: Any, value: Any) -> Any:

    def emit(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        place, align = where(
            context, builder, signature.args[0], given[0], given[1], vector_type(value)
        )
        builder.store(given[2], place, align=align)
        return context.get_dummy_value()

    return types.none(array, types.intp, value), emit


def _fetching(_typing: Any, array: Any, _place: Any) -> Any:

    def emit(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, given[0]).data
        return builder.load(builder.gep(data, [given[1]]))

    return array.dtype(array, types.intp), emit


def _putting(_typing: Any, array: Any, _place: Any, _value: Any) -> Any:

    def emit(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, given[0]).data
        builder.store(given[2], builder.gep(data, [given[1]]))
        return context.get_dummy_value()

    return types.none(array, types.intp, array.dtype), emit


def _pairing(_typing: Any, array: Any, _first: Any) -> Any:
    kind = Simd(types.float32, SINGLES)

    def emit(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        # Two float32 have the bits of one float64, and one number is copied to all places.
        pair, double = Simd(types.float64, SINGLES // 2), ir.DoubleType()
        place, align = where(context, builder, signature.args[0], given[0], given[1], double)
        both = in_all(builder, pair, builder.load(place, align=align))
        return builder.bitcast(both, vector_type(kind))

    return kind(array, types.intp), emit


item: Any = intrinsic(_fetching)
"""item(array, place): one number of a flat array; a place below 0 does not count from the end."""
put_item: Any = intrinsic(_putting)
"""put_item(array, place, number): writes it there; a place below 0 does not count from the end."""
simd: Any = _loading(None)
"""simd(array, first): the numbers of a flat array from `first` on; no bounds are checked."""
row_simd: Any = _loading(ROWS)
"""row_simd(array, first): the same for sixteen of them."""
double_simd: Any = _loading(SINGLES)
"""double_simd(array, first): the same for eight, as many float64 as float32."""
pair_simd: Any = intrinsic(_pairing)
"""pair_simd(array, first): two float32 from `first` on, four times over."""
put_simd: Any = intrinsic(_storing)
"""put_simd(array, first, value): writes them there; no bounds are checked."""


def in_all(builder: Any, kind: Simd, number: Any) -> Any:
    """Copy a number to all places of a register."""
    none = ir.Constant(vector_type(kind), ir.Undefined)
    indices = ir.VectorType(ir.IntType(32), kind.width)
    first = builder.insert_element(none, number, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(first, none, ir.Constant(indices, [0] * kind.width))


def _operator(function: Any, on_floats: str, on_integers: str) -> None:
    """Let an operator take registers, on either side or on both.

    A template and its instruction; an overload would be one more function to compile each time.
    """

    class _Template(AbstractTemplate):
        def generic(self, given: Any, keywords: Any) -> Any:
            if keywords or len(given) != 2 or not any(isinstance(one, Simd) for one in given):
                return None
            kind = next(one for one in given if isinstance(one, Simd))
            return kind(*(one if isinstance(one, Simd) else kind.dtype for one in given))

    registered: Any = infer_global
    registered(function)(_Template)

    def emit(_context: Any, builder: Any, signature: Any, given: Any) -> Any:
        kind = signature.return_type
        a, b = (
            value if isinstance(one, Simd) else in_all(builder, kind, value)
            for one, value in zip(signature.args, given, strict=True)
        )
        if kind.dtype in _NUMBERS:
            return getattr(builder, on_floats)(a, b, flags=("contract",))
        return getattr(builder, on_integers)(a, b)

    lower: Any = lower_builtin
    for pair in ((Simd, Simd), (Simd, types.Number), (types.Number, Simd)):
        lower(function, *pair)(emit)


_operator(operator.add, "fadd", "add")
_operator(operator.sub, "fsub", "sub")
_operator(operator.mul, "fmul", "mul")
_operator(operator.truediv, "fdiv", "sdiv")
