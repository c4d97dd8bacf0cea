"""What a person sees while and after a verb works: progress, lines, tables, JSON."""

__all__ = ["SafeConsole", "Show"]

import math
import sys
from collections.abc import Iterable
from functools import singledispatchmethod
from pathlib import Path
from typing import Any, Self

import click
from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.segment import Segment

from harmonrank.support import events
from harmonrank.support.errors import OutputError, printable
from harmonrank.support.storage.files import check_output, new_file, to_json, write_json
from harmonrank.support.table import Table

_EPOCH_LINES = 20


class SafeConsole(Console):
    """A console on which names that come from elsewhere are text and command nothing."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Yield what is printed; only what Rich itself commands is left as it is."""
        for segment in super().render(renderable, options):
            told = segment.control or segment.text.isprintable()
            yield segment if told else Segment(printable(segment.text), segment.style)


class Show:
    """Shows events: a progress bar on a terminal, plain lines elsewhere, nothing if quiet.

    Use it as a context manager around the work. Where JSON goes to standard output, all that
    is meant for people goes to standard error.
    """

    def __init__(self, *, quiet: bool = False, json_file: str | None = None) -> None:
        self.quiet, self._json = quiet, json_file
        if json_file not in (None, "-"):
            target = check_output(str(json_file), overwrite=True, begins="{")
            if (target.parent / "checksums.json").is_file():
                raise OutputError(f"'{json_file}' is in a saved model; choose another place.")
        self.console = SafeConsole(stderr=json_file == "-", highlight=False)
        self._errors = SafeConsole(stderr=True, highlight=False)
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        if self._errors.is_terminal and not quiet:
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(bar_width=24),
                TextColumn("{task.percentage:>3.0f}%"),
                TextColumn("{task.fields[note]}", style="dim"),
                TimeElapsedColumn(),
                console=self._errors,
                transient=True,
            )
        self.prefix = ""

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop()

    def _stop(self) -> None:
        if self._bar is not None:
            self._bar.stop()

    def notes(self, texts: Iterable[str]) -> None:
        """Print what a reader of the result should know, quiet or not, where it does not mix."""
        self._stop()
        for text in texts:
            click.echo(f"Note: {text}", err=True)

    def line(self, text: str) -> None:
        """Print a line above the bar."""
        if not self.quiet:
            self._errors.print(text, markup=False, soft_wrap=True)

    def advance(self, what: str, done: float, total: float, note: str = "") -> None:
        """Move the bar."""
        if self._bar is None:
            return
        if self._task is None:
            self._task = self._bar.add_task("", note="")
        self._bar.update(
            self._task, description=what, completed=done, total=max(total, 1), note=note
        )

    def rows(self, done: int, total: int) -> None:
        """Move the bar of rows that are scored."""
        self.advance("score ", done, total, f"{done:,} rows")

    def files(self, done: int, total: int) -> None:
        """Move the bar of files that are scored."""
        self.advance("score ", done, total, f"{done} files")

    @singledispatchmethod
    def event(self, event: Any) -> None:
        """Show an event by its type, or as it says itself; others are passed over."""
        if hasattr(event, "shown_by"):
            event.shown_by(self)

    @event.register
    def _resumed(self, event: events.Resumed) -> None:
        self.line(f"{self.prefix}resumed in epoch {event.epoch + 1}, step {event.step}")

    @event.register
    def _batch_ended(self, event: events.BatchEnded) -> None:
        done = event.epoch + (event.step + 1) / event.steps
        note = f"epoch {event.epoch + 1} of at most {event.epochs}"
        self.advance(self.prefix or "fit ", done, event.epochs, note)

    @event.register
    def _epoch_ended(self, event: events.EpochEnded) -> None:
        # Epochs of few rows come by the hundred; a reader wants to see some of them.
        if (event.epoch + 1) % -(-event.epochs // _EPOCH_LINES):
            return
        share = "" if event.gradient_share is None else f", gradient {event.gradient_share:.0%}"
        # Without validation rows the last epoch is the best by definition.
        known = not math.isnan(event.valid_auc_sum)
        valid = f", valid {event.valid_auc_sum:.4f}" if known else ""
        best = " *" if known and event.best_epoch == event.epoch else ""
        self.line(
            f"{self.prefix}epoch {event.epoch + 1}: loss {event.loss:.4f}{valid}{share}{best}"
        )

    @event.register
    def _health_measured(self, event: events.HealthMeasured) -> None:
        self.line(f"{self.prefix}{event.health.words()}")

    @event.register
    def _fit_step(self, event: events.FitStep) -> None:
        self.advance(self.prefix or "fit ", event.step, event.steps)

    @event.register
    def _method_started(self, event: events.MethodStarted) -> None:
        self.prefix = f"{event.place} "
        self.advance(self.prefix, 0, 1)

    @event.register
    def _method_ended(self, event: events.MethodEnded) -> None:
        entry = event.entry
        result = (
            f"failed: {entry.error}"
            if entry.quality is None
            else f"AUC-sum {entry.quality.decisive.total:.4f} {entry.quality.where} in "
            f"{entry.fit_seconds:.1f} s" + " (kept from an earlier run)" * event.kept
        )
        self.line(f"{event.place} {result}")

    def print(self, shown: RenderableType) -> None:
        """Print what comes before the result, and an empty line."""
        self._stop()
        if not self.quiet:
            self.console.print(shown, "", markup=False)

    def result(self, shown: RenderableType | None, numbers: Any, *, style: str = "table") -> None:
        """Print the result for people, and its numbers as JSON where asked.

        Args:
            shown: A table, a text or anything that Rich prints.
            numbers: The same as JSON parts.
            style: 'md' prints a table as Markdown.
        """
        self._stop()
        if isinstance(shown, Table) and style == "md":
            shown = shown.to_markdown()
        if shown is not None and not self.quiet:
            # Text is for the terminal to wrap, so that a path in it stays whole.
            self.console.print(shown, markup=False, soft_wrap=isinstance(shown, str))
        if self._json == "-":
            sys.stdout.write(to_json(numbers) + "\n")
        elif self._json is not None:
            with new_file(Path(self._json), overwrite=True, begins="{") as partial:
                write_json(partial, numbers)
