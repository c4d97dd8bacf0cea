"""Events: what a stream is made of, as one frame, and what is wrong with those that are malformed.

An exposure says that an item was shown: request, item, time, perhaps user and position, and the
score, context and truth columns that the schema names. Feedback says what came of it: request,
item, time, objective and value (1 if left out; 0 says nothing). The frame holds both kinds, in
order, with nulls where a column does not apply:

    event  request  item  time  user  position  SCORES…  CONTEXT…  objective  value  fault  raw

`fault` says why a row is malformed, and `raw` then holds it as it came, as JSON.
"""

__all__ = ["EVENT_COLUMNS", "EventForm"]

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

import polars as pl

from harmonrank.data import Schema
from harmonrank.data.clock import clock_part
from harmonrank.streaming.sources.event_columns import KINDS, TYPES, kind_of
from harmonrank.support.errors import UsageError, did_you_mean

EVENT_COLUMNS = ("event", "request", "item", "time", "user", "position")
"""What the frame begins with."""

_TAKEN = ("event", "request", "time", "objective", "value", "fault", "raw")
_SHARED = ("item", "user", "position")


@dataclass(frozen=True)
class EventForm:
    """Turns raw rows into the canonical frame of a schema's events.

    Attributes:
        schema: Which columns exposures have.
        kinds: What each context column holds; `settled` finds out those that are not named.
    """

    schema: Schema
    kinds: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        schema, context = self.schema, self.context
        for name, kind in self.kinds.items():
            if name not in context:
                hint = did_you_mean(name, context) if context else "There is no context."
                raise UsageError(f"`kinds` names '{name}', which is no context column. {hint}")
            if kind not in KINDS:
                raise UsageError(f"The kind of '{name}' must be one of {', '.join(KINDS)}.")
        own = (*schema.names, *self.numbers, *context)
        for name in own:
            reserved = name in (*_TAKEN, schema.request, schema.time, schema.position)
            if reserved or (name in _SHARED and name not in context) or own.count(name) > 1:
                raise UsageError(
                    f"A stream has a column '{name}' already; rename the one of the schema."
                )

    @cached_property
    def context(self) -> tuple[str, ...]:
        """The context columns that exposures carry; hours of `time` need none."""
        schema = self.schema
        parts = {name: clock_part(name) for name in schema.context}
        columns = [name if (part := parts[name]) is None else part[0] for name in schema.context]
        known = ("time", schema.time, *_SHARED)
        return tuple(name for name in dict.fromkeys(columns) if name not in known)

    @cached_property
    def numbers(self) -> tuple[str, ...]:
        """The columns of exposures that hold numbers: scores and true probabilities."""
        return (*self.schema.score_columns, *self.schema.truth.values())

    @cached_property
    def columns(self) -> dict[str, str]:
        """The columns of exposures beyond those of every event, and the kind of each."""
        context = {name: self.kinds.get(name, "unknown") for name in self.context}
        return dict.fromkeys(self.numbers, "number") | context

    @cached_property
    def kinds_of_all(self) -> dict[str, str]:
        """The columns of the canonical frame, in order, without faults, and the kind of each."""
        first = dict.fromkeys(EVENT_COLUMNS, "id") | {"time": "time", "position": "integer"}
        return {**first, **self.columns, "objective": "id", "value": "number"}

    @cached_property
    def types(self) -> dict[str, pl.DataType]:
        """The columns of the canonical frame, in order, and their types."""
        own = {name: TYPES[kind] for name, kind in self.kinds_of_all.items()}
        return {**own, "fault": pl.String(), "raw": pl.String()}

    def empty(self) -> pl.DataFrame:
        """Return the canonical frame without a row."""
        return pl.DataFrame(schema=self.types)

    def unsettled(self) -> list[str]:
        """Return the context columns of which nothing has told yet what they hold."""
        return [name for name in self.context if name not in self.kinds]

    def with_kinds(self, kinds: Mapping[str, str]) -> Self:
        """Return the form that knows of more columns what they hold."""
        return replace(self, kinds={**self.kinds, **kinds})

    def settled(self, columns: Mapping[str, pl.Series]) -> Self:
        """Return the form with the kinds that raw columns tell."""
        there = {name: columns[name] for name in self.unsettled() if name in columns}
        kinds = {
            name: kind_of(raw.dtype) for name, raw in there.items() if raw.null_count() < len(raw)
        }
        return self.with_kinds({name: kind for name, kind in kinds.items() if kind is not None})
