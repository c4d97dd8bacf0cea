"""Run: the cells of some tables one after another, then the tables from their results."""

from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

from harmonrank.support import HarmonRankError, ModelFileError, OnEvent, UsageError, did_you_mean
from harmonrank.support.storage import Store
from harmonrank_lab.events import CellEnded, CellStarted
from harmonrank_lab.paper_tables._data import StudyCell, data_of
from harmonrank_lab.paper_tables._online import Online
from harmonrank_lab.paper_tables._pareto import Pareto
from harmonrank_lab.paper_tables._relations import Relations
from harmonrank_lab.paper_tables._settings import PAPER, Settings
from harmonrank_lab.paper_tables._speed import Timed
from harmonrank_lab.paper_tables._study import Experiment, Results, Study
from harmonrank_lab.paper_tables._sums import Main, Skew, Variants
from harmonrank_lab.paper_tables._table import PaperTable

EXPERIMENTS: tuple[Experiment, ...] = (
    Main(),
    *(Variants(key) for key in ("losses", "components", "buckets")),
    Timed("training-speed"),
    Timed("inference"),
    Skew(),
    Pareto(),
    Relations(),
    Online(),
)
TABLES = tuple(experiment.key for experiment in EXPERIMENTS)
"""What can be made again on its own; 'all' is everything."""


def reproduce(
    tables: Sequence[str],
    settings: Settings = PAPER,
    *,
    runs: str | Path,
    data: str | None = None,
    command: str = "",
    on_event: OnEvent = lambda _: None,
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
    planned = _planned(tables, settings, data, command)
    cells = {c.key: c for experiment, study in planned for c in experiment.cells(study)}
    results = Results(_run_all(sorted(cells.values(), key=_place), Store(runs), on_event))
    return tuple(experiment.table(study, results) for experiment, study in planned)


def _planned(
    tables: Sequence[str], settings: Settings, data: str | None, command: str
) -> list[tuple[Experiment, Study]]:
    """Return each wanted experiment on each of its data.

    One that was asked for by name must not be left out because of its data.
    """
    known = (*TABLES, "all")
    for key in tables:
        if key not in known:
            raise UsageError(f"There is no table '{key}'. {did_you_mean(key, known)}")
    if not tables:
        raise UsageError(f"Name at least one table. Known: {', '.join(known)}.")
    every = {experiment.key: experiment for experiment in EXPERIMENTS}
    planned = []
    for key in TABLES if "all" in tables else dict.fromkeys(tables):
        for name in every[key].worlds if data is None else (data,):
            study = Study(data_of(name, settings.rows), settings, command)
            refusal = every[key].refusal(study.data)
            if refusal and "all" not in tables:
                raise UsageError(refusal)
            if not refusal:
                planned.append((every[key], study))
    return planned


def _place(cell: StudyCell) -> tuple[str, ...]:
    # Texts compare with texts only; numbers of one digit more come later by their length.
    return tuple(f"{part:06d}" if isinstance(part, int) else str(part) for part in cell.place)


def _run_all(
    cells: Sequence[StudyCell], store: Store, on_event: OnEvent
) -> dict[str, dict[str, Any]]:
    results = {}
    for index, cell in enumerate(cells):
        result = store.find(cell.key, cell.digest, cell.decoded)
        kept, started = result is not None, perf_counter()
        if result is None:
            on_event(CellStarted(cell.name, index, len(cells)))
            checkpoint = store.path(cell.key, ".checkpoint")
            result = _result(cell, checkpoint, on_event)
            store.put(cell.key, cell.digest, result)
            checkpoint.unlink(missing_ok=True)
        seconds = perf_counter() - started
        on_event(CellEnded(cell.name, index, len(cells), seconds, result, kept))
        results[cell.key] = result
    return results


def _result(cell: StudyCell, checkpoint: Path, on_event: OnEvent) -> dict[str, Any]:
    """Run a cell; an error that the data or settings explain is its result."""
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
