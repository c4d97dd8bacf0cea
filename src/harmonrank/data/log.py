"""Log: the checked columns of a table as arrays."""

__all__ = ["OPTIONAL", "Log", "require_some_scores", "require_two_labels", "selected", "taken"]

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import polars as pl

from harmonrank.data.context import ContextEncoder
from harmonrank.data.kinds import LabelLevels
from harmonrank.data.reading.tables import offence
from harmonrank.data.rows.blocks import drawn_rows
from harmonrank.data.schema import Schema
from harmonrank.support.errors import DataError

# Arrays with a row for each row of the log, which may be left out.
OPTIONAL = (
    "labels",
    "request",
    "user",
    "sample_weight",
    "truth",
    "position",
    "inverse",
    "shown",
    "time",
)


@dataclass(frozen=True)
class Log:
    """Rows of a table, one array per role.

    Attributes:
        scores: (rows, objectives), float32 or float64 as in the table, all in [0, 1]; NaN where
            a score is missing.
        context: One column per context feature, as in the table.
        labels: (rows, objectives) of 0 and 1, or None when the table was read to be scored. Of
            graded objectives numbers in their own units; 0 where a row does not show one.
        request: (rows,) one number per request.
        user: (rows,) one number per user; of a row without one that of its request.
        sample_weight: (rows,) float64.
        truth: (rows, objectives) true probabilities, in a world.
        position: (rows,) at which place a row was shown, −1 if it was not.
        inverse: (rows,) what undoes the place: the chance that the row was looked at, given its
            feedback, over that of its place. None until `corrected`; it is then a factor of
            `sample_weight`.
        shown: (rows, objectives) whether a row shows each objective; None if all rows show all.
        draws: In a world, by objective, (rows, K) equally likely values of a graded label.
        time: (rows,) when each row was shown, NaN where that is unknown; None if no column tells.
    """

    schema: Schema
    scores: np.ndarray
    context: pl.DataFrame
    labels: np.ndarray | None = None
    request: np.ndarray | None = None
    sample_weight: np.ndarray | None = None
    truth: np.ndarray | None = None
    position: np.ndarray | None = None
    inverse: np.ndarray | None = None
    shown: np.ndarray | None = None
    draws: Mapping[str, np.ndarray] = field(default_factory=dict)
    time: np.ndarray | None = None
    user: np.ndarray | None = None

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self.scores)

    @property
    def units(self) -> np.ndarray | None:
        """What alone is independent: users with all their requests, or else requests."""
        return self.request if self.user is None else self.user

    def missing(self) -> np.ndarray:
        """Return how many scores of each column are missing, (objectives,)."""
        counts: np.ndarray = np.isnan(self.scores).sum(axis=0)
        return counts

    def require_scores(self, purpose: str) -> None:
        """Refuse a score that all rows miss: nothing tells what it would have been."""
        require_some_scores(self.schema, self.rows, self.missing(), purpose)

    def known_labels(self) -> np.ndarray:
        """Return the labels of a log that was read with them."""
        assert self.labels is not None, "this log was read without labels"
        return self.labels

    def prevalence(self) -> np.ndarray:
        """Return the share of positives of each objective, by sample weight.

        Of a conditional one among the rows that show it. A graded one has that of the events with
        as many pairs: π(1−π) = (1 − P(tie))/4, eq. 8 of docs/objectives.md; ½ without ties.
        """
        if self.schema.plain:
            return np.average(self.known_labels(), axis=0, weights=self.sample_weight)
        return np.array([self._share(m) for m in range(len(self.schema.names))])

    def _share(self, m: int) -> float:
        labels, weight = self.shown_labels(m)
        if self.schema.names[m] in self.schema.graded:
            return LabelLevels.of(labels, weight).prevalence()
        return float(np.average(labels, weights=weight)) if len(labels) else 0.0

    def shown_labels(self, m: int) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the labels of objective m and the weights of the rows that show it."""
        labels, weight = self.known_labels()[:, m], self.sample_weight
        if self.shown is None:
            return labels, weight
        there = self.shown[:, m]
        return labels[there], None if weight is None else weight[there]

    def codes(self, encoder: ContextEncoder) -> np.ndarray:
        """Return the codes of the context of every row, (rows, features) int32."""
        return encoder.encode(self.context, self.rows)

    def with_scores(self, scores: np.ndarray) -> Self:
        """Return the same rows with other scores."""
        return replace(self, scores=scores)

    def take(self, index: np.ndarray) -> Self:
        """Return some rows, in the order of the index."""
        return self._chosen(index, taken(self.context, index))

    def part(self, rows: slice) -> Self:
        """Return neighbouring rows, of which nothing is copied."""
        return self._chosen(rows, self.context[rows])

    def _chosen(self, index: Any, context: pl.DataFrame) -> Self:
        arrays = {role: getattr(self, role) for role in OPTIONAL}
        chosen = {role: array[index] for role, array in arrays.items() if array is not None}
        draws = {name: draws[index] for name, draws in self.draws.items()}
        return replace(self, scores=self.scores[index], context=context, draws=draws, **chosen)

    def drawn(self, most: int) -> np.ndarray:
        """Return the numbers of rows drawn at random, ascending; all if there are no more."""
        return drawn_rows(self.rows, most)

    def sampled(self, most: int) -> Self:
        """Return rows drawn at random, in their order; the log itself if there are no more."""
        return self if self.rows <= most else self.take(self.drawn(most))

    def counted(self, *, empty: bool = False) -> Self:
        """Return the rows that count, all but those of sample weight 0; some, unless `empty`.

        Raises:
            DataError: No row has a weight above 0.
        """
        weight = self.sample_weight
        if weight is None or weight.all():
            return self
        if not (empty or weight.any()):
            raise DataError(
                f"All {self.rows:,} rows have sample weight 0; expected at least one that counts."
            )
        return self.take(np.flatnonzero(weight))

    @property
    def own_weight(self) -> np.ndarray | None:
        """What each row counts by the table alone, whatever its place."""
        if self.inverse is None or self.sample_weight is None:
            return self.sample_weight
        if self.schema.sample_weight is None:
            return None
        own = np.zeros(self.rows)  # of rows that were not shown
        np.divide(self.sample_weight, self.inverse, out=own, where=self.inverse > 0)
        return own

    def corrected(self, inverse: np.ndarray, curve: Mapping[int, float]) -> Self:
        """Return these rows with weights that undo their places, under this examination curve."""
        own = 1.0 if self.own_weight is None else self.own_weight
        schema = replace(self.schema, examination=curve)
        return replace(self, schema=schema, sample_weight=own * inverse, inverse=inverse)

    def uncorrected(self) -> Self:
        """Return these rows with the weights of the table alone."""
        return replace(self, sample_weight=self.own_weight, inverse=None)

    def with_unit_weights(self) -> Self:
        """Return these rows with sample weights of mean 1: only their ratios may matter.

        Weights that undo places are scaled on, so that rows with feedback weigh as many as they
        are worth, (Σu)²/Σu²: what a fit shrinks by must not take them for more (eq. 5 of
        docs/position.md).
        """
        weight = self.sample_weight
        if weight is None:
            return self
        unit = weight / weight.mean()
        if self.inverse is not None and self.labels is not None and self.labels.any():
            u = self.inverse[self.labels.any(axis=1)]
            unit *= u.sum() / (u @ u)
        return replace(self, sample_weight=unit)

    def aligned(self, schema: Schema, *, labels: bool = True) -> "Log":
        """Return these rows as a table that is read with another schema gives them.

        Columns are put in the schema's order, and those that it does not name are left out.

        Raises:
            DataError: A column that the schema names is not here.
        """
        if labels and self.labels is None:
            raise DataError("The log was read without labels; read it with `labels=True`.")
        have = self.schema
        if self.inverse is not None:
            # Rows keep their correction, unless another curve is asked for.
            if have.position == schema.position and not schema.examination:
                schema = replace(schema, examination=have.examination)
            elif have.position != schema.position or have.examination != schema.examination:
                return self.uncorrected().aligned(schema, labels=labels)
        if schema.missing == "error" and have.missing != "error":
            self._refuse_missing()
        if _columns_of(have) == _columns_of(schema):
            same = all(
                getattr(have, part) == getattr(schema, part)
                for part in ("weights", "value", "missing", "examination", "unwanted")
            )
            return self if same else replace(self, schema=schema)
        self._require("context column", have.context, schema.context)
        scores = self._require("score column", have.score_columns, schema.score_columns)
        for name, scale in zip(schema.score_columns, schema.scales, strict=True):
            if have.scale.get(name, "probability") != scale:
                raise DataError(
                    f"The log was read with another scale of '{name}' than {scale}; read its table "
                    "again with this schema."
                )
        weighted = have.sample_weight == schema.sample_weight
        log = Log(
            schema,
            np.ascontiguousarray(self.scores[:, scores]),
            selected(self.context, schema.context),
            sample_weight=self.sample_weight if weighted else None,
            inverse=self.inverse if weighted else None,
        )
        if not labels:
            return log
        objectives = self._require("label column", have.names, schema.names)
        for name in schema.names:
            kinds = [(name in one.graded, one.given.get(name)) for one in (have, schema)]
            if kinds[0] != kinds[1]:
                raise DataError(
                    f"The log was read with another kind of '{name}'; read its table again with "
                    "this schema."
                )
        for role in ("request", "user", "sample_weight", "position"):
            wanted = getattr(schema, role)
            if wanted is not None:
                self._require(f"{role.replace('_', ' ')} column", (getattr(have, role),), (wanted,))
        truth = self.truth if schema.truth else None
        return replace(
            log,
            labels=self.known_labels()[:, objectives],
            request=None if schema.request is None else self.request,
            user=None if schema.user is None else self.user,
            truth=None if truth is None else truth[:, objectives],
            position=None if schema.position is None else self.position,
            shown=None if schema.plain or self.shown is None else self.shown[:, objectives],
            time=self.time if schema.time == have.time else None,
            draws={k: v for k, v in self.draws.items() if truth is not None and k in schema.names},
        )

    def _refuse_missing(self) -> None:
        for name, scores in zip(self.schema.score_columns, self.scores.T, strict=True):
            rows = np.flatnonzero(np.isnan(scores))
            if len(rows):
                wrong = offence({rows[0]: None}, rows)
                raise DataError(f"Score column '{name}' of the log must lie in [0, 1]. {wrong}")

    def _require(self, role: str, there: Sequence[str | None], wanted: Sequence[str]) -> list[int]:
        """Return the number of each wanted column; refuse a log that lacks one."""
        for name in wanted:
            if name not in there:
                raise DataError(
                    f"The log was read without {role} '{name}'; read its table again with a "
                    "schema that names it."
                )
        return [there.index(name) for name in wanted]

    def fingerprint(self) -> str:
        """Return a digest of all values and the schema: equal logs have the same."""
        digest = hashlib.sha256(json.dumps(self.schema.to_dict()).encode())
        arrays = [self.scores, self.labels, self.request, self.sample_weight, self.truth]
        arrays += [each for each in (self.position, self.shown, self.user) if each is not None]
        arrays += list(self.draws.values())
        context = self.context.hash_rows(seed=0).to_numpy() if self.context.width else None
        for array in (*arrays, context):
            digest.update(b"none" if array is None else np.ascontiguousarray(array).data)
        return digest.hexdigest()

    def require_both_classes(self, purpose: str) -> None:
        """Refuse an objective of which no two rows that count and show it differ."""
        counts, shown = self.sample_weight, []
        for m in range(len(self.schema.names)):
            labels, weight = self.shown_labels(m)
            labels = labels if counts is None else labels[np.asarray(weight) > 0]
            ends = (labels.min(), labels.max()) if len(labels) else (0, 0)
            shown.append((len(labels), float(ends[0]), float(ends[1])))
        require_two_labels(self.schema, self.rows, shown, purpose)


def require_some_scores(schema: Schema, rows: int, missing: np.ndarray, purpose: str) -> None:
    """Refuse a score that all rows miss.

    Args:
        schema: Which scores there are.
        rows: How many rows there are.
        missing: (objectives,) how many of them miss each score.
        purpose: What the rows are for.
    """
    for name, count in zip(schema.score_columns, missing, strict=True):
        if count == rows:
            raise DataError(
                f"Score column '{name}' is missing in all {rows:,} {purpose} rows; leave its "
                "objective out, or use rows that have it."
            )


def require_two_labels(
    schema: Schema, rows: int, shown: Sequence[tuple[int, float, float]], purpose: str
) -> None:
    """Refuse an objective of which no two rows that show it differ.

    Args:
        schema: Which objectives there are.
        rows: How many rows there are.
        shown: By objective, how many of them show it, its smallest and its largest label.
        purpose: What the rows are for.
    """
    for name, (count, low, high) in zip(schema.names, shown, strict=True):
        if count and low < high:
            continue
        among = f"{rows:,} {purpose} rows"
        if name in schema.given:
            among = f"{count:,} {purpose} rows that show it"
        what = "no two different labels"
        if schema.plain:
            what = "no negative label" if count and low > 0 else "no positive label"
        raise DataError(
            f"Objective '{name}' has {what} among the {among}, so its ranking has no meaning "
            "there; add rows or leave it out."
        )


def _columns_of(schema: Schema) -> tuple[Any, ...]:
    """Return which column is what, in order, whatever the weights."""
    order = (schema.names, schema.score_columns, tuple(schema.context), schema.scales)
    kinds = (schema.time, schema.graded, schema.given, schema.user)
    return (*order, schema.request, schema.sample_weight, schema.truth, schema.position, *kinds)


def taken(frame: pl.DataFrame, index: np.ndarray) -> pl.DataFrame:
    """Return some rows, column by column, which needs none of Polars' threads."""
    return pl.DataFrame([series.gather(index) for series in frame])


def selected(frame: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
    """Return some columns; not by Polars' own `select`, as a name may be a pattern."""
    return pl.DataFrame([frame[name] for name in columns])
