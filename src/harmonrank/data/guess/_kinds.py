"""Guessing kinds: labels that are numbers, and labels that only some rows show."""

__all__ = ["graded_pairs", "parents"]

from collections.abc import Sequence

import numpy as np
import polars as pl

from harmonrank.data.guess._facts import ColumnFacts
from harmonrank.data.guess._names import SCORE_WORDS, events


def graded_pairs(facts: Sequence[ColumnFacts]) -> dict[str, str]:
    """Return the numbers that a score is named after, such as watch of p_watch, with the score.

    By names alone: any two columns of numbers go together to some degree.
    """
    numbers = [f for f in facts if f.numeric and f.kind != "binary" and f.values > 2]
    scores = [f for f in numbers if f.words & SCORE_WORDS]
    found: dict[str, str] = {}
    for label in numbers:
        if label in scores or label.missing:
            continue
        near = [s.name for s in scores if set(events(s.name)) & set(events(label.name))]
        if len(near) == 1 and near[0] not in found.values():
            found[label.name] = near[0]
    return found


def parents(frame: pl.DataFrame, facts: Sequence[ColumnFacts]) -> dict[str, str]:
    """Return the labels that are null exactly where another one is 0, with the other one."""
    events_of = [f for f in facts if f.kind == "binary" and f.values == 2]
    whole = {f.name: _numbers(frame[f.name]) == 1 for f in events_of if not f.missing}
    found: dict[str, str] = {}
    for fact in events_of:
        if not fact.missing:
            continue
        shown = ~np.isnan(_numbers(frame[fact.name]))
        for name, happened in whole.items():
            if (shown == happened).all():
                found[fact.name] = name
                break
    return found


def _numbers(series: pl.Series) -> np.ndarray:
    values: np.ndarray = series.cast(pl.Float64).to_numpy()  # null becomes NaN
    return values
