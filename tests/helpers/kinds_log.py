"""A log with objectives of every kind."""

from functools import cache

import numpy as np
import polars as pl

import harmonrank as hr

SCHEMA = hr.Schema(
    {"click": "p_click", "order": "p_order", "watch": "p_watch", "report": "p_report"},
    context=["age"],
    request="request",
    unwanted=["report"],
    graded=["watch"],
    given={"order": "click"},
)


@cache
def planted(rows=4000, seed=0):
    """Return rows with a click, an order given click, seconds watched and a report."""
    rng = np.random.default_rng([seed, 0x21])
    z = rng.normal([-1.0, -0.5, 0.0, -2.5], [1.2, 1.0, 1.0, 1.0], (rows, 4))
    z[:, 1] -= 0.4 * z[:, 0]
    p = 1 / (1 + np.exp(-z))
    events = rng.random((rows, 4)) < p
    seconds = np.round(rng.exponential(30 * np.exp(z[:, 2])))
    order = [int(o) if c else None for o, c in zip(events[:, 1], events[:, 0], strict=True)]
    names = ("click", "order", "watch", "report")
    return pl.DataFrame(
        {
            **{f"p_{name}": p[:, m] for m, name in enumerate(names)},
            "click": events[:, 0],
            "order": pl.Series(order, dtype=pl.Int64),
            "watch": seconds,
            "report": events[:, 3].astype(np.uint8),
            "request": np.arange(rows) // 10,
            "age": rng.integers(0, 4, rows),
        }
    )
