"""Recalibrating: the part of a method that knows what its scores looked like at the fit."""

__all__ = ["Recalibrating"]

from abc import abstractmethod
from collections.abc import Mapping
from copy import copy
from typing import Any, ClassVar, Self

import numpy as np

from harmonrank.data import ContextEncoder, Log, Schema, Source, read_log
from harmonrank.fusion.drift.drift import Drift
from harmonrank.fusion.drift.drift_measurement import drift_of
from harmonrank.fusion.drift.imputation import imputed, imputed_log
from harmonrank.fusion.drift.recalibration import Recalibration, recent_rows
from harmonrank.fusion.drift.reference import Reference, reference_arrays
from harmonrank.fusion.estimator import Estimator
from harmonrank.fusion.state import ReferenceState
from harmonrank.support.storage.arrays import Array

# Where the arrays of the two references are in a saved model.
_FIT, _NOW = "reference", "recalibrated"


class Recalibrating(Estimator):
    """Reports drift and recalibrates: every method can do both, without labels."""

    takes_missing: ClassVar[bool] = False
    """Whether it fuses rows with missing scores itself; others are given imputed ones."""

    _reference: Reference | None = None
    _recalibration: Recalibration | None = None

    @property
    @abstractmethod
    def schema(self) -> Schema:
        """Which column is what."""

    @property
    def context_encoder(self) -> ContextEncoder:
        """The context columns and their values, as far as the fit saw them."""
        return self._known_reference().encoder

    @property
    def reference(self) -> Reference:
        """What the scores looked like at the fit, or at the last recalibration."""
        return self._known_reference()

    @property
    def recalibration(self) -> Recalibration | None:
        """What is done to scores before the method sees them, if it was recalibrated that way."""
        return self._recalibration

    def drift(self, table: Source) -> Drift:
        """Report how far each score column has moved since the fit, given the context.

        The report also says whether an upstream model was replaced, and by what evidence. Labels
        are not needed. After a recalibration, drift counts from there.
        """
        log = read_log(table, self.schema, labels=False, sample_weight=True)
        return drift_of(self._known_reference(), log)

    def recalibrated(self, table: Source) -> Self:
        """Return a new model for upstream scores that have changed; labels are not needed.

        The table holds recent rows with the new scores, at least 1,000 that count; all of them are
        read, so of a long log give the newest rows.
        """
        log, reference = recent_rows(table, self.schema), self._known_reference()
        changed = copy(self)
        changed._reference = reference.remeasured(log)
        changed._recalibrate(log, reference)
        return changed

    def with_scores_of_now(self, log: Log, before: Self) -> Log:
        """Return older rows with the scores that the upstream models would give them now.

        The opposite of a recalibration, which takes new scores back to those of the fit: rows from
        before a change of upstream models can be learned together with rows from after it.

        Args:
            log: Rows with scores of the upstream models that were there before.
            before: The model that this one was recalibrated from.
        """
        now, then = self._known_reference(), before._known_reference()
        return Recalibration(fit=now, now=then).log(log)

    def with_reference_of(self, table: Source) -> Self:
        """Return the same model, of which drift counts from these rows.

        For a model that goes on learning: what it has learned is no drift any more. If it was
        recalibrated, scores still come to where it learned them, by the moments of these rows.
        """
        log = read_log(table, self.schema, labels=False, sample_weight=True).counted()
        now, changed = Reference.of(log), copy(self)
        changed._reference = now
        if self._recalibration is not None:
            learned = Reference.of(self._recalibration.log(log), now.encoder)
            changed._recalibration = Recalibration(learned, now)
        return changed

    def _recalibrate(self, log: Log, before: Reference) -> None:  # noqa: ARG002
        """Adjust this copy to recent rows: match moments, unless a method knows better."""
        fit = before if self._recalibration is None else self._recalibration.fit
        self._recalibration = Recalibration(fit, self._known_reference())

    def _keep_reference(self, reference: Reference) -> None:
        """Keep what the scores of the fit look like."""
        self._reference, self._recalibration = reference, None

    def _known_reference(self) -> Reference:
        if self._reference is None:
            raise self._unfitted()
        return self._reference

    def _expected(self, log: Log) -> Log:
        """Return rows with the scores that the method learned to fuse."""
        log = log if self._recalibration is None else self._recalibration.log(log)
        return log if self.takes_missing else imputed_log(self._fit_reference(), log)

    def _fit_reference(self) -> Reference:
        """Return what the scores that the method learned to fuse looked like."""
        changed = self._recalibration
        return self._known_reference() if changed is None else changed.fit

    def _expected_request(self, scores: np.ndarray, context: Mapping[str, Any]) -> np.ndarray:
        """Return the scores of one request as the method learned to fuse them."""
        changed, missing = self._recalibration, not self.takes_missing and np.isnan(scores).any()
        if changed is None and not missing:
            return scores
        codes = np.tile(self.context_encoder.encode_values(context), (len(scores), 1))
        scores = scores if changed is None else changed.scores(scores, codes)
        return imputed(self._fit_reference(), scores, codes) if missing else scores

    def _reference_state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return what is kept of the scores, as JSON parts and arrays."""
        now, recalibration = self._known_reference(), self._recalibration
        parts = {"context": now.encoder.to_list(), "recalibrated": recalibration is not None}
        if recalibration is None:
            return parts, now.arrays(_FIT)
        return parts, recalibration.fit.arrays(_FIT) | now.arrays(_NOW)

    def _declare_reference(self, state: ReferenceState) -> dict[str, Array]:
        """Return what each array of `_reference_state` must be."""
        slots, M = sum(state.encoder(self.schema).slots), len(self.schema.names)
        declared = reference_arrays(_FIT, M, slots)
        return declared | reference_arrays(_NOW, M, slots) if state.recalibrated else declared

    def _restore_reference(self, state: ReferenceState, arrays: dict[str, np.ndarray]) -> None:
        """Take what `_reference_state` returned out of the arrays of a saved model."""
        encoder = state.encoder(self.schema)
        self._reference, self._recalibration = Reference.restored(encoder, _FIT, arrays), None
        if state.recalibrated:
            fit, self._reference = self._reference, Reference.restored(encoder, _NOW, arrays)
            self._recalibration = Recalibration(fit, self._reference)
