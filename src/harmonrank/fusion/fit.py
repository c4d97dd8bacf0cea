"""The fit of any method: checked rows, codes, a reference; then what the method makes of them."""

__all__ = ["FitRun", "Training", "evaluation_log", "learned", "rows_within"]

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from harmonrank.data import ContextEncoder, Log, Schema, Source, read_log
from harmonrank.data.hashing import RequestShare
from harmonrank.data.rows.blocks import Blocks, HeldBlocks
from harmonrank.data.rows.engine_blocks import with_workers
from harmonrank.data.rows.log_blocks import FileBlocks, LogBlocks
from harmonrank.fusion.drift.imputation import imputed
from harmonrank.fusion.drift.reference import Reference
from harmonrank.fusion.facts import TrainingFacts
from harmonrank.fusion.fitted import Fitted
from harmonrank.fusion.kinds import Kinds, LabelTargets, kinds_of
from harmonrank.fusion.position import corrected, corrected_blocks
from harmonrank.fusion.protocol import MethodLearner, State, TrainingRows
from harmonrank.fusion.quality.position_quality import PositionCorrection
from harmonrank.fusion.quality.upstream import MissingScores
from harmonrank.fusion.weights import fit_weights
from harmonrank.model.fit_rows import FitRows, drawn_requests
from harmonrank.support.errors import DataError, UsageError
from harmonrank.support.extras import needs_extras

VALID_SHARE = 0.1
"""The share of requests that is set aside where no validation rows are given."""

_SIDES: tuple[Literal["left", "right"], ...] = ("left", "right")
_SPLITS = 20  # Draws of the requests to set aside, until each part has what it needs.
_FEWEST_ROWS = 100_000
_BYTES = 48  # Per number: some methods keep a few copies.


@dataclass(frozen=True)
class FitRun:
    """How a fit is to run.

    Attributes:
        seed: Decides everything that is drawn.
        device: Where a network is trained.
        on_event: Called with every event of the fit.
        checkpoint: Where a fit that takes long keeps its state.
        most_rows: How many rows are drawn for a method that needs its rows in memory at once.
    """

    seed: int
    device: str
    on_event: Callable[[Any], None]
    checkpoint: Path | None
    most_rows: int


@dataclass(frozen=True)
class Training:
    """What a fit has seen.

    Attributes:
        rows: How many training rows count.
        fitted_rows: On how many of them the method was fitted: all, or as many as were drawn.
        blocks: In how many blocks they were read; 1 of a table in memory.
        valid_rows: How many validation rows there were; None if the fit looks at none.
        validated_rows: At how many of them the method has looked.
        aside: Whether these were set aside from the training rows.
        missing: How many scores are missing; None if nothing is.
        position: How feedback was corrected for places, where they are known.
    """

    rows: int
    fitted_rows: int
    blocks: int
    valid_rows: int | None
    validated_rows: int
    aside: bool
    missing: MissingScores | None
    position: PositionCorrection | None

    def sentences(self, method: str) -> list[str]:
        """Return what a person should know of it."""
        some = self.blocks > 1 or self.fitted_rows < self.rows
        told = [self.words(method)] if some else []
        told += [] if self.position is None else [self.position.words()]
        return told + ([] if self.missing is None else [f"Training rows. {self.missing}"])

    def words(self, method: str) -> str:
        """Return what was done, in a sentence or two."""
        if self.fitted_rows < self.rows:
            return (
                f"{method} was fitted on {self.fitted_rows:,} of {self.rows:,} rows, drawn at "
                "random, as it needs them in memory; prevalences are of all rows."
            )
        text = f"Read {self.rows:,} rows in blocks, of which one at a time is in memory."
        if self.valid_rows is None:
            return text
        some = f"{self.validated_rows:,} of " * (self.valid_rows > self.validated_rows)
        where = "others, set aside" if self.aside else "validation rows"
        return f"{text} It was validated on {some}{self.valid_rows:,} {where}."


def rows_within(schema: Schema, memory: int) -> int:
    """Return how many rows a method that needs them all at once is given, in so much memory.

    >>> rows_within(Schema({"buy": "p_buy"}), 3 << 30)
    33554432
    """
    columns = 2 * len(schema.names) + len(schema.context)
    return max(_FEWEST_ROWS, memory // (_BYTES * columns))


def evaluation_log(table: Source, schema: Schema) -> Log:
    """Read rows to measure a fitted model on, corrected for their places where they are known."""
    log = corrected(read_log(table, schema))
    log.require_both_classes("evaluated")
    return log.counted()


def learned(
    learner: MethodLearner, blocks: LogBlocks, valid: LogBlocks | None, run: FitRun
) -> tuple[Schema, Fitted, State, Training]:
    """Fit a method on the rows of a log, of which one block at a time is in memory.

    Returns:
        The schema with the examination curve of the rows, the parts of a model, the state of the
        method, and what the fit has seen.
    """
    traits, in_files = learner.traits, isinstance(blocks, FileBlocks)
    blocks = corrected_blocks(blocks)
    aside = traits.validates and valid is None
    if aside:
        facts, blocks, valid = _set_aside(blocks, run.seed)
    else:
        facts = TrainingFacts.of(blocks)
    schema, sums, targets = facts.schema, facts.sums, LabelTargets.of(facts.levels)
    coder = _Coder(facts.encoder(traits.values), targets, facts.times())
    reference = _reference(facts, coder.encoder)
    if not traits.missing:
        coder = replace(coder, reference=reference)
    named = traits.requests and (schema.request or schema.user) is not None
    if _for_requests(learner, schema) or named:
        coder = replace(coder, requests=True)
    train = _coded(blocks, coder, list(facts.first), facts.weight_unit, workers=traits.workers)
    fitted_rows = sums.rows
    selection: Blocks[FitRows] = HeldBlocks([])
    valid_rows = 0
    if traits.validates and valid is not None:
        valid = valid if aside else corrected_blocks(valid.under(schema))
        first, valid_rows = _first_rows(valid)
        selection = _coded(valid, coder, first, 1.0, workers=traits.workers)
    rows = TrainingRows(
        schema=schema,
        train=train,
        valid=selection,
        rows=sums.rows,
        valid_rows=valid_rows,
        encoder=coder.encoder,
        prevalence=facts.prevalence,
        weights=fit_weights(schema, facts.prevalence),
        seed=run.seed,
        device=run.device,
        on_event=run.on_event,
        checkpoint=run.checkpoint,
    )
    if traits.whole and sums.rows > run.most_rows:
        some = drawn_requests(train, sums.rows, run.most_rows)
        fitted_rows = some.rows
        rows = replace(rows, train=HeldBlocks([some]), rows=fitted_rows)
    with needs_extras(learner.name):
        state = learner.fit(rows)
    kinds = _kinds(learner, facts, coder, state)
    prevalence = _prevalence(facts, train, getattr(state, "fading", ()))
    fitted = Fitted(coder.encoder, prevalence, reference, kinds=kinds)
    seen = Training(
        rows=sums.rows,
        fitted_rows=fitted_rows,
        blocks=len(blocks) if in_files else 1,
        valid_rows=valid_rows if traits.validates else None,
        validated_rows=min(traits.validation_rows or valid_rows, valid_rows),
        aside=aside,
        missing=facts.missing_scores(),
        position=None if sums.places is None else PositionCorrection.of_sums(sums.places, schema),
    )
    return schema, fitted, state, seen


@dataclass(frozen=True)
class _Coder:
    """How checked rows become rows as a fit sees them.

    Attributes:
        encoder: Of the context.
        targets: What heads learn in place of graded labels.
        times: Of rows drawn from all, the oldest first; None where none are known.
        reference: By which missing scores are imputed; None where the method takes them.
        requests: Whether the fit looks at requests and users.
    """

    encoder: ContextEncoder
    targets: LabelTargets
    times: np.ndarray | None = None
    reference: Reference | None = None
    requests: bool = False


def _coded(
    blocks: LogBlocks, coder: _Coder, first: list[int], unit: float, *, workers: bool
) -> Blocks[FitRows]:
    """Return what a coder makes of every block, kept by workers, if there are any and it may."""
    where = with_workers(blocks) if workers else blocks
    return where.made(_code, coder, unit, own=first)


def _code(log: Log, first: int, coder: _Coder, unit: float) -> FitRows:
    """Return the rows of a block that count.

    Args:
        log: The block.
        first: The place of its first row among those that count.
        coder: How.
        unit: What a weight is divided by.
    """
    rows = coder.targets.of_log(log.counted(empty=True))
    codes, scores = rows.codes(coder.encoder), rows.scores
    if coder.reference is not None:
        scores = imputed(coder.reference, scores, codes)
    return FitRows(
        first,
        scores,
        codes.astype(np.min_scalar_type(max(coder.encoder.slots, default=1))),
        rows.known_labels(),
        None if rows.sample_weight is None else rows.sample_weight / unit,
        shares=None if rows.shown is None else rows.shown.astype(np.float64),
        request=rows.request if coder.requests else None,
        age=_ages(rows.time, coder.times),
        user=rows.user if coder.requests else None,
    )


def _ages(times: np.ndarray | None, drawn: np.ndarray | None) -> np.ndarray | None:
    """Return the share of the drawn times that is newer, half of those that are the same."""
    if times is None or drawn is None:
        return None
    newer = 1 - sum(np.searchsorted(drawn, times, side) for side in _SIDES) / (2 * len(drawn))
    return np.where(np.isnan(times), np.nan, newer)


def _set_aside(blocks: LogBlocks, seed: int) -> tuple[TrainingFacts, LogBlocks, LogBlocks]:
    """Split rows in two by whole requests; return the facts of the larger part, and both.

    Requests are drawn again where the larger part would lack a label, or the other all rows: of
    few rows that may be. Where the smaller part lacks a label, that objective does not count in it.
    """
    for attempt in range(_SPLITS):
        share = RequestShare(VALID_SHARE, seed + attempt)
        rest, valid = blocks.only(replace(share, others=True)), blocks.only(share)
        try:
            facts = TrainingFacts.of(rest)
        except DataError:
            TrainingFacts.of(blocks)  # which says what all rows lack
            continue
        if _first_rows(valid)[1]:
            return facts, rest, valid
    raise UsageError(
        f"{blocks.rows:,} training rows have too few requests to set validation rows aside; pass "
        "`valid`, or name some with --valid."
    )


def _first_rows(blocks: LogBlocks) -> tuple[list[int], int]:
    """Return the place of each block's first row among those that count, and how many do."""
    starts = np.cumsum([0, *blocks.each(_count)])
    return starts[:-1].tolist(), int(starts[-1])


def _count(log: Log) -> int:
    return log.rows if log.sample_weight is None else int(np.count_nonzero(log.sample_weight))


def _reference(facts: TrainingFacts, encoder: ContextEncoder) -> Reference:
    some = facts.unit(facts.drawn)
    return Reference.of(some.scores, some.codes(encoder), encoder.slots, some.own_weight)


def _prevalence(facts: TrainingFacts, rows: Blocks[FitRows], fading: Sequence[float]) -> np.ndarray:
    """Return the share of positives of each objective that has events, as old rows count."""
    if not any(fading):
        return facts.prevalence
    from harmonrank.model.linear.fading import faded_prevalence

    graded = np.isin(facts.schema.names, facts.schema.graded)
    return np.where(graded, facts.prevalence, faded_prevalence(rows, np.array(fading)))


def _for_requests(learner: MethodLearner, schema: Schema) -> bool:
    """Tell whether a fit is for AUC within requests; refuse one where no column tells them."""
    if getattr(learner, "optimise", "all") != "requests":
        return False
    if schema.request is None:
        raise UsageError(
            "optimise='requests' needs a request column, which says which rows were shown "
            "together; name it in the schema or with --request. Got none."
        )
    return True


def _kinds(
    learner: MethodLearner, facts: TrainingFacts, coder: _Coder, state: State
) -> Kinds | None:
    """Return what scoring must know of objectives that are no plain events."""
    schema = facts.schema
    if schema.plain:
        return None
    some = facts.unit(facts.drawn)
    heads = None
    if schema.graded and learner.traits.probabilities:
        rows = _code(some, 0, coder, 1.0)
        heads = state.probabilities(rows.scores, rows.codes.astype(np.int32))
    return kinds_of(some, heads, facts.shown_share)
