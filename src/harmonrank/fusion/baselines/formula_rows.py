"""The rows that formulas are searched and chosen on."""

__all__ = ["best_formula", "chance_of", "thinned"]

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from harmonrank.data.rows.blocks import Blocks
from harmonrank.fusion.quality.block_areas import SortedRows, areas_of, sorted_rows
from harmonrank.model.fit_rows import FitRows, joined

_EXACT = 4  # Formulas that rows in memory cannot tell apart are few.


def chance_of(
    labels: np.ndarray, positives: np.ndarray, pi: np.ndarray, rows: int, wanted: int
) -> np.ndarray:
    """Return the chance that each row is drawn, so that about so many of all rows are.

    It is in proportion to 1 + Σ_m y_m/π_m: positives of rare objectives first.

    Args:
        labels: (some rows, objectives).
        positives: (objectives,) the sum of all rows' labels.
        pi: (objectives,) prevalence.
        rows: How many there are.
        wanted: How many are to be drawn.
    """
    rare = 1 / np.maximum(pi, 1 / rows)
    chance: np.ndarray = np.minimum(
        (1.0 + labels @ rare) * (wanted / (rows + float(positives @ rare))), 1.0
    )
    return chance


def thinned(
    blocks: Blocks[FitRows], rows: int, pi: np.ndarray, wanted: int, rng: np.random.Generator
) -> FitRows:
    """Draw about this many rows, positives of rare objectives first, and weigh them to make up.

    Each objective's positives get the same share of the sample (`chance_of`), and a row counts for
    one over its chance: AUCs are not biased.
    """
    positives = blocks.total(_positives)[0]
    parts = []
    for number in range(len(blocks)):
        block = blocks[number]
        chance = chance_of(block.labels, positives, pi, rows, wanted)
        # Numbers that are drawn in parts are those that are drawn at once.
        some = np.flatnonzero(rng.random(block.rows) < chance)
        part = block.taken(some)
        parts.append(replace(part, weight=part.weights() / chance[some]))
    return joined(parts)


def _positives(rows: FitRows) -> tuple[np.ndarray]:
    return (rows.labels.sum(axis=0, dtype=np.float64),)


def best_formula(
    formulas: Sequence[Callable[[np.ndarray], np.ndarray]],
    values: Sequence[float],
    blocks: Blocks[FitRows],
    rows: int,
    weights: np.ndarray,
) -> int:
    """Return which formula has the best AUC-sum on all rows, of the few that are best on some.

    Args:
        formulas: Each gives the fused scores of (rows, M) scores.
        values: What each formula reached on some rows.
        blocks: All rows.
        rows: How many there are.
        weights: (M,) what each AUC counts.
    """
    few = np.argsort(-np.asarray(values), kind="stable")[:_EXACT]

    def scored(number: int) -> Iterator[SortedRows]:
        for k in range(len(blocks)):
            block = blocks[k]
            if block.rows:
                fused = formulas[number](block.scores)
                yield sorted_rows(fused, block.labels, block.weight)

    # An objective that the rows do not show cannot vote.
    sums = [np.nansum(weights * areas_of(scored(int(k)), rows)) for k in few]
    return int(few[int(np.argmax(sums))])
