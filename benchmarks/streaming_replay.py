"""The part `replay` of benchmarks/streaming.py: what earlier rows beside a batch are good for."""

import argparse
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import polars as pl

from harmonrank.data import Log, read_log
from harmonrank.streaming.learners.learner import LearnerSettings, new_learner
from harmonrank.streaming.prequential import Prequential
from harmonrank.worlds import world
from harmonrank.worlds.simulation import as_frame, world_schema

ELIVE = world("elive")
SCHEMA = world_schema(ELIVE)
FIRST = datetime(2026, 1, 1, tzinfo=UTC)
SHARES = (0.0, 0.25, 0.5, 0.75)


def batch(hour: int, rows: int) -> Log:
    """Return rows of one hour of the day, as a stream has them."""
    drawn = as_frame(ELIVE, ELIVE.sample(24 * rows, seed=hour + 1))
    return read_log(drawn.filter(pl.col("hour") == hour % 24), SCHEMA)


def measure_replay(options: argparse.Namespace) -> dict[str, Any]:
    """Let the network learn the same hours with more and fewer earlier rows beside them."""
    hours, rows = int(options.hours), options.batch_rows
    learners = {
        share: new_learner(
            options.method, {}, SCHEMA, LearnerSettings(passes=options.passes, replay_share=share)
        )
        for share in SHARES
    }
    regrets: dict[float, list[float]] = {share: [] for share in SHARES}
    for hour in range(hours):
        log = batch(hour, rows)
        for share, learner in learners.items():
            if learner.model is not None:
                quality = Prequential(1).scored(learner.model, log).quality(SCHEMA)
                regrets[share].append(quality.ceiling - quality.exact_auc_sum)
            at = FIRST + timedelta(hours=hour + 1)
            learners[share] = learner.learned(log, seed=hour, at=at)
    half = hours // 2
    return {
        "method": options.method,
        "passes": options.passes,
        "batch_rows": rows,
        "hours": hours,
        "regret": {
            str(share): {
                "mean": float(np.mean(found[-half:])),
                "deviation": float(np.std(found[-half:])),
                "by_hour": found,
            }
            for share, found in regrets.items()
        },
    }
