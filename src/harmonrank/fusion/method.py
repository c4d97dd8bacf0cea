"""Method: a way to fuse with all that stands around it."""

__all__ = ["Method"]

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from harmonrank.data import ContextEncoder, Log, Schema, Source, read_log
from harmonrank.data.reading.forks import require_polars_threads
from harmonrank.data.rows.log_blocks import LogBlocks, log_blocks
from harmonrank.data.rows.memory import memory_limit
from harmonrank.data.values import either
from harmonrank.fusion.drift.drift import Drift
from harmonrank.fusion.drift.drift_measurement import drift_of
from harmonrank.fusion.drift.recalibration import Recalibration, recent_rows
from harmonrank.fusion.drift.reference import Reference
from harmonrank.fusion.estimator import Estimator
from harmonrank.fusion.fitted import Fitted
from harmonrank.fusion.fitting.fit import Run, Training, evaluation_log, learned, rows_within
from harmonrank.fusion.fuser import Fuser
from harmonrank.fusion.points import checked_point, point_of
from harmonrank.fusion.protocol import State
from harmonrank.fusion.quality.quality import Quality, quality_of
from harmonrank.fusion.quality.value_quality import value_of
from harmonrank.fusion.request import checked_candidates, checked_context
from harmonrank.fusion.score_map import AlignedMap, ScoreMap
from harmonrank.fusion.scoring.top_rows import top_rows
from harmonrank.fusion.weights import Weights
from harmonrank.support.errors import DataError, UsageError
from harmonrank.support.options import (
    checked_device,
    checked_listener,
    checked_path,
    checked_seed,
)

Named = Mapping[str, float]
"""Numbers by the name of an objective."""


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
    def encoder(self) -> ContextEncoder:
        """The context columns and their values, as far as the fit saw them."""
        return self.fitted.encoder

    @property
    def prevalence(self) -> np.ndarray:
        """The share of positives of each objective at the fit, (M,)."""
        return self.fitted.prevalence

    @property
    def reference(self) -> Reference:
        """What the scores looked like at the fit, or at the last recalibration."""
        return self.fitted.reference

    @property
    def recalibration(self) -> Recalibration | None:
        """What is done to scores before the method sees them, if it was recalibrated that way."""
        kept = self.fitted
        return None if kept.learned is None else Recalibration(kept.learned, kept.reference)

    @property
    def gives_probabilities(self) -> bool:
        """Whether it knows each objective's probability, so that weights can change."""
        return self.traits.probabilities

    @property
    def optimises(self) -> str:
        """Which AUC the fit is for: over "all" rows, or within "requests"."""
        return str(getattr(self.config, "optimise", "all"))

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
        """
        require_polars_threads("A fit")
        schema = Schema.of(schema)
        self._require_kinds(schema)
        run = Run(
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
        self._schema, self._fitted, self._state, self._training = learned(
            self.config, blocks, selection, run
        )
        return self

    @classmethod
    def assembled(
        cls, schema: Schema, fitted: Fitted, state: State, options: Mapping[str, Any] | None = None
    ) -> Self:
        """Return a fitted model of parts that were learned elsewhere, from a stream say."""
        model = cls(**(options or {}))
        model._schema, model._fitted, model._state = schema, fitted, state
        return model

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
        asked, log = self._asked(weights, value), self._to_score(table)
        if not log.rows:
            return np.empty(0)
        return self._fuser().score(log.scores, self.fitted.codes(log), asked)

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
        codes = self.fitted.encoder.encode_values(shared)[None]
        return self._fuser().score(candidates, codes, self._asked(weights, value))

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
        return self.measured(fused, log, weights, value, k=k)

    def measured(
        self,
        fused: np.ndarray,
        log: Log,
        weights: Named | None = None,
        value: Named | None = None,
        *,
        k: int = 10,
    ) -> Quality:
        """Return the quality of fused scores that were made with these weights or values."""
        counts = self.schema.weights_with(weights)
        quality = quality_of(fused, log, counts, self.prevalence)
        if self.optimises != "all":
            effective = self.effective(Weights(counts))
            quality = replace(quality, effective_weights=effective, optimises=self.optimises)
        worth = self.schema.values_with(value)
        if worth is None:
            return quality
        return replace(
            quality,
            effective_weights=self.effective(self.weights(weights, value)),
            value=value_of(fused, log, worth, k, ranked=weights is None),
        )

    def probabilities(self, table: Source) -> np.ndarray:
        """Return the calibrated probability of each objective, (rows, objectives).

        Of a conditional objective it is the one given what it is given; of a graded objective the
        expected label, in its own units.
        """
        self._require_probabilities()
        log = self._to_score(table)
        if not log.rows:
            return np.empty((0, len(self.schema.names)))
        fuser = self._fuser()
        return fuser.amounts(fuser.heads(log.scores, self.fitted.codes(log)))

    def parts(self, p: np.ndarray, weights: Weights) -> np.ndarray:
        """Return what each objective adds to the score of rows with these probabilities, (rows, M).

        Args:
            p: (rows, M), of `probabilities`.
            weights: Of `weights`.
        """
        kinds = self.fitted.kinds
        return self._fuser().parts(p if kinds is None else kinds.heads(self.schema, p), weights)

    def gains(self, table: Source, weights: np.ndarray) -> np.ndarray:
        """Return what a unit of weight adds to each row, (rows, M): Σ_m w_m gains_m is the score.

        p_m/(π_m(1−π_m)) of plain events. Whether a conditional objective is alone decides about
        its gains, so that they depend on which weights are 0.
        """
        log, fuser = self._to_score(table), self._fuser()
        return fuser.gains(fuser.heads(log.scores, self.fitted.codes(log)), weights)

    def contributions(
        self, table: Source, *, weights: Named | None = None, value: Named | None = None
    ) -> np.ndarray:
        """Return what each objective adds to the fused score of each row, (rows, objectives).

        w_m p_m/(π_m(1−π_m)), or v_m p_m with values. A row adds up to its score exactly: the sum,
        rounded once (`math.fsum`), is the score to the last bit. Where a cost takes most of it
        away again, a score has finer digits than its parts, whose last digit then is the limit.
        Parts of an aligned model add up to the score before it is mapped.
        """
        self._require_probabilities()
        log, asked = self._to_score(table), self._asked(weights, value)
        if not log.rows:
            return np.empty((0, len(self.schema.names)))
        return self._fuser().contributions(log.scores, self.fitted.codes(log), asked)

    def weights(self, weights: Named | None = None, value: Named | None = None) -> Weights:
        """Return what each objective counts; as in the schema where nothing is given."""
        either(weights, value)
        worth = self.schema.values_with(value) if weights is None else None
        if worth is None:
            return Weights(self.schema.weights_with(weights))
        self._require_probabilities("rank by value")
        pi = self.prevalence
        return Weights(worth * pi * (1 - pi), by_value=True)

    def objective_weights(
        self, weights: Named | None = None, value: Named | None = None
    ) -> np.ndarray:
        """Return w_m, what each objective's AUC counts, (M,)."""
        return self.weights(weights, value).counted

    @property
    def effective_weights(self) -> dict[str, float]:
        """What a unit of probability counts: w/(π(1−π)) per objective, as shares of 1."""
        return self.effective(self.weights())

    def effective(self, weights: Weights) -> dict[str, float]:
        """Return the same of other weights."""
        counted = self._fuser().per_unit(weights)
        shares = counted / np.abs(counted).sum()
        return dict(zip(self.schema.names, shares.tolist(), strict=True))

    def explain(
        self, weights: Named | None = None, value: Named | None = None
    ) -> dict[str, dict[str, float]]:
        """Return facts of each objective: weights, and what the method makes of its score."""
        counted = self.weights(weights, value)
        worth = self.schema.values_with(value) if weights is None else None
        facts: dict[str, np.ndarray] = {} if worth is None else {"value": worth}
        facts |= {"weight": counted.counted, "prevalence": self.prevalence}
        learned: dict[str, np.ndarray] = self.state.facts() if hasattr(self.state, "facts") else {}

        def named(values: np.ndarray) -> dict[str, float]:
            return dict(zip(self.schema.names, np.asarray(values).tolist(), strict=True))

        found = {name: named(values) for name, values in facts.items()}
        found["effective_weight"] = self.effective(counted)
        return {**found, **{name: named(values) for name, values in learned.items()}}

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
        self._require_probabilities("change its weights")
        name, whole = checked_point(self.schema, name, weights)
        return self._with(self.fitted.with_points({**self.points, name: whole}))

    def with_points_of(self, other: "Method") -> Self:
        """Return this model with the operating points of one of the same objectives as well.

        Its own points win. A method that has none, or other objectives, stays as it is.
        """
        if not self.gives_probabilities or self.schema.names != other.schema.names:
            return self
        return self._with(self.fitted.with_points({**other.points, **self.points}))

    def at(self, point: str) -> Self:
        """Return this model with the weights of an operating point in place of those of its fit."""
        return self.reweighted(point_of(self.fitted.points, point))

    def reweighted(self, weights: Named) -> Self:
        """Return this model with other weights in place of those of its fit; others stay."""
        self._require_probabilities("change its weights")
        vector = self.schema.weights_with(weights)
        whole = dict(zip(self.schema.names, vector.tolist(), strict=True))
        return self._under(replace(self.schema, weights=whole, value={}))

    def strict(self) -> Self:
        """Return this model as one that refuses rows with missing scores."""
        return self.allowing("error")

    def allowing(self, missing: Literal["allow", "error"]) -> Self:
        """Return this model as one that allows missing scores or refuses them ('error')."""
        return self._under(replace(self.schema, missing=missing))

    @property
    def is_aligned(self) -> bool:
        """Whether scores with the present weights are mapped."""
        return self.fitted.map_of(self.objective_weights()) is not None

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
        maps = (*plain.fitted.maps, AlignedMap(self.objective_weights(), curve))
        return self._with(replace(self.fitted, maps=maps))

    def unaligned(self) -> Self:
        """Return this model with scores as its method makes them, at the weights that it has."""
        return self._with(self.fitted.without_map(self.objective_weights()))

    def with_maps_of(self, other: "Method") -> Self:
        """Return this model with the maps of itself at other weights, which `at` gives."""
        return self._with(replace(self.fitted, maps=other.fitted.maps))

    def drift(self, table: Source) -> Drift:
        """Report how far each score column has moved since the fit, given the context.

        The report also says whether an upstream model was replaced, and by what evidence. Labels
        are not needed. After a recalibration, drift counts from there.
        """
        log = read_log(table, self.schema, labels=False, sample_weight=True)
        return drift_of(self.reference, self.encoder, log)

    def recalibrated(self, table: Source) -> Self:
        """Return a new model for upstream scores that have changed; labels are not needed.

        The table holds recent rows with the new scores, at least 1,000 that count; all of them are
        read, so of a long log give the newest rows.
        """
        log, state = recent_rows(table, self.schema), self.state
        own = hasattr(state, "recalibrated")
        changed = self._with(self.fitted.moved_to(log, matched=not own))
        if own:
            codes = self.fitted.codes(log)
            changed._state = state.recalibrated(log.scores, codes, log.sample_weight)
        return changed

    def with_reference_of(self, table: Source) -> Self:
        """Return the same model, of which drift counts from these rows.

        For a model that goes on learning: what it has learned is no drift any more. If it was
        recalibrated, scores still come to where it learned them, by the moments of these rows.
        """
        log = read_log(table, self.schema, labels=False, sample_weight=True).counted()
        fitted, now = self.fitted, self.fitted.reference_of(log)
        learned = None
        if self.recalibration is not None:
            scores = self.recalibration.scores(log.scores, fitted.codes(log))
            learned = fitted.reference_of(log.with_scores(scores))
        return self._with(replace(fitted, reference=now, learned=learned))

    def with_scores_of_now(self, log: Log, before: Self) -> Log:
        """Return older rows with the scores that the upstream models would give them now.

        The opposite of a recalibration, which takes new scores back to those of the fit: rows from
        before a change of upstream models can be learned together with rows from after it.

        Args:
            log: Rows with scores of the upstream models that were there before.
            before: The model that this one was recalibrated from.
        """
        change = Recalibration(fit=self.reference, now=before.reference)
        return log.with_scores(change.scores(log.scores, self.fitted.codes(log)))

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the model as a folder that `harmonrank.load` reads."""
        from harmonrank.fusion.saved import save

        save(self, path, overwrite=overwrite)

    def _with(self, fitted: Fitted) -> Self:
        changed = copy(self)
        changed._fitted = fitted
        return changed

    def _under(self, schema: Schema) -> Self:
        changed = copy(self)
        changed._schema = schema
        return changed

    def _to_score(self, table: Source) -> Log:
        """Read rows to score, of which there may be none."""
        return read_log(table, self.schema, labels=False, empty=True)

    def _asked(self, weights: Named | None, value: Named | None) -> Weights:
        """Return the weights that a call asks for, or else those of the fit."""
        if weights is not None:
            self._require_probabilities("change its weights")
        return self.weights(weights, value)

    def _fuser(self) -> Fuser:
        return Fuser(self.schema, self.traits, self.fitted, self._state)

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
            self._require_probabilities("rank by value")

    def _require_probabilities(self, purpose: str = "give them") -> None:
        if not self.traits.probabilities:
            raise UsageError(
                f"{self.name} knows no probability of an objective, so it cannot {purpose} after "
                "the fit; use a method such as harmonrank."
            )
        if purpose == "rank by value" and self.optimises == "requests":
            raise UsageError(
                "A fit with optimise='requests' ranks by weights on AUC within requests; values "
                "per event have a best score of their own: fit with optimise='all' for them."
            )
