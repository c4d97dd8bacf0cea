"""Pairs: which score predicts which label, which labels are numbers, and which depend on others."""

__all__ = ["PRODUCTION", "Pair", "graded_pairs", "pairs_of", "parents"]

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter

import numpy as np
import polars as pl

from harmonrank.data.guess_columns import SCORE_WORDS, ColumnFacts, alias, auc_of, events

PRODUCTION = frozenset(
    ("prod", "production", "final", "fused", "total", "rank", "ranking", "overall", "baseline")
) | {"formula", "ensemble", "combined", "today"}
"""Words of a column that holds the score which ranks today."""

_LEAST_AUC = 0.55
_AUC = attrgetter("auc")


@dataclass(frozen=True)
class Pair:
    """A label and its score.

    Attributes:
        named: Whether their names agree; else the AUC does.
        auc: Of the score on the label.
    """

    label: str
    score: str
    named: bool
    auc: float


def pairs_of(
    frame: pl.DataFrame, labels: Sequence[ColumnFacts], scores: Sequence[ColumnFacts]
) -> list[Pair]:
    """Return the score of each label that has one, in the order of the labels."""
    pairs: dict[str, Pair] = {}
    left = [score.name for score in scores if not score.words & PRODUCTION]
    for meaning in (str, alias):
        for label in labels:
            if label.name in pairs:
                continue
            near = [name for name in left if _agree(label.name, name, meaning)]
            if near:
                pair = max(
                    (_pair(frame, label.name, name, True) for name in near), key=attrgetter("auc")
                )
                pairs[label.name] = pair
                left.remove(pair.score)
    waiting = [label.name for label in labels if label.name not in pairs]
    tried = [_pair(frame, label, name, False) for label in waiting for name in left]
    for pair in sorted(tried, key=_AUC, reverse=True):
        taken = {done.score for done in pairs.values()}
        if pair.auc >= _LEAST_AUC and pair.label not in pairs and pair.score not in taken:
            pairs[pair.label] = pair
    return [pairs[label.name] for label in labels if label.name in pairs]


def _pair(frame: pl.DataFrame, label: str, score: str, named: bool) -> Pair:
    return Pair(label, score, named, auc_of(frame[score], frame[label]))


def _agree(label: str, score: str, meaning: Callable[[str], str]) -> bool:
    """Tell whether two names are about one event, by what its name means."""
    return bool(set(map(meaning, events(label))) & set(map(meaning, events(score))))


def graded_pairs(facts: Sequence[ColumnFacts]) -> dict[str, str]:
    """Return the numbers that a score is named after, such as watch of p_watch, with the score.

    By names alone: any two columns of numbers go together to some degree.
    """
    numbers = [f for f in facts if f.numeric and f.kind != "binary" and f.values > 2]
    scores = [f for f in numbers if f.words & SCORE_WORDS]
    pairs: dict[str, str] = {}
    for label in numbers:
        if label in scores or label.missing:
            continue
        near = [s.name for s in scores if _agree(label.name, s.name, str)]
        if len(near) == 1 and near[0] not in pairs.values():
            pairs[label.name] = near[0]
    return pairs


def parents(frame: pl.DataFrame, facts: Sequence[ColumnFacts]) -> dict[str, str]:
    """Return the labels that are null exactly where another one is 0, with the other one."""
    events_of = [f for f in facts if f.kind == "binary" and f.values == 2]
    whole = {f.name: _numbers(frame[f.name]) == 1 for f in events_of if not f.missing}
    parent_of: dict[str, str] = {}
    for fact in events_of:
        if not fact.missing:
            continue
        shown = ~np.isnan(_numbers(frame[fact.name]))
        for name, happened in whole.items():
            if (shown == happened).all():
                parent_of[fact.name] = name
                break
    return parent_of


def _numbers(series: pl.Series) -> np.ndarray:
    values: np.ndarray = series.cast(pl.Float64).to_numpy()  # null becomes NaN
    return values
