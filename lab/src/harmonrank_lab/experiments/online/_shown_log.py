"""Shown log: requests of the platform as it would log them, with places and a randomised share."""

__all__ = ["RANDOMISED", "candidate_scores", "shown_log", "shown_requests", "true_values"]

from collections.abc import Callable

import numpy as np
import polars as pl

from harmonrank.data import Log, Schema
from harmonrank.worlds import world_schema
from harmonrank_lab.experiments.online._arm import serve
from harmonrank_lab.experiments.online._config import OnlineConfig
from harmonrank_lab.experiments.online._traffic import Hour, Traffic
from harmonrank_lab.worlds import POSITION, World

RANDOMISED = "randomised"
"""The column that is 1 in requests that were shown in random order."""

_ORDER = 7


def shown_requests(world: World, config: OnlineConfig, seed: int) -> Hour:
    """Draw an hour of requests with their candidates, and how each would be answered."""
    return next(Traffic(world, config, seed).hours())


def candidate_scores(hour: Hour, world: World, score: Callable[[Log], np.ndarray]) -> np.ndarray:
    """Return what a model makes of all candidates, (requests, items)."""
    requests, items, M = hour.scores.shape
    known = world_schema(world)
    context = pl.DataFrame({name: np.repeat(v, items) for name, v in hour.context.items()})
    schema = Schema(known.objectives, known.context)
    return score(Log(schema, hour.scores.reshape(-1, M), context)).reshape(requests, items)


def shown_log(
    hour: Hour, world: World, fused: np.ndarray, config: OnlineConfig, *, share: float, seed: int
) -> pl.DataFrame:
    """Return a row per candidate: scores, context, its place if it was shown, and its feedback.

    Args:
        hour: The requests.
        world: Where they come from.
        fused: (requests, items), what ranks them.
        config: How many are shown, and how far they are looked at.
        share: Of the requests, so many are shown in random order.
        seed: Decides which, and in which order.
    """
    requests, items, M = hour.scores.shape
    rng = np.random.default_rng([seed, _ORDER])
    drawn = rng.random((requests, 1))[:, 0] < share
    fused = np.where(drawn[:, None], rng.random(fused.shape), fused)
    answers = serve(hour, fused, config.examination())
    at = np.arange(requests)[:, None], answers.order
    position = np.full((requests, items), -1)
    position[at] = np.arange(1, answers.order.shape[1] + 1)
    labels = np.zeros((requests, items, M), np.uint8)
    labels[at] = answers.came
    columns: dict[str, np.ndarray] = {"request_id": np.repeat(np.arange(requests), items)}
    columns |= {name: np.repeat(values, items) for name, values in hour.context.items()}
    for m, (label, score) in enumerate(world_schema(world).objectives.items()):
        columns[score], columns[label] = hour.scores[..., m].ravel(), labels[..., m].ravel()
    columns |= {POSITION: position.ravel(), RANDOMISED: np.repeat(drawn, items)}
    frame = pl.DataFrame(columns)
    return frame.with_columns(pl.when(pl.col(POSITION) > 0).then(POSITION).alias(POSITION))


def true_values(hour: Hour, fused: np.ndarray, config: OnlineConfig) -> np.ndarray:
    """Return the expected events of each objective per request, (M,), which no log tells."""
    order = np.argsort(-fused, axis=1, kind="stable")[:, : config.top_k]
    chance = hour.chance[np.arange(len(order))[:, None], order]
    found: np.ndarray = np.einsum("k,rkm->m", config.examination(), chance) / len(order)
    return found
