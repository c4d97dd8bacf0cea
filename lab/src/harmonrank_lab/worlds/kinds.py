"""Simulated kinds: rows of a world whose labels are drawn again as objectives of other kinds."""

__all__ = ["UNIT_SECONDS", "with_kinds"]

import numpy as np
import polars as pl

from harmonrank.data import Schema, lineage

UNIT_SECONDS = 60.0
"""The scale of a graded label."""

_VALUES = 16  # equally likely ones that stand for the density of a graded label


def with_kinds(
    frame: pl.DataFrame, schema: Schema, truth: np.ndarray, *, seed: list[int], known: bool
) -> pl.DataFrame:
    """Return rows with labels drawn again from their true probabilities, each by itself.

    Given what a fusion sees, labels are independent, so that the truth of each kind is exact: an
    event has the chance p; one given another has its p among the rows that show it, and is null
    elsewhere; a graded label is 0 with chance 1−p, and else exponential with a mean of
    60·(¼ + p), seconds say. The truth column of a graded objective holds 16 equally likely values.

    Args:
        frame: Rows of a world.
        schema: Which objectives are of which kind.
        truth: (rows, M).
        seed: Decides the labels.
        known: Whether truth columns are written.
    """
    rng = np.random.default_rng([*seed, 0x1D5])
    u = rng.random(truth.shape)
    columns: dict[str, pl.Series] = {}
    happened: dict[str, np.ndarray] = {}
    for m, name in enumerate(schema.names):
        p = truth[:, m]
        happened[name] = u[:, m] < p
        label: np.ndarray = happened[name].astype(np.uint8)
        if name in schema.graded:
            # As u is below p here, u/p is even on [0, 1].
            label = np.where(happened[name], _seconds(1 - u[:, m] / p, p), 0.0)
            if known:
                columns[schema.truth[name]] = pl.Series(_density(p))
        columns[name] = pl.Series(label)
        if known and name not in schema.graded:
            columns[schema.truth[name]] = pl.Series(p)
    for name in schema.given:
        shown = np.ones(frame.height, dtype=bool)
        for parent in lineage(name, schema.given):
            shown &= happened[parent]
        hidden = pl.Series(~shown)
        columns[name] = pl.select(pl.when(hidden).then(None).otherwise(columns[name])).to_series()
    return frame.with_columns(**columns)


def _seconds(share: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Return the quantile of an exponential label with a mean that grows with p."""
    seconds: np.ndarray = -np.log1p(-share) * UNIT_SECONDS * (0.25 + p)
    return seconds


def _density(p: np.ndarray) -> np.ndarray:
    """Return equally likely values, (rows, values): the middles of as many equal shares."""
    share = (np.arange(_VALUES) + 0.5) / _VALUES
    above = share - (1 - p[:, None])
    inside = np.clip(above / p[:, None], 0.0, 1 - 1e-12)
    return np.where(above > 0, _seconds(inside, p[:, None]), 0.0)
