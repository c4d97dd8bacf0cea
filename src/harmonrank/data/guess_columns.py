"""Columns of a log that nobody has described: the words of a name, and the facts of the values."""

__all__ = [
    "SCORE_WORDS",
    "ColumnFacts",
    "alias",
    "auc_of",
    "events",
    "facts_of",
    "is_steady",
    "words",
]

import re
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from harmonrank.data.clock import DAYS, instants

# Words that say what kind of column it is, not what it is about.
SCORE_WORDS = frozenset(
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
    told = [w for w in all_words if w not in SCORE_WORDS | _LABEL_WORDS] or list(all_words)
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
