"""Request weights in a graph: what each objective adds, of a fit for AUC within requests."""

__all__ = ["weighted_parts"]

import numpy as np

from harmonrank.export.graph import Value
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
