"""HarmonRank: denoise the scores by their own law, calibrate heads by evidence, add them up."""

__all__ = ["HarmonRank", "HarmonRankConfig"]

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np

from harmonrank.data import ContextEncoder, Log, Source, read_log
from harmonrank.errors import DataError
from harmonrank.methods.base import Fit, FitStep
from harmonrank.methods.probability import ProbabilityMethod
from harmonrank.methods.shift import Shift, replaced
from harmonrank.model.coordinate import Coordinate, logit_of
from harmonrank.model.heads import Heads
from harmonrank.model.heads_score import HeadScorer
from harmonrank.model.law import Law, fit_law

# Rarer context values share the slot of the unknown: they would cost more than they tell.
_MOST_VALUES = 100
_FEWEST_RECENT = 1000
_SHIFT_ROWS = 8_192
# A smaller table is scored as it is: to look at it would cost more than to score it.
_FEWEST_ADAPTED = 20_000
_ADAPTED_ROWS = 200_000
_LAW = [field.name for field in fields(Law)]
_COORDINATE = [field.name for field in fields(Coordinate)]


@dataclass(frozen=True)
class HarmonRankConfig:
    """The default has nothing to tune: the evidence chooses how far each part is shrunk."""


class HarmonRank(ProbabilityMethod):
    """The default method: s = Σ_m w_m p_m / (π_m(1−π_m)) with p_m from evidence-shrunk heads.

    Each head starts from a plain calibration of its own score and moves away from it, by what
    the other scores and the context say, only as far as the training labels prove. See
    `harmonrank.model.law` and `harmonrank.model.heads` for the maths.
    """

    name = "harmonrank"
    uses_valid = False
    Config = HarmonRankConfig

    encoder: ContextEncoder
    _heads: Heads
    _scorer: HeadScorer

    def _fit(self, fit: Fit) -> None:
        from harmonrank.model.heads_fit import fit_heads

        log = fit.train
        self.encoder = ContextEncoder.fit(log.context, _MOST_VALUES)
        self._use(
            fit_heads(
                logit_of(log.scores),
                self.encoder.encode(log.context),
                self.encoder.slots,
                log.known_labels(),
                log.sample_weight,
                on_step=lambda step, steps: fit.on_event(FitStep(step, steps)),
                overwrite=True,
            )
        )

    def _use(self, heads: Heads) -> None:
        self._heads, self._scorer = heads, HeadScorer(heads)

    def probabilities(self, log: Log) -> np.ndarray:
        """Return the calibrated probability of each objective, (rows, objectives)."""
        return self._scorer.probabilities(log.scores, self.encoder.encode(log.context))

    def _score_weighted(self, log: Log, weights: np.ndarray) -> np.ndarray:
        return self._fuse(log.scores, self.encoder.encode(log.context), weights)

    def _score_request(
        self, scores: np.ndarray, context: Mapping[str, Any], weights: np.ndarray | None
    ) -> np.ndarray:
        codes = np.tile(self.encoder.encode_values(context), (len(scores), 1))
        return self._fuse(scores, codes, self.schema.weight_vector if weights is None else weights)

    def _fuse(self, scores: np.ndarray, codes: np.ndarray, weights: np.ndarray) -> np.ndarray:
        effective = weights / (self.prevalence * (1 - self.prevalence))
        return self._scorer.fuse(scores, codes, effective)

    def shifts(self, table: Source) -> list[Shift]:
        """Return how far each score column has moved since the fit, given the context.

        A large table is looked at through some of its rows, evenly spread.
        """
        log = table if isinstance(table, Log) else read_log(table, self.schema, labels=False)
        some = _evenly(log, _SHIFT_ROWS)
        codes = self.encoder.encode(log.context[some])
        away = self._heads.deviations(logit_of(log.scores[some]), codes)
        rows = zip(self.schema.score_columns, away.mean(axis=0), away.std(axis=0), strict=True)
        return [Shift(name, len(away), float(mean), float(sd)) for name, mean, sd in rows]

    def replaced(self, table: Source) -> list[Shift]:
        """Return the scores whose upstream model was replaced since the fit, where that is proven.

        It is if some scores have moved while all others, correlated ones among them, stand still:
        other rows of the same models would have moved together. Fewer than 20,000 rows prove
        nothing.
        """
        log = table if isinstance(table, Log) else read_log(table, self.schema, labels=False)
        if log.rows < _FEWEST_ADAPTED:
            return []
        return replaced(self.shifts(log), self._heads.law.correlation)

    def adapted(self, table: Source) -> Self:
        """Return the model, recalibrated if the table proves that an upstream model was replaced.

        A service calls this now and then with what it has served; mostly it gets itself back.
        """
        log = table if isinstance(table, Log) else read_log(table, self.schema, labels=False)
        if not self.replaced(log):
            return self
        return self.recalibrate(log.take(np.arange(log.rows)[_evenly(log, _ADAPTED_ROWS)]))

    def recalibrate(self, table: Source) -> Self:
        """Return the model for upstream scores that have changed; labels are not needed.

        The table holds recent rows with the new scores. Their scale and offset per context and
        their noise are measured again from the scores alone, and the heads stay as they are.
        """
        log = table if isinstance(table, Log) else read_log(table, self.schema, labels=False)
        logits, heads = logit_of(log.scores), self._heads
        self._check_recent(logits)
        coordinate = heads.coordinate.refitted(logits)
        now = fit_law(coordinate(logits), self.encoder.encode(log.context), heads.slots)
        law = heads.law.recalibrated(now, log.rows)
        changed = copy(self)
        changed._use(replace(heads, coordinate=coordinate, law=law))
        return changed

    def _check_recent(self, logits: np.ndarray) -> None:
        if len(logits) < _FEWEST_RECENT:
            raise DataError(
                f"`recalibrate` needs at least {_FEWEST_RECENT:,} recent rows to tell a change "
                f"from chance. Got {len(logits):,}; wait for more."
            )
        for name, spread in zip(self.schema.score_columns, np.ptp(logits, axis=0), strict=True):
            if spread == 0:
                raise DataError(
                    f"Score column '{name}' has one value in all recent rows, so its scale cannot "
                    "be told; repair the upstream model."
                )

    def explain(self, weights: Mapping[str, float] | None = None) -> dict[str, dict[str, float]]:
        """Return facts of each objective, with the share of a score's variance taken for noise.

        `slope` is what a standard deviation of the score's logit adds to the head's logit.
        """
        names, heads = self.schema.names, self._heads
        return {
            **super().explain(weights),
            "noise_share": dict(zip(names, heads.noise_shares().tolist(), strict=True)),
            "slope": dict(zip(names, heads.theta[:, 1].tolist(), strict=True)),
        }

    def _state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        heads = self._heads
        arrays = {f"law/{name}": getattr(heads.law, name) for name in _LAW}
        arrays |= {f"coordinate/{name}": getattr(heads.coordinate, name) for name in _COORDINATE}
        arrays |= {name: getattr(heads, name) for name in ("theta", "precision", "shared")}
        return {"context": self.encoder.to_list()}, arrays

    def _restore(self, parts: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        self.encoder = ContextEncoder.from_list(parts["context"])
        law = Law(**{name: arrays[f"law/{name}"] for name in _LAW})
        coordinate = Coordinate(**{name: arrays[f"coordinate/{name}"] for name in _COORDINATE})
        rest = (arrays[name] for name in ("theta", "precision", "shared"))
        self._use(Heads(coordinate, law, self.encoder.slots, *rest))


def _evenly(log: Log, most: int) -> slice:
    """Return evenly spread rows, at most so many."""
    return slice(None, None, max(1, -(-log.rows // most)))
