"""Options of the verbs that run a stream, and the objects they become."""

__all__ = ["config_of", "schema_of_stream", "stopped_by_signals", "stream_options"]

import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

import click

from harmonrank.cli.options import (
    F,
    count_option,
    method_option,
    numbers,
    parse_settings,
    path_option,
    seed_option,
    settings_option,
)
from harmonrank.cli.schema_options import SCHEMA, columns, schema_of
from harmonrank.errors import DataError, UsageError

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_SET = "An option of the method, or of the learner such as passes=20"


def stream_options(function: F) -> F:
    """Add the options that say what is learned from which events."""
    for decorate in reversed(
        [
            click.option(
                "--source",
                required=True,
                metavar="DIR|URL",
                help="Events: a folder that grows, or redis://host:port/db/stream?group=NAME.",
            ),
            path_option("--state", required=True, metavar="DIR", help="Folder of the state."),
            columns,
            method_option("--method", "harmonrank", "A way to fuse"),
            settings_option(_SET),
            seed_option,
            click.option(
                "--every",
                default="1h",
                show_default=True,
                metavar="TIME",
                help="Length of an interval, after which a model is learned.",
            ),
            click.option(
                "--window",
                "windows",
                multiple=True,
                default=("1h",),
                show_default=True,
                metavar="TIME|A=TIME",
                help="How long feedback counts, of all objectives or of one; may be repeated.",
            ),
            click.option(
                "--lateness",
                default="5m",
                show_default=True,
                metavar="TIME",
                help="How far events may be out of order.",
            ),
            click.option(
                "--patience",
                metavar="TIME",
                help="Try what fails again for so long; 1m if it ends by itself, else forever.",
            ),
            count_option("--chunk", 100_000, "Events that are read at once.", least=1),
            numbers,
        ]
    ):
        function = decorate(function)
    return function


def config_of(
    method: str,
    settings: tuple[str, ...],
    seed: int,
    every: str,
    windows: tuple[str, ...],
    lateness: str,
) -> Any:
    """Return the StreamConfig that the options describe."""
    from harmonrank.options import checked_options
    from harmonrank.streaming.config import StreamConfig
    from harmonrank.streaming.recipe import LearnerSettings
    from harmonrank.streaming.windows import parse_duration

    given = parse_settings(settings)
    ours = {"guard_share", "guard_rows", "quality_batches"}
    learners = {field.name for field in fields(LearnerSettings)}
    learner = checked_options("a learner", LearnerSettings, _taken(given, learners))
    parts = {
        "method": method,
        "learner": LearnerSettings(**learner),
        "every": parse_duration(every, "--every").total_seconds(),
        "lateness": parse_duration(lateness, "--lateness").total_seconds(),
        "seed": seed,
        **_waits(windows),
        **checked_options("a stream", StreamConfig, _taken(given, ours)),
        "options": given,
    }
    return StreamConfig(**parts)


def _taken(given: dict[str, Any], names: set[str]) -> dict[str, Any]:
    return {name: given.pop(name) for name in list(given) if name in names}


def _waits(windows: tuple[str, ...]) -> dict[str, Any]:
    from harmonrank.streaming.windows import parse_duration

    found: dict[str, Any] = {"windows": {}}
    for text in windows:
        name, equals, time = (word.strip() for word in text.rpartition("="))
        seconds = parse_duration(time, "--window").total_seconds()
        place, key = (found["windows"], name) if equals else (found, "window")
        if key in place:
            raise UsageError(f"--window says twice how long {name or 'feedback'} counts.")
        place[key] = seconds
    return found


def schema_of_stream(source: str, state: Path, columns: Mapping[str, Any], *, quiet: bool) -> Any:
    """Return the schema that options name, or else that of the source's folder, or of the state."""
    from harmonrank.data import Schema
    from harmonrank.streaming.settings import SETTINGS, read_identity

    if "://" not in source and not Path(source).is_dir():
        raise DataError(f"There is no folder '{source}'; make it, or check its name.")
    near = Path(source) / SCHEMA
    named = any(columns[part] for part in ("schema", "scores", "labels"))
    if not named and "://" not in source and near.is_file():
        return schema_of(**{**columns, "schema": near}, quiet=quiet)
    if not any(columns.values()) and (state / SETTINGS).is_file():
        found: Schema = read_identity(state).schema
        return found
    return schema_of(**columns, quiet=quiet)


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
