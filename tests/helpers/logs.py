"""Small logs to test with."""

import numpy as np
import polars as pl

from harmonrank.support import score_logit
from harmonrank.worlds import world

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


def rare_table(rows=2000, seed=0):
    """Return a log of three objectives of which one is rare; requests differ in size and level."""
    rng = np.random.default_rng(seed)
    request = np.sort(rng.integers(0, rows // 6, rows))
    level = rng.normal(0, 1, rows)[request]
    z = rng.normal(0, 1, (rows, 3)) + level[:, None] + [-4.5, -0.5, 0.0]
    p = 1 / (1 + np.exp(-z))
    labels = (rng.random((rows, 3)) < p).astype(np.uint8)
    labels[:2, 0] = [1, 0]
    columns = {"request_id": request}
    for m, name in enumerate(("buy", "like", "view")):
        columns |= {f"p_{name}": p[:, m], name: labels[:, m]}
    return pl.DataFrame(columns)


def own_log(folder, requests=600, size=10, parts=4, seed=0):
    """Write a log as a ranking engineer has it, in parts, and return it whole.

    Scores of one model are in percent and of one are missing in 3 % of the rows; there are ids,
    a position, a time in every row, and the score of the formula that ranks today.
    """
    rng, rows = np.random.default_rng(seed), requests * size
    request = np.repeat(np.arange(requests), size)
    age = rng.integers(0, 6, requests)[request]
    wish = rng.normal(size=(rows, 1)) + 0.5 * rng.normal(size=(rows, 3))
    logits = wish + np.array([-1.2, -2.0, -2.6]) + (age[:, None] - 2.5) * np.array([0.3, 0, -0.2])
    scores = 1 / (1 + np.exp(-logits - 0.7 * rng.normal(size=(rows, 3))))
    labels = rng.random((rows, 3)) < 1 / (1 + np.exp(-logits))
    seconds = request * 300 + np.tile(np.arange(size), requests)
    table = pl.DataFrame(
        {
            "request_id": [f"req-{number:06d}" for number in request],
            "shown_at": pl.from_epoch(pl.Series(1_793_491_200 + seconds)),
            "user_id": rng.integers(0, 200, requests)[request],
            "item_id": rng.integers(0, 10**6, rows),
            "region": rng.choice(["north", "south", "east"], requests)[request],
            "age_group": age,
            "position": np.tile(np.arange(size), requests),
            "click": labels[:, 0].astype(np.int64),
            "liked": labels[:, 1],
            "follow": labels[:, 2].astype(np.int8),
            "pctr": scores[:, 0],
            "like_score": 100 * scores[:, 1],
            "pFollow": scores[:, 2].astype(np.float32),
            "prod_score": scores[:, 0] * (1 + 3 * scores[:, 1]) ** 0.5,
        }
    )
    lost = pl.Series(rng.random(rows) < 0.03)
    table = table.with_columns(like_score=pl.when(~lost).then("like_score"))
    folder.mkdir()
    for part, piece in enumerate(table.iter_slices(-(-rows // parts))):
        piece.write_parquet(folder / f"part-{part:05d}.parquet")
    return table


def drawn_logits(name="conflict", rows=20_000, start=0):
    """Return a sample of a world, the logits of its scores, context codes and their slots."""
    place = world(name)
    sample = place.sample(rows, seed=7, start=start)
    codes = np.stack(list(sample.context.values()), axis=1).astype(np.int32)
    return sample, score_logit(sample.scores), codes, tuple(place.context.values())
