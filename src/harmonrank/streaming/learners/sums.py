"""Sums: the default goes on from a fit by sums that fade (`harmonrank.model.running`).

While few rows have come it is fitted afresh on all of them, as in a batch. From `opening_rows` on
an hour costs its own rows, whatever came before.
"""

__all__ = ["Sums"]

from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from harmonrank.data import ContextEncoder, Log
from harmonrank.fusion import load
from harmonrank.fusion.harmonrank import MOST_VALUES, HarmonRank
from harmonrank.fusion.method import changed
from harmonrank.model.linear.heads import Heads, head_sizes
from harmonrank.model.running.running_heads import HALF_LIVES, RunningHeads
from harmonrank.streaming.config import LearnerSettings
from harmonrank.streaming.learners.learner import LearnerRecipe, looked_at
from harmonrank.streaming.state.commits import Commits
from harmonrank.support.errors import DataError
from harmonrank.support.logistic import score_logit
from harmonrank.support.storage.arrays import read_arrays
from harmonrank.support.storage.stored import declared, restored, stored

_MODEL, _ARRAYS = "model", "sums.safetensors"
_REFERENCE_ROWS = 20_000  # Fewer cannot tell what scores look like given their context.


@dataclass(frozen=True, eq=False)
class Sums:
    """The default hour by hour: its model, and the sums that it came of."""

    kind: ClassVar = "sums"
    model: HarmonRank
    running: RunningHeads

    @classmethod
    def begun(
        cls, model: HarmonRank, window: Log, settings: LearnerSettings, *, at: datetime, **_: Any
    ) -> Self | None:
        """Return the sums of a fit on all rows so far; None while they are few."""
        if window.rows < settings.opening_rows:
            return None
        log, half_life = _counted(window, model), settings.half_life
        one = None if half_life == "never" else half_life
        running = RunningHeads.of(
            model.state.heads,
            *_inputs(log, model.fitted.encoder),
            time=_hours(at),
            half_lives=HALF_LIVES if one == "auto" else (one,),
            reservoir_rows=settings.reservoir_rows,
        )
        return cls(model, running)

    def learned(self, rows: Log, *, seed: int, at: datetime) -> Self:  # noqa: ARG002
        """Return the sums after these labelled rows, and the model of them."""
        model, running, log = self.model, self.running, _counted(rows, self.model)
        encoder = model.fitted.encoder.grown(log.context, MOST_VALUES)
        if encoder.slots != model.fitted.encoder.slots:
            running = running.recoded(encoder.recoding(model.fitted.encoder), encoder.slots)
        running = running.learned(*_inputs(log, encoder), _hours(at))
        fitted = model.fitted.grown(encoder, running.prevalence)
        if log.rows >= _REFERENCE_ROWS:
            fitted = replace(fitted, reference=fitted.reference_of(log), learned=None)
        state = replace(model.state, heads=running.heads)
        newer = changed(model, fitted=fitted, state=state)
        return type(self)(newer, running)

    def recalibrated(self, rows: Log) -> Self:
        """Return the sums for upstream models that have changed."""
        log, model = rows.counted(), self.model.recalibrated(rows, scores="all")
        codes = log.codes(model.fitted.encoder)
        running = self.running.recalibrated(score_logit(log.scores), codes, log.sample_weight)
        return type(self)(model, running)

    def facts(self) -> dict[str, Any]:
        """Return how fast it forgets, and how many rows it keeps."""
        kept = len(self.running.reservoir.weight)
        return {"half_life_hours": self.running.half_life, "reservoir_rows": kept}

    @cached_property
    def _stored(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        return stored(self.running)

    def record(self) -> Any:
        """Return the numbers beside the arrays."""
        return self._stored[0]

    def parts(self) -> dict[str, Any]:
        """Return the model and the sums."""
        return {_MODEL: self.model, _ARRAYS: self._stored[1]}

    @classmethod
    def restored(cls, record: Any, recipe: LearnerRecipe, commits: Commits) -> Self:  # noqa: ARG003
        """Return the sums of a commit."""
        model = commits.read(_MODEL, load)
        if not isinstance(model, HarmonRank):
            raise DataError(f"The state must hold a model of harmonrank. Got {model.name}.")
        heads = model.state.heads
        return cls(model, commits.read(_ARRAYS, lambda path: _read_running(path, record, heads)))


def _read_running(path: Path, parts: Any, heads: Heads) -> RunningHeads:
    """Read what goes on from the model's heads."""
    sizes = head_sizes(len(heads.theta), heads.slots)
    running = restored(RunningHeads, parts, read_arrays(path, declared(RunningHeads, parts, sizes)))
    if running.fitted.slots != heads.slots:
        raise DataError("The sums of the state know other context values than its model.")
    running.check()
    return running


def _inputs(log: Log, encoder: ContextEncoder) -> tuple[Any, Any, Any, Any]:
    """Return coordinates, codes, labels and weights, as the heads learn from them."""
    labels, weight = log.known_labels(), log.sample_weight
    return score_logit(log.scores), log.codes(encoder), labels, weight


def _hours(at: datetime) -> float:
    return at.timestamp() / 3600


def _counted(rows: Log, model: HarmonRank) -> Log:
    """Return the rows that count, as if every place had been looked at."""
    return looked_at(rows, model).counted().with_unit_weights()
