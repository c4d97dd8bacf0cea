"""Splitting rows off a log, by whole requests."""

__all__ = ["split_off"]

import numpy as np

from harmonrank.data import Log
from harmonrank.errors import UsageError


def split_off(log: Log, share: float, seed: int) -> tuple[Log, Log]:
    """Split rows in two by whole requests, so that no request is on both sides.

    The larger part, which comes first, keeps a positive and a negative of every objective;
    where the smaller part lacks one, that objective simply does not count in it.
    """
    rng = np.random.default_rng([seed, 0x5EED])
    request = np.arange(log.rows)
    if log.request is not None:
        _, request = np.unique(log.request, return_inverse=True)
    chosen = _spare(log, request, (rng.random(request.max() + 1) < share)[request])
    if not chosen.any():
        chosen = _spare(log, request, request % 10 == 0)
    if not chosen.any():
        raise UsageError(
            f"{log.rows:,} training rows are too few to split validation rows off; pass `valid`."
        )
    return log.take(np.flatnonzero(~chosen)), log.take(np.flatnonzero(chosen))


def _spare(log: Log, request: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Return the chosen rows without the requests that hold all rows of some class."""
    counts = np.ones(log.rows, dtype=bool) if log.sample_weight is None else log.sample_weight > 0
    for labels in log.known_labels().T:
        for value in (0, 1):
            rows = np.flatnonzero((labels == value) & counts)
            if len(rows) and chosen[rows].all():
                chosen = chosen & (request != request[rows[0]])
    return chosen
