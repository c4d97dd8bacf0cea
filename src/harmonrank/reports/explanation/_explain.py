"""Explain: what a model learned, what moves its scores, and why a row is where it is."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from harmonrank.data import Source, open_table, read_log
from harmonrank.data.reading.tables import column_names
from harmonrank.evaluation.evaluate import as_asked
from harmonrank.fusion import Method
from harmonrank.reports.explanation._model import ModelExplanation, explain_model
from harmonrank.reports.explanation._page import explanation_page
from harmonrank.reports.explanation._row import RowExplanation, explain_row
from harmonrank.reports.explanation._text import (
    context_pull_table,
    learned_table,
    response_table,
    row_table,
)
from harmonrank.reports.facts import run_of
from harmonrank.reports.html import write_page
from harmonrank.support.errors import DataError, UsageError
from harmonrank.support.table import Table


@dataclass(frozen=True)
class Explanation:
    """What a model learned, and what it makes of some rows.

    Attributes:
        model: With the weights or values that were asked for as its own.
        facts: Of each objective.
        rows: What moves the fused score on the rows; None without rows.
        row: One of them; None if none was asked for.
    """

    model: Method
    facts: Mapping[str, Mapping[str, float]]
    rows: ModelExplanation | None = None
    row: RowExplanation | None = None

    @property
    def caution(self) -> str:
        """What a reader should know before all else, in a sentence; empty if nothing."""
        influence = None if self.rows is None else self.rows.influence
        return (influence and influence.caution()) or ""

    @property
    def notes(self) -> list[str]:
        """What cannot be said of this model."""
        if self.row is None or self.row.adds is not None:
            return []
        return [
            f"{self.model.name} gives no probability of an objective, so its fused score has no "
            "part of each; where another score would put the row is known all the same."
        ]

    @property
    def tables(self) -> list[Table]:
        """What a person reads, the last of them as the result."""
        if self.rows is None:
            return [learned_table(self.model, self.facts)]
        if self.row is not None:
            shown = row_table(self.row)
            return [replace(shown, notes=(*self.notes, *shown.notes))]
        by_context = context_pull_table(self.rows)
        return [
            learned_table(self.model, self.facts, self.rows.influence),
            response_table(self.rows),
            *([by_context] if by_context.rows else []),
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form that other programs read."""
        health = getattr(self.model.state, "health", None)
        curve = self.model.schema.examination
        rows: dict[str, Any] = {}
        if self.rows is not None:
            rows = {**self.rows.to_dict(), "row": self.row and self.row.to_dict()}
        return {
            "method": self.model.name,
            "optimises": self.model.fuser.optimises,
            **self.facts,
            "points": self.model.points,
            "notes": self.notes,
            "caution": self.caution,
            **({} if health is None else {"health": health.to_dict()}),
            **rows,
            "examination": {str(place): chance for place, chance in curve.items()} or None,
        }

    def report(self, path: str | Path, title: str = "") -> None:
        """Write one HTML page with charts, of an explanation of rows."""
        if self.rows is None:
            raise UsageError("--row and --report explain rows; add --data TABLE.")
        title = title or f"Why {self.model.name} ranks as it does"
        table = replace(learned_table(self.model, self.facts), title="")
        page = explanation_page(
            title, table, self.rows, run_of(), self.row, self.notes, self.caution
        )
        write_page(page, path)


def explain(
    model: Method,
    table: Source | None = None,
    *,
    row: int | None = None,
    add: float = 0.1,
    weights: Mapping[str, float] | None = None,
    value: Mapping[str, float] | None = None,
) -> Explanation:
    """Show what a fitted model learned and, of a table, what it makes of its rows.

    Args:
        model: A fitted model.
        table: Rows to explain it on; labels only tell what other weights would cost.
        row: Explain this row among those of its request, from 0.
        add: What is added to each score of the row in turn, and taken off it.
        weights: Other objective weights, for methods that can change them after the fit.
        value: What an event is worth, in place of weights.
    """
    facts = model.explain(weights, value)
    if table is None:
        if row is not None:
            raise UsageError("--row and --report explain rows; add --data TABLE.")
        return Explanation(model, facts)
    model = as_asked(model, weights, value)
    log = read_log(table, model.schema, labels=False)
    request = model.schema.request
    if request is not None and request in column_names(table):
        log = replace(log, request=_requests(table, request))
    with suppress(DataError):  # There may be none, or none that can be measured by.
        log = replace(log, labels=read_log(table, model.schema).labels)
    one = None if row is None else explain_row(model, log, row, add)
    return Explanation(model, facts, explain_model(model, log), one)


def _requests(table: Source, column: str) -> np.ndarray:
    """Return a number per request; a row without one is a request of its own."""
    ids = open_table(table, [column])[column]
    known: np.ndarray = ids.rank("dense").fill_null(0).to_numpy().astype("int64")
    known[known == 0] = -1 - (known == 0).nonzero()[0]
    return known
