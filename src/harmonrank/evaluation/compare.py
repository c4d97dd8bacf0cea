"""Compare: many methods on the same rows, one leaderboard."""

__all__ = ["Entry", "Leaderboard", "MethodEnded", "MethodStarted", "compare"]

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from harmonrank.data import Log, Schema, Source, read_log
from harmonrank.errors import HarmonRankError, UsageError
from harmonrank.methods import METHODS, Quality, ceiling_of, method_class


@dataclass(frozen=True)
class Entry:
    """One method's result: its quality, or the error that kept it from one."""

    name: str
    fit_seconds: float
    quality: Quality | None = None
    error: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form that other programs read."""
        empty = dict.fromkeys(("auc", "auc_sum", "ci", "regret"))
        quality = empty if self.quality is None else self.quality.to_dict()
        return {"name": self.name, **quality, "fit_seconds": self.fit_seconds, "error": self.error}


@dataclass(frozen=True)
class Leaderboard:
    """What every method reached on the test rows, the best first."""

    objectives: tuple[str, ...]
    train_rows: int
    test_rows: int
    ceiling: float | None
    entries: tuple[Entry, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form that other programs read."""
        return {
            "objectives": list(self.objectives),
            "rows": {"train": self.train_rows, "test": self.test_rows},
            "ceiling": self.ceiling,
            "methods": [entry.to_dict() for entry in self.entries],
        }


@dataclass(frozen=True)
class MethodStarted:
    """A method's fit begins; `index` counts from 0."""

    name: str
    index: int
    methods: int


@dataclass(frozen=True)
class MethodEnded:
    """A method has its result."""

    entry: Entry
    index: int
    methods: int


def compare(
    train: Source,
    test: Source,
    schema: Schema,
    methods: Sequence[str],
    *,
    valid: Source | None = None,
    seed: int = 0,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    on_event: Callable[[Any], None] = lambda _: None,
) -> Leaderboard:
    """Fit every method on the same rows and measure it on the same test rows.

    A method that fails is listed with its error, and the others go on.

    Args:
        train: Training rows.
        test: Rows to measure on, with labels.
        schema: Which column is what.
        methods: Names of methods.
        valid: Validation rows; split off the training rows if left out.
        seed: Given to every fit.
        options: Options of a method by its name.
        on_event: Called with the start and end of each method and its training events.
    """
    options = options or {}
    classes = {name: method_class(name) for name in dict.fromkeys(methods)}
    if not classes:
        raise UsageError(f"Name at least one method. Known: {', '.join(METHODS)}.")
    for name in options:
        method_class(name)
    rows, exam = read_log(train, schema), read_log(test, schema)
    rows.require_both_classes("training")
    exam.require_both_classes("test")
    valid_log = None if valid is None else read_log(valid, schema)
    entries = []
    for index, (name, kind) in enumerate(classes.items()):
        on_event(MethodStarted(name, index, len(classes)))
        started = perf_counter()
        try:
            method = kind(**options.get(name, {}))
            method.fit(rows, schema, valid=valid_log, seed=seed, on_event=on_event)
            seconds = perf_counter() - started
            entry = Entry(name, seconds, method.evaluate(exam))
        except HarmonRankError as error:
            entry = Entry(name, perf_counter() - started, error=str(error))
        except Exception as error:
            entry = Entry(name, perf_counter() - started, error=f"{type(error).__name__}: {error}")
        on_event(MethodEnded(entry, index, len(classes)))
        entries.append(entry)
    return _leaderboard(rows, exam, entries)


def _leaderboard(train: Log, test: Log, entries: list[Entry]) -> Leaderboard:
    def place(entry: Entry) -> float:
        quality = entry.quality
        if quality is None:
            return float("inf")
        exact = quality.exact_auc_sum
        return -(quality.auc_sum.estimate if exact is None else exact)

    return Leaderboard(
        train.schema.names,
        train.rows,
        test.rows,
        ceiling_of(test, test.schema.weight_vector),
        tuple(sorted(entries, key=place)),
    )
