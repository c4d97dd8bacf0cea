"""Fitting from blocks: a log larger than memory, read a block at a time."""

__all__ = ["BlockFit", "fit_in_blocks", "rows_within"]

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from harmonrank.data import ContextEncoder, Log, Schema, read_log
from harmonrank.data.rows.blocks import Blocks, HeldBlocks, SpilledBlocks, drawn_rows
from harmonrank.data.rows.engine_blocks import EngineBlocks
from harmonrank.data.rows.kept_rows import concatenated
from harmonrank.data.rows.log_blocks import LogBlocks
from harmonrank.data.rows.row_choice import RequestShare
from harmonrank.engine import current_engine
from harmonrank.fusion.base import Method
from harmonrank.fusion.drift.imputation import imputed_log
from harmonrank.fusion.drift.reference import Reference
from harmonrank.fusion.fitting.fit import VALID_SHARE
from harmonrank.fusion.fitting.label_shares import score_bins, with_label_shares
from harmonrank.fusion.fitting.log_facts import LogFacts
from harmonrank.fusion.fitting.row_blocks import RowsInBlocks
from harmonrank.fusion.harmonrank import MOST_VALUES, HarmonRank
from harmonrank.fusion.kinds import LabelPlaces
from harmonrank.fusion.position.block_correction import corrected_blocks
from harmonrank.fusion.position.correction import corrected
from harmonrank.fusion.weighed import fit_weights
from harmonrank.model.fit_rows import FitRows, cut_rows
from harmonrank.support.errors import UsageError
from harmonrank.support.events import FitStep
from harmonrank.support.extras import needs_extras

_FEWEST_ROWS = 100_000
_BYTES = 48  # Per number: some methods keep a few copies.


@dataclass(frozen=True)
class BlockFit:
    """A model that was fitted from blocks.

    Attributes:
        model: What was fitted.
        facts: Of the rows, without those that were set aside for validation.
        rows: How many of them it was fitted on: all, or as many as were drawn.
        valid_rows: How many rows validation was on; None if the fit looked at none.
        aside: Whether these were set aside from the rows.
    """

    model: Method
    facts: LogFacts
    rows: int
    valid_rows: int | None = None
    aside: bool = False

    def words(self) -> str:
        """Return what was done, in a sentence."""
        if self.rows < self.facts.rows:
            return (
                f"{self.model.name} was fitted on {self.rows:,} of {self.facts.rows:,} rows, drawn "
                "at random, as it needs them in memory; prevalences are of all rows."
            )
        text = f"Read {self.rows:,} rows in blocks, of which one at a time is in memory."
        if self.valid_rows is None:
            return text
        most = self.model.most_valid or self.valid_rows
        some = f"{most:,} of " * (self.valid_rows > most)
        where = "others, set aside" if self.aside else "validation rows"
        return f"{text} It was validated on {some}{self.valid_rows:,} {where}."


def fit_in_blocks(
    method: Method,
    blocks: LogBlocks,
    *,
    most_rows: int,
    valid: LogBlocks | Log | None = None,
    seed: int = 0,
    device: str = "cpu",
    on_event: Callable[[Any], None] = lambda _: None,
    checkpoint: Path | None = None,
) -> BlockFit:
    """Fit a method on a log of which one block at a time is in memory.

    Methods that `fits_blocks` are fitted on all rows, with the model of `fit`. Others are fitted on
    rows drawn at random, with the prevalences of all rows.

    Args:
        method: What to fit.
        blocks: The rows.
        most_rows: How many rows of which a method needs all at once are drawn.
        valid: Rows for early stopping and selection; a tenth of the requests if left out.
        seed: As for `Method.fit`.
        device: As for `Method.fit`.
        on_event: As for `Method.fit`.
        checkpoint: As for `Method.fit`.
    """
    method._require_kinds(blocks.schema)
    if method.optimises == "requests":
        raise UsageError(
            f"{method.name} with optimise='requests' needs whole requests in memory, and blocks "
            "cut them; allow more with --memory, take fewer rows, or leave the option out."
        )
    blocks = corrected_blocks(blocks)
    if isinstance(method, HarmonRank):
        facts = LogFacts.of(blocks)
        _fit_default(method, blocks, facts, on_event)
        return BlockFit(method, facts, facts.rows)
    if method.fits_blocks:
        how = {"seed": seed, "device": device, "on_event": on_event, "checkpoint": checkpoint}
        return _fit_all(method, blocks, valid, how)
    facts = LogFacts.of(blocks)
    some, exam = _drawn(blocks, facts, most_rows), None
    if method.uses_valid and valid is not None:
        exam = valid if isinstance(valid, Log) else _drawn_of(valid, most_rows)
        exam = read_log(exam, facts.schema)
    told = {"seed": seed, "device": device, "on_event": on_event, "checkpoint": checkpoint}
    method.fit(some, facts.schema, valid=exam, **told)  # type: ignore[arg-type]
    method._keep_prevalence(facts.prevalence)
    return BlockFit(method, facts, some.rows)


def _fit_all(
    method: Method, blocks: LogBlocks, valid: LogBlocks | Log | None, how: dict[str, Any]
) -> BlockFit:
    """Fit a method on all rows, as `Method.fit` does in memory."""
    aside = method.uses_valid and valid is None
    if aside:
        share = RequestShare(VALID_SHARE, how["seed"])
        blocks, valid = blocks.only(replace(share, others=True)), blocks.only(share)
    facts = LogFacts.of(blocks)
    encoder, reference = facts.encoder(), facts.reference()
    coding = None if method.takes_missing else reference
    workers, places = method.fits_on_workers, LabelPlaces.of(facts.levels)
    train = _coded_blocks(blocks, workers, facts.first, facts.weight_unit, encoder, coding, places)
    exam: Blocks[FitRows] = HeldBlocks([])
    exam_rows = 0
    if method.uses_valid and isinstance(valid, Log):
        log = corrected(read_log(valid, facts.schema)).counted()
        exam_rows = log.rows
        coded = _coded(log, 0, 1.0, encoder, coding, places)
        exam = cut_rows(coded.scores, coded.codes, coded.labels, coded.weight, coded.shares)
    elif method.uses_valid and isinstance(valid, LogBlocks):
        if not aside:
            valid = corrected_blocks(valid.under(facts.schema))
        first, exam_rows = _places(valid)
        exam = _coded_blocks(valid, workers, first, 1.0, encoder, coding, places)
        if not exam_rows:
            raise UsageError(
                f"{facts.rows:,} training rows have too few requests to set validation rows aside; "
                "name some with --valid."
            )
    rows = RowsInBlocks(
        schema=facts.schema,
        train=train,
        valid=exam,
        rows=facts.rows,
        valid_rows=exam_rows,
        encoder=encoder,
        prevalence=facts.prevalence,
        weights=fit_weights(facts.schema, facts.prevalence),
        **how,
    )
    with needs_extras(method.name):
        method._fit_blocks(rows)
    method._keep_reference(reference)
    method._schema = facts.schema
    method._keep_prevalence(facts.prevalence)
    _learn_kinds(method, facts, places, coding)
    return BlockFit(method, facts, facts.rows, exam_rows if method.uses_valid else None, aside)


def rows_within(schema: Schema, memory: int) -> int:
    """Return how many rows a method that needs them all at once is given, in so much memory.

    >>> rows_within(Schema({"buy": "p_buy"}), 3 << 30)
    33554432
    """
    columns = 2 * len(schema.names) + len(schema.context)
    return max(_FEWEST_ROWS, memory // (_BYTES * columns))


def _fit_default(
    model: HarmonRank, blocks: LogBlocks, facts: LogFacts, on_event: Callable[[Any], None]
) -> None:
    from harmonrank.model.linear.heads_fit import fit_blocks

    encoder, places = facts.encoder(MOST_VALUES), LabelPlaces.of(facts.levels)
    rows = _coded_blocks(blocks, True, facts.first, facts.weight_unit, encoder, None, places)
    rows = with_label_shares(rows, facts.schema, score_bins(facts.wider))
    heads = fit_blocks(rows, encoder.slots, lambda *n: on_event(FitStep(*n)))
    model.take(facts.schema, encoder, heads, facts.prevalence, facts.reference())
    _learn_kinds(model, facts, places, None)


def _learn_kinds(
    method: Method, facts: LogFacts, places: LabelPlaces, reference: Reference | None
) -> None:
    """Let a fitted method see the rows that tell it what graded labels are in their own units."""
    if facts.schema.plain:
        return
    some = facts.unit(facts.drawn)
    if reference is not None:
        some = imputed_log(reference, some)
    method._learn_kinds(some, places.targets(some), facts.shown_share)


def _coded_blocks(
    blocks: LogBlocks, workers: bool, first: Sequence[int], *given: Any
) -> Blocks[FitRows]:
    """Return what `_coded` makes of every block, given the place of its first row that counts.

    It is kept in a file, or by workers, if there are any and these are asked for.
    """
    engine = current_engine()
    if engine.name == "local" or not workers:
        pairs = zip(first, blocks.each(_counted), strict=True)
        coded = (_coded(log, place, *given) for place, log in pairs)
        return SpilledBlocks(coded, blocks.folder)
    return EngineBlocks(engine, blocks).made_with(_coded, first, *given)


def _coded(
    log: Log,
    first: int,
    unit: float,
    encoder: ContextEncoder,
    reference: Reference | None,
    places: LabelPlaces,
) -> FitRows:
    """Return the rows that count, as a fit sees them; codes in as few bytes as they need.

    With a reference, missing scores are imputed. Graded labels become their places among all, and
    a label counts 0 where a row does not show it.
    """
    rows = places.targets(_counted(log))
    if reference is not None:
        rows = imputed_log(reference, rows)
    weight = None if rows.sample_weight is None else rows.sample_weight / unit
    codes = rows.codes(encoder).astype(np.min_scalar_type(max(encoder.slots, default=1)))
    shares = None if rows.shown is None else rows.shown.astype(np.float64)
    return FitRows(first, rows.scores, codes, rows.known_labels(), weight, shares=shares)


def _places(blocks: LogBlocks) -> tuple[list[int], int]:
    """Return the place of each block's first row among those that count, and how many do."""
    sizes = [log.rows for log in blocks.each(_counted)]
    starts = np.cumsum([0, *sizes])
    return starts[:-1].tolist(), int(starts[-1])


def _drawn_of(blocks: LogBlocks, most: int) -> Log:
    """Return some rows of a table that count, drawn at random, in their order."""
    first, rows = _places(blocks)
    return _taken(blocks, first, drawn_rows(rows, most))


def _drawn(blocks: LogBlocks, facts: LogFacts, most: int) -> Log:
    """Return some rows that count, drawn at random, in their order."""
    return _taken(blocks, facts.first, drawn_rows(facts.rows, most))


def _taken(blocks: LogBlocks, starts: Sequence[int], index: np.ndarray) -> Log:
    parts = []
    for first, log in zip(starts, blocks.each(_counted), strict=True):
        low, high = np.searchsorted(index, [first, first + log.rows])
        if high > low:
            parts.append(log.take(index[low:high] - first))
    return concatenated(parts)


def _counted(log: Log) -> Log:
    weight = log.sample_weight
    return log if weight is None or weight.all() else log.take(np.flatnonzero(weight))
