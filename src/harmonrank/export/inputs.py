"""Inputs: the columns of a table as inputs of a graph, and steps that all methods share."""

__all__ = ["WEIGHTS", "Inputs", "kinds_of", "logits_of", "numbered"]

from collections.abc import Sequence
from functools import cached_property, reduce

import numpy as np

from harmonrank.export.graph import Graph, Value, count_below
from harmonrank.fusion import Method
from harmonrank.fusion.drift.reference import Recalibration, Reference
from harmonrank.model.density.density import MOST_EFFECT
from harmonrank.support.logistic import SMALLEST_SCORE

WEIGHTS = "weights"
_TYPES = {"text": "str", "integer": "int64", "number": "float64"}


def kinds_of(model: Method) -> dict[str, str]:
    """Return the type of each context column: 'str', 'int64' or 'float64'."""
    return {feature.name: _TYPES[feature.kind] for feature in model.fitted.encoder.features}


class Inputs:
    """The columns that a model reads.

    Attributes:
        graph: The graph of these inputs.
        scores: (rows, M) float64, as the method learned to fuse them.
        encoder: Of the context.
        missing: (rows,) whether a row misses a score: whether one is NaN.
    """

    def __init__(self, graph: Graph, model: Method, score_type: str) -> None:
        self.graph = graph
        self.encoder = model.fitted.encoder
        columns = [graph.input(name, score_type) for name in model.schema.score_columns]
        if score_type != "float64":
            columns = [column.cast("float64") for column in columns]
        lost = [graph.op("IsNaN", column) for column in columns]
        self.missing = reduce(lambda a, b: graph.op("Or", a, b), lost)
        # Any valid number in place of NaN, which would be looked up outside a table.
        columns = [
            graph.op("Where", gap, np.array(0.5), column)
            for gap, column in zip(lost, columns, strict=True)
        ]
        pairs = zip(columns, model.schema.scales, strict=True)
        self.scores = graph.concat([_probability(*pair).new_axis(1) for pair in pairs])  # (rows, M)
        self._context = {name: graph.input(name, kind) for name, kind in kinds_of(model).items()}
        if model.fitted.recalibration is not None:
            self.scores = self._recalibrated(model.fitted.recalibration)

    @cached_property
    def codes(self) -> list[Value]:
        """The code of each context feature, (rows,) int64."""
        features = self.encoder.features
        return [self._code(feature.name, feature.kind, feature.values) for feature in features]

    def _code(self, name: str, kind: str, values: Sequence[str | int | float]) -> Value:
        column, graph = self._context[name], self.graph
        if kind == "number":
            edges = np.array(values, np.float64).reshape(1, -1)
            place = count_below(column.new_axis(1), edges).sum(1) + 1
            return graph.op("Where", graph.op("IsNaN", column), np.array(0), place)
        if not values:
            shape = graph.op("Shape", column)
            return graph.op("Expand", np.array([0]), shape)
        keys = {"keys_strings" if kind == "text" else "keys_int64s": list(values)}
        codes = list(range(1, len(values) + 1))
        return graph.op(
            "LabelEncoder",
            column,
            domain="ai.onnx.ml",
            **keys,
            values_int64s=codes,
            default_int64=0,
        )

    def sum_of(self, table: np.ndarray) -> Value:
        """Return the sum of each feature's row of a (slots, …) table, (rows, …)."""
        edges = np.cumsum([0, *self.encoder.slots])
        total = None
        for code, low, high in zip(self.codes, edges, edges[1:], strict=False):
            part = code.of(table[low:high])
            total = part if total is None else total + part
        return self.graph.constant(np.zeros((1, *table.shape[1:]))) if total is None else total

    def _recalibrated(self, change: Recalibration) -> Value:
        """Return scores as they would have been at the fit; see `Recalibration`."""
        centre, deviation = self._place(change.now)
        fit_centre, fit_deviation = self._place(change.fit)
        alive = (change.now.constant == 0) & (change.now.width > 0)
        # Where a score has one value only, its deviation is 0: divide by anything else.
        away = (logits_of(self.scores) - centre) / (deviation + np.where(alive, 0.0, 1.0))
        return (fit_centre + fit_deviation * away * np.where(alive, 1.0, 0.0)).sigmoid()

    def _place(self, reference: Reference) -> tuple[Value, Value]:
        """Return median and standard deviation of each logit in its context, (rows, M)."""
        centre = self.sum_of(reference.mean) + reference.base
        effect = self.sum_of(reference.spread).clip(-MOST_EFFECT, MOST_EFFECT)
        deviation = self.graph.op("Exp", (effect + reference.log_variance) / 2.0)
        return centre + deviation * reference.middle, deviation * reference.width


def _probability(column: Value, scale: str) -> Value:
    """Return scores as numbers in [0, 1]; see `to_probabilities`."""
    graph = column.graph
    if scale == "percent":
        return column / 100.0
    if scale == "logit":
        return column.sigmoid()
    if scale == "any":
        far = graph.op("Sqrt", column * column + 1.0) + graph.op("Abs", column)
        below = graph.op("Less", column, np.array(0.0))
        power = graph.op("Where", below, far, graph.op("Reciprocal", far))
        return graph.op("Reciprocal", power + 1.0)
    return column


def logits_of(scores: Value, smallest: float = SMALLEST_SCORE) -> Value:
    """Return log(s/(1 − s)), bounded at 0 and 1."""
    s = scores.clip(smallest, 1 - smallest)
    return s.log() - (s.graph.op("Sub", np.array(1.0), s)).log()


def numbered(codes: Sequence[Value], slots: Sequence[int]) -> Value:
    """Return the place of each row's context among all combinations, (rows,)."""
    number = codes[0]
    for code, count in zip(codes[1:], slots[1:], strict=True):
        number = number * count + code
    return number
