"""Graph: an ONNX graph under construction, and values with the arithmetic of arrays."""

__all__ = ["Graph", "Value", "between", "cell_of", "count_below", "interpolate", "look_up"]

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Union

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

# Old enough for the runtimes that services have.
_OPSETS = {"": 17, "ai.onnx.ml": 3}
_IR_VERSION = 8
_ROWS = "n"  # The name of the only dimension of inputs and outputs.

_TYPES = {
    "float32": TensorProto.FLOAT,
    "float64": TensorProto.DOUBLE,
    "int64": TensorProto.INT64,
    "str": TensorProto.STRING,
}

Operand = Union["Value", np.ndarray, float]

_STEEP = 1e300  # In place of one over a width of 0.


class Value:
    """The output of a node: an operand of further nodes, with the arithmetic of an array."""

    def __init__(self, graph: "Graph", name: str) -> None:
        self.graph, self.name = graph, name

    def __add__(self, other: Operand) -> "Value":
        return self.graph.op("Add", self, other)

    def __sub__(self, other: Operand) -> "Value":
        return self.graph.op("Sub", self, other)

    def __mul__(self, other: Operand) -> "Value":
        return self.graph.op("Mul", self, other)

    def __truediv__(self, other: Operand) -> "Value":
        return self.graph.op("Div", self, other)

    def __matmul__(self, other: Operand) -> "Value":
        return self.graph.op("MatMul", self, other)

    def cast(self, kind: str) -> "Value":
        """Return the numbers as 'float32', 'float64' or 'int64'."""
        return self.graph.op("Cast", self, to=_TYPES[kind])

    def clip(self, low: float, high: float) -> "Value":
        """Return float64 numbers within bounds."""
        return self.graph.op("Clip", self, np.array(low, float), np.array(high, float))

    def log(self) -> "Value":
        """Return natural logarithms."""
        return self.graph.op("Log", self)

    def sigmoid(self) -> "Value":
        """Return 1/(1 + e⁻ˣ); ONNX Runtime's own loses the digits of a small one."""
        exponential = self.graph.op("Exp", self.graph.op("Neg", self.clip(-700.0, 700.0)))
        return self.graph.op("Reciprocal", exponential + 1.0)

    def softmax(self) -> "Value":
        """Return the softmax over the last axis."""
        return self.graph.op("Softmax", self, axis=-1)

    def sum(self, axis: int) -> "Value":
        """Return the sum over an axis, which is dropped."""
        return self.graph.op("ReduceSum", self, np.array([axis]), keepdims=0)

    def new_axis(self, axis: int) -> "Value":
        """Return the same numbers with one more axis."""
        return self.graph.op("Unsqueeze", self, np.array([axis]))

    def columns(self, numbers: np.ndarray) -> "Value":
        """Return some columns of a matrix."""
        return self.graph.op("Gather", self, numbers.astype(np.int64), axis=1)

    def of(self, table: np.ndarray) -> "Value":
        """Return the rows of a table at these indices."""
        return self.graph.op("Gather", table, self, axis=0)


class Graph:
    """Collects the nodes, constants, inputs and outputs of a model.

    Args:
        reserved: Names of inputs and outputs, which no node may take.
    """

    def __init__(self, reserved: Iterable[str]) -> None:
        self._reserved, self._count = frozenset(reserved), 0
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []
        self._inputs: list[onnx.ValueInfoProto] = []
        self._outputs: list[onnx.ValueInfoProto] = []

    def input(self, name: str, kind: str) -> Value:
        """Declare an input of shape [n]."""
        self._inputs.append(helper.make_tensor_value_info(name, _TYPES[kind], [_ROWS]))
        return Value(self, name)

    def optional_input(self, name: str, default: np.ndarray, *, required: bool = False) -> Value:
        """Declare an input of the shape of its default; it may be left out, unless required."""
        kind = _TYPES[default.dtype.name]
        self._inputs.append(helper.make_tensor_value_info(name, kind, default.shape))
        if not required:
            self._constants.append(numpy_helper.from_array(default, name))
        return Value(self, name)

    def output(self, name: str, value: Value) -> None:
        """Declare an output of shape [n], float64."""
        self._nodes.append(helper.make_node("Identity", [value.name], [name]))
        kind = TensorProto.DOUBLE
        self._outputs.append(helper.make_tensor_value_info(name, kind, [_ROWS]))

    def constant(self, array: Operand) -> Value:
        """Return an array as a value; numbers are float64 unless they are whole."""
        if isinstance(array, Value):
            return array
        name = self._new_name("constant")
        self._constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return Value(self, name)

    def op(self, kind: str, *operands: Operand, domain: str = "", **attributes: Any) -> Value:
        """Add a node with one output and return it."""
        names = [self._operand(operand) for operand in operands]
        name = self._new_name(kind)
        self._nodes.append(helper.make_node(kind, names, [name], domain=domain, **attributes))
        return Value(self, name)

    def concat(self, parts: Sequence[Value]) -> Value:
        """Return matrices side by side."""
        return parts[0] if len(parts) == 1 else self.op("Concat", *parts, axis=1)

    def model(self, name: str, about: Mapping[str, str], **fields: Any) -> onnx.ModelProto:
        """Return the finished model with `about` as its metadata."""
        graph = helper.make_graph(self._nodes, name, self._inputs, self._outputs, self._constants)
        opsets = [helper.make_opsetid(domain, version) for domain, version in _OPSETS.items()]
        made = helper.make_model(graph, opset_imports=opsets, ir_version=_IR_VERSION, **fields)
        helper.set_model_props(made, dict(about))
        return made

    def _operand(self, operand: Operand) -> str:
        # A scalar has no axes, which np.ascontiguousarray would give it.
        if isinstance(operand, float | int) or (
            isinstance(operand, np.ndarray) and operand.ndim == 0
        ):
            name = self._new_name("constant")
            self._constants.append(numpy_helper.from_array(np.array(operand), name))
            return name
        return self.constant(operand).name

    def _new_name(self, kind: str) -> str:
        while True:
            self._count += 1
            name = f"{kind.lower()}_{self._count}"
            if name not in self._reserved:
                return name


def look_up(place: Value, table: np.ndarray) -> Value:
    """Return table[m, place[i, m]] of a (M, K, …) table, (rows, M, …)."""
    M, K = table.shape[:2]
    first: np.ndarray = np.arange(M) * K
    return (place + first).of(table.reshape(M * K, *table.shape[2:]))


def cell_of(place: Value, knots: int) -> tuple[Value, Value]:
    """Return the knot at or below each place from 0 to knots − 1, and the share of the next one."""
    cell = place.graph.op("Floor", place.clip(0.0, knots - 2.0))
    return cell.cast("int64"), place - cell


def between(place: Value, table: np.ndarray) -> Value:
    """Return (rows, M, …) values of a (M, K, …) table at (rows, M) places from 0 to K − 1."""
    cell, share = cell_of(place, table.shape[1])
    for axis in range(2, table.ndim):
        share = share.new_axis(axis)
    return look_up(cell, table) + share * look_up(cell, np.diff(table, axis=1))


def count_below(x: Value, edges: np.ndarray, *, strictly: bool = False) -> Value:
    """Return how many of its (M, K) rising edges are at or below each number, (rows, M) int64.

    By binary search, so that a row costs log K comparisons. NaN is above no edge.

    Args:
        x: (rows, M), of the type of the edges.
        edges: NaN where an objective has fewer.
        strictly: Count edges below only.
    """
    graph, (M, K) = x.graph, edges.shape
    width = 1 << K.bit_length()
    padded = np.full((M, width), np.nan, edges.dtype)
    padded[:, :K] = edges
    test, count, step = "Greater" if strictly else "GreaterOrEqual", None, width // 2
    while step:
        ahead = padded[:, step - 1] if count is None else look_up(count + (step - 1), padded)
        taken = graph.op(test, x, ahead).cast("int64") * step
        count = taken if count is None else count + taken
        step //= 2
    return graph.op("Less", x, x).cast("int64") if count is None else count  # no edge: all 0


def interpolate(x: Value, knots: Sequence[np.ndarray], values: Sequence[np.ndarray]) -> Value:
    """Interpolate as `np.interp` does, with knots and values of each objective, (rows, M)."""
    sizes = np.array([max(len(own), 2) for own in knots])
    at, height = np.full((2, len(knots), sizes.max()), np.nan)
    for m, (own, value) in enumerate(zip(knots, values, strict=True)):
        at[m, : sizes[m]] = np.pad(own, (0, sizes[m] - len(own)), mode="edge")
        height[m, : sizes[m]] = np.pad(value, (0, sizes[m] - len(value)), mode="edge")
    graph, width = x.graph, np.diff(at)
    cell = graph.op("Min", count_below(x, at) - 1, sizes - 2)
    cell = graph.op("Max", cell, np.array(0))
    per_unit = np.where(width > 0, 1 / np.where(width > 0, width, 1.0), _STEEP)
    share = ((x - look_up(cell, at)) * look_up(cell, per_unit)).clip(0.0, 1.0)
    return look_up(cell, height) + share * look_up(cell, np.diff(height))
