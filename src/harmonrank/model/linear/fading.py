"""Fading: how fast old rows of a log should count less, by what its newest rows say.

Where chances drift, old rows mislead; where they do not, to forget them only adds noise. A row of
age a, as a part of the log, counts 2^(−a/h) for a half-life h. Cheap heads are fitted with each
half-life on what is older than the newest sixth of the log, and than the sixth before, and tried on
these. Each half-life weighs by its log-likelihood as the rungs of `averaging` do, where none at all
is thought better beforehand.
"""

__all__ = ["HALF_LIVES", "faded", "faded_counts", "fading_of"]

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from harmonrank.data.rows.blocks import Blocks
from harmonrank.model.fit_rows import FitRows, drawn_from
from harmonrank.model.linear.averaging import (
    EVIDENCE_ROWS,
    FEWEST_ROWS,
    evidence_weights,
    in_blocks,
    requests_of,
)
from harmonrank.model.linear.heads import Heads
from harmonrank.model.linear.heads_fit import fit_blocks

HALF_LIVES = (np.inf, 1.0, 0.5, 0.25, 0.125)
"""As parts of the log."""
_PARTS = 6
_TRIED = (4, 5)
_NONE = 0.99  # From this weight on of an endless half-life nothing fades.


def faded(blocks: Blocks[FitRows], rows: int, slots: tuple[int, ...]) -> Blocks[FitRows]:
    """Return the rows of a log as they count, the oldest first.

    Args:
        blocks: Of so many rows in all.
        rows: How many there are.
        slots: Codes per feature.
    """
    some = drawn_from(blocks, rows, EVIDENCE_ROWS)
    some = some.taken(~np.isnan(some.scores).any(axis=1))
    if some.rows < FEWEST_ROWS:
        return blocks
    fading = fading_of(some, lambda older: fit_blocks(older, slots, residual=False))
    return blocks if fading[0] >= _NONE else blocks.made(_fade, rows, fading)


def _fade(block: FitRows, rows: int, fading: np.ndarray) -> FitRows:
    places = np.arange(block.first, block.first + block.rows)
    return replace(block, weight=block.weights() * faded_counts(rows, fading, places))


def fading_of(rows: FitRows, fit: Callable[[Blocks[FitRows]], Heads]) -> np.ndarray:
    """Return how much each of `HALF_LIVES` counts; they sum to 1.

    Args:
        rows: Of the log, or some of them drawn evenly, the oldest first.
        fit: Returns heads that are fitted to rows by their weights; linear ones will do.
    """
    ends = np.arange(_PARTS + 1) * rows.rows // _PARTS
    known = []
    for k in _TRIED:
        older, newer = rows.taken(slice(0, ends[k])), rows.taken(slice(ends[k], ends[k + 1]))
        ages = (ends[k] - np.arange(ends[k])) / rows.rows
        counts = [older.weights() * 0.5 ** (ages / half_life) for half_life in HALF_LIVES]
        heads = [fit(in_blocks(replace(older, weight=count))) for count in counts]
        request = requests_of(newer)
        known.append([np.bincount(request, _log_likelihood(each, newer)) for each in heads])
    return evidence_weights(np.concatenate(known, axis=1))


def _log_likelihood(heads: Heads, rows: FitRows) -> np.ndarray:
    """Return that of all labels of each row."""
    logits, counts = heads.logits(rows.logits(), rows.codes), rows.counts()
    each = rows.labels * logits - np.logaddexp(0.0, logits)
    weight = 1.0 if counts is None else counts.reshape(rows.rows, -1)
    likely: np.ndarray = (each * weight).sum(axis=1)
    return likely


def faded_counts(rows: int, fading: np.ndarray, places: np.ndarray | None = None) -> np.ndarray:
    """Return what each of so many rows counts, the oldest first; or those at some places.

    >>> faded_counts(4, np.array([0.5, 0.0, 0.5, 0.0, 0.0])).round(2)
    array([0.62, 0.68, 0.75, 0.85])
    """
    ages = (rows - (np.arange(rows) if places is None else places)) / rows
    each = [0.5 ** (ages / half_life) for half_life in HALF_LIVES]
    counts: np.ndarray = fading @ np.stack(each)
    return counts
