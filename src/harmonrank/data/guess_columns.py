"""Columns of a log that nobody has described: their facts, and which score predicts which label."""

__all__ = [
    "PRODUCTION",
    "ColumnFacts",
    "Pair",
    "auc_of",
    "facts_of",
    "graded_pairs",
    "is_steady",
    "pairs_of",
    "parents",
]

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Literal

import numpy as np
import polars as pl

from harmonrank.data.clock import DAYS, instants

PRODUCTION = frozenset(
    ("prod", "production", "final", "fused", "total", "rank", "ranking", "overall", "baseline")
) | {"formula", "ensemble", "combined", "today"}
"""Words of a column that holds the score which ranks today."""

_LEAST_AUC = 0.55
_AUC = attrgetter("auc")

# Words that say what kind of column it is, not what it is about.
_SCORE_WORDS = frozenset(
    ("p", "s", "pred", "predicted", "prediction", "prob", "probability", "proba", "score", "model")
) | {"logit", "pct", "percent", "percentage", "est", "estimate", "hat", "raw", "upstream"}
_LABEL_WORDS = frozenset(["is", "has", "did", "y", "label", "target", "flag", "true", "truth"])
_SAME = {
    "click": ["ctr"],
    "buy": ["cvr", "conversion", "convert", "purchase", "order", "pay"],
    "like": ["ltr"],
    "follow": ["wtr"],
    "comment": ["cmtr"],
    "forward": ["ftr"],
    "longview": ["lvtr"],
    "view": ["vtr"],
}
_ENDINGS = ("ing", "ed", "es", "s", "e")

Kind = Literal["binary", "integer", "number", "text", "time", "other"]

_TIME_WORDS = frozenset(
    ["time", "timestamp", "ts", "date", "datetime", "day", "at", "dt", "ds", "when"]
)
_EPOCH = 10**9  # seconds; the year 2001
_FEW_DIFFER = 0.005
_BY_CHANCE = 0.2


def words(name: str) -> tuple[str, ...]:
    """Return the words of a name.

    >>> words("pLongView"), words("is_click"), words("like_score2")
    (('p', 'long', 'view'), ('is', 'click'), ('like', 'score', '2'))
    """
    return tuple(word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+", name))


def events(name: str) -> list[str]:
    """Return what a column may be about, the likeliest first.

    >>> events("p_like"), events("is_liked"), events("pctr")
    (['lik'], ['lik'], ['pctr', 'ctr'])
    """
    all_words = words(name)
    told = [w for w in all_words if w not in _SCORE_WORDS | _LABEL_WORDS] or list(all_words)
    event = _stem("".join(told))
    # A prefix may be written together with the word, as in pctr.
    glued = event[0] == "p" and len(event) > 3 if event else False
    return [event, event[1:]] if glued else [event]


def alias(event: str) -> str:
    """Return the common name of an event, such as click for ctr."""
    return _STEMMED.get(event, event)


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word.removesuffix(ending)
    return word


_STEMMED = {_stem(word): _stem(common) for common, same in _SAME.items() for word in same}


@dataclass(frozen=True)
class ColumnFacts:
    """What is known of a column before anybody says what it is.

    Attributes:
        values: How many different ones there are.
        missing: In what share of the rows there is no value, or no finite number.
        low: The smallest number.
        high: The largest number.
    """

    name: str
    kind: Kind
    values: int
    missing: float
    low: float = float("nan")
    high: float = float("nan")

    @property
    def words(self) -> frozenset[str]:
        """The words of its name."""
        return frozenset(words(self.name))

    @property
    def is_share(self) -> bool:
        """Whether it holds a number in [0, 1] in every row."""
        return self.numeric and self.low >= 0 and self.high <= 1 and not self.missing

    @property
    def numeric(self) -> bool:
        """Whether it holds numbers of more than two values."""
        return self.kind in ("integer", "number")


def facts_of(series: pl.Series) -> ColumnFacts:
    """Look at a column."""
    name, series = series.name, series.alias("x")
    missing = series.null_count() / max(len(series), 1)
    values = series.n_unique() - (series.null_count() > 0) if not series.dtype.is_nested() else 0
    if series.dtype == pl.Boolean:
        return ColumnFacts(name, "binary", values, missing, 0.0, 1.0)
    if series.dtype.is_numeric():
        finite = series.cast(pl.Float64).drop_nulls().to_numpy()
        finite = finite[np.isfinite(finite)]
        low, high = (finite.min(), finite.max()) if len(finite) else (np.nan, np.nan)
        kind, missing = _number_kind(name, series, finite), 1 - len(finite) / max(len(series), 1)
        return ColumnFacts(name, kind, values, missing, float(low), float(high))
    if isinstance(series.dtype, pl.Date | pl.Datetime):
        return ColumnFacts(name, "time", values, missing)
    if isinstance(series.dtype, pl.String | pl.Categorical | pl.Enum):
        kind = "time" if _is_time_text(series.cast(pl.String)) else "text"
        return ColumnFacts(name, kind, values, missing)
    return ColumnFacts(name, "other", values, missing)


def _number_kind(name: str, series: pl.Series, finite: np.ndarray) -> Kind:
    if len(finite) and np.isin(finite, (0.0, 1.0)).all():
        return "binary"
    whole = series.dtype.is_integer()
    if _TIME_WORDS & set(words(name)) and len(finite):
        dates = whole and finite.min() >= DAYS[0] and finite.max() <= DAYS[1]
        if dates or finite.min() > _EPOCH:
            return "time"
    return "integer" if whole else "number"


def _is_time_text(series: pl.Series) -> bool:
    some = series.drop_nulls().head(1000)
    return len(some) > 0 and instants(some).null_count() == 0


def is_steady(frame: pl.DataFrame, name: str, request: str) -> bool:
    """Tell whether a column has one value within nearly every request, and not by chance.

    A rare event too differs within few requests; among shuffled rows it differs within as few.
    """
    requests, column = frame[request], frame[name]
    share = _differing(column, requests)
    if share > _FEW_DIFFER:
        return False
    return share == 0 or share <= _BY_CHANCE * _differing(column.shuffle(seed=0), requests)


def _differing(column: pl.Series, requests: pl.Series) -> float:
    """Return the share of requests within which a column differs."""
    pair = pl.DataFrame({"r": requests, "x": column})
    counted = pair.group_by("r").agg(pl.col("x").n_unique())["x"]
    return float((counted > 1).sum()) / len(counted)


def auc_of(scores: pl.Series, labels: pl.Series) -> float:
    """Return the share of pairs that a score puts in the order of a label; .5 without a pair."""
    pair = pl.DataFrame({"s": scores.cast(pl.Float64), "y": labels.cast(pl.Float64)}).drop_nulls()
    pair = pair.filter(pair["s"].is_finite())
    chosen = pair["y"] > 0
    positives = int(chosen.sum())
    negatives = pair.height - positives
    if not positives or not negatives:
        return 0.5
    ranks = float(pair["s"].rank("average").filter(chosen).sum())
    return (ranks - positives * (positives + 1) / 2) / (positives * negatives)


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
    scores = [f for f in numbers if f.words & _SCORE_WORDS]
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
