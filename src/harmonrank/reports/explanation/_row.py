"""RowExplanation: why one candidate is where it is, and what would move it."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from harmonrank.data import Log
from harmonrank.fusion import Method
from harmonrank.support.errors import UsageError


@dataclass(frozen=True)
class Counterfactual:
    """Where the row would be if one score were another and all else the same.

    Attributes:
        column: The score that changes.
        before: As it is, a probability.
        after: As it would be.
        place: Where the row would then be, from 1.
    """

    column: str
    before: float
    after: float
    place: int


@dataclass(frozen=True)
class RowExplanation:
    """One row among the candidates of its request, or of the whole table where there are none.

    Attributes:
        row: Its number in the table, from 0.
        candidates: How many are ranked together.
        place: From 1, of equals the first.
        fused: Its score, as the method makes it.
        given: Its score as it is given out, where the model is aligned with another.
        scores: What upstream gave, by objective; nan where it gave none.
        context: By column.
        probabilities: By objective; None of methods that have none, as are the next two.
        adds: What each objective adds to the fused score; together exactly the score.
        usual: What it adds on average over the candidates.
        changes: What would happen if a score were higher, or lower.
        optimises: Which AUC the fit is for, over "all" rows or within "requests".
    """

    row: int
    candidates: int
    place: int
    fused: float
    scores: Mapping[str, float]
    context: Mapping[str, Any]
    probabilities: Mapping[str, float] | None
    adds: Mapping[str, float] | None
    usual: Mapping[str, float] | None
    changes: tuple[Counterfactual, ...]
    given: float | None = None
    optimises: str = "all"

    @property
    def shares(self) -> dict[str, float] | None:
        """What part of the fused score each objective adds; sizes add up to 1."""
        if self.adds is None:
            return None
        whole = sum(map(abs, self.adds.values())) or 1.0
        return {name: part / whole for name, part in self.adds.items()}

    def sentences(self) -> Iterator[str]:
        """Yield where the row is, and what would lift or sink it, a sentence each."""
        yield f"Row {self.row:,} is {ordinal(self.place)} of {self.candidates:,}."
        if self.given is not None:
            yield f"Aligned with another model, its score is given out as {self.given:.4f}."
        for change in self.changes:
            moved = change.after - change.before
            what = f"{moved:+.3g} on {change.column}"
            if change.place == self.place:
                yield f"{what} leaves it {ordinal(self.place)}."
            else:
                way = "lifts" if change.place < self.place else "sinks"
                yield f"{what} {way} it from {ordinal(self.place)} to {ordinal(change.place)}."

    def to_dict(self) -> dict[str, Any]:
        """Return JSON parts."""
        parts = asdict(self)
        del parts["optimises"]
        return {**parts, "shares": self.shares, "sentences": list(self.sentences())}


def explain_row(model: Method, log: Log, row: int, add: float = 0.1) -> RowExplanation:
    """Explain one row with the weights that the model has.

    Args:
        model: A fitted method; one without probabilities has no shares.
        log: The rows of a table, in order.
        row: Which one, from 0.
        add: What is added to each score in turn, and taken off it, where it stays within 0 and 1.
    """
    if not 0 <= row < log.rows:
        raise UsageError(f"Rows are counted from 0 to {log.rows - 1:,}. Got {row:,}.")
    if not 0 < add <= 1:
        raise UsageError(f"What is added to a score must be above 0, up to 1. Got {add:g}.")
    rows = np.arange(log.rows)
    if log.request is not None:
        rows = np.flatnonzero(log.request == log.request[row])
    here, own = int(np.flatnonzero(rows == row)[0]), log.take(rows)
    given = float(model.score(own.take(np.array([here])))[0]) if model.is_aligned else None
    model = model.unaligned()
    fused = model.score(own)
    names, p, adds, usual = model.schema.names, None, None, None

    def named(values: np.ndarray) -> dict[str, float]:
        return dict(zip(names, values.tolist(), strict=True))

    if model.traits.probabilities:
        chances = model.probabilities(own)
        mean = model.fuser.parts_of(chances, model.fuser.weights()).mean(axis=0)
        exact = model.contributions(own.take(np.array([here])))[0]
        p, adds, usual = named(chances[here]), named(exact), named(mean)
    return RowExplanation(
        row=row,
        candidates=len(rows),
        place=_place(fused, here, float(fused[here])),
        fused=float(fused[here]),
        scores=named(log.scores[row].astype(np.float64)),
        context={name: log.context[name][row] for name in log.schema.context},
        probabilities=p,
        adds=adds,
        usual=usual,
        changes=tuple(_changes(model, own, here, fused, add)),
        given=given,
        optimises=model.fuser.optimises,
    )


def _changes(
    model: Method, own: Log, here: int, fused: np.ndarray, add: float
) -> Iterator[Counterfactual]:
    """Yield the place of the row after each change of a score that is there."""
    one = own.take(np.array([here]))
    for m, column in enumerate(model.schema.score_columns):
        before = float(one.scores[0, m])
        if np.isnan(before):
            continue
        for step in (add, -add):
            after = before + step
            if not 0 < after < 1:
                continue
            scores = one.scores.copy()
            scores[0, m] = after
            fused_then = float(model.score(one.with_scores(scores))[0])
            yield Counterfactual(column, before, after, _place(fused, here, fused_then))


def _place(fused: np.ndarray, here: int, own: float) -> int:
    """Return the place of a row whose score is `own` among the others; of equals the first."""
    others = np.delete(fused, here)
    return 1 + int((others > own).sum() + (others[:here] == own).sum())


def ordinal(place: int) -> str:
    """Return a place in words.

    >>> [ordinal(n) for n in (1, 2, 3, 4, 11, 12, 21, 103)]
    ['1st', '2nd', '3rd', '4th', '11th', '12th', '21st', '103rd']
    """
    teen = 10 < place % 100 < 20
    ending = "th" if teen else {1: "st", 2: "nd", 3: "rd"}.get(place % 10, "th")
    return f"{place:,}{ending}"
