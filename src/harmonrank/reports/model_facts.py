"""What a fitted method does with scores: responses, pulls, calibration, attention."""

__all__ = [
    "Bin",
    "Curve",
    "attention_of",
    "calibration_of",
    "formula_of",
    "pulls_by_context",
    "pulls_of",
    "response_of",
]

from dataclasses import dataclass
from itertools import pairwise
from math import sqrt

import numpy as np
import polars as pl

from harmonrank.data import Log
from harmonrank.data.context import UNKNOWN, ContextEncoder
from harmonrank.data.log import taken
from harmonrank.fusion import Method
from harmonrank.reports.stability import logit_space

_GRID = 33
_CONTEXTS = 64
_SPREAD_ROWS = 20_000
_MOST_VALUES = 24
_BINS = 10
_POSITIVES_PER_BIN = 10


@dataclass(frozen=True)
class Curve:
    """The fused score by one score; y in standard deviations of the fused score."""

    x: tuple[float, ...]
    y: tuple[float, ...]


@dataclass(frozen=True)
class Bin:
    """Rows of like predicted probability: what was predicted, and what came, with its interval."""

    predicted: float
    observed: float
    low: float
    high: float
    rows: int


def formula_of(optimises: str) -> str:
    """Return what effective weights are of a fit for "all" rows, or for "requests"."""
    return "w/(π(1−π))" if optimises == "all" else "w κ of a usual row"


def response_of(model: Method, log: Log) -> tuple[Curve, ...]:
    """Return the fused score as one score moves and the others stay at their medians.

    The mean over the contexts of some rows, so it is what the method does for people as they
    come; 0 is the fused score where all scores are at their medians. The unit is the standard
    deviation of the fused score, so that methods can be compared.
    """
    medians, grid = _probe(log)
    M, G = grid.shape
    rows = log.drawn(_CONTEXTS)
    scores = np.tile(medians, (M, G + 1, len(rows), 1))
    for m in range(M):
        scores[m, :G, :, m] = grid[m][:, None]
    fused = _score(model, log, scores.reshape(-1, M), np.tile(rows, M * (G + 1)))
    means = fused.reshape(M, G + 1, len(rows)).mean(axis=2)
    away = (means[:, :G] - means[:, G:]) / _spread(model, log)
    return tuple(
        Curve(tuple(x), tuple(y)) for x, y in zip(grid.tolist(), away.tolist(), strict=True)
    )


def pulls_of(model: Method, log: Log) -> tuple[float, ...]:
    """Return the share of the fused score's movement that each score causes.

    Each score moves from its 10th to its 90th percentile while the others stay at their medians;
    pulls are the absolute changes, as shares of 1.
    """
    pulls: tuple[float, ...] = tuple(_pulls(model, log, [log.drawn(_CONTEXTS)])[0].tolist())
    return pulls


def pulls_by_context(model: Method, log: Log) -> dict[str, dict[str, tuple[float, ...]]]:
    """Return `pulls_of` for the rows of each context value, the most common values only."""
    by_column: dict[str, dict[str, tuple[float, ...]]] = {}
    for name in log.schema.context:
        groups = _rows_by_value(log.context[name])
        if len(groups) < 2:
            continue
        pulls = _pulls(model, log, list(groups.values()))
        by_column[name] = {value: tuple(p.tolist()) for value, p in zip(groups, pulls, strict=True)}
    return by_column


def _pulls(model: Method, log: Log, groups: list[np.ndarray]) -> np.ndarray:
    """Return (groups, M) shares, all groups scored together."""
    M = log.scores.shape[1]
    low, middle, high = _quantiles(log, [0.1, 0.5, 0.9])
    rows = np.concatenate(groups)
    scores = np.tile(middle, (M, 2, len(rows), 1))
    for m in range(M):
        scores[m, 0, :, m], scores[m, 1, :, m] = low[m], high[m]
    fused = _score(model, log, scores.reshape(-1, M), np.tile(rows, 2 * M)).reshape(M, 2, -1)
    moved = np.abs(fused[:, 1] - fused[:, 0])  # (M, rows)
    cuts = np.cumsum([0, *map(len, groups)])
    means = np.stack([moved[:, a:b].mean(axis=1) for a, b in pairwise(cuts)])
    shares: np.ndarray = means / np.maximum(means.sum(axis=1, keepdims=True), 1e-300)
    return shares


def _rows_by_value(series: pl.Series) -> dict[str, np.ndarray]:
    """Return some rows of each common value, by its name, in the values' own order."""
    if series.dtype.is_float():
        values = series.fill_null(float("nan")).to_numpy().astype(float)
        if not np.isfinite(values).any():
            return {}
        edges = np.unique(np.nanquantile(values, [0.2, 0.4, 0.6, 0.8]))
        codes = np.searchsorted(edges, values, "right") + 1
        ends = ["−∞", *(f"{edge:.3g}" for edge in edges), "∞"]
        names = ["", *(f"{a} to {b}" for a, b in pairwise(ends))]
    else:
        encoder = ContextEncoder.fit(series.to_frame())
        codes = encoder.encode(series.to_frame())[:, 0]
        names = [encoder.label(0, code) for code in range(encoder.slots[0])]
    counts = np.bincount(codes, minlength=len(names))
    counts[UNKNOWN] = 0
    common = np.sort(np.argsort(-counts, kind="stable")[:_MOST_VALUES])
    return {
        names[code]: np.flatnonzero(codes == code)[:_CONTEXTS] for code in common if counts[code]
    }


def calibration_of(p: np.ndarray, log: Log) -> tuple[tuple[Bin, ...], ...]:
    """Return predicted against observed shares of positives, per objective.

    Bins hold equal sums of predicted probability, so that the few rows with most positives are
    seen as well as the many with few.
    """
    labels, weight = log.known_labels(), log.sample_weight
    weight = np.ones(log.rows) if weight is None else weight
    curves = []
    for m, column in enumerate(p.astype(float).T):
        known = ~np.isnan(column)
        if log.shown is not None:
            known &= log.shown[:, m]
        if log.schema.names[m] in log.schema.graded:
            known &= False  # what is expected of a number is no share of positives
        curves.append(_bins(column[known], labels[known, m], weight[known]) if known.any() else ())
    return tuple(curves)


def _bins(p: np.ndarray, labels: np.ndarray, weight: np.ndarray) -> tuple[Bin, ...]:
    count = int(np.clip(labels.sum() // _POSITIVES_PER_BIN, 2, _BINS))
    order = np.argsort(p, kind="stable")
    p, labels, weight = p[order], labels[order], weight[order]
    mass = np.cumsum(weight * p)
    cuts = np.searchsorted(mass, mass[-1] * np.arange(1, count) / count)
    bins = []
    for first, last in pairwise([0, *cuts.tolist(), len(p)]):
        w = weight[first:last]
        total = w.sum()
        if total > 0:
            rate = float(w @ labels[first:last] / total)
            low, high = _wilson(rate, total**2 / (w @ w))
            predicted = float(w @ p[first:last] / total)
            bins.append(Bin(predicted, rate, low, high, last - first))
    return tuple(bins)


def _wilson(rate: float, n: float) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share, which stays in [0, 1] for rare events."""
    z2 = 1.96**2
    middle = (rate + z2 / (2 * n)) / (1 + z2 / n)
    half = sqrt(z2 * (rate * (1 - rate) / n + z2 / (4 * n * n))) / (1 + z2 / n)
    return max(middle - half, 0.0), min(middle + half, 1.0)


def attention_of(model: Method, log: Log) -> tuple[tuple[float, ...], ...]:
    """Return the mean of A_r over some rows; empty for methods without self-attention."""
    attention = getattr(model, "attention", None)
    weights = None if attention is None else attention(log.sampled(_SPREAD_ROWS))
    return () if weights is None else tuple(tuple(row) for row in weights.tolist())


def _probe(log: Log) -> tuple[np.ndarray, np.ndarray]:
    """Return the medians (M,) and grids (M, points) of the scores, even steps of the logit."""
    low, middle, high = _quantiles(log, [0.005, 0.5, 0.995])
    return middle, logit_space(low, high, _GRID)


def _quantiles(log: Log, shares: list[float]) -> np.ndarray:
    """Return quantiles of each score over the rows that have it; one half where none has."""
    quantiles = []
    for column in log.scores.astype(float).T:
        known = column[~np.isnan(column)]
        quantiles.append(np.quantile(known if len(known) else np.array([0.5]), shares))
    return np.stack(quantiles, axis=1)


def _spread(model: Method, log: Log) -> float:
    spread = float(np.std(model.score(log.sampled(_SPREAD_ROWS))))
    return spread if spread > 0 else 1.0


def _score(model: Method, log: Log, scores: np.ndarray, rows: np.ndarray) -> np.ndarray:
    typed = np.ascontiguousarray(scores, dtype=log.scores.dtype)
    return model.score(Log(log.schema, typed, taken(log.context, rows)))
