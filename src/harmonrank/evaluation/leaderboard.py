"""Leaderboard: what every method reached on the same test rows."""

__all__ = ["Leaderboard", "leaderboard_of"]

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from harmonrank.data import ContextEncoder, Log
from harmonrank.evaluation.baseline import TODAY, Baseline
from harmonrank.evaluation.cautions import cautions_of
from harmonrank.evaluation.entry import Criterion, Entry
from harmonrank.evaluation.verdict import BoardVerdict, percents, relation_of, short, verdict_of
from harmonrank.fusion import Quality, ceiling_of
from harmonrank.fusion.drift.drift import Drift
from harmonrank.fusion.influence import Influence
from harmonrank.fusion.quality.upstream import Upstream, upstream_of
from harmonrank.support.table import Cell, Column, Style, Table, Tabular

_ALONE = "own score"


@dataclass(frozen=True, repr=False)
class Leaderboard(Tabular):
    """The methods in order, the best first; by true probabilities in a world, else by labels.

    AUC-sum within requests decides where requests are known, else that over all rows. Where
    methods rank by what events are worth, value at k does.

    Attributes:
        train_rows: None where the methods were fitted before.
        ceiling: The best possible AUC-sum over all rows, which only a world tells.
        drift: Of the test rows' scores since training.
        recalibrated: Whether all methods were recalibrated on the test rows.
        upstream: By objective, how well its score ranks alone.
        baseline: What ranks today, an entry of its own.
        warnings: What to know about the rows before believing the result, a line each.
        influence: What orders the rows by the method that the verdict is about, if it can tell.
    """

    objectives: tuple[str, ...]
    train_rows: int | None
    test_rows: int
    ceiling: float | None
    entries: tuple[Entry, ...]
    drift: Drift | None = None
    recalibrated: bool = False
    upstream: Mapping[str, Upstream] = field(default_factory=dict)
    baseline: Baseline | None = None
    warnings: tuple[str, ...] = ()
    influence: Influence | None = None

    @property
    def verdict(self) -> BoardVerdict | None:
        """Who is ahead, in a sentence; None where there is nothing to compare."""
        today = None if self.baseline is None else (TODAY, self.baseline.words)
        return verdict_of(self.entries, today)

    @property
    def caution(self) -> str:
        """Which objective rules the order though all weights are equal; empty if none does."""
        return (self.influence and self.influence.caution()) or ""

    @property
    def headline(self) -> str:
        """What a reader must know first: the verdict, and the caution."""
        sentence = "" if self.verdict is None else self.verdict.sentence
        return f"{sentence} {self.caution}".strip()

    @property
    def qualities(self) -> dict[str, Quality]:
        """The qualities by method, in order, without those that failed."""
        return {e.name: e.quality for e in self.entries if e.quality is not None}

    def title(self, objective: str) -> str:
        """Return an objective's name, with a word where it counts against a row."""
        return next((q.title(objective) for q in self.qualities.values()), objective)

    @property
    def value_k(self) -> int | None:
        """Value at how many decides the order; None if AUC-sum does."""
        ranked = [entry.value for entry in self.entries if entry.by_value]
        return ranked[0].k if ranked and ranked[0] is not None else None

    @property
    def criterion(self) -> Criterion:
        """What decides the order."""
        if self.value_k is not None:
            return "value"
        return next((quality.criterion for quality in self.qualities.values()), "all rows")

    @property
    def measure(self) -> str:
        """What decides the order, as a chart calls it."""
        where = {"within requests": "AUC-sum within requests", "all rows": "AUC-sum"}
        return where.get(self.criterion, f"value at {self.value_k}")

    @property
    def totals(self) -> dict[str, float]:
        """What decides the order, by method: exact where the truth is known, else by labels."""
        by_value = self.value_k is not None
        return {name: _total(q, by_value=by_value) for name, q in self.qualities.items()}

    def to_table(self) -> Table:
        """Return a row per method, below the ceiling where it is known; the scores alone last."""
        best = self.best_possible
        known, timed = best is not None, self.train_rows is not None
        against, within = self.baseline is not None, self.criterion == "within requests"
        first = {"all rows": "AUC-sum", "value": f"value@{self.value_k}"}
        columns = (
            Column("method"),
            Column(first.get(self.criterion, "within requests"), ".4f", short="within" * within),
            *[Column("as fitted", ".4f")] * self.recalibrated,
            Column("95 % interval", align="right", spare=True),
            Column("regret" if known else "behind", ".4f"),
            *[Column(f"vs {TODAY}", align="right")] * against,
            *[Column("over all rows", ".4f", short="all rows")] * within,
            # What is_click and is_comment have in common is the first to go.
            *(
                Column(self.title(o), ".3f", short=self.title(o).removeprefix("is_"))
                for o in self.objectives
            ),
            *[Column("fit s", ".1f", spare=True)] * timed,
        )
        blanks = ("",) * (len(self.objectives) + timed)
        before = ("",) * (1 + self.recalibrated)
        after = (*[""] * against, *[self.ceiling] * within, *blanks)
        rows: list[tuple[Any, ...]] = [("ceiling", best, *before, 0, *after)] * known
        rows += [self._row(entry, len(columns)) for entry in self.entries]
        emphasis: dict[int, Style] = {0: "dim"} if known else {}
        emphasis |= {known + i: "red" for i, e in enumerate(self.entries) if e.error}
        if self.upstream:
            emphasis[len(rows)] = "dim"
            shown = [self.upstream[o].decisive(self.criterion) for o in self.objectives]
            alone = [area for each in shown for area in each.areas.values()]
            rows.append((_ALONE, *[""] * (len(columns) - len(blanks) - 1), *alone, *[""] * timed))
        return Table(
            columns,
            tuple(rows),
            title=self.headline,
            emphasis=emphasis,
            alarms=tuple(f"{entry.name}: {entry.error}" for entry in self.entries if entry.error),
            notes=tuple(self._notes()),
        )

    def _row(self, entry: Entry, columns: int) -> tuple[Any, ...]:
        quality = entry.quality
        if quality is None:
            return (entry.name, Cell(None, "failed"), *[""] * (columns - 2))
        tied = entry.tied and entry is not self.entries[0]
        by_value, best = self.value_k is not None, self.best_possible
        total = _total(quality, by_value=by_value)
        before = entry.as_fitted and _total(entry.as_fitted, by_value=by_value)
        interval = quality.value.interval if by_value and quality.value else entry.intervals["sum"]
        return (
            entry.name,
            Cell(total, mark="=" * tied),
            *[before] * self.recalibrated,
            str(interval),
            (entry.behind.estimate if entry.behind else 0.0) if best is None else best - total,
            *[_against(entry)] * (self.baseline is not None),
            *[quality.total] * (self.criterion == "within requests"),
            *(quality.decisive.areas[name] for name in self.objectives),
            *[entry.fit_seconds] * (self.train_rows is not None),
        )

    @property
    def best_possible(self) -> float | None:
        """The best possible on these rows, which only a world tells."""
        if self.value_k is not None:
            return next((e.value.best for e in self.entries if e.value is not None), None)
        decisive = next((quality.decisive for quality in self.qualities.values()), None)
        return self.ceiling if decisive is None else decisive.ceiling

    def _notes(self) -> Iterator[str]:
        train = "" if self.train_rows is None else f"{self.train_rows:,} training rows, "
        yield f"{train}{self.test_rows:,} test rows."
        for quality in list(self.qualities.values())[:1]:
            yield from filter(None, [quality.criterion_words(), quality.kind_words()])
        if self.value_k is not None:
            yield from self._value_notes()
        elif self.best_possible is None:
            yield f"Behind: {self.measure} of the first − {self.measure}."
        else:
            yield f"AUCs by true probabilities. Regret: ceiling − {self.measure}."
        if self.criterion == "within requests":
            yield "Within requests: pairs of rows shown together; over all rows: any two rows."
        if any(entry.tied for entry in self.entries[1:]):
            yield "=: the test rows cannot tell it from the first (paired bootstrap, 95 %)."
        if self.upstream:
            many = "; one order for all of them ranks each less well" * (len(self.objectives) > 1)
            yield f"{_ALONE.capitalize()}: each objective by its upstream score alone{many}."
        if self.baseline is not None:
            gap = f"vs {TODAY}: {self.measure} − that of {TODAY}"
            yield f"{TODAY.capitalize()}: {self.baseline.text}; {gap}."
            yield from filter(None, [self.baseline.note])
        yield from self.lift_notes()
        if self.recalibrated:
            yield "Recalibrated on the test rows, without labels. As fitted: before that."

    def lift_notes(self) -> Iterator[str]:
        """Tell with intervals what the first k hold more than by what the verdict speaks of."""
        verdict = self.verdict
        if verdict is None or not (lifts := verdict.against[-1].lifts):
            if verdict is not None and self.criterion == "within requests":
                yield f"A smaller -k tells more: all have the same events in the first {verdict.k}."
            return
        told = ", ".join(f"{name} {percents(lift)}" for name, lift in lifts.items())
        words = verdict.against[-1].words
        yield f"Events in the first {verdict.k}, {verdict.method} against {words}: {told}."

    def _value_notes(self) -> Iterator[str]:
        value = next(entry.value for entry in self.entries if entry.value is not None)
        worth = ", ".join(f"{name} {v:g}" for name, v in value.value.items() if v)
        yield f"Value at {value.k}: worth of the first {value.k} of a request; {worth}."
        if value.best is None:
            yield "Behind: value of the first − value."
        else:
            yield "Values and AUCs by true probabilities."
            yield "Regret: ceiling − value."

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form that other programs read."""
        within = [q.requests.ceiling for q in self.qualities.values() if q.requests is not None]
        return {
            "criterion": self.criterion,
            "objectives": list(self.objectives),
            "rows": {"train": self.train_rows, "test": self.test_rows},
            "ceiling": self.ceiling,
            "request_ceiling": next(iter(within), None),
            "methods": [entry.to_dict() for entry in self.entries],
            "recalibrated": self.recalibrated,
            "drift": self.drift and self.drift.to_dict(),
            "upstream": {name: alone.to_dict() for name, alone in self.upstream.items()},
            "baseline": self.baseline and self.baseline.to_dict(),
            "verdict": self.verdict and self.verdict.to_dict(),
            "influence": self.influence and asdict(self.influence),
            "warnings": list(filter(None, [self.caution, *self.warnings])),
        }


def leaderboard_of(
    train: Log | None,
    test: Log,
    entries: Sequence[Entry],
    drift: Drift | None,
    *,
    recalibrated: bool = False,
    baseline: Baseline | None = None,
    encoder: ContextEncoder | None = None,
) -> Leaderboard:
    """Put entries in order and measure each against the first, and against the baseline.

    Args:
        train: None where the methods were fitted before.
        test: The rows that count.
        entries: With one of the baseline, if there is one.
        drift: Of the test rows' scores since training.
        recalibrated: Whether all methods were recalibrated on the test rows.
        baseline: What ranks today.
        encoder: The context values that a model of which the training rows are gone knows.
    """
    by_value = any(entry.by_value for entry in entries)
    ordered = sorted(entries, key=lambda entry: _place(entry, by_value=by_value))
    today = next((entry for entry in ordered if baseline and entry.name == TODAY), None)
    weights = test.schema.weight_vector
    upstream = upstream_of(test, weights)
    return Leaderboard(
        test.schema.names,
        None if train is None else train.rows,
        test.rows,
        ceiling_of(test, weights),
        tuple(
            replace(
                entry,
                behind=ordered[0].minus(entry),
                ahead=None if today is None else entry.minus(today),
                lifted={} if today is None else entry.lifts(today),
            )
            for entry in ordered
        ),
        drift,
        recalibrated,
        upstream,
        baseline,
        cautions_of(test, upstream, train=train, encoder=encoder),
    )


def _place(entry: Entry, *, by_value: bool) -> float:
    return float("inf") if entry.quality is None else -_total(entry.quality, by_value=by_value)


def _total(quality: Quality, *, by_value: bool) -> float:
    """Return what decides the order: exact where the truth is known, else by labels."""
    value = quality.value
    if not by_value or value is None or value.mean is None:
        return quality.decisive.total
    return value.mean if value.exact is None else value.exact


def _against(entry: Entry) -> Cell:
    """Return how far an entry is ahead of the baseline, with a mark where that may be chance."""
    if entry.ahead is None or entry.name == TODAY:
        return Cell(None, "")
    tied = relation_of(entry.ahead) == "tied"
    return Cell(entry.ahead.estimate, short(entry.ahead.estimate, sign=True), mark="=" * tied)
