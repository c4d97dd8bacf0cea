"""Encoder: rows of an imported log to keys and codes."""

__all__ = ["Encoder"]

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Self

import numpy as np
import polars as pl
from msgspec import Meta

from harmonrank.data import ContextEncoder
from harmonrank.support import DataError
from harmonrank.support.storage import Array
from harmonrank_lab.upstream.embedding import Layout, Rows
from harmonrank_lab.upstream.logs import ImportedLog
from harmonrank_lab.upstream.side import Side, SideFields, typed

_SAMPLE_ROWS = 500_000
_SMALL = 1001
_NO_ID = np.iinfo(np.int64).min
"""No log has this ID, so it is an entity that nothing is known of."""


@dataclass(frozen=True)
class Encoder:
    """Knows what every value of the rows that networks learn from became.

    A network that saw only some of these parts has the other values' rows at 0, as if they were
    unknown to it.

    Attributes:
        objectives: Label columns.
        users: Fields of the user side.
        items: Fields of the item side.
        context: Codes of the row's own features.
        numeric: Which of those are read as numbers.
        counts: Per part, (table rows,), about how many rows touch each row of the table.
        user_side: The users.
        item_side: The items.
    """

    objectives: Annotated[tuple[str, ...], Meta(min_length=1, max_length=1000)]
    users: SideFields
    items: SideFields
    context: ContextEncoder
    numeric: tuple[str, ...]
    counts: Annotated[Mapping[str, np.ndarray], Array((), "float32", low=0.0)]
    user_side: Side = field(repr=False)
    item_side: Side = field(repr=False)

    @classmethod
    def fit(cls, log: ImportedLog, most: int, parts: Sequence[str] = ("train",)) -> Self:
        """Read the rows of some parts once and learn the codes; labels are not looked at."""
        c = log.columns
        survey = _Survey(log, parts)
        frames = log.users(), log.items()
        users = SideFields.fit(c.user, *survey.ids(c.user), frames[0], c.users, most)
        items = SideFields.fit(c.item, *survey.ids(c.item), frames[1], c.items, most)
        fields = [users, items]
        context = ContextEncoder.fit(pl.concat(survey.context.values()))
        sides = _sides(fields, frames)
        counts = {part: _counts(fields, sides, survey, context, part) for part in parts}
        return cls(c.objectives, users, items, context, c.numeric, counts, *sides)

    def of_log(self, log: ImportedLog) -> Self:
        """Return the same codes with the users and items of another log."""
        users, items = _sides([self.users, self.items], (log.users(), log.items()))
        return replace(self, user_side=users, item_side=items)

    @property
    def sides(self) -> tuple[Side, Side]:
        """The entities, users first."""
        return self.user_side, self.item_side

    @property
    def layout(self) -> Layout:
        """What the embedding of a network of training rows needs to know."""
        return self.layout_of("train")

    def layout_of(self, *parts: str) -> Layout:
        """Return what the embedding of a network needs to know that learns from these parts."""
        codes = [side.codes for side in self.sides]
        slots = np.array([*self.users.slots, *self.items.slots, *self.context.slots])
        # The small fields of a row move together, so each takes a part of the step; an ID moves
        # on its own.
        small = slots <= _SMALL
        rates = np.where(small, 1 / np.sqrt(max(small.sum(), 1)), 1.0)
        counts = np.sum([self.counts[part] for part in parts], axis=0)
        return Layout.of(codes, len(self.context.features), counts, rates)

    @property
    def reads(self) -> list[str]:
        """The columns that `rows` needs, but for labels."""
        return [self.users.key, self.items.key, *self.context.names]

    def rows(self, frame: pl.DataFrame, *, labels: bool = True) -> Rows:
        """Encode rows; without labels those are all 0."""
        each = [
            side.find(frame[fields.key].cast(pl.Int64).fill_null(_NO_ID).to_numpy())
            for side, fields in zip(self.sides, (self.users, self.items), strict=True)
        ]
        keys = np.stack(each, axis=1)
        context = np.zeros((len(keys), 0), np.int32)
        if self.context.features:
            first = sum(self.users.slots) + sum(self.items.slots)
            own = typed(frame, self.context.names, self.numeric)
            context = (_context_codes(self.context, own) + first).astype(np.int32)
        answers = np.zeros((len(keys), len(self.objectives)), np.uint8)
        if labels:
            answers = frame.select(pl.col(self.objectives).cast(pl.UInt8)).to_numpy(order="c")
        return Rows(keys, context, answers)

    def check(self) -> None:
        """Refuse stored parts that do not fit together."""
        self.user_side.check(self.users, 0)
        self.item_side.check(self.items, sum(self.users.slots))
        rows = sum((*self.users.slots, *self.items.slots, *self.context.slots))
        if "train" not in self.counts or any(c.shape != (rows,) for c in self.counts.values()):
            raise DataError(f"the counts must have {rows} rows, of training rows at least")


class _Survey:
    """What one pass over the rows of some parts tells: how often each ID comes, some contexts."""

    def __init__(self, log: ImportedLog, parts: Sequence[str]) -> None:
        self._counts: dict[tuple[str, str], pl.DataFrame] = {}
        self.rows, self.context = dict(log.rows), {p: self._read(log, p) for p in parts}

    def _read(self, log: ImportedLog, part: str) -> pl.DataFrame:
        """Count the IDs of a part and return a sample of its contexts."""
        c = log.columns
        every = max(1, -(-log.rows[part] // _SAMPLE_ROWS))
        names, samples = [*c.categorical, *c.numeric], []
        for frame in log.batches(part, [c.user, c.item, *names], rows=1 << 20):
            for key in (c.user, c.item):
                counts = frame[key].value_counts(name="count").cast({"count": pl.Int64})
                known = [self._counts[part, key]] if (part, key) in self._counts else []
                self._counts[part, key] = _summed([*known, counts], key)
            samples.append(typed(frame.gather_every(every), names, c.numeric))
        if not samples:
            raise DataError(f"'{log.folder}' has no {part} rows; import the log again.")
        return pl.concat(samples)

    def ids(self, key: str, part: str | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return the IDs of a column, ascending, and how often each came, in all parts or one."""
        frames = [self._counts[p, key] for p in self.context if part in (None, p)]
        counts = _summed(frames, key).drop_nulls().sort(key)
        return counts[key].to_numpy(), counts["count"].to_numpy()


def _summed(frames: list[pl.DataFrame], key: str) -> pl.DataFrame:
    return pl.concat(frames).group_by(key).agg(pl.col("count").sum())


def _sides(
    fields: list[SideFields], frames: tuple[pl.DataFrame | None, pl.DataFrame | None]
) -> tuple[Side, Side]:
    users = Side.of(fields[0], frames[0], 0)
    return users, Side.of(fields[1], frames[1], sum(fields[0].slots))


def _counts(
    fields: list[SideFields], sides: tuple[Side, Side], survey: _Survey,
    context: ContextEncoder, part: str,
) -> np.ndarray:  # fmt: skip
    """Return how many rows of a part touch each row of the table."""
    first = sum(fields[0].slots) + sum(fields[1].slots)
    total = np.zeros(first + sum(context.slots))
    for side, key in zip(sides, (f.key for f in fields), strict=True):
        ids, counts = survey.ids(key, part)
        weights = np.repeat(counts, side.codes.shape[1])
        total += np.bincount(side.codes[side.find(ids)].ravel(), weights, len(total))
    codes = _context_codes(context, survey.context[part]) + first
    share = survey.rows[part] / max(len(codes), 1)
    total += share * np.bincount(codes.ravel(), minlength=len(total))
    return total.astype(np.float32)


def _context_codes(context: ContextEncoder, frame: pl.DataFrame) -> np.ndarray:
    """Return codes, (rows, fields), each field counting on from the one before it."""
    starts = np.cumsum([0, *context.slots], dtype=np.int64)[:-1]
    return np.asarray(context.encode(frame) + starts)
