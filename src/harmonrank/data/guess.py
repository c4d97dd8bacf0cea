"""Guess: a schema for a log, with a reason for every column, also as TOML to be corrected."""

__all__ = ["Guess", "commented_toml", "guess_schema"]

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import tomli_w

from harmonrank.data.guess_columns import (
    PRODUCTION,
    ColumnFacts,
    Pair,
    facts_of,
    graded_pairs,
    is_steady,
    pairs_of,
    parents,
)
from harmonrank.data.reading.tables import Source, describe, open_table
from harmonrank.data.scales import guess_scale
from harmonrank.data.schema import Schema
from harmonrank.support.errors import DataError
from harmonrank.support.table import Column, Style, Table

_ROWS = 100_000
_MOST_VALUES = 1000
_FEWEST_USERS = 30
_REQUEST_WORDS = (
    *("request", "req", "reqid", "requestid", "rid", "impression", "query", "search"),
    *("slate", "list", "page", "trace", "session"),
)
_USER_WORDS = frozenset(["user", "userid", "uid", "visitor", "customer", "member", "account"])
_ID_WORDS = frozenset(["id", "uid", "key", "hash"])
_PERCENT_WORDS = frozenset(["percent", "pct", "percentage"])
_WEIGHT_WORDS = frozenset(["weight", "weights", "ipw", "ips"])
_PLACE_WORDS = frozenset(["position", "pos", "place", "slot", "rank"])

# What each part of a schema is; TOML wants tables after all else.
_PARTS = {
    "request": "Candidates that were shown together share it.",
    "user": "Who asked, where users come back; evidence counts users.",
    "time": "When a row was shown; --split time cuts by it.",
    "sample_weight": "How much a row counts.",
    "context": "What describes the user and the moment, the same for all candidates of a request. "
    'Of a time such as "t", "t:hour" and "t:weekday" may be named too.',
    "graded": "Objectives whose label is a number.",
    "objectives": "Label = its score.",
    "given": "Objectives that are shown only where another happened.",
    "scale": "What scores are: probability, percent, logit or any.",
    "truth": "True probabilities, which only a world knows.",
}


@dataclass(frozen=True)
class Guess:
    """A schema, and what was thought of each column.

    Attributes:
        schema: What was guessed.
        reasons: The role of each column of the table, or "left out", and why.
        baseline: A column that seems to be what ranks today.
        rows: How many were looked at.
    """

    schema: Schema
    reasons: dict[str, tuple[str, str]]
    baseline: str | None
    rows: int

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        columns = {name: {"role": role, "why": why} for name, (role, why) in self.reasons.items()}
        return {"rows": self.rows, "schema": self.schema.to_dict(), "columns": columns}

    def to_table(self) -> Table:
        """Return a row per column, in the order in which a person checks them."""
        columns = Column("column"), Column("role"), Column("why", widest=44)
        scores = [f"score of {label}" for label in self.schema.objectives]
        order = ["label", *scores, "truth", "request", "user", "time", "context"]
        order += ["sample weight", "left out"]
        rows = [(name, role, why) for name, (role, why) in self.reasons.items()]
        rows.sort(key=lambda row: order.index(row[1]))
        emphasis: dict[int, Style] = {
            row: "dim" for row, (_, role, _) in enumerate(rows) if role == order[-1]
        }
        return Table(columns, tuple(rows), emphasis=emphasis)


def guess_schema(source: Source) -> Guess:
    """Guess what the columns of a log are, by their names, values and AUC.

    Raises:
        DataError: There is no label with a score.
    """
    frame = open_table(source, None, rows=_ROWS)
    # An unnamed column, such as the index that pandas writes to csv, can have no role.
    facts = [facts_of(series) for series in frame if series.name]
    return _Guessing(frame, facts).guess(describe(source))


class _Guessing:
    """Gives each column a role, the surest first."""

    def __init__(self, frame: pl.DataFrame, facts: Sequence[ColumnFacts]) -> None:
        self._frame, self._facts = frame, {fact.name: fact for fact in facts}
        self._reasons: dict[str, tuple[str, str]] = {}
        self._scales: dict[str, str] = {}

    def _left(self) -> list[ColumnFacts]:
        return [fact for name, fact in self._facts.items() if name not in self._reasons]

    def _take(self, name: str, role: str, why: str) -> str:
        self._reasons[name] = (role, why)
        return name

    def _first(
        self, words: frozenset[str], role: str, why: str, fits: Callable[[ColumnFacts], bool]
    ) -> str | None:
        """Take the first column that has one of these words and fits."""
        for fact in self._left():
            if fact.words & words and fits(fact):
                return self._take(fact.name, role, why.format(fact.name))
        return None

    def guess(self, called: str) -> Guess:
        time, request = self._time(), self._request()
        varied = [fact.name for fact in self._left() if fact.kind not in ("time", "other")]
        steady = {n for n in varied if request and is_steady(self._frame, n, request)}
        user = self._user(steady, request)
        weight = self._first(
            _WEIGHT_WORDS,
            "sample weight",
            "named so, and 0 or more",
            lambda fact: fact.numeric and fact.low >= 0 and not fact.missing,
        )
        # It predicts feedback, and no new row has it.
        self._first(
            _PLACE_WORDS,
            "left out",
            "may be where a row was shown: position = {!r} would correct feedback for it",
            lambda fact: fact.kind == "integer" and fact.low >= 0 and fact.name not in steady,
        )
        truth = [f for f in self._left() if f.is_share and f.words & {"truth", "true"}]
        moving = [fact for fact in self._left() if fact.name not in steady and fact not in truth]
        given, graded = parents(self._frame, moving), graded_pairs(moving)
        binary = [f for f in moving if f.kind == "binary" and f.values == 2]
        labels = [f for f in binary if not f.missing or f.name in given]
        taken = {*graded, *graded.values()}
        scores = [f for f in moving if f.numeric and f.values > 2 and f.name not in taken]
        pairs = pairs_of(self._frame, labels, scores)
        if not pairs:
            raise DataError(_nothing(called, labels, scores))
        given = {k: v for k, v in given.items() if {k, v} <= {pair.label for pair in pairs}}
        self._take_pairs(pairs, given, graded)
        known = pairs_of(self._frame, [self._facts[pair.label] for pair in pairs], truth)
        named = {pair.label: pair.score for pair in known if pair.named}
        for label, name in named.items():
            self._take(name, "truth", f"named like the true probability of {label}")
        today = "may be what ranks today: --baseline {}"
        baseline = self._first(PRODUCTION, "left out", today, lambda fact: fact.kind == "number")
        context = self._context(steady, request)
        for fact in self._left():
            self._take(fact.name, "left out", _why_not(fact, fact.name in steady, request))
        objectives = {pair.label: pair.score for pair in pairs} | graded
        schema = Schema(
            objectives,
            context,
            request,
            sample_weight=weight,
            truth=named if len(named) == len(objectives) else {},
            time=time,
            scale=self._scales,
            graded=tuple(graded),
            given=given,
            user=user,
        )
        ordered = {name: self._reasons[name] for name in self._facts}
        return Guess(schema, ordered, baseline, self._frame.height)

    def _time(self) -> str | None:
        times = [fact for fact in self._left() if fact.kind == "time" and fact.missing == 0]
        if not times:
            return None
        best = max(times, key=lambda fact: fact.values)
        return self._take(best.name, "time", f"{best.values:,} different times")

    def _request(self) -> str | None:
        rows, left = self._frame.height, self._left()
        ids = [fact for fact in left if fact.kind in ("integer", "text")]
        grouped = [fact for fact in ids if 1 < fact.values <= rows / 1.2]
        for word in _REQUEST_WORDS:
            for fact in grouped:
                if word in fact.words:
                    why = f"named so; {rows / fact.values:.1f} rows each"
                    return self._take(fact.name, "request", why)
        return None

    def _user(self, steady: set[str], request: str | None) -> str | None:
        """Take an id of users, which all rows of a request share."""
        rows = self._frame.height
        for fact in self._left():
            named = fact.words & _USER_WORDS and fact.words <= _USER_WORDS | _ID_WORDS
            # Of fewer values it is a kind of user.
            fits = fact.name in steady if request else fact.values <= rows / 1.2
            if named and fits and fact.kind in ("integer", "text") and fact.values >= _FEWEST_USERS:
                each = rows / fact.values
                return self._take(fact.name, "user", f"named so; {each:.1f} rows each")
        return None

    def _take_pairs(
        self, pairs: Sequence[Pair], given: Mapping[str, str], graded: Mapping[str, str]
    ) -> None:
        """Take labels and their scores."""
        for pair in pairs:
            why = f"0 and 1, {self._mean(pair.label):.2%} are 1"
            if pair.label in given:
                why += f"; null where {given[pair.label]} is 0, so given it"
            self._take(pair.label, "label", why)
            how = "named like it" if pair.named else "of all scores the best for it"
            self._take_score(pair.score, pair.label, f"{how}, AUC {pair.auc:.3f}")
        for label, score in graded.items():
            why = f"graded: numbers around {self._mean(label):.3g}, and {score} is named so"
            self._take(label, "label", why)
            self._take_score(score, label, "named like it")

    def _mean(self, name: str) -> float:
        return float(np.nanmean(self._frame[name].cast(pl.Float64).to_numpy()))

    def _take_score(self, name: str, label: str, why: str) -> None:
        """Take the score of a label, and its scale if it is no probability."""
        fact = self._facts[name]
        scale = self._scale(fact)
        if scale != "probability":
            self._scales[name] = scale
            why += f"; {fact.low:.3g} … {fact.high:.3g} looks like {_look(scale)}"
        if fact.missing:
            why += f"; null in {fact.missing:.1%}"
        self._take(name, f"score of {label}", why)

    def _scale(self, fact: ColumnFacts) -> str:
        # Scores of a rare event in percent may all be below 1; their name tells.
        if fact.words & _PERCENT_WORDS and fact.low >= 0 and fact.high <= 100:
            return "percent"
        if "logit" in fact.words:
            return "logit"
        return guess_scale(self._frame[fact.name].cast(pl.Float64).to_numpy())

    def _context(self, steady: set[str], request: str | None) -> list[str]:
        names = []
        for fact in self._left():
            few = 1 < fact.values <= _MOST_VALUES and not fact.words & _ID_WORDS
            numbers = fact.kind == "number" and fact.values > 1
            fits = fact.name in steady if request else fact.kind in ("text", "integer")
            if fits and (few or numbers):
                same = ", the same within a request" if request else ""
                names.append(self._take(fact.name, "context", f"{fact.values:,} values{same}"))
        return names


def _why_not(fact: ColumnFacts, steady: bool, request: str | None) -> str:
    if fact.values <= 1:
        return "one value only"
    if fact.kind == "time":
        return "a time; a context may be its hour or weekday"
    if fact.kind == "binary" and not steady:
        return "0 and 1, but no score goes with it" if not fact.missing else "a label with nulls"
    if request and not steady:
        return "differs within a request, and is the score of no label"
    return f"an id, {fact.values:,} values" if fact.words & _ID_WORDS else f"{fact.values:,} values"


def _look(scale: str) -> str:
    return {"logit": "a logit", "any": "no probability"}.get(scale, scale)


def _nothing(called: str, labels: Sequence[ColumnFacts], scores: Sequence[ColumnFacts]) -> str:
    def listed(facts: Sequence[ColumnFacts]) -> str:
        return " ".join(", ".join(fact.name for fact in facts[:10]).split()) or "none"

    return (
        f"{called} has no label with a score that could be guessed: columns of 0 and 1 are "
        f"{listed(labels)}; of scores {listed(scores)}. Name them: --labels A,B --scores A,B."
    )


def commented_toml(guess: Guess, table: str) -> str:
    """Return a schema file that says why each column is what it is."""
    left = [name for name, (role, _) in guess.reasons.items() if role == "left out"]
    paragraphs = [
        f"# Guessed by `harmonrank init` from {guess.rows:,} rows of {_line(table)}.\n"
        "# Correct what is wrong; docs/schema.md explains every key.",
        "\n".join(["# Left out:", *_reasons(guess, left)] * bool(left)),
    ]
    known = guess.schema.to_dict()
    for part in filter(known.__contains__, _PARTS):
        lines = [f"# {_PARTS[part]}", *_reasons(guess, _columns_of(known[part]))]
        paragraphs.append("\n".join([*lines, tomli_w.dumps({part: known[part]}).strip()]))
    return "\n\n".join(filter(None, paragraphs)) + "\n"


def _columns_of(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [*value, *value.values()] if isinstance(value, dict) else list(value)


def _reasons(guess: Guess, names: Iterable[str]) -> list[str]:
    return [f"#   {_line(n)}: {_line(guess.reasons[n][1])}" for n in names if n in guess.reasons]


def _line(text: str) -> str:
    """Return text that ends no comment: TOML allows no control sign in one."""
    return re.sub(r"[\x00-\x1f\x7f]+", " ", text)
