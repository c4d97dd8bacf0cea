"""Formula blocks: the rows that formulas are searched and chosen on, of a log in blocks."""

__all__ = ["best_formula", "chance_of", "thinned_blocks"]

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from harmonrank.data.rows.blocks import Blocks
from harmonrank.fusion.quality.block_areas import SortedRows, areas_of, sorted_rows
from harmonrank.model.fit_rows import FitRows

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


def thinned_blocks(
    blocks: Blocks[FitRows], rows: int, pi: np.ndarray, wanted: int, rng: np.random.Generator
) -> FitRows:
    """Draw the rows that a search in memory draws, with weights of one over their chance."""
    positives = blocks.total(_positives)[0]
    parts = []
    for number in range(len(blocks)):
        block = blocks[number]
        chance = chance_of(block.labels, positives, pi, rows, wanted)
        # Numbers that are drawn in parts are those that are drawn at once.
        some = np.flatnonzero(rng.random(block.rows) < chance)
        taken = block.taken(some)
        parts.append((taken, taken.weights() / chance[some]))
    return FitRows(
        0,
        np.concatenate([part.scores for part, _ in parts]),
        np.concatenate([part.codes for part, _ in parts]),
        np.concatenate([part.labels for part, _ in parts]),
        np.concatenate([weight for _, weight in parts]),
        shares=None
        if parts[0][0].shares is None
        else np.concatenate([part.shares for part, _ in parts if part.shares is not None]),
    )


def _positives(rows: FitRows) -> tuple[np.ndarray]:
    return (rows.labels.sum(axis=0, dtype=np.float64),)


def best_formula(
    score: Callable[[int, np.ndarray], np.ndarray],
    values: Sequence[float],
    blocks: Blocks[FitRows],
    rows: int,
    weights: np.ndarray,
) -> int:
    """Return which formula has the best AUC-sum on all rows, of the few that are best on some.

    Args:
        score: The fused scores of rows by formula number and (rows, M) scores.
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
                yield sorted_rows(score(number, block.scores), block.labels, block.weight)

    # An objective that the rows do not show cannot vote.
    sums = [np.nansum(weights * areas_of(scored(int(k)), rows, len(weights))) for k in few]
    return int(few[int(np.argmax(sums))])
