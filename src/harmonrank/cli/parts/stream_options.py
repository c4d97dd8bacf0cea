"""Options of the verbs that run a stream, and the objects they become."""

__all__ = ["StreamChoice", "stopped_by_signals", "stream_options"]

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harmonrank.cli.parts import options
from harmonrank.cli.parts.column_options import SCHEMA, ColumnChoice, column_options
from harmonrank.cli.parts.verb import setting
from harmonrank.support.errors import DataError, UsageError

if TYPE_CHECKING:
    from harmonrank.data import Schema
    from harmonrank.streaming.config import LoopConfig, StreamConfig

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@dataclass(frozen=True)
class StreamChoice:
    """What the options of `stream_options` say."""

    source: str
    state: Path
    method: str
    settings: tuple[str, ...]
    seed: int
    every: str
    windows: tuple[str, ...]
    lateness: str
    patience: str | None
    chunk: int
    columns: ColumnChoice

    def config(self) -> "StreamConfig":
        """Return what is learned, and how."""
        from harmonrank.streaming.config import LearnerSettings, StreamConfig
        from harmonrank.support.options import checked_options

        given = options.parse_settings(self.settings)
        ours = {"guard_share", "guard_rows", "quality_batches"}
        learners = {field.name for field in fields(LearnerSettings)}
        learner = checked_options("a learner", LearnerSettings, _taken(given, learners))
        parts = {
            "method": self.method,
            "learner": LearnerSettings(**learner),
            "every": _seconds(self.every, "--every"),
            "lateness": _seconds(self.lateness, "--lateness"),
            "seed": self.seed,
            **_waits(self.windows),
            **checked_options("a stream", StreamConfig, _taken(given, ours)),
            "options": given,
        }
        return StreamConfig(**parts)

    def loop(self, *, once: bool, **rules: Any) -> "LoopConfig":
        """Return how the loop runs; one that ends by itself is patient for a minute."""
        from harmonrank.streaming.config import LoopConfig

        given = "1m" if self.patience is None and once else self.patience
        patience = None if given is None else _seconds(given, "--patience")
        return LoopConfig(once=once, most=self.chunk, patience=patience, **rules)

    def schema(self, *, quiet: bool) -> "Schema":
        """Return what options name, or else the schema of the source's folder, or of the state."""
        from harmonrank.streaming.state.files import SETTINGS, read_identity

        here = "://" not in self.source
        if here and not Path(self.source).is_dir():
            raise DataError(f"There is no folder '{self.source}'; make it, or check its name.")
        near, columns = Path(self.source) / SCHEMA, self.columns
        if not columns.names_objectives and here and near.is_file():
            columns = ColumnChoice({**columns.given, "schema": near})
        elif not any(columns.given.values()) and (self.state / SETTINGS).is_file():
            return read_identity(self.state).schema
        return columns.schema(quiet=quiet)


stream_options = options.gathered(
    "choice",
    StreamChoice,
    click.option(
        "--source",
        required=True,
        metavar="DIR|URL",
        help="Events: a folder that grows, or redis://host:port/db/stream?group=NAME.",
    ),
    options.path_option("--state", required=True, metavar="DIR", help="Folder of the state."),
    column_options,
    options.method_option("--method", "harmonrank", "A way to fuse"),
    options.settings_option("An option of the method, or of the learner such as passes=20"),
    options.seed_option,
    click.option(
        "--every",
        default="1h",
        show_default=True,
        metavar="TIME",
        help="Length of an interval, after each of which a model is learned.",
    ),
    click.option(
        "--window",
        "windows",
        multiple=True,
        default=("1h",),
        show_default=True,
        metavar="TIME|A=TIME",
        help="How long feedback counts, for all objectives or for one; may be repeated.",
    ),
    click.option(
        "--lateness",
        default="5m",
        show_default=True,
        metavar="TIME",
        help="How far events may be out of order.",
    ),
    setting(
        "--patience",
        metavar="TIME",
        help="How long to retry what fails; 1m with --once or --backfill, else forever.",
    ),
    setting("--chunk", type=options.whole(1), default=100_000, help="Events read at once."),
    options.numbers,
)
"""Adds the options that say what is learned from which events; the verb gets a `choice`."""


def _taken(given: dict[str, Any], names: set[str]) -> dict[str, Any]:
    return {name: given.pop(name) for name in list(given) if name in names}


def _waits(windows: tuple[str, ...]) -> dict[str, Any]:
    waits: dict[str, Any] = {"windows": {}}
    for text in windows:
        name, equals, time = (word.strip() for word in text.rpartition("="))
        seconds = _seconds(time, "--window")
        part, key = (waits["windows"], name) if equals else (waits, "window")
        if key in part:
            raise UsageError(f"--window says twice how long {name or 'feedback'} counts.")
        part[key] = seconds
    return waits


def _seconds(text: str, option: str) -> float:
    from harmonrank.streaming.config import parse_duration

    return parse_duration(text, option).total_seconds()


@contextmanager
def stopped_by_signals() -> Iterator[threading.Event]:
    """Yield what SIGTERM and SIGINT set; a second signal does what it always does."""
    stop = threading.Event()
    before = {number: signal.getsignal(number) for number in _SIGNALS}

    def asked(number: int, _: Any) -> None:
        stop.set()
        signal.signal(number, before[signal.Signals(number)])

    for number in _SIGNALS:
        signal.signal(number, asked)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
