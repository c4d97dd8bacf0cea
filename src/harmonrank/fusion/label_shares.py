"""Label shares: what each label of each row tells a head, beside the weight of the row."""

__all__ = ["score_bins", "with_label_shares"]

from dataclasses import replace

import numpy as np

from harmonrank.data import Schema
from harmonrank.data.context import QUANTILE_ROWS
from harmonrank.data.rows.blocks import Blocks
from harmonrank.fusion.protocol import TrainingRows
from harmonrank.model.fit_rows import FitRows

_BINS = 64
_LEAST = 1e-3

Bins = dict[int, np.ndarray]
"""By graded objective, where its scores are cut into bins."""


def with_label_shares(rows: Blocks[FitRows], schema: Schema, bins: Bins) -> Blocks[FitRows]:
    """Return rows of which each label counts what it tells; as they are where all are events.

    0 where a row does not show the objective. Of a graded one 1/φ, its dispersion: a label u
    between 0 and 1 varies less than an event of the same chance, and tells so much more.

    Args:
        rows: With what heads learn as labels (see `LabelTargets`), and with shares of 0 and 1 that
            tell which row shows what, or none if all rows show all.
        schema: Which objective is what.
        bins: Of `score_bins`.
    """
    if schema.plain:
        return rows
    phi = np.ones(len(schema.names))
    if bins:
        phi[list(bins)] = dispersion_of(rows, bins)
    return rows.made(_shared, phi)


def score_bins(rows: TrainingRows) -> Bins:
    """Return where the scores of graded objectives are cut; of many rows by some drawn ones."""
    schema, bins = rows.schema, {}
    some = rows.sample(QUANTILE_ROWS) if schema.graded else None
    for name in schema.graded:
        assert some is not None
        m = schema.names.index(name)
        scores = some.scores[:, m]
        known = scores[~np.isnan(scores) & (True if some.shares is None else some.shares[:, m] > 0)]
        edges: np.ndarray = np.empty(0)
        if len(known):
            edges = np.unique(np.quantile(known, np.linspace(0, 1, _BINS + 1)[1:-1]))
        # A missing score sorts beyond all others, so that such rows have a bin of their own.
        bins[m] = np.append(edges, np.inf)
    return bins


def dispersion_of(rows: Blocks[FitRows], bins: Bins) -> list[float]:
    """Return φ = Σ w (u − ū)²/Σ w ū(1−ū), ū the mean label of rows with about the same score.

    Pearson's dispersion of labels in [0, 1]: 1 for events, a third for even ranks that the score
    says nothing of. Heads that know more than the score leave a smaller one, so that their
    evidence counts rather too little than too much.

    >>> from harmonrank.model.fit_rows import cut_rows
    >>> labels = np.array([[0.0], [1.0], [1.0], [0.0]])
    >>> rows = cut_rows(np.zeros((4, 1)), np.empty((4, 0)), labels)
    >>> dispersion_of(rows, {0: np.array([np.inf])})
    [1.0]
    """
    sums = rows.total(_bin_sums, bins)
    means = [
        np.divide(total, mass, out=np.zeros(len(mass)), where=mass > 0)
        for mass, total in zip(sums[::2], sums[1::2], strict=True)
    ]
    variances = rows.total(_spreads, bins, means)
    return [
        min(max(spread / binary, _LEAST), 1.0) if binary > 0 else 1.0
        for spread, binary in zip(variances[::2], variances[1::2], strict=True)
    ]


def _bin_sums(rows: FitRows, bins: Bins) -> tuple[np.ndarray, ...]:
    """Return the weight and the weighted labels of each bin, for each graded objective."""
    sums = []
    for m, edges in bins.items():
        place, labels, w = _placed(rows, m, edges)
        size = len(edges) + 1
        sums += [np.bincount(place, w, size), np.bincount(place, w * labels, size)]
    return tuple(sums)


def _spreads(rows: FitRows, bins: Bins, means: list[np.ndarray]) -> tuple[float, ...]:
    """Return Σ w (u − ū)² and Σ w ū(1−ū), for each graded objective."""
    sums = []
    for (m, edges), mean in zip(bins.items(), means, strict=True):
        place, labels, w = _placed(rows, m, edges)
        sums += [float(w @ (labels - mean[place]) ** 2), float(w @ (mean * (1 - mean))[place])]
    return tuple(sums)


def _placed(rows: FitRows, m: int, edges: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return bin, label and weight of the rows that show an objective."""
    scores, labels, w = rows.scores[:, m], rows.labels[:, m], rows.weights()
    if rows.shares is not None:
        there = rows.shares[:, m] > 0
        scores, labels, w = scores[there], labels[there], w[there]
    return np.searchsorted(edges, scores), labels, w


def _shared(rows: FitRows, phi: np.ndarray) -> FitRows:
    shares = np.ones(rows.labels.shape) if rows.shares is None else rows.shares
    return replace(rows, shares=shares / phi)
