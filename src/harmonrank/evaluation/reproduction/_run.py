"""Run: the cells of some tables one after another, then the tables from their results."""

__all__ = ["TABLES", "CellEnded", "CellStarted", "reproduce"]

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import Any

from harmonrank.errors import HarmonRankError, ModelFileError, UsageError, did_you_mean
from harmonrank.evaluation.reproduction._cell import Cell, Store
from harmonrank.evaluation.reproduction._data import data_of
from harmonrank.evaluation.reproduction._plan import Plan, Results
from harmonrank.evaluation.reproduction._settings import PAPER, Settings
from harmonrank.evaluation.reproduction._table import PaperTable

_PLACES = {
    "main": "_main",
    "losses": "_variants",
    "components": "_variants",
    "buckets": "_variants",
    "training-speed": "_timed",
    "inference": "_timed",
    "skew": "_skew",
    "pareto": "_pareto",
    "relations": "_relations",
    "online": "_online",
}
_SHARED = ("_variants", "_timed")
TABLES = tuple(_PLACES)
"""What can be made again on its own; 'all' is everything."""


@dataclass(frozen=True)
class CellStarted:
    """An experiment begins; `index` counts from 0."""

    name: str
    index: int
    cells: int


@dataclass(frozen=True)
class CellEnded:
    """An experiment has its result; `kept` if an earlier run had it already."""

    name: str
    index: int
    cells: int
    seconds: float
    result: dict[str, Any]
    kept: bool = False


def reproduce(
    tables: Sequence[str],
    settings: Settings = PAPER,
    *,
    runs: str | Path,
    data: str | None = None,
    command: str = "",
    on_event: Callable[[Any], None] = lambda _: None,
) -> tuple[PaperTable, ...]:
    """Make tables of the paper again.

    Tables share experiments: what several need is done once. A finished one is kept in `runs`,
    and one that was killed goes on from its checkpoint.

    Args:
        tables: Names of TABLES, or 'all'.
        settings: Protocol, rows, seeds.
        runs: Folder of finished experiments.
        data: A world or a folder; if left out, the worlds that stand in for the paper's data.
        command: How the run was started, for the record.
        on_event: Called with the start and end of each experiment and its training events.
    """
    plans = _plans(tables, settings, data, command)
    store = Store(Path(runs))
    cells = {cell.key: cell for key, plan in plans for cell in _call(key, "cells", plan)}
    found = _run_all(sorted(cells.values(), key=_place), store, on_event)
    results = Results(found)
    return tuple(table for key, plan in plans for table in _call(key, "tables", plan, results))


def _plans(
    tables: Sequence[str], settings: Settings, data: str | None, command: str
) -> list[tuple[str, Plan]]:
    known = (*TABLES, "all")
    for key in tables:
        if key not in known:
            raise UsageError(f"There is no table '{key}'. {did_you_mean(key, known)}")
    wanted = TABLES if "all" in tables else tuple(dict.fromkeys(tables))
    if not wanted:
        raise UsageError(f"Name at least one table. Known: {', '.join(known)}.")
    plans = [
        (key, Plan(data_of(name, settings.rows), settings, command))
        for key in wanted
        for name in _data_names(key, data)
    ]
    return [(key, plan) for key, plan in plans if _fits(key, plan, named="all" not in tables)]


def _fits(key: str, plan: Plan, *, named: bool) -> bool:
    """Tell whether data can serve a table; one that was asked for by name must not be left out."""
    fits = key != "online" or not plan.data.fixed_rows
    if named and not fits:
        raise UsageError(
            "The table 'online' needs a world, which answers what is shown. "
            f"Got '{plan.data.name}'."
        )
    return fits


def _data_names(key: str, data: str | None) -> tuple[str, ...]:
    if data is not None:
        return (data,)
    return ("elive", "qkvideo") if key == "main" else ("elive",)


def _call(key: str, what: str, plan: Plan, *rest: Any) -> Any:
    # A table loads what it needs, which the others do without.
    module = _PLACES[key]
    function = getattr(import_module(f"harmonrank.evaluation.reproduction.{module}"), what)
    return partial(function, plan, *([key] * (module in _SHARED)))(*rest)


def _place(cell: Cell) -> tuple[str, ...]:
    # Texts compare with texts only; numbers of one digit more come later by their length.
    return tuple(f"{part:06d}" if isinstance(part, int) else str(part) for part in cell.place)


def _run_all(
    cells: Sequence[Cell], store: Store, on_event: Callable[[Any], None]
) -> dict[str, dict[str, Any]]:
    found = {}
    for index, cell in enumerate(cells):
        result = store.find(cell)
        kept, started = result is not None, perf_counter()
        if result is None:
            on_event(CellStarted(cell.name, index, len(cells)))
            result = _result(cell, store, on_event)
            store.put(cell, result)
        seconds = perf_counter() - started
        on_event(CellEnded(cell.name, index, len(cells), seconds, result, kept))
        found[cell.key] = result
    return found


def _result(cell: Cell, store: Store, on_event: Callable[[Any], None]) -> dict[str, Any]:
    """Run a cell; an error that the data or settings explain is its result."""
    checkpoint = store.checkpoint(cell)
    checkpoint.parent.mkdir(parents=True, exist_ok=True)
    try:
        try:
            return cell.run(on_event, checkpoint)
        except ModelFileError:
            # A checkpoint that cannot be gone on from is as good as none.
            checkpoint.unlink(missing_ok=True)
            return cell.run(on_event, checkpoint)
    except HarmonRankError as error:
        return {"error": str(error)}
