"""Label shares: what each label of each row tells a head, beside the weight of the row."""

__all__ = ["dispersion_of", "label_shares"]

import numpy as np

from harmonrank.data import Log

_BINS = 64
_LEAST = 1e-3


def label_shares(log: Log) -> np.ndarray | None:
    """Return what each label counts, (rows, M); None where all are events that all rows show.

    0 where a row does not show the objective. Of a graded one 1/φ, its dispersion: a label u
    between 0 and 1 varies less than an event of the same chance, and tells so much more.

    Args:
        log: With what heads learn as labels (see `with_targets`).
    """
    schema = log.schema
    if schema.plain:
        return None
    shares = np.ones(log.known_labels().shape)
    if log.shown is not None:
        shares[~log.shown] = 0.0
    for name in schema.graded:
        m = schema.names.index(name)
        labels, weight = log.shown_labels(m)
        scores = log.scores[:, m] if log.shown is None else log.scores[log.shown[:, m], m]
        shares[:, m] /= dispersion_of(scores, labels, weight)
    return shares


def dispersion_of(scores: np.ndarray, labels: np.ndarray, weight: np.ndarray | None) -> float:
    """Return φ = Σ w (u − ū)²/Σ w ū(1−ū), ū the mean label of rows with about the same score.

    Pearson's dispersion of labels in [0, 1]: 1 for events, a third for even ranks that the score
    says nothing of. Heads that know more than the score leave a smaller one, so that their
    evidence counts rather too little than too much.

    >>> dispersion_of(np.zeros(4), np.array([0.0, 1.0, 1.0, 0.0]), None)
    1.0
    """
    w = np.ones(len(labels)) if weight is None else weight
    known = scores[~np.isnan(scores)]
    edges: np.ndarray = np.empty(0)
    if len(known):
        edges = np.unique(np.quantile(known, np.linspace(0, 1, _BINS + 1)[1:-1]))
    # A missing score sorts beyond all others, so that such rows have a bin of their own.
    place = np.searchsorted(np.append(edges, np.inf), scores)
    mass = np.bincount(place, w)
    mean = np.divide(np.bincount(place, w * labels), mass, out=np.zeros(len(mass)), where=mass > 0)
    spread = float(w @ (labels - mean[place]) ** 2)
    binary = float(w @ (mean * (1 - mean))[place])
    return min(max(spread / binary, _LEAST), 1.0) if binary > 0 else 1.0
