"""Encoder: rows of an imported log to keys and codes."""

__all__ = ["Encoder"]

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import polars as pl

from harmonrank.data import ContextEncoder
from harmonrank.data.logs import ImportedLog
from harmonrank.errors import DataError
from harmonrank.prediction.embedding import Layout, Rows
from harmonrank.prediction.side import Side, SideFields, typed

_SAMPLE_ROWS = 500_000
_SMALL = 1001


@dataclass(frozen=True)
class Encoder:
    """Knows what every value of the training rows became.

    Attributes:
        objectives: Label columns.
        users: Fields of the user side.
        items: Fields of the item side.
        context: Codes of the row's own features.
        numeric: Which of those are read as numbers.
        counts: (table rows,), about how many training rows touch each row of the table.
        sides: The entities, users first.
    """

    objectives: tuple[str, ...]
    users: SideFields
    items: SideFields
    context: ContextEncoder
    numeric: tuple[str, ...]
    counts: np.ndarray
    sides: tuple[Side, Side] = field(repr=False)

    @classmethod
    def fit(cls, log: ImportedLog, most: int) -> Self:
        """Read the training rows once and learn the codes; labels are not looked at."""
        c = log.columns
        survey = _Survey(log)
        frames = log.users(), log.items()
        fields = [
            SideFields.fit(key, *survey.ids(key), frame, table, most)
            for key, frame, table in zip((c.user, c.item), frames, (c.users, c.items), strict=True)
        ]
        context = ContextEncoder.fit(survey.context)
        sides = _sides(fields, frames)
        counts = _counts(fields, sides, survey, context)
        return cls(c.objectives, fields[0], fields[1], context, c.numeric, counts, sides)

    def of_log(self, log: ImportedLog) -> Self:
        """Return the same codes with the users and items of another log."""
        frames = log.users(), log.items()
        return self._with(_sides([self.users, self.items], frames))

    def _with(self, sides: tuple[Side, Side]) -> Self:
        return type(self)(
            self.objectives, self.users, self.items, self.context, self.numeric, self.counts, sides
        )

    @property
    def layout(self) -> Layout:
        """What the network's embedding needs to know."""
        codes = [side.codes for side in self.sides]
        slots = np.array([*self.users.slots, *self.items.slots, *self.context.slots])
        # The small fields of a row move together, so each takes a part of the step; an ID moves
        # on its own.
        small = slots <= _SMALL
        rates = np.where(small, 1 / np.sqrt(max(small.sum(), 1)), 1.0)
        return Layout.of(codes, len(self.context.features), self.counts, rates)

    @property
    def reads(self) -> list[str]:
        """The columns that `rows` needs, but for labels."""
        return [self.users.key, self.items.key, *self.context.names]

    def rows(self, frame: pl.DataFrame, *, labels: bool = True) -> Rows:
        """Encode rows; without labels those are all 0."""
        keys = np.stack(
            [
                side.find(_ids(frame[fields.key]))
                for side, fields in zip(self.sides, (self.users, self.items), strict=True)
            ],
            axis=1,
        )
        context = np.zeros((len(keys), 0), np.int32)
        if self.context.features:
            first = sum(self.users.slots) + sum(self.items.slots)
            own = typed(frame, self.context.names, self.numeric)
            context = (_context_codes(self.context, own) + first).astype(np.int32)
        answers = np.zeros((len(keys), len(self.objectives)), np.uint8)
        if labels:
            answers = frame.select(pl.col(self.objectives).cast(pl.UInt8)).to_numpy(order="c")
        return Rows(keys, context, answers)

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return JSON parts and arrays that `restore` reads."""
        parts: dict[str, Any] = {
            "objectives": list(self.objectives),
            "context": self.context.to_list(),
            "numeric": list(self.numeric),
        }
        arrays = {"counts": self.counts}
        for name, fields, side in zip(
            ("users", "items"), (self.users, self.items), self.sides, strict=True
        ):
            parts[name], known = fields.state()
            arrays |= {f"{name}/{key}": value for key, value in known.items()}
            arrays |= {f"{name}/ids": side.index.known, f"{name}/codes": side.codes}
        return parts, arrays

    @classmethod
    def restore(cls, parts: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Self:
        """Take over what `state` returned."""
        fields, sides = [], []
        for name in ("users", "items"):
            start = f"{name}/"
            mine = {k.removeprefix(start): v for k, v in arrays.items() if k.startswith(start)}
            fields.append(SideFields.restore(parts[name], mine))
            sides.append(Side.restore(mine["ids"], mine["codes"]))
        return cls(
            tuple(parts["objectives"]),
            fields[0],
            fields[1],
            ContextEncoder.from_list(parts["context"]),
            tuple(parts["numeric"]),
            arrays["counts"],
            (sides[0], sides[1]),
        )


class _Survey:
    """What one pass over the training rows tells: how often each ID comes, and some contexts."""

    def __init__(self, log: ImportedLog) -> None:
        c = log.columns
        self._counts: dict[str, pl.DataFrame] = {}
        every = max(1, -(-log.rows["train"] // _SAMPLE_ROWS))
        names, samples = [*c.categorical, *c.numeric], []
        for frame in log.batches("train", [c.user, c.item, *names], rows=1 << 20):
            for key in (c.user, c.item):
                self._add(key, frame[key])
            samples.append(typed(frame.gather_every(every), names, c.numeric))
        if not samples:
            raise DataError(f"'{log.folder}' has no training rows; import the log again.")
        self.rows, self.context = log.rows["train"], pl.concat(samples)

    def _add(self, key: str, series: pl.Series) -> None:
        counts = series.value_counts(name="count").with_columns(pl.col("count").cast(pl.Int64))
        if key in self._counts:
            both = pl.concat([self._counts[key], counts])
            counts = both.group_by(key).agg(pl.col("count").sum())
        self._counts[key] = counts

    def ids(self, key: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the IDs of a column, ascending, and how often each came."""
        counts = self._counts[key].drop_nulls().sort(key)
        return counts[key].to_numpy(), counts["count"].to_numpy()


def _sides(
    fields: list[SideFields], frames: tuple[pl.DataFrame | None, pl.DataFrame | None]
) -> tuple[Side, Side]:
    users = Side.of(fields[0], frames[0], 0)
    return users, Side.of(fields[1], frames[1], sum(fields[0].slots))


def _counts(
    fields: list[SideFields], sides: tuple[Side, Side], survey: _Survey, context: ContextEncoder
) -> np.ndarray:
    """Return how many training rows touch each row of the table."""
    first = sum(fields[0].slots) + sum(fields[1].slots)
    total = np.zeros(first + sum(context.slots))
    for side, key in zip(sides, (f.key for f in fields), strict=True):
        ids, counts = survey.ids(key)
        weights = np.repeat(counts, side.codes.shape[1])
        total += np.bincount(side.codes[side.find(ids)].ravel(), weights, len(total))
    codes = _context_codes(context, survey.context) + first
    share = survey.rows / max(len(codes), 1)
    total += share * np.bincount(codes.ravel(), minlength=len(total))
    return total.astype(np.float32)


def _context_codes(context: ContextEncoder, frame: pl.DataFrame) -> np.ndarray:
    """Return codes, (rows, fields), each field counting on from the one before it."""
    starts = np.cumsum([0, *context.slots], dtype=np.int64)[:-1]
    codes: np.ndarray = context.encode(frame) + starts
    return codes


def _ids(series: pl.Series) -> np.ndarray:
    # No log has this ID, so a null is an entity that nothing is known of.
    return series.cast(pl.Int64).fill_null(np.iinfo(np.int64).min).to_numpy()
