"""Method: a way to fuse with all that stands around it."""

__all__ = ["Method", "changed", "measured", "with_points_of"]

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from harmonrank.data import Log, Schema, Source, read_log
from harmonrank.data.reading.forks import require_polars_threads
from harmonrank.data.rows.log_blocks import LogBlocks, log_blocks, memory_limit
from harmonrank.engine import Engine, using
from harmonrank.fusion.drift.drift import Drift
from harmonrank.fusion.drift.measurement import drift_of
from harmonrank.fusion.drift.reference import recent_rows
from harmonrank.fusion.drift.shares import EVIDENCE_ROWS, Changed, named_shares, proven_shares
from harmonrank.fusion.fit import FitRun, Training, evaluation_log, learned, rows_within
from harmonrank.fusion.fitted import AlignedMap, Fitted, ScoreMap
from harmonrank.fusion.fuser import Fuser, require_probabilities
from harmonrank.fusion.protocol import Estimator, State
from harmonrank.fusion.quality.quality import Quality, quality_of
from harmonrank.fusion.quality.value_at_k import value_of
from harmonrank.fusion.request import checked_candidates, checked_context, top_rows
from harmonrank.fusion.weights import Weights, checked_point, point_of
from harmonrank.support.errors import DataError, UsageError
from harmonrank.support.options import (
    checked_device,
    checked_listener,
    checked_path,
    checked_seed,
)

M = TypeVar("M", bound="Method")

Named = Mapping[str, float]
"""Numbers by the name of an objective."""

_PARTS = {"Config", "fitted", "fuser", "state", "training", "traits"}


class Method(Estimator):
    """A way to fuse scores: fit it on a log, then score, rank, evaluate and save.

    Its config learns (`harmonrank.fusion.protocol`); a fitted model holds the state that came of
    it, and parts that every model has: the context's codes, a reference by which drift is told,
    operating points, maps of aligned scores. What changes a model returns a new one.
    """

    _schema: Schema | None = None
    _fitted: Fitted | None = None
    _state: State = None
    _training: Training | None = None

    @property
    def schema(self) -> Schema:
        """Which column is what; known once fitted."""
        if self._schema is None:
            raise self._unfitted()
        return self._schema

    @property
    def fitted(self) -> Fitted:
        """What every model keeps of its fit."""
        if self._fitted is None:
            raise self._unfitted()
        return self._fitted

    @property
    def state(self) -> State:
        """What the method itself has learned."""
        if self._fitted is None:
            raise self._unfitted()
        return self._state

    @property
    def training(self) -> Training:
        """What the fit has seen; known to the object that was fitted, and not saved."""
        if self._training is None:
            raise UsageError(f"What this {self.name} was fitted on is not kept with a saved model.")
        return self._training

    @property
    def prevalence(self) -> np.ndarray:
        """The share of positives of each objective at the fit, (M,)."""
        return self.fitted.prevalence

    @property
    def fuser(self) -> Fuser:
        """The model as a function of arrays."""
        return Fuser(self.name, self.schema, self.traits, self.fitted, self._state, self._optimises)

    @property
    def _optimises(self) -> str:
        asked = str(getattr(self.config, "optimise", "all"))
        if not hasattr(self._state, "request_weights"):
            return "all" if asked == "auto" else asked
        return "all" if self._state.request_weights is None else "requests"

    def __dir__(self) -> list[str]:
        """What a user calls; other rooms know the parts of a model too."""
        return sorted(set(super().__dir__()) - _PARTS)

    def fit(
        self,
        train: Source | LogBlocks,
        schema: Schema | Mapping[str, Any],
        *,
        valid: Source | LogBlocks | None = None,
        seed: int = 0,
        device: str = "cpu",
        on_event: Callable[[Any], None] | None = None,
        checkpoint: str | Path | None = None,
        memory: str | None = None,
        engine: Engine | None = None,
    ) -> Self:
        """Learn to fuse.

        Args:
            train: A path, a list of paths, or a polars, pandas or pyarrow table.
            schema: Which column is what; a dict of its parts will do.
            valid: Rows for early stopping and selection; a tenth of the training requests if left
                out, where the method needs some.
            seed: Decides everything that is drawn.
            device: Where a network is trained.
            on_event: Called with every event of the fit.
            checkpoint: A file that keeps the state of a long fit; if it exists, the fit goes on.
            memory: How much a table may take, such as '3GB'; half of what is free if left out.
                A larger parquet table is read in blocks.
            engine: Whose workers add up blocks and try formulas (`open_engine`); this process if
                left out.
        """
        require_polars_threads("A fit")
        schema = Schema.of(schema)
        self._require_kinds(schema)
        run = FitRun(
            checked_seed(seed),
            checked_device(device),
            checked_listener(on_event),
            None if checkpoint is None else checked_path("checkpoint", checkpoint),
            rows_within(schema, memory_limit(memory)),
        )
        blocks = log_blocks(train, schema, memory)
        selection = None
        if valid is not None and self.traits.validates:
            selection = log_blocks(valid, schema, memory)
        with using(engine):
            self._schema, self._fitted, self._state, self._training = learned(
                self.config, blocks, selection, run
            )
        return self

    def score(
        self, table: Source, *, weights: Named | None = None, value: Named | None = None
    ) -> np.ndarray:
        """Return the fused score of each row, in order; higher is shown first.

        A row's score depends on the row and the model alone. A table without rows has no scores.

        Args:
            table: A path or table; labels are not needed.
            weights: Other objective weights, for methods that can change them after the fit.
            value: What an event of each objective is worth, in place of weights, for methods with
                probabilities p_m: the score is then the expected value Σ_m v_m p_m.
        """
        fuser, log = self.fuser, self._to_score(table)
        asked = fuser.asked(weights, value)
        if not log.rows:
            return np.empty(0)
        return fuser.score(log.scores, self.fitted.codes(log), asked)

    def score_request(
        self,
        scores: ArrayLike,
        context: Mapping[str, Any] | None = None,
        *,
        weights: Named | None = None,
        value: Named | None = None,
    ) -> np.ndarray:
        """Return the fused score of each candidate of one request, as `score` of a table would.

        For a service: no table is made.

        Args:
            scores: (candidates, objectives), in the order of the schema's objectives and on its
                scales; NaN or None where one is missing.
            context: The value of each context column, which all candidates share; a time where
                the schema asks for its hour or weekday.
            weights: As for `score`.
            value: As for `score`.
        """
        candidates = checked_candidates(scores, self.schema)
        shared = checked_context(context, self.schema.context)
        codes, fuser = self.fitted.encoder.encode_values(shared)[None], self.fuser
        return fuser.score(candidates, codes, fuser.asked(weights, value))

    def rank(
        self,
        table: Source,
        k: int = 10,
        *,
        request: str | None = None,
        weights: Named | None = None,
        value: Named | None = None,
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
        weights: Named | None = None,
        value: Named | None = None,
        k: int = 10,
    ) -> Quality:
        """Measure how well the fused score, which `score` gives, ranks a table that has labels.

        Where events have values, here or in the schema, so has the first k of every request. Where
        the schema names a position, feedback counts as if every place had been looked at.
        """
        log = evaluation_log(table, self.schema)
        fused = self.score(log, weights=weights, value=value)
        return measured(self, fused, log, weights, value, k=k)

    def probabilities(self, table: Source) -> np.ndarray:
        """Return the calibrated probability of each objective, (rows, objectives).

        Of a conditional objective it is the one given what it is given; of a graded objective the
        expected label, in its own units.
        """
        self.fuser.require_probabilities()
        log = self._to_score(table)
        if not log.rows:
            return np.empty((0, len(self.schema.names)))
        fuser = self.fuser
        return fuser.amounts(fuser.heads(log.scores, self.fitted.codes(log)))

    def contributions(
        self, table: Source, *, weights: Named | None = None, value: Named | None = None
    ) -> np.ndarray:
        """Return what each objective adds to the fused score of each row, (rows, objectives).

        w_m p_m/(π_m(1−π_m)), or v_m p_m with values. A row adds up to its score exactly: the sum,
        rounded once (`math.fsum`), is the score to the last bit. Where a cost takes most of it
        away again, a score has finer digits than its parts, whose last digit then is the limit.
        Parts of an aligned model add up to the score before it is mapped.
        """
        self.fuser.require_probabilities()
        log, asked = self._to_score(table), self.fuser.asked(weights, value)
        if not log.rows:
            return np.empty((0, len(self.schema.names)))
        return self.fuser.contributions(log.scores, self.fitted.codes(log), asked)

    @property
    def effective_weights(self) -> dict[str, float]:
        """What a unit of probability counts per objective, as shares of 1.

        w/(π(1−π)); the mean of w κ over events where the fit is for requests.
        """
        return self.fuser.effective(self.fuser.weights())

    def explain(
        self, weights: Named | None = None, value: Named | None = None
    ) -> dict[str, dict[str, float]]:
        """Return facts of each objective: weights, and what the method makes of its score."""
        counted = self.fuser.weights(weights, value)
        worth = self.schema.values_with(value) if weights is None else None
        facts: dict[str, np.ndarray] = {} if worth is None else {"value": worth}
        facts |= {"weight": counted.counted, "prevalence": self.prevalence}
        learned: dict[str, np.ndarray] = self.state.facts() if hasattr(self.state, "facts") else {}

        def named(values: np.ndarray) -> dict[str, float]:
            return dict(zip(self.schema.names, np.asarray(values).tolist(), strict=True))

        known = {name: named(values) for name, values in facts.items()}
        known["effective_weight"] = self.fuser.effective(counted)
        return {**known, **{name: named(values) for name, values in learned.items()}}

    @property
    def points(self) -> dict[str, dict[str, float]]:
        """The operating points kept with the model: the weight of every objective, by name."""
        return {name: dict(weights) for name, weights in self.fitted.points.items()}

    def with_point(self, name: str, weights: Named) -> Self:
        """Return this model with a named operating point, in place of one of that name.

        Args:
            name: What `at`, `--at` and a service call it.
            weights: Of objectives; one that is not named has its weight of the fit.
        """
        self.fuser.require_probabilities("change its weights")
        name, whole = checked_point(self.schema, name, weights)
        return changed(self, fitted=self.fitted.with_points({**self.points, name: whole}))

    def at(self, point: str) -> Self:
        """Return this model with the weights of an operating point in place of those of its fit."""
        return self.reweighted(point_of(self.fitted.points, point))

    def reweighted(self, weights: Named) -> Self:
        """Return this model with other weights in place of those of its fit; others stay."""
        self.fuser.require_probabilities("change its weights")
        vector = self.schema.weights_with(weights)
        whole = dict(zip(self.schema.names, vector.tolist(), strict=True))
        return changed(self, schema=replace(self.schema, weights=whole, value={}))

    def valued(self, value: Named) -> Self:
        """Return this model ranking by what events are worth; others are as in the schema."""
        self.fuser.weights(None, value)  # refuses what cannot be
        worth = {**self.schema.value, **value}
        return changed(self, schema=replace(self.schema, weights={}, value=worth))

    def strict(self) -> Self:
        """Return this model as one that refuses rows with missing scores."""
        return changed(self, schema=replace(self.schema, missing="error"))

    @property
    def is_aligned(self) -> bool:
        """Whether scores with the present weights are mapped."""
        return self.fitted.map_of(self.fuser.weights().counted) is not None

    def aligned(self, running: "Method | ArrayLike", table: Source) -> Self:
        """Return this model with scores distributed like those of another; it ranks as before.

        Only scores with the weights that it has now change. The map is kept with the model.

        Args:
            running: A fitted model, at the weights that it runs with, or its score of each row.
            table: Rows as they come, at least 1,000 that count; labels are not needed.
        """
        plain = self.unaligned()
        log = read_log(table, self.schema, labels=False, sample_weight=True)
        own = plain.score(log)
        if isinstance(running, Method):
            theirs = running.score(log if running.schema == self.schema else table)
        else:
            theirs = np.asarray(running, dtype=np.float64)
        if theirs.shape != own.shape:
            raise DataError(
                f"`running` must have one score for each of {len(own):,} rows. Got {theirs.shape}."
            )
        counts = np.ones(len(own), bool) if log.sample_weight is None else log.sample_weight > 0
        curve = ScoreMap.between(own[counts], theirs[counts])
        maps = (*plain.fitted.maps, AlignedMap(self.fuser.weights().counted, curve))
        return changed(self, fitted=replace(self.fitted, maps=maps))

    def unaligned(self) -> Self:
        """Return this model with scores as its method makes them, at the weights that it has."""
        return changed(self, fitted=self.fitted.without_map(self.fuser.weights().counted))

    def drift(self, table: Source) -> Drift:
        """Report how far each score column has moved since the fit, given the context.

        The report also says whether an upstream model was replaced, and by what evidence. Labels
        are not needed. After a recalibration, drift counts from there.
        """
        log = read_log(table, self.schema, labels=False, sample_weight=True)
        return drift_of(self.fitted.reference, self.fitted.encoder, log)

    def recalibrated(self, table: Source, *, scores: Changed = "proven") -> Self:
        """Return a new model for upstream scores that have changed; labels are not needed.

        The table holds recent rows with the new scores, at least 1,000 that count; all of them are
        read, so of a long log give the newest rows.

        Args:
            table: The rows. If all labels are known, they tell whether scores or chances moved.
            scores: Which scores are recalibrated: those whose upstream models are 'proven' to be
                others and no more, 'all', or the columns that you know to be of new models; or how
                far each is, as `corrections` says.
        """
        log = recent_rows(table, self.schema)
        share = self._shares(log, scores)
        return self._recalibrated(log, share) if share.any() else copy(self)

    def corrections(self, table: Source, *, scores: Changed = "proven") -> dict[str, float]:
        """Return how far `recalibrated` changes each score column, from 0 to 1."""
        shares = self._shares(recent_rows(table, self.schema), scores)
        return dict(zip(self.schema.score_columns, shares.tolist(), strict=True))

    def _shares(self, log: Log, changed: Changed) -> np.ndarray:
        named = named_shares(changed, self.schema.score_columns)
        if named is not None:
            return named
        drift = drift_of(self.fitted.reference, self.fitted.encoder, log)
        some = log.sampled(EVIDENCE_ROWS)

        def chances(share: np.ndarray, m: int) -> np.ndarray:
            return self._recalibrated(some, share).probabilities(some)[:, m]

        return proven_shares(some, drift, chances if self.traits.probabilities else None)

    def _recalibrated(self, log: Log, share: np.ndarray) -> Self:
        state, own = self.state, hasattr(self.state, "recalibrated")
        if own:
            codes = self.fitted.codes(log)
            state = state.recalibrated(log.scores, codes, log.sample_weight, share)
        fitted = self.fitted.moved_to(log, share, matched=not own)
        return changed(self, fitted=fitted, state=state)

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the model as a folder that `harmonrank.load` reads."""
        from harmonrank.fusion.saved import save

        save(self, path, overwrite=overwrite)

    def _to_score(self, table: Source) -> Log:
        """Read rows to score, of which there may be none."""
        return read_log(table, self.schema, labels=False, empty=True)

    def _require_kinds(self, schema: Schema) -> None:
        """Refuse objectives that it cannot learn, and values where it has no probabilities."""
        for name in schema.names:
            graded, given = name in schema.graded, schema.given.get(name)
            able = self.traits.kinds
            if (graded and "graded" not in able) or (given and "given" not in able):
                what = "that are graded" if graded else f"that are shown only given '{given}'"
                raise UsageError(
                    f"{self.name} cannot learn objectives {what}, such as '{name}'; leave it out, "
                    "or use a method such as harmonrank."
                )
        if schema.value:
            require_probabilities(self.name, self.traits, "rank by value")


def changed(
    model: M, *, schema: Schema | None = None, fitted: Fitted | None = None, state: State = None
) -> M:
    """Return a model with other parts, as of a stream; those that are left out stay.

    Args:
        model: It need not be fitted, if all parts are given.
        schema: Another schema of the same columns.
        fitted: What every model keeps.
        state: What the method itself has learned.
    """
    other = copy(model)
    other._schema = model._schema if schema is None else schema
    other._fitted = model._fitted if fitted is None else fitted
    other._state = model._state if state is None else state
    return other


def measured(
    model: Method,
    fused: np.ndarray,
    log: Log,
    weights: Named | None = None,
    value: Named | None = None,
    *,
    k: int = 10,
) -> Quality:
    """Return the quality of a model's fused scores, made with these weights or values."""
    schema, fuser = model.schema, model.fuser
    counts = schema.weights_with(weights)
    quality = quality_of(fused, log, counts, model.prevalence)
    if fuser.optimises != "all":
        effective = fuser.effective(Weights(counts))
        quality = replace(quality, effective_weights=effective, optimises=fuser.optimises)
    worth = schema.values_with(value)
    if worth is None:
        return quality
    return replace(
        quality,
        effective_weights=fuser.effective(fuser.weights(weights, value)),
        value=value_of(fused, log, worth, k, ranked=weights is None),
    )


def with_points_of(model: M, other: Method) -> M:
    """Return a model with the operating points of one of the same objectives as well.

    Its own points win. A method that can have none, or has other objectives, stays as it is.
    """
    if not model.traits.probabilities or model.schema.names != other.schema.names:
        return model
    return changed(model, fitted=model.fitted.with_points({**other.points, **model.points}))
