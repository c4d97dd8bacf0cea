"""HarmonRank: denoise the scores by their own law, calibrate heads by evidence, add them up."""

__all__ = ["HarmonRank", "HarmonRankConfig"]

from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np

from harmonrank.data import ContextEncoder, Log, Source, read_log
from harmonrank.data.arrays import Array
from harmonrank.errors import DataError
from harmonrank.methods.base import Fit, FitStep
from harmonrank.methods.probability import ProbabilityMethod
from harmonrank.methods.shift import Shift, replaced
from harmonrank.methods.state import ContextState
from harmonrank.methods.usual import Usual, alike
from harmonrank.model.coordinate import Coordinate, coordinate_arrays, logit_of
from harmonrank.model.heads import Heads, head_arrays
from harmonrank.model.heads_score import HeadScorer
from harmonrank.model.law import Law, fit_law, law_arrays

# Rarer context values share the slot of the unknown: they would cost more than they tell.
_MOST_VALUES = 100
_FEWEST_RECENT = 1000
# A smaller table is scored as it is: to look at it would cost more than to score it.
_FEWEST_FOLLOWED = 20_000
_USUAL_ROWS, _SHIFT_ROWS, _FOLLOWED_ROWS = 65_536, 8_192, 200_000
_BLOCKS = 8
_FREQUENT = 0.05
_MOST_WIDTHS = 6.0  # Further away are broken scores.
_SAME = 1e-6
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
    follows = True
    Config = HarmonRankConfig
    State = ContextState

    encoder: ContextEncoder
    _heads: Heads
    _scorer: HeadScorer
    _usual: Usual

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
        self._usual = self._measured(log, 0.0)

    def _measured(self, log: Log, constant: np.ndarray | float) -> Usual:
        """Return where the deviations are; those of a constant score have the width given."""
        some = _some(log, _USUAL_ROWS)
        usual, alive = Usual.of(self._deviations(some)), Usual.of(some.scores).width > 0
        return Usual(np.where(alive, usual.middle, 0.0), np.where(alive, usual.width, constant))

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

    def _deviations(self, log: Log) -> np.ndarray:
        return self._heads.deviations(logit_of(log.scores), self.encoder.encode(log.context))

    def shifts(self, table: Source) -> list[Shift]:
        """Return how far each score column has moved since the fit, given the context.

        A large table is looked at through some of its rows.
        """
        log = table if isinstance(table, Log) else read_log(table, self.schema, labels=False)
        some = _some(log, _SHIFT_ROWS)
        offset, scale = self._usual.moves(self._deviations(some))
        # One value has no scale, though its deviations from the contexts' means have; and it is
        # nothing new if it is where the model was recalibrated to.
        died = (Usual.of(some.scores).width == 0) & (self._usual.width > 0)
        scale = np.where(died, np.where(np.abs(offset) < _SAME, 1.0, 0.0), scale)
        moves = zip(offset.tolist(), scale.tolist(), strict=True)
        columns = zip(self.schema.score_columns, moves, strict=True)
        return [Shift(name, some.rows, *move) for name, move in columns]

    def follow(self, table: Source) -> tuple[Self, list[Shift]]:
        """Return the model for a table, and the scores that it reads on a new scale there.

        It is recalibrated on the table if some scores moved as if their upstream models were
        replaced: while all others, correlated ones among them, stand still (`replaced`), and
        in every frequent context and from the first row to the last (`alike`). Otherwise, and
        if there are fewer than 20,000 rows, it is the model itself.
        """
        log = table if isinstance(table, Log) else read_log(table, self.schema, labels=False)
        if log.rows < _FEWEST_FOLLOWED:
            return self, []
        shifts = self.shifts(log)
        found = replaced(shifts, self._heads.law.correlation)
        if not found:
            return self, []
        some = _some(log, _FOLLOWED_ROWS)
        columns = [shifts.index(shift) for shift in found]
        if not alike(self._usual, self._deviations(some), columns, self._parts(some)):
            return self, []
        return self._recalibrated(some), found

    def _parts(self, log: Log) -> Iterator[np.ndarray]:
        """Yield the rows of consecutive blocks, then of each frequent context value."""
        yield from np.array_split(np.arange(log.rows), _BLOCKS)
        for codes in self.encoder.encode(log.context).T:
            for code in np.flatnonzero(np.bincount(codes) >= _FREQUENT * log.rows):
                yield np.flatnonzero(codes == code)

    def recalibrate(self, table: Source) -> Self:
        """Return the model for upstream scores that have changed; labels are not needed.

        The table holds recent rows with the new scores. Their scale and offset per context and
        their noise are measured again from the scores alone, and the heads stay as they are.
        """
        log = table if isinstance(table, Log) else read_log(table, self.schema, labels=False)
        self._check_recent(logit_of(log.scores))
        return self._recalibrated(log)

    def _recalibrated(self, log: Log) -> Self:
        logits, heads = logit_of(log.scores), self._heads
        coordinate = heads.coordinate.refitted(logits)
        places = coordinate(logits)
        usual = Usual.of(places)
        reach = _MOST_WIDTHS * usual.width
        np.clip(places, usual.middle - reach, usual.middle + reach, out=places)
        now = fit_law(places, self.encoder.encode(log.context), heads.slots)
        changed = copy(self)
        law = heads.law.recalibrated(now, log.rows)
        changed._use(replace(heads, coordinate=coordinate, law=law))
        changed._usual = changed._measured(log, self._usual.width)
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
        arrays |= {"usual/middle": self._usual.middle, "usual/width": self._usual.width}
        return {"context": self.encoder.to_list()}, arrays

    def _declare(self, state: ContextState) -> dict[str, Array]:
        M, slots = len(self.schema.names), state.encoder(self.schema).slots
        declared = {f"law/{name}": array for name, array in law_arrays(M, slots).items()}
        declared |= {f"coordinate/{n}": array for n, array in coordinate_arrays(M).items()}
        declared |= head_arrays(M, slots)
        return declared | {"usual/middle": Array((M,)), "usual/width": Array((M,), low=0.0)}

    def _restore(self, state: ContextState, arrays: dict[str, np.ndarray]) -> None:
        self.encoder = state.encoder(self.schema)
        law = Law(**{name: arrays[f"law/{name}"] for name in _LAW})
        coordinate = Coordinate(**{name: arrays[f"coordinate/{name}"] for name in _COORDINATE})
        rest = (arrays[name] for name in ("theta", "precision", "shared"))
        self._use(Heads(coordinate, law, self.encoder.slots, *rest))
        self._usual = Usual(arrays["usual/middle"], arrays["usual/width"])


def _some(log: Log, most: int) -> Log:
    """Return rows drawn at random, in their order; the log itself if there are no more."""
    return log if log.rows <= most else log.take(log.drawn(most))
