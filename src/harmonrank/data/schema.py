"""Schema: which column of a table is what."""

__all__ = ["Missing", "Schema"]

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, Self

import msgspec
import numpy as np
import tomli_w

from harmonrank.data import values
from harmonrank.data.kinds import check_kinds
from harmonrank.data.scales import SCALES
from harmonrank.support.errors import DataError, UsageError, refuse_unknown, shown
from harmonrank.support.options import checked_path
from harmonrank.support.storage.decoding import read_toml

Missing = Literal["allow", "error"]
"""What is done about a score that did not arrive."""

# TOML has plain values before tables; what a reader checks first comes first.
_ORDER = (
    *("objectives", "context", "request", "user", "time", "sample_weight", "position"),
    *(
        "missing",
        "unwanted",
        "graded",
        "weights",
        "given",
        "scale",
        "truth",
        "value",
        "examination",
    ),
)


@dataclass(frozen=True)
class Schema:
    """Names the columns of a log.

    >>> schema = Schema({"buy": "p_buy", "like": "p_like"}, context=["hour"], weights={"buy": 2})
    >>> schema.score_columns, schema.weight_vector
    (('p_buy', 'p_like'), array([2., 1.]))

    Args:
        objectives: Label column of each objective, which also names it, and its score column.
        context: User and context features; text and whole numbers are categories, other
            numbers are cut into quantiles. Of a column of times, such as `shown_at`, the entries
            `shown_at:hour` and `shown_at:weekday` are the hour and the day of the week.
        request: Candidates that were shown together share its value.
        weights: What an objective's AUC counts in the sum; 1 where not given.
        sample_weight: How much a row counts.
        truth: Column of each objective's true probability, which only a world knows.
        value: What an event of an objective is worth, in place of weights; 0 where not given.
        time: When a row was shown, for a split by time and for how fast old rows fade.
        scale: What the numbers of a score column are: probability (if not given), percent, logit
            or any.
        missing: 'allow' takes a score that is null or NaN for one that did not arrive, as of a
            model that timed out; 'error' refuses it.
        position: At which place of its request a row was shown, null if it was not. Feedback is
            then corrected for how often a place is looked at (see docs/position.md).
        examination: The chance that each place is looked at, as in {1: 1.0, 2: 0.6}, which a fit
            estimates if it is not given; a place that is not listed has that of the one before.
        unwanted: Objectives that count against a row, such as a report: their weights are taken
            below zero, whatever sign they are given with.
        graded: Objectives whose label is a number, such as seconds watched or stars, ranked by
            concordance (see docs/objectives.md).
        given: The objective that must have happened for another to be shown, as in
            {'order': 'click'}; the label of other rows is not looked at and may be null.
        user: Who asked, where users come back: no two rows of one are independent, so evidence and
            intervals count users and not requests.
    """

    objectives: Mapping[str, str]
    context: Sequence[str] = ()
    request: str | None = None
    weights: Mapping[str, float] = field(default_factory=dict)
    sample_weight: str | None = None
    truth: Mapping[str, str] = field(default_factory=dict)
    value: Mapping[str, float] = field(default_factory=dict)
    time: str | None = None
    scale: Mapping[str, str] = field(default_factory=dict)
    missing: Missing = "allow"
    position: str | None = None
    examination: Mapping[int, float] = field(default_factory=dict)
    unwanted: Sequence[str] = ()
    graded: Sequence[str] = ()
    given: Mapping[str, str] = field(default_factory=dict)
    user: str | None = None

    def __post_init__(self) -> None:
        for part in ("objectives", "given", "truth", "scale"):
            self._set(part, _names(part, getattr(self, part)))
        for part in ("context", "unwanted", "graded"):
            self._set(part, _columns(part, getattr(self, part)))
        for part in ("request", "user", "sample_weight", "time", "position"):
            if getattr(self, part) is not None:
                _columns(part, [getattr(self, part)])
        if self.missing not in ("allow", "error"):
            raise UsageError(f"`missing` must be 'allow' or 'error'. Got {shown(self.missing)}.")
        self._check_roles()
        self._set("examination", values.checked_curve(self.examination))
        if self.examination and self.position is None:
            raise UsageError(
                "`examination` needs `position`, the column that says at which place a row was "
                "shown. Got none."
            )
        values.vector_with("weights", self.names, {}, self.weights, 1.0)
        if self.value:
            values.either(self.weights or None, self.value, "[weights] or [value]")
            worth = values.vector_with("value", self.names, {}, self.value, 0.0)
            values.refuse_gains(self.unwanted, worth, self.names)
        for part in ("weights", "value"):
            numbers = values.checked_mapping(part, getattr(self, part))
            self._set(part, {name: float(number) for name, number in numbers.items()})

    def _set(self, part: str, value: Any) -> None:
        object.__setattr__(self, part, value)

    def _check_roles(self) -> None:
        if not self.objectives:
            raise UsageError("`objectives` must name at least one label and its score column.")
        _refuse_repeats("score column", self.objectives.values())
        _refuse_repeats("context column", self.context)
        for part in ("truth", "unwanted", "graded"):
            for name in getattr(self, part):
                values.known_objective(part, name, self.names)
        _refuse_repeats("unwanted objective", self.unwanted)
        _refuse_repeats("graded objective", self.graded)
        check_kinds(self.names, self.graded, self.given, self.position)
        self._check_scale()
        # What is learned from must not hold what is learned.
        hidden = dict.fromkeys(self.objectives, "label")
        hidden |= dict.fromkeys(self.truth.values(), "truth column")
        # Where a row will be shown is not known when it is scored.
        if self.position in hidden:
            raise UsageError(
                f"Column '{self.position}' cannot be both a {hidden[self.position]} and a position "
                "column."
            )
        hidden |= {self.position: "position column"} if self.position else {}
        seen = dict.fromkeys(self.objectives.values(), "score column")
        seen |= dict.fromkeys(self.context, "context column")
        for name in seen:
            if name in hidden:
                raise UsageError(
                    f"Column '{name}' cannot be both a {hidden[name]} and a {seen[name]}."
                )

    def _check_scale(self) -> None:
        sentence = "`scale` names '{}', which is no score column."
        refuse_unknown(self.scale, self.score_columns, sentence)
        for name, scale in self.scale.items():
            if scale not in SCALES:
                raise UsageError(
                    f"The scale of '{name}' must be one of {', '.join(SCALES)}. Got {shown(scale)}."
                )

    @property
    def names(self) -> tuple[str, ...]:
        """The objectives, which are also the label columns."""
        return tuple(self.objectives)

    @property
    def score_columns(self) -> tuple[str, ...]:
        """The score column of each objective."""
        return tuple(self.objectives.values())

    @property
    def scales(self) -> tuple[str, ...]:
        """The scale of each objective's score."""
        return tuple(self.scale.get(name, "probability") for name in self.score_columns)

    @property
    def weight_vector(self) -> np.ndarray:
        """The weight of each objective, in order; below 0 if it counts against a row."""
        return self.weights_with({})

    def weights_with(self, changes: Mapping[str, float] | None) -> np.ndarray:
        """Return the weight of each objective after some are changed.

        A weight below 0 counts against a row. That of an objective in `unwanted` is below 0
        whatever its sign is here.

        Raises:
            UsageError: An objective is unknown, a weight is not finite, or all are 0.
        """
        vector = values.vector_with("weights", self.names, self.weights, changes, 1.0)
        against = np.isin(self.names, self.unwanted)
        return np.where(against, -np.abs(vector), vector) if against.any() else vector

    @property
    def signs(self) -> np.ndarray:
        """What more of each objective is: 1 is good, −1 is bad."""
        worth = self.values_with(None)
        counts = self.weight_vector if worth is None else worth
        return np.where(np.isin(self.names, self.unwanted) | (counts < 0), -1.0, 1.0)

    def values_with(self, changes: Mapping[str, float] | None) -> np.ndarray | None:
        """Return what an event of each objective is worth, or None if nothing says so."""
        if changes is None and not self.value:
            return None
        worth = values.vector_with("value", self.names, self.value, changes, 0.0)
        values.refuse_gains(self.unwanted, worth, self.names)
        return worth

    def subset(self, names: Iterable[str]) -> Self:
        """Return the schema of some objectives only."""
        names = _columns("names", names)
        for name in names:
            values.known_objective("names", name, self.names)
        objectives = {k: self.objectives[k] for k in names}
        kept: dict[str, Any] = {
            part: {k: v for k, v in getattr(self, part).items() if k in names}
            for part in ("weights", "truth", "value")
        }
        for part in ("unwanted", "graded"):
            kept[part] = tuple(k for k in getattr(self, part) if k in names)
        kept["scale"] = {k: v for k, v in self.scale.items() if k in objectives.values()}
        return replace(self, objectives=objectives, given=self._given_within(names), **kept)

    def _given_within(self, names: Sequence[str]) -> dict[str, str]:
        """Return what is given what among some objectives, which must hold what each is given."""
        given = {k: v for k, v in self.given.items() if k in names}
        for name, parent in given.items():
            if parent not in names:
                raise UsageError(
                    f"'{name}' is shown only given '{parent}'; name '{parent}' too, or leave "
                    f"'{name}' out."
                )
        return given

    def kind(self, name: str) -> str:
        """Return in words what an objective is beside an event, '' if it is one."""
        words = ["graded"] if name in self.graded else []
        words += [f"given {self.given[name]}"] if name in self.given else []
        return ", ".join(words)

    @property
    def plain(self) -> bool:
        """Whether every objective is an event of 0 or 1 that every row shows."""
        return not (self.graded or self.given)

    def require_plain(self, what: str) -> None:
        """Refuse graded and conditional objectives where they have no meaning yet."""
        for name in self.names:
            if kind := self.kind(name):
                raise UsageError(
                    f"{what} takes objectives of 0 and 1 that every row shows. Got '{name}', which "
                    f"is {kind}; leave it out."
                )

    def to_dict(self) -> dict[str, Any]:
        """Return what `from_dict` reads, with empty parts left out."""
        parts = msgspec.to_builtins(self, str_keys=True)
        given = {name: parts[name] for name in _ORDER if parts[name]}
        return {name: part for name, part in given.items() if (name, part) != ("missing", "allow")}

    @classmethod
    def of(cls, schema: "Schema | Mapping[str, Any]") -> "Schema":
        """Return a schema as it is, and a dict of its parts as a schema.

        >>> Schema.of({"objectives": {"buy": "p_buy"}}).names
        ('buy',)
        """
        return schema if isinstance(schema, Schema) else cls.from_dict(schema)

    @classmethod
    def from_dict(cls, parts: Mapping[str, Any]) -> Self:
        """Build a schema from the parts that a TOML or JSON file holds."""
        if not isinstance(parts, Mapping):
            raise UsageError(
                "A schema must be a Schema or a dict of its parts, as in "
                f"{{'objectives': {{'buy': 'p_buy'}}}}. Got {shown(parts)}."
            )
        known = [f.name for f in fields(cls)]
        refuse_unknown(parts, known, "A schema has no part '{}'.", DataError)
        if not isinstance(parts.get("objectives"), Mapping):
            raise DataError('A schema needs [objectives] with lines such as buy = "p_buy".')
        return cls(**parts)

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read a schema from a TOML file."""
        path = checked_path("path", path)
        try:
            parts = read_toml(path, "a TOML schema")
        except FileNotFoundError:
            raise DataError(f"There is no schema file '{path}'; check its name.") from None
        try:
            return cls.from_dict(parts)
        except (DataError, UsageError) as error:
            raise DataError(f"Schema file '{path}': {error}") from None

    def to_toml(self) -> str:
        """Return the schema as TOML text."""
        return tomli_w.dumps(self.to_dict())


def _names(part: str, value: Any) -> dict[str, str]:
    mapping = values.checked_mapping(part, value)
    _columns(part, [*mapping, *mapping.values()])
    return mapping


def _columns(part: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, Iterable):
        raise UsageError(f"`{part}` must be a list of column names. Got {value!r}.")
    columns = (value,) if isinstance(value, str) else tuple(value)
    for column in columns:
        if not isinstance(column, str) or not column:
            raise UsageError(f"`{part}` must name columns by text. Got {column!r}.")
    return columns


def _refuse_repeats(role: str, columns: Iterable[str]) -> None:
    seen: set[str] = set()
    for column in columns:
        if column in seen:
            raise UsageError(f"The {role} '{column}' is named twice; each must be named once.")
        seen.add(column)
