"""Method: what every way to fuse can do."""

__all__ = ["PIECE_ROWS", "Fit", "FitStep", "Method"]

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from harmonrank.data import Log, Schema, Source, read_log
from harmonrank.data.arrays import Array
from harmonrank.data.tables import column_names, open_table
from harmonrank.errors import DataError, UsageError
from harmonrank.methods.quality import Quality, quality_of
from harmonrank.methods.shift import Shift
from harmonrank.methods.state import NoState
from harmonrank.options import checked_options

PIECE_ROWS = 262_144
"""Tables and files are scored in pieces of so many rows where that matters."""

_VALID_SHARE = 0.1


@dataclass(frozen=True)
class Fit:
    """What a method's fit is given: checked rows, and how to run.

    Attributes:
        on_event: Called with every event of the training loop.
        checkpoint: Where a fit that takes long keeps its state.
    """

    train: Log
    valid: Log
    weights: np.ndarray
    seed: int
    device: str
    on_event: Callable[[Any], None]
    checkpoint: Path | None


@dataclass(frozen=True)
class FitStep:
    """A fit that is no training loop took a step; it takes at most `steps`."""

    step: int
    steps: int


class Method(ABC):
    """A way to fuse scores: fit it on a log, then score, rank, evaluate and save.

    A subclass names itself and its frozen config, learns in `_fit`, fuses in `_score`, and
    gives and takes its learned state as JSON parts and arrays.
    """

    name: ClassVar[str]
    Config: ClassVar[type]
    uses_valid: ClassVar[bool] = True
    """Whether the fit looks at validation rows; without them some training rows are set aside."""
    State: ClassVar[type] = NoState
    """What the JSON parts of `_state` are decoded to when a saved model is loaded."""
    follows: ClassVar[bool] = False
    """Whether it can `follow` a replaced upstream model."""

    def __init__(self, **options: Any) -> None:
        self.config = self.Config(**checked_options(self.name, self.Config, options))
        self._schema: Schema | None = None
        self.prevalence = np.empty(0)

    @property
    def schema(self) -> Schema:
        """Which column is what; known once fitted."""
        if self._schema is None:
            raise UsageError(f"This {self.name} is not fitted; call fit or load a saved model.")
        return self._schema

    @property
    def effective_weights(self) -> dict[str, float]:
        """What a unit of probability counts: w/(π(1−π)) per objective, as shares of 1."""
        return self._effective(self.schema.weight_vector)

    def _effective(self, weights: np.ndarray) -> dict[str, float]:
        effective = weights / (self.prevalence * (1 - self.prevalence))
        return dict(zip(self.schema.names, (effective / effective.sum()).tolist(), strict=True))

    def explain(self, weights: Mapping[str, float] | None = None) -> dict[str, dict[str, float]]:
        """Return facts of each objective: weights, and what the method makes of its score."""
        names, merged = self.schema.names, self.schema.weights_with(weights)
        return {
            "weight": dict(zip(names, merged.tolist(), strict=True)),
            "prevalence": dict(zip(names, self.prevalence.tolist(), strict=True)),
            "effective_weight": self._effective(merged),
        }

    def fit(
        self,
        train: Source,
        schema: Schema,
        *,
        valid: Source | None = None,
        seed: int = 0,
        device: str = "cpu",
        on_event: Callable[[Any], None] | None = None,
        checkpoint: str | Path | None = None,
    ) -> Self:
        """Learn to fuse.

        Args:
            train: A path, or a polars, pandas or pyarrow table.
            schema: Which column is what.
            valid: Rows for early stopping and selection; split off the training rows by
                request if left out.
            seed: Decides everything that is drawn.
            device: Where a network is trained.
            on_event: Called with every event of the training loop.
            checkpoint: A file that keeps the state of a long fit; if it exists, the fit goes on.
        """
        train_log = train if isinstance(train, Log) else read_log(train, schema)
        train_log.require_both_classes("training")
        if valid is not None:
            valid_log = valid if isinstance(valid, Log) else read_log(valid, schema)
        elif self.uses_valid:
            train_log, valid_log = split_off(train_log, _VALID_SHARE, seed)
        else:
            valid_log = train_log
        train_log, valid_log = _with_unit_weights(train_log), _with_unit_weights(valid_log)
        self._fit(
            Fit(
                train_log,
                valid_log,
                schema.weight_vector,
                seed,
                device,
                on_event or (lambda _: None),
                None if checkpoint is None else Path(checkpoint),
            )
        )
        self.prevalence = train_log.prevalence()
        self._schema = schema
        return self

    def score(
        self,
        table: Source,
        *,
        weights: Mapping[str, float] | None = None,
        adapt: bool = True,
    ) -> np.ndarray:
        """Return the fused score of each row, in order; higher is shown first.

        Args:
            table: A path or table; labels are not needed.
            weights: Other objective weights, for methods that can change them after the fit.
            adapt: Let the model `follow` the table, in pieces of 262,144 rows. Otherwise scores
                are read as at the fit, and a row's fused score depends on nothing but the row.
        """
        log = table if isinstance(table, Log) else read_log(table, self.schema, labels=False)
        merged = None if weights is None else self.schema.weights_with(weights)
        if not adapt:
            return self._fused(log, merged)
        parts = [model._fused(piece, merged) for piece, model, _ in self._followed(log)]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _fused(self, log: Log, weights: np.ndarray | None) -> np.ndarray:
        return self._score(log) if weights is None else self._score_weighted(log, weights)

    def _followed(self, log: Log) -> Iterator[tuple[Log, Self, list[Shift]]]:
        """Yield pieces, the model for each, and the scores that it reads anew from there on."""
        if not self.follows:
            yield log, self, []
            return
        model = self
        for low in range(0, max(log.rows, 1), PIECE_ROWS):
            whole = log.rows <= PIECE_ROWS
            piece = log if whole else log.between(low, min(low + PIECE_ROWS, log.rows))
            model, found = model.follow(piece)
            yield piece, model, [dataclasses.replace(shift, first_row=low) for shift in found]

    def score_request(
        self,
        scores: ArrayLike,
        context: Mapping[str, Any] | None = None,
        *,
        weights: Mapping[str, float] | None = None,
    ) -> np.ndarray:
        """Return the fused score of each candidate of one request, as `score` of a table would.

        Nothing is adapted by so few rows; a service takes `model.adapted(recent)` now and then.

        For a service: no table is made, so that a thousand candidates take a fraction of a
        millisecond with the default and with the paper's network.

        Args:
            scores: (candidates, objectives), in the order of the schema's objectives.
            context: The value of each context column, which all candidates share.
            weights: As for `score`.
        """
        p = np.asarray(scores)
        names = self.schema.names
        if p.ndim != 2 or p.shape[1] != len(names):
            raise DataError(
                f"`scores` must be (candidates, {len(names)}), one column for each of "
                f"{', '.join(names)}. Got {p.shape}."
            )
        p = p if p.dtype == np.float32 else p.astype(np.float64)
        if p.size and not (p.min() >= 0 and p.max() <= 1):
            raise DataError(
                f"`scores` must lie in [0, 1]. Got {p.min()} to {p.max()}; drop or repair them."
            )
        merged = None if weights is None else self.schema.weights_with(weights)
        return self._score_request(p, context or {}, merged)

    def shifts(self, table: Source) -> list[Shift]:  # noqa: ARG002
        """Return how far each score column has moved since the fit, if the method knows."""
        return []

    def follow(self, table: Source) -> tuple[Self, list[Shift]]:  # noqa: ARG002
        """Return the model for a table, and the scores that it reads on a new scale there."""
        return self, []

    def adapted(self, table: Source) -> Self:
        """Return the model that has followed a table to its end; mostly it is itself.

        A service calls this now and then with what it has served.
        """
        log = table if isinstance(table, Log) else read_log(table, self.schema, labels=False)
        *_, (_, model, _) = self._followed(log)
        return model

    def replaced(self, table: Source) -> list[Shift]:
        """Return the scores that `score` reads on a new scale, and from which row on."""
        log = table if isinstance(table, Log) else read_log(table, self.schema, labels=False)
        return [shift for *_, found in self._followed(log) for shift in found]

    def rank(self, table: Source, k: int = 10, *, adapt: bool = True) -> pl.DataFrame:
        """Return the best k rows of every request, best first, with their score and place."""
        if self.schema.request is None:
            raise UsageError("`rank` needs requests; name the request column in the schema.")
        if k < 1:
            raise UsageError(f"`k` must be at least 1. Got {k}.")
        request, names = self.schema.request, column_names(table)
        for added in ("fused", "place"):
            if added in names:
                raise UsageError(f"The table has a column '{added}' already; drop or rename it.")
        # One reading serves both, so that a lazy table cannot change its order in between.
        frame = open_table(table, [request, *names])
        best = (
            frame.with_columns(pl.Series("fused", self.score(frame, adapt=adapt)))
            .sort("fused", descending=True, maintain_order=True)
            .group_by(request, maintain_order=True)
            .head(k)
            .sort(request, maintain_order=True)
        )
        place = pl.int_range(1, pl.len() + 1).over(request).alias("place")
        return best.select(*names, "fused", place)

    def evaluate(
        self,
        table: Source,
        *,
        weights: Mapping[str, float] | None = None,
        adapt: bool = True,
    ) -> Quality:
        """Measure how well the fused score, which `score` gives, ranks a table that has labels."""
        log = table if isinstance(table, Log) else read_log(table, self.schema)
        log.require_both_classes("evaluated")
        merged = self.schema.weights_with(weights)
        fused = self.score(log, weights=weights, adapt=adapt)
        return quality_of(fused, log, merged, self.prevalence)

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the model as a folder that `harmonrank.load` reads."""
        from harmonrank.methods.saved import save

        save(self, path, overwrite=overwrite)

    @abstractmethod
    def _fit(self, fit: Fit) -> None:
        """Learn from checked rows."""

    @abstractmethod
    def _score(self, log: Log) -> np.ndarray:
        """Fuse the scores of checked rows."""

    def _score_weighted(self, log: Log, weights: np.ndarray) -> np.ndarray:  # noqa: ARG002
        raise UsageError(
            f"{self.name} cannot change weights after the fit; fit it again with these weights."
        )

    def _score_request(
        self, scores: np.ndarray, context: Mapping[str, Any], weights: np.ndarray | None
    ) -> np.ndarray:
        """Fuse the checked scores of one request; by way of a table, where there is no faster."""
        missing = [name for name in self.schema.context if name not in context]
        if missing:
            raise DataError(f"The context lacks '{missing[0]}'; set it to None if it is not known.")
        frame = pl.DataFrame({name: [context[name]] for name in self.schema.context})
        rows = np.zeros(len(scores), np.int64)
        log = Log(self.schema, scores, frame[rows] if frame.width else frame)
        return self._fused(log, weights)

    @abstractmethod
    def _state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return what was learned, as JSON parts and arrays."""

    def _declare(self, state: Any) -> Mapping[str, Array]:  # noqa: ARG002
        """Return what each array of a saved model must be, given its JSON parts as `State`.

        The schema is known already. A saved model with other arrays is refused.
        """
        return {}

    @abstractmethod
    def _restore(self, state: Any, arrays: dict[str, np.ndarray]) -> None:
        """Take over what `_state` returned: parts as `State`, and arrays as declared."""


def _with_unit_weights(log: Log) -> Log:
    """Scale sample weights to a mean of 1: only their ratios may matter."""
    weight = log.sample_weight
    if weight is None or not weight.any():
        return log
    return dataclasses.replace(log, sample_weight=weight / weight.mean())


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
