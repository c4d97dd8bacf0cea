"""Small logs to test with."""

import numpy as np
import polars as pl

SCHEMA_TOML = """
context = ["hour", "age"]
request = "request_id"
[objectives]
buy = "p_buy"
like = "p_like"
"""


def small_table(rows=600, seed=0):
    """Return a log of two objectives whose scores tell something about their labels."""
    rng = np.random.default_rng(seed)
    scores = rng.beta(2, 5, (rows, 2))
    labels = (rng.random((rows, 2)) < scores).astype(np.uint8)
    return pl.DataFrame(
        {
            "request_id": np.arange(rows) // 10,
            "hour": rng.integers(0, 24, rows),
            "age": rng.choice(["old", "young"], rows),
            "p_buy": scores[:, 0],
            "p_like": scores[:, 1],
            "buy": labels[:, 0],
            "like": labels[:, 1],
        }
    )
