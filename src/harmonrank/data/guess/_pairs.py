"""Pairs: which score column predicts which label, by their names or else by AUC."""

__all__ = ["PRODUCTION", "Pair", "pairs_of"]

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from harmonrank.data.guess._facts import ColumnFacts, auc_of
from harmonrank.data.guess._names import alias, events

PRODUCTION = frozenset(
    ("prod", "production", "final", "fused", "total", "rank", "ranking", "overall", "baseline")
) | {"formula", "ensemble", "combined", "today"}
"""Words of a column that holds the score which ranks today."""

_LEAST_AUC = 0.55


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
    found: dict[str, Pair] = {}
    left = [score.name for score in scores if not score.words & PRODUCTION]
    for same in (_same_event, _same_alias):
        for label in labels:
            if label.name in found:
                continue
            near = [name for name in left if same(label.name, name)]
            if near:
                pair = max((_pair(frame, label.name, name, True) for name in near), key=_auc)
                found[label.name] = pair
                left.remove(pair.score)
    waiting = [label.name for label in labels if label.name not in found]
    tried = [_pair(frame, label, name, False) for label in waiting for name in left]
    for pair in sorted(tried, key=_auc, reverse=True):
        taken = {done.score for done in found.values()}
        if pair.auc >= _LEAST_AUC and pair.label not in found and pair.score not in taken:
            found[pair.label] = pair
    return [found[label.name] for label in labels if label.name in found]


def _pair(frame: pl.DataFrame, label: str, score: str, named: bool) -> Pair:
    return Pair(label, score, named, auc_of(frame[score], frame[label]))


def _auc(pair: Pair) -> float:
    return pair.auc


def _same_event(label: str, score: str) -> bool:
    return bool(set(events(label)) & set(events(score)))


def _same_alias(label: str, score: str) -> bool:
    return bool({alias(e) for e in events(label)} & {alias(e) for e in events(score)})
