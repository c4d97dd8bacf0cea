"""Warming: compiling what a model needs to score before the first request comes."""

__all__ = ["warm"]

from itertools import product
from time import perf_counter

import numpy as np
import polars as pl

from harmonrank.fusion.method import Method


def warm(method: Method) -> float:
    """Score a row of each kind, so that all kernels are compiled and kept; return the seconds.

    A process that loads the model later finds them on disk, even where it cannot write.
    """
    begun, schema = perf_counter(), method.schema
    context = dict.fromkeys(schema.context)
    nothing = [0.5] if schema.missing == "error" else [0.5, np.nan]
    for kind, value in product((np.float32, np.float64), nothing):
        scores = np.full((1, len(schema.names)), value, kind)
        table = pl.DataFrame(scores, schema=list(schema.score_columns), orient="row")
        method.score(table.with_columns(pl.lit(None).alias(name) for name in context))
        method.score_request(scores, context)
    return perf_counter() - begun
