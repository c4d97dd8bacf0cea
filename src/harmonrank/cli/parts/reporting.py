"""What --report and --figures ask for: checked before the work, written after it."""

__all__ = ["Reporting", "can_draw"]

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

from harmonrank.cli.parts.show import Show
from harmonrank.data import Log, Source, read_log
from harmonrank.evaluation import Leaderboard
from harmonrank.evaluation.baseline import TODAY
from harmonrank.fusion import Method, Quality, load
from harmonrank.reports import Facts, collect, run_of, write_html, write_pictures
from harmonrank.reports.html import check_page, plotly_script
from harmonrank.reports.pictures import LIST, find_browser
from harmonrank.support.errors import HarmonRankError
from harmonrank.support.events import MethodEnded
from harmonrank.support.extras import is_installed
from harmonrank.support.storage.files import check_output


class Reporting:
    """Gathers what a report needs while a verb works, and writes it.

    What is missing, or cannot be written, is said before the work begins.
    """

    def __init__(self, report: Path | None, figures: Path | None, show: Show) -> None:
        self._report, self._figures, self._show = report, figures, show
        self._models: dict[str, Method] = {}
        check_page(report)
        if figures is not None:
            plotly_script()
            find_browser()
            check_output(figures, overwrite=True, holds=LIST)

    @property
    def wanted(self) -> bool:
        """Whether there is anything to write."""
        return self._report is not None or self._figures is not None

    def event(self, event: Any) -> None:
        """Show an event, and keep the model that a comparison hands on for the report."""
        if self.wanted and isinstance(event, MethodEnded) and event.model is not None:
            self._models[event.name] = event.model
        self._show.event(event)

    def compared(
        self,
        title: str,
        board: Leaderboard,
        train: Log,
        test: Log,
        seed: int,
        *,
        runs: Path | None = None,
        **about: Any,
    ) -> None:
        """Write the report of a comparison; models of an earlier run are in `runs`."""
        if not self.wanted:
            return
        self._show.line("Drawing the report.")
        fitted = [name for name in board.qualities if name != TODAY]
        models = {name: self._model(name, runs, board, test) for name in fitted}
        known = {name: model for name, model in models.items() if model is not None}
        self._write(title, board, known, test, train, seed, **about)

    def _model(self, name: str, runs: Path | None, board: Leaderboard, test: Log) -> Method | None:
        """Return the model whose figures the page shows."""
        if name in self._models or runs is None:
            return self._models.get(name)
        try:
            model = load(runs / name)
        except HarmonRankError as error:
            # Its figures are known; only what the model itself would tell is left out.
            self._show.line(f"{name} is without curves: {error}")
            return None
        return model.recalibrated(test) if board.recalibrated else model

    def evaluated(
        self,
        title: str,
        model: Method,
        board: Leaderboard,
        log: Log,
        *,
        train: Source | None,
        caveats: Sequence[str],
    ) -> None:
        """Write the report of one model, measured with the weights of the board."""
        if not self.wanted:
            return
        self._show.line("Drawing the report.")
        model = _reweighted(model, board.qualities[model.name])
        log = read_log(log, model.schema)
        before = None if train is None else read_log(train, model.schema)
        self._write(title, board, {model.name: model}, log, before, None, caveats=caveats)

    def _write(
        self,
        title: str,
        board: Leaderboard,
        models: Mapping[str, Method],
        test: Log,
        train: Log | None,
        seed: int | None,
        **about: Any,
    ) -> None:
        run = run_of(seed=seed)
        facts = collect(title, run, board, models, test, train=train, **about)
        self._files(facts)

    def _files(self, facts: Facts) -> None:
        if self._report is not None:
            write_html(facts, self._report)
            self._show.line(f"Report: {self._report}")
        if self._figures is not None:
            names = write_pictures(facts, self._figures)
            self._show.line(f"{len(names)} pictures: {self._figures}")


def can_draw(show: Show) -> bool:
    """Tell whether a page can be made; one that nobody asked for is no reason to fail."""
    if is_installed("plotly"):
        return True
    show.line("No page with charts is written; pip install 'harmonrank[report]' adds it.")
    return False


def _reweighted(model: Method, quality: Quality) -> Method:
    """Return the model with the weights or values it was measured with, which it can take."""
    changes: dict[str, Any] = {"weights": quality.weights, "value": {}}
    if quality.value is not None and quality.value.ranked:
        changes = {"weights": {}, "value": quality.value.value}
    changed = copy(model)
    changed._schema = replace(model.schema, **changes)
    same = (changed.fuser.weights().counted == model.fuser.weights().counted).all()
    return model if same else changed
