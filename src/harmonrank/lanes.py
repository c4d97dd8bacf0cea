"""Lanes: neighbouring numbers of an array in one register, inside kernels.

LLVM turns a long loop over rows into vector instructions by itself. A loop over the few heads of a
model it only unrolls, so kernels that take several heads at a time say so:

    sums = lanes(out, k) + (lanes(table, i) + x * lanes(table, j))

Arithmetic is lane by lane, in the type of the array; a plain number meets every lane. A product
and a sum may be rounded once instead of twice.
"""

__all__ = ["DOUBLES", "SINGLES", "lanes", "put_lanes"]

import operator
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, models, overload, register_model

SINGLES = 8
"""How many float32 are loaded at once."""
DOUBLES = 4
"""How many float64 are loaded at once."""


class _Lanes(types.Type):
    """The type of 8 float32 or 4 float64."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype
        self.width = SINGLES if dtype == types.float32 else DOUBLES
        super().__init__(name=f"Lanes({dtype})")


@register_model(_Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: _Lanes) -> None:
        number = manager.lookup(kind.dtype).get_value_type()
        super().__init__(manager, kind, ir.VectorType(number, kind.width))  # type: ignore[no-untyped-call]


def _loading(_typing: Any, array: Any, _first: Any) -> Any:

    def emit(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        where = _address(context, builder, signature.args[0], *given)
        return builder.load(where, align=signature.args[0].dtype.bitwidth // 8)

    return _Lanes(array.dtype)(array, types.intp), emit


def _storing(_typing: Any, array: Any, _first: Any, value: Any) -> Any:

    def emit(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        where = _address(context, builder, signature.args[0], *given[:2])
        builder.store(given[2], where, align=signature.args[0].dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.none(array, types.intp, value), emit


def _address(context: Any, builder: Any, array_type: Any, array: Any, first: Any) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    vector = context.get_value_type(_Lanes(array_type.dtype))
    return builder.bitcast(builder.gep(data, [first]), vector.as_pointer())


def _combining(instruction: str) -> Any:
    """Return the intrinsic that applies an instruction lane by lane."""

    def combine(_typing: Any, left: Any, right: Any) -> Any:
        kind = left if isinstance(left, _Lanes) else right

        def emit(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            a, b = (
                value if isinstance(one, _Lanes) else _in_all(context, builder, kind, value)
                for one, value in zip(signature.args, given, strict=True)
            )
            return getattr(builder, instruction)(a, b, flags=("contract",))

        own = (one if isinstance(one, _Lanes) else kind.dtype for one in (left, right))
        return kind(*own), emit

    return intrinsic(combine)


def _in_all(context: Any, builder: Any, kind: _Lanes, number: Any) -> Any:
    """Copy a number to all lanes."""
    none = ir.Constant(context.get_value_type(kind), ir.Undefined)
    places = ir.VectorType(ir.IntType(32), kind.width)
    first = builder.insert_element(none, number, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(first, none, ir.Constant(places, [0] * kind.width))


lanes: Any = intrinsic(_loading)
"""lanes(array, first): the numbers of a flat array from `first` on; no bounds are checked."""
put_lanes: Any = intrinsic(_storing)
"""put_lanes(array, first, value): writes them there; no bounds are checked."""
_add, _multiply = _combining("fadd"), _combining("fmul")


def _has_lanes(left: Any, right: Any) -> bool:
    return isinstance(left, _Lanes) or isinstance(right, _Lanes)


@overload(operator.add, strict=False)
def _sum(left: Any, right: Any) -> Any:
    return (lambda left, right: _add(left, right)) if _has_lanes(left, right) else None


@overload(operator.mul, strict=False)
def _product(left: Any, right: Any) -> Any:
    return (lambda left, right: _multiply(left, right)) if _has_lanes(left, right) else None
