"""Fused scores in a graph: what objectives add within requests, and the map of aligned scores."""

__all__ = ["mapped_scores", "weighted_parts"]

import numpy as np

from harmonrank.export.graph import Value
from harmonrank.export.lookups import interpolate
from harmonrank.fusion import Method
from harmonrank.fusion.score_map import ScoreMap
from harmonrank.model.requests.request_weights import RequestWeights
from harmonrank.support.logistic import SMALLEST_PROBABILITY


def weighted_parts(found: RequestWeights, p: Value) -> Value:
    """Return κ_m(z) p_m, (rows, M); see `RequestWeights`."""
    graph, M = p.graph, len(found.mean)
    chance = p.clip(SMALLEST_PROBABILITY, 1.0 - SMALLEST_PROBABILITY)
    rest = graph.op("Sub", np.array(1.0), chance)
    z = ((chance / rest).log() - found.centre) / found.unit
    z = graph.op("Min", graph.op("Max", z, found.low), found.high)
    pairs = [(j, k) for j in range(M) for k in range(j + 1)]
    first, second = (np.array(places) for places in zip(*pairs, strict=True))
    products = z.columns(first) * z.columns(second)
    straight, bent = found.terms[:, 1 : 1 + M], found.terms[:, 1 + M :]
    kappa = z @ np.ascontiguousarray(straight.T) + products @ np.ascontiguousarray(bent.T)
    return (kappa + found.terms[:, 0]) * p


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
