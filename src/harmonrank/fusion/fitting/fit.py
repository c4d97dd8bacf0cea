"""Fit: the checked rows that a method learns from, and how it is to run."""

__all__ = ["VALID_SHARE", "Fit", "exam_rows", "fit_rows", "require_requests", "split_off"]

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from harmonrank.data import Log, Schema, Source, read_log
from harmonrank.fusion.position.correction import corrected
from harmonrank.support.errors import UsageError

VALID_SHARE = 0.1
"""The share of requests that is set aside where no validation rows are given."""


@dataclass(frozen=True)
class Fit:
    """What a method's fit is given: checked rows, and how to run.

    Attributes:
        on_event: Called with every event of the training loop.
        checkpoint: Where a fit that takes long keeps its state.
        turned: (objectives,) which labels were turned into their absence by `wanted`.
    """

    train: Log
    valid: Log
    weights: np.ndarray
    seed: int
    device: str
    on_event: Callable[[Any], None]
    checkpoint: Path | None
    turned: np.ndarray | None = None

    def wanted(self) -> "Fit":
        """Return the fit of what is wanted: an unwanted objective becomes its absence.

        AUC of 1−y is 1 − AUC of y, so Σ_m w_m AUC_m with w_m < 0 is, but for a constant, the sum
        with |w_m| on the AUC of 1−y_m (eq. 2 of docs/objectives.md): what losses that know no
        negative weight can minimise.
        """
        turned = self.weights < 0
        if not turned.any():
            return self

        return replace(
            self,
            train=self.train.turned(turned),
            valid=self.valid.turned(turned),
            weights=np.abs(self.weights),
            turned=turned,
        )

    @property
    def signs(self) -> np.ndarray:
        """−1 of each objective that was turned into its absence, 1 of others."""
        return np.ones(len(self.weights)) if self.turned is None else np.where(self.turned, -1.0, 1)


def fit_rows(
    train: Source, valid: Source | None, schema: Schema, seed: int, *, uses_valid: bool
) -> tuple[Log, Log]:
    """Read training and validation rows; those are split off where they are used and not given.

    Where the schema names a position, their weights undo it, and their schema has the curve.
    """
    train_log = corrected(read_log(train, schema))
    train_log.require_both_classes("training")
    train_log = train_log.counted()
    train_log.require_scores("training")
    if valid is not None:
        curve = train_log.schema.examination
        valid_log = corrected(read_log(valid, replace(schema, examination=curve))).counted()
    elif uses_valid:
        train_log, valid_log = split_off(train_log, VALID_SHARE, seed)
    else:
        valid_log = train_log
    return train_log.with_unit_weights(), valid_log.with_unit_weights()


def require_requests(optimises: str, log: Log) -> None:
    """Refuse to fit for requests where no column tells them."""
    if optimises == "requests" and log.request is None:
        raise UsageError(
            "optimise='requests' needs a request column, which says which rows were shown "
            "together; name it in the schema or with --request. Got none."
        )


def exam_rows(table: Source, schema: Schema) -> Log:
    """Read rows to measure a fitted model on, corrected for their places where they are known."""
    log = corrected(read_log(table, schema))
    log.require_both_classes("evaluated")
    return log.counted()


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
    for m, labels in enumerate(log.known_labels().T):
        seen = counts if log.shown is None else counts & log.shown[:, m]
        # Of a graded objective the ends are kept, so that some two labels differ.
        ends = (0, 1)
        if log.schema.names[m] in log.schema.graded and seen.any():
            ends = (labels[seen].min(), labels[seen].max())
        for value in ends:
            rows = np.flatnonzero((labels == value) & seen)
            if len(rows) and chosen[rows].all():
                chosen = chosen & (request != request[rows[0]])
    return chosen
