"""Fitting from blocks: a log larger than memory, read a block at a time."""

__all__ = ["BlockFit", "fit_in_blocks", "rows_within"]

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from harmonrank.data import ContextEncoder, Log, Schema
from harmonrank.data.blocks import Blocks, SpilledBlocks, drawn_rows
from harmonrank.data.engine_blocks import EngineBlocks
from harmonrank.data.kept_rows import concatenated
from harmonrank.data.log_blocks import LogBlocks
from harmonrank.engine import current_engine
from harmonrank.errors import UsageError
from harmonrank.events import FitStep
from harmonrank.methods.base import Method
from harmonrank.methods.harmonrank import MOST_VALUES, HarmonRank
from harmonrank.methods.log_facts import LogFacts
from harmonrank.model.fit_rows import FitRows

_FEWEST_ROWS = 100_000
_BYTES = 48  # Per number: some methods keep a few copies.


@dataclass(frozen=True)
class BlockFit:
    """A model that was fitted from blocks.

    Attributes:
        model: What was fitted.
        facts: Of the rows.
        rows: How many of them it was fitted on: all, or as many as were drawn.
    """

    model: Method
    facts: LogFacts
    rows: int

    def words(self) -> str:
        """Return what was done, in a sentence."""
        if self.rows == self.facts.rows:
            return f"Read {self.rows:,} rows in blocks, of which one at a time is in memory."
        return (
            f"{self.model.name} was fitted on {self.rows:,} of {self.facts.rows:,} rows, drawn at "
            "random, as it needs them in memory; prevalences are of all rows."
        )


def fit_in_blocks(
    method: Method,
    blocks: LogBlocks,
    *,
    most_rows: int,
    seed: int = 0,
    device: str = "cpu",
    on_event: Callable[[Any], None] = lambda _: None,
) -> BlockFit:
    """Fit a method on a log of which one block at a time is in memory.

    The default is fitted on all rows, with the model of `fit` to the last bit. Other methods are
    fitted on rows drawn at random, with the prevalences of all rows.

    Args:
        method: What to fit.
        blocks: The rows.
        most_rows: How many rows of which a method needs all at once are drawn.
        seed: As for `Method.fit`.
        device: As for `Method.fit`.
        on_event: As for `Method.fit`.
    """
    blocks.schema.require_plain("A fit in blocks, of a table larger than --memory,")
    if method.optimises == "requests":
        raise UsageError(
            f"{method.name} with optimise='requests' needs whole requests in memory, and blocks "
            "cut them; allow more with --memory, take fewer rows, or leave the option out."
        )
    facts = LogFacts.of(blocks)
    if isinstance(method, HarmonRank):
        _fit_default(method, blocks, facts, on_event)
        return BlockFit(method, facts, facts.rows)
    some = _drawn(blocks, facts, most_rows)
    method.fit(some, facts.schema, seed=seed, device=device, on_event=on_event)
    method._keep_prevalence(facts.prevalence)
    return BlockFit(method, facts, some.rows)


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
    from harmonrank.model.heads_fit import fit_blocks

    encoder = facts.encoder(MOST_VALUES)
    engine, given = current_engine(), (facts.mean_weight, encoder)
    rows: Blocks[FitRows]
    if engine.name == "local":
        pairs = zip(facts.first, blocks.each(_counted), strict=True)
        coded = (_coded(log, first, *given) for first, log in pairs)
        rows = SpilledBlocks(coded, blocks.folder)
    else:
        rows = EngineBlocks(engine, blocks).made_with(_coded, facts.first, *given)
    heads = fit_blocks(rows, encoder.slots, lambda *n: on_event(FitStep(*n)))
    model.take(facts.schema, encoder, heads, facts.prevalence, facts.reference())


def _coded(log: Log, first: int, mean_weight: float, encoder: ContextEncoder) -> FitRows:
    """Return the rows that count, as heads see them; codes in as few bytes as they need."""
    rows = _counted(log)
    weight = None if rows.sample_weight is None else rows.sample_weight / mean_weight
    codes = rows.codes(encoder).astype(np.min_scalar_type(max(encoder.slots, default=1)))
    return FitRows(first, rows.scores, codes, rows.known_labels(), weight)


def _drawn(blocks: LogBlocks, facts: LogFacts, most: int) -> Log:
    """Return some rows that count, drawn at random, in their order."""
    index, parts = drawn_rows(facts.rows, most), []
    for first, log in zip(facts.first, blocks.each(_counted), strict=True):
        low, high = np.searchsorted(index, [first, first + log.rows])
        if high > low:
            parts.append(log.take(index[low:high] - first))
    return concatenated(parts)


def _counted(log: Log) -> Log:
    weight = log.sample_weight
    return log if weight is None or weight.all() else log.take(np.flatnonzero(weight))
