"""Method: what every way to fuse can do."""

__all__ = ["Method"]

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from harmonrank.data import Log, Schema, Source, read_log
from harmonrank.data.reading.forks import require_polars_threads
from harmonrank.fusion.aligned import Aligned
from harmonrank.fusion.drift.imputation import imputed_log
from harmonrank.fusion.drift.reference import Reference
from harmonrank.fusion.fitting.fit import Fit, exam_rows, fit_rows
from harmonrank.fusion.kinds import with_targets
from harmonrank.fusion.quality.quality import Quality
from harmonrank.fusion.request import checked_candidates, checked_context, request_log
from harmonrank.fusion.scoring.top_rows import top_rows
from harmonrank.fusion.state import NoState
from harmonrank.fusion.weighed import fit_weights
from harmonrank.support.errors import DataError, UsageError
from harmonrank.support.extras import needs_extras
from harmonrank.support.options import checked_device, checked_listener, checked_path, checked_seed
from harmonrank.support.storage.arrays import Array


class Method(Aligned, ABC):
    """A way to fuse scores: fit it on a log, then score, rank, evaluate and save.

    A subclass names itself and its frozen config, learns in `_fit`, fuses in `_score`, and
    gives and takes its learned state as JSON parts and arrays.
    """

    needs: ClassVar[str | None] = None
    """The optional package without which it cannot be fitted; a saved model scores without."""
    uses_valid: ClassVar[bool] = True
    """Whether the fit looks at validation rows; without them some training rows are set aside."""
    State: ClassVar[type] = NoState
    """What the JSON parts of `_state` are decoded to when a saved model is loaded."""

    @property
    def schema(self) -> Schema:
        """Which column is what; known once fitted."""
        if self._schema is None:
            raise self._unfitted()
        return self._schema

    def fit(
        self,
        train: Source,
        schema: Schema | Mapping[str, Any],
        *,
        valid: Source | None = None,
        seed: int = 0,
        device: str = "cpu",
        on_event: Callable[[Any], None] | None = None,
        checkpoint: str | Path | None = None,
    ) -> Self:
        """Learn to fuse.

        Args:
            train: A path, a list of paths, or a polars, pandas or pyarrow table.
            schema: Which column is what; a dict of its parts will do.
            valid: Rows for early stopping and selection; split off the training rows by
                request if left out.
            seed: Decides everything that is drawn.
            device: Where a network is trained.
            on_event: Called with every event of the training loop.
            checkpoint: A file that keeps the state of a long fit; if it exists, the fit goes on.
        """
        require_polars_threads("A fit")
        schema, seed = Schema.of(schema), checked_seed(seed)
        self._require_kinds(schema)
        device, listener = checked_device(device), checked_listener(on_event)
        kept_in = None if checkpoint is None else checked_path("checkpoint", checkpoint)
        train_log, valid_log = fit_rows(train, valid, schema, seed, uses_valid=self.uses_valid)
        reference, pi = Reference.of(train_log), train_log.prevalence()
        if not self.takes_missing:
            train_log, valid_log = (imputed_log(reference, log) for log in (train_log, valid_log))
        targets, exam = with_targets(train_log, [valid_log])
        with needs_extras(self.name):
            self._fit(Fit(targets, exam, fit_weights(schema, pi), seed, device, listener, kept_in))
        self._keep_reference(reference)
        self._schema = replace(schema, examination=train_log.schema.examination)
        self._keep_kinds(train_log, targets)
        return self

    def strict(self) -> Self:
        """Return this model as one that refuses rows with missing scores."""
        changed = copy(self)
        changed._schema = replace(self.schema, missing="error")
        return changed

    def score(
        self,
        table: Source,
        *,
        weights: Mapping[str, float] | None = None,
        value: Mapping[str, float] | None = None,
    ) -> np.ndarray:
        """Return the fused score of each row, in order; higher is shown first.

        A row's score depends on the row and the model alone. An array whatever the table is, so
        that `table["fused"] = model.score(table)` does with pandas what one expects; a table
        without rows has no scores.

        Args:
            table: A path or table; labels are not needed.
            weights: Other objective weights, for methods that can change them after the fit.
            value: What an event of each objective is worth, in place of weights, for methods with
                probabilities p_m: the score is then the expected value Σ_m v_m p_m.
        """
        asked, log = self._asked(weights, value), self._to_score(table)
        if not log.rows:
            return np.empty(0)
        return _finite(self._given(self._fused(self._expected(log), asked), asked))

    def _to_score(self, table: Source) -> Log:
        """Read rows to score, of which there may be none."""
        return read_log(table, self.schema, labels=False, empty=True)

    def _fused(self, log: Log, weights: np.ndarray | None) -> np.ndarray:
        return _finite(self._score(log) if weights is None else self._score_weighted(log, weights))

    def score_request(
        self,
        scores: ArrayLike,
        context: Mapping[str, Any] | None = None,
        *,
        weights: Mapping[str, float] | None = None,
        value: Mapping[str, float] | None = None,
    ) -> np.ndarray:
        """Return the fused score of each candidate of one request, as `score` of a table would.

        For a service: no table is made, so that a thousand candidates take a fraction of a
        millisecond with the default and with the paper's network.

        Args:
            scores: (candidates, objectives), in the order of the schema's objectives and on its
                scales; NaN or None where one is missing.
            context: The value of each context column, which all candidates share; a time where
                the schema asks for its hour or weekday.
            weights: As for `score`.
            value: As for `score`.
        """
        context = checked_context(context, self.schema.context)
        p = self._expected_request(checked_candidates(scores, self.schema), context)
        asked = self._asked(weights, value)
        return _finite(self._given(self._score_request(p, context, asked), asked))

    def rank(
        self,
        table: Source,
        k: int = 10,
        *,
        request: str | None = None,
        weights: Mapping[str, float] | None = None,
        value: Mapping[str, float] | None = None,
    ) -> Any:
        """Return the best k rows of every request, best first, with their score and place.

        Args:
            table: A path or table; a pandas table gives a pandas table, all else a polars one.
            k: At most so many of a request.
            request: The request column; that of the schema if left out.
            weights: As for `score`.
            value: As for `score`.
        """

        def score(rows: pl.DataFrame) -> np.ndarray:
            return self.score(rows, weights=weights, value=value)

        needed = (*self.schema.score_columns, *self.schema.context)
        return top_rows(table, request or self.schema.request, k, needed, score)

    def evaluate(
        self,
        table: Source,
        *,
        weights: Mapping[str, float] | None = None,
        value: Mapping[str, float] | None = None,
        k: int = 10,
    ) -> Quality:
        """Measure how well the fused score, which `score` gives, ranks a table that has labels.

        Where events have values, here or in the schema, so has the first k of every request. Where
        the schema names a position, feedback counts as if every place had been looked at.
        """
        log = exam_rows(table, self.schema)
        return self.measured(
            self.score(log, weights=weights, value=value), log, weights, value, k=k
        )

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the model as a folder that `harmonrank.load` reads."""
        from harmonrank.fusion.saved import save

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
        return self._fused(request_log(self.schema, scores, context), weights)

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


def _finite(fused: np.ndarray) -> np.ndarray:
    """Return fused scores, or refuse those that no ranking can use."""
    if not np.isfinite(fused).all():
        raise DataError(
            "Some fused scores are not finite: the weights are too large, or the model is damaged; "
            "use weights around 1, or fit the model again."
        )
    return fused
