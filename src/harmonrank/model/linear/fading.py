"""Fading: how fast old rows of a log should count less, by what its newest rows say.

Where chances drift, old rows mislead; where they do not, to forget them only adds noise, most of
all for a rare objective. So each objective has a rate r of its own, and a row counts 2^(−r·age) for
it, where the age is the share of the log that is newer. Cheap heads are fitted with each rate on
what is older than the newest sixth of the log, and than the sixth before, and tried on these, of
which short runs are one observation each. Rates weigh by their log-likelihood as the rungs of
`averaging` do, where none at all is thought better beforehand. An objective fades only where some
rate is likelier than none, by the mean of log(1 + r).
"""

__all__ = ["RATES", "faded", "faded_prevalence", "fading_of", "fading_words"]

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from harmonrank.data.rows.blocks import Blocks
from harmonrank.model.fit_rows import FitRows, RowCounts, drawn_from
from harmonrank.model.linear.averaging import (
    EVIDENCE_ROWS,
    FEWEST_ROWS,
    evidence_weights,
    in_blocks,
)
from harmonrank.model.linear.heads import Heads
from harmonrank.model.linear.heads_fit import fit_blocks

RATES = np.array([0.0, 1.0, 2.0, 4.0, 8.0])
"""How often the count of a row halves over the length of the log."""
_PARTS = 6
_TRIED = (4, 5)
_RUNS = 16  # Of each part that is tried.
_LEAST = 0.5  # From this weight on of no fading nothing fades.


def faded(
    blocks: Blocks[FitRows], rows: int, slots: tuple[int, ...]
) -> tuple[Blocks[FitRows], np.ndarray]:
    """Return rows as they count, and the rate of each objective; no rates where no time is known.

    Args:
        blocks: Of so many rows in all.
        rows: How many there are.
        slots: Codes per feature.
    """
    if blocks[0].age is None:
        return blocks, np.empty(0)
    some = drawn_from(blocks, rows, EVIDENCE_ROWS)
    assert some.age is not None
    some = some.taken(~np.isnan(some.age) & ~np.isnan(some.scores).any(axis=1))
    rates = np.zeros(some.labels.shape[1])
    if some.rows >= FEWEST_ROWS:
        rates = fading_of(some, slots)
    return (blocks.made(_fade, rates) if rates.any() else blocks), rates


def faded_prevalence(blocks: Blocks[FitRows], rates: np.ndarray) -> np.ndarray:
    """Return the share of positives of each objective among rows as they count.

    What a unit of probability counts, w/(π(1−π)), is of the same time as the probability.
    """
    return RowCounts.of(blocks.made(_fade, rates)).prevalence


def _fade(block: FitRows, rates: np.ndarray) -> FitRows:
    """Return rows as they count; one whose time is unknown counts as if it were new."""
    assert block.age is not None
    counts = 0.5 ** (np.nan_to_num(block.age)[:, None] * rates)
    return replace(block, shares=counts if block.shares is None else counts * block.shares)


def fading_of(rows: FitRows, slots: tuple[int, ...]) -> np.ndarray:
    """Return how often the count of a row halves over the length of the log, (M,).

    Args:
        rows: Of the log, or some of them drawn evenly, with their ages.
        slots: Codes per feature.
    """
    assert rows.age is not None
    rows = rows.taken(np.argsort(-rows.age, kind="stable"))
    ends = np.arange(_PARTS + 1) * rows.rows // _PARTS
    known = []
    for k in _TRIED:
        older, newer = rows.taken(slice(0, ends[k])), rows.taken(slice(ends[k], ends[k + 1]))
        ages = (ends[k] - np.arange(ends[k])) / rows.rows
        parts = [replace(older, weight=older.weights() * 0.5 ** (ages * r)) for r in RATES]
        heads = [fit_blocks(in_blocks(some), slots, residual=False) for some in parts]
        runs = np.arange(_RUNS) * newer.rows // _RUNS
        known.append([np.add.reduceat(_log_likelihood(each, newer), runs) for each in heads])
    evidence: np.ndarray = np.concatenate(known, axis=1)
    weights = np.stack([evidence_weights(each) for each in np.moveaxis(evidence, 2, 0)])
    return np.where(weights[:, 0] < _LEAST, np.expm1(weights @ np.log1p(RATES)), 0.0)


def _log_likelihood(heads: Heads, rows: FitRows) -> np.ndarray:
    """Return that of each label, (rows, M)."""
    logits, counts = heads.logits(rows.logits(), rows.codes), rows.counts()
    each: np.ndarray = rows.labels * logits - np.logaddexp(0.0, logits)
    return each if counts is None else each * counts.reshape(rows.rows, -1)


def fading_words(rates: Mapping[str, float]) -> str:
    """Return how fast old rows fade, by objective.

    >>> fading_words({"buy": 0.0, "like": 4.0})
    "Old rows fade as newer ones prove: a row counts half for 'like' after 25 % of the log."
    >>> fading_words({"buy": 0.0})
    'No old rows fade: newer ones do not prove that they mislead.'
    """
    told = [f"for '{n}' after {100 / rate:.0f} % of the log" for n, rate in rates.items() if rate]
    if not told:
        return "No old rows fade: newer ones do not prove that they mislead."
    return f"Old rows fade as newer ones prove: a row counts half {', '.join(told)}."
