"""What --report and --figures ask for: checked before the work, written after it."""

__all__ = ["Reporting"]

import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from harmonrank.cli.show import Show
from harmonrank.data import Log, Schema, Source, read_log
from harmonrank.data.files import check_output
from harmonrank.errors import HarmonRankError
from harmonrank.evaluation import Leaderboard
from harmonrank.methods import Method, Quality, load
from harmonrank.reports import Facts, board_of, collect, run_of, write_html, write_pictures
from harmonrank.reports.html import plotly_script
from harmonrank.reports.pictures import LIST, find_browser


class Reporting:
    """Gathers what a report needs while a verb works, and writes it.

    What is missing, or cannot be written, is said before the work begins.
    """

    def __init__(self, report: Path | None, figures: Path | None, show: Show) -> None:
        self._report, self._figures, self._show = report, figures, show
        if self.wanted:
            plotly_script()
        if report is not None:
            check_output(report, overwrite=True)
        if figures is not None:
            find_browser()
            check_output(figures, overwrite=True, holds=LIST)

    @property
    def wanted(self) -> bool:
        """Whether there is anything to write."""
        return self._report is not None or self._figures is not None

    @contextmanager
    def runs(self, runs: Path | None) -> Iterator[Path | None]:
        """Yield where a comparison keeps its models; a passing place if only a report needs it."""
        if runs is not None or not self.wanted:
            yield runs
            return
        with TemporaryDirectory() as scratch:
            yield Path(scratch)

    def compared(
        self,
        title: str,
        board: Leaderboard,
        runs: Path | None,
        train: Source,
        test: Source,
        schema: Schema,
        seed: int,
        **about: Any,
    ) -> None:
        """Write the report of a comparison whose models are in `runs`; `collect` takes the rest."""
        if not self.wanted or runs is None:
            return
        self._show.line("Drawing the report.")
        models = self._models(runs, [e.name for e in board.entries if e.error is None])
        before, now = read_log(train, schema), read_log(test, schema)
        # What the page shows of a model is the one whose figures it shows.
        if board.recalibrated:
            models = {name: model.recalibrated(now) for name, model in models.items()}
        self._write(title, board, models, now, before, seed, **about)

    def _models(self, runs: Path, names: list[str]) -> dict[str, Method]:
        models = {}
        for name in names:
            try:
                models[name] = load(runs / name)
            except HarmonRankError as error:
                # Its figures are known; only what the model itself would tell is left out.
                self._show.line(f"{name} is without curves: {error}")
        return models

    def evaluated(
        self,
        title: str,
        model: Method,
        quality: Quality,
        data: Source,
        *,
        train: Source | None,
        caveats: Sequence[str],
    ) -> None:
        """Write the report of one model, measured with the weights of `quality`."""
        if not self.wanted:
            return
        self._show.line("Drawing the report.")
        model = _reweighted(model, quality.weights)
        log = read_log(data, model.schema)
        before = None if train is None else read_log(train, model.schema)
        board = board_of(model, quality)
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
        run = run_of(f"harmonrank {shlex.join(sys.argv[1:])}", seed)
        facts = collect(title, run, board, models, test, train=train, **about)
        self._files(facts)

    def _files(self, facts: Facts) -> None:
        if self._report is not None:
            write_html(facts, self._report)
            self._show.line(f"Report: {self._report}")
        if self._figures is not None:
            names = write_pictures(facts, self._figures)
            self._show.line(f"{len(names)} pictures: {self._figures}")


def _reweighted(model: Method, weights: Mapping[str, float]) -> Method:
    """Return the model with other weights, which `evaluate` has found it able to take."""
    if weights == dict(zip(model.schema.names, model.schema.weight_vector, strict=True)):
        return model
    changed = copy(model)
    changed._schema = replace(model.schema, weights=weights)
    return changed
