"""What a person sees of a running stream: a live view, or plain lines; and JSON lines."""

__all__ = ["StreamShow"]

import sys
from contextlib import ExitStack
from functools import singledispatchmethod
from typing import IO, Any, Self

import msgspec
from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table as Grid
from rich.text import Text

from harmonrank.cli.parts.show import SafeConsole
from harmonrank.streaming import loop_events as events
from harmonrank.streaming.metrics import StreamTotals
from harmonrank.support.storage.files import check_output


class StreamShow:
    """Shows the events of a stream; use it as a context manager around the loop.

    Args:
        quiet: Show nothing, but for JSON lines.
        json_file: Where every event is appended as a line; - is standard output.
        totals: What the live view shows.
    """

    def __init__(self, *, quiet: bool, json_file: str | None, totals: StreamTotals) -> None:
        self._quiet, self._json, self.totals = quiet, json_file, totals
        if json_file not in (None, "-"):
            target = check_output(str(json_file), overwrite=True, begins="{")
            target.parent.mkdir(parents=True, exist_ok=True)
        self._console = SafeConsole(stderr=True, highlight=False)
        self._lines: IO[str] | None = None
        self._said_aside: dict[str, int] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        if self._json == "-":
            self._lines = sys.stdout
        elif self._json is not None:
            # Appended, as a stream is stopped and started again.
            file = open(self._json, "a", encoding="utf-8")  # noqa: PTH123
            self._lines = self._stack.enter_context(file)
        if self._console.is_terminal and not self._quiet:
            view = Live(
                get_renderable=self._view,
                console=self._console,
                refresh_per_second=4,
                redirect_stdout=False,
            )
            self._stack.enter_context(view)
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def line(self, text: str) -> None:
        """Print a line, above the live view if there is one."""
        if not self._quiet:
            self._console.print(text, markup=False, soft_wrap=True)

    def event(self, event: events.LoopEvent) -> None:
        """Show an event."""
        if self._lines is not None:
            self._lines.write(msgspec.json.encode(event).decode() + "\n")
            self._lines.flush()
        self.totals.event(event)
        ends = isinstance(event, events.BatchLearned | events.StreamStopped)
        if ends and self.totals.aside != self._said_aside:
            self._said_aside = self.totals.aside
            self.line(f"Set aside so far: {_counts(self.totals.aside)}.")
        self._say(event)

    @singledispatchmethod
    def _say(self, event: Any) -> None:
        """Say in a line what a person wants to know."""

    @_say.register
    def _started(self, event: events.StreamStarted) -> None:
        after = f"goes on from commit {event.commit}" if event.commit else "begins"
        left = f"; removed {event.swept} leftovers of a killed run" if event.swept else ""
        self.line(
            f"Stream {event.stream} ({event.method}) {after}: {event.events:,} events read, "
            f"{event.learned_rows:,} rows learned{left}."
        )

    @_say.register
    def _noted(self, event: events.SourceNoted) -> None:
        self.line(f"Note: {event.text}")

    @_say.register
    def _completed(self, event: events.IntervalCompleted) -> None:
        if event.replaced:
            self.line(f"{_interval(event)}: {' '.join(event.evidence)}")
        if event.version is not None:
            self.line(f"  recalibrated: {_outcome(event.version)}")

    @_say.register
    def _learned(self, event: events.BatchLearned) -> None:
        window, rate = event.window, event.rows_per_second
        quality = "" if window is None else f", AUC-sum {_sums(window)}"
        speed = "" if rate is None else f" ({rate:,.0f} rows/s)"
        said = "not published" if event.version is None else _outcome(event.version)
        said += "" if event.held is None else f": {event.held}"
        self.line(
            f"{_interval(event)}: {event.rows:,} rows, {event.learned:,} learned{speed}{quality}; "
            f"{said}"
        )

    @_say.register
    def _retry(self, event: events.RetryPlanned) -> None:
        reason = event.reason.rstrip(".")
        what = f"{event.what[:1].upper()}{event.what[1:]}"
        self.line(f"{what}: {reason}; trying again in {event.seconds:g} s. Nothing is lost.")

    @_say.register
    def _stopped(self, event: events.StreamStopped) -> None:
        self.line(
            f"Stopped: {event.why}. {event.learned_rows:,} rows learned, all in commit "
            f"{event.commit}."
        )

    def _view(self) -> RenderableType:
        totals, grid = self.totals, Grid.grid(padding=(0, 2))
        for name, text in _facts(totals):
            grid.add_row(Text(name, style="dim"), Text(text))
        if totals.trouble is None:
            return grid
        trouble = f"{totals.trouble.what}: {totals.trouble.reason}"
        return Group(grid, Text(trouble, style="red"))


def _sums(window: events.QualityFacts) -> str:
    """Return the AUC-sum within requests, where it is known, and over all rows."""
    whole = _number(window.auc_sum)
    if window.requests is None:
        return whole
    return f"{_number(window.requests.auc_sum)} in requests, {whole} over all rows"


def _facts(totals: StreamTotals) -> list[tuple[str, str]]:
    """Return the rows of the live view."""
    rate = "" if totals.rows_per_second is None else f", {totals.rows_per_second:,.0f} rows/s"
    facts = [
        ("rows", f"{totals.learned_rows:,} learned{rate}, {totals.guard_rows:,} judging"),
        ("events", f"{totals.events:,} read{_behind(totals)}"),
    ]
    if totals.watermark is not None:
        facts.append(("watermark", f"{totals.watermark:%Y-%m-%d %H:%M:%S}"))
    if (window := totals.window) is not None:
        within = {} if window.requests is None else window.requests.auc
        for where, known in (("AUC in requests", within), ("AUC, all rows", window.auc)):
            areas = "  ".join(f"{name} {_number(value)}" for name, value in known.items())
            facts += [(where, areas)] * bool(areas)
        facts.append(("AUC-sum", f"{_sums(window)}, {window.batches} batches"))
    last = "" if totals.version is None else f"; last: {_outcome(totals.version)}"
    facts.append(("versions", f"{totals.published} published, {totals.refused} refused{last}"))
    if totals.aside:
        facts.append(("set aside", _counts(totals.aside)))
    return facts


def _behind(totals: StreamTotals) -> str:
    waiting = "" if totals.waiting is None else f", {totals.waiting:,} waiting"
    lag = totals.lag_seconds
    return waiting if lag is None else f"{waiting}, lag {_duration(lag)}"


def _duration(seconds: float) -> str:
    """Return a time in the largest unit of which there are two.

    >>> _duration(119), _duration(7300)
    ('119 s', '2 h')
    """
    for unit, length in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:,.0f} {unit}"
    return f"{max(seconds, 0):,.0f} s"


def _interval(event: events.IntervalCompleted | events.BatchLearned) -> str:
    return f"{event.start:%Y-%m-%d %H:%M}–{event.end:%H:%M}"


def _outcome(made: events.Publication) -> str:
    if made.refused is None:
        return f"version {made.version} published"
    return f"version {made.version} refused: {made.refused}"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {reason}" for reason, count in counts.items())
