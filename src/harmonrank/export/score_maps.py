"""Aligned scores in a graph: the map of a model's own weights, where these are asked for."""

__all__ = ["mapped_scores"]

import numpy as np

from harmonrank.export.graph import Value
from harmonrank.export.lookups import interpolate
from harmonrank.fusion import Method
from harmonrank.fusion.score_map import ScoreMap


def mapped_scores(model: Method, fused: Value, weights: Value | None = None) -> Value:
    """Return fused scores, (rows,), as the model gives them out.

    Args:
        model: Perhaps aligned, with several weightings.
        fused: As the method makes them.
        weights: The input that says how objectives count; None where that cannot change.
    """
    found = fused
    for each in model.fitted.maps:
        if weights is None:
            return _mapped(each.curve, fused)
        off = fused.graph.op("Abs", weights - each.weights)
        same = fused.graph.op("LessOrEqual", off.sum(0), np.array(0.0))
        found = fused.graph.op("Where", same, _mapped(each.curve, fused), found)
    return found


def _mapped(each: ScoreMap, fused: Value) -> Value:
    """Return the piecewise linear map of each score; it goes on straight beyond its ends."""
    graph, (first, last) = fused.graph, each.slopes
    inside = interpolate(fused.new_axis(1), [each.x], [each.y]).sum(1)
    below = graph.op("Min", fused - each.x[0], np.array(0.0)) * first
    above = graph.op("Max", fused - each.x[-1], np.array(0.0)) * last
    return inside + below + above
