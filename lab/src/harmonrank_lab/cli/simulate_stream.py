"""What `harmonrank simulate --stream` does: a world's events to a folder or a Redis stream."""

__all__ = ["StreamPlan", "simulate_stream", "stream_options"]

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harmonrank.cli.parts import gathered, setting, whole
from harmonrank.support import SourceError, UsageError, shown

if TYPE_CHECKING:
    from harmonrank.cli.parts import Show
    from harmonrank.worlds import AnyWorld
    from harmonrank_lab.worlds import World
    from harmonrank_lab.worlds.stream import SimulatedStream

_FILE_EVENTS = 100_000
_FIRST_PAUSE, _LONGEST_PAUSE, _PATIENCE = 0.5, 10.0, 300.0
_ADDRESS = "Write --rows exposures and the feedback on them there, as events, over --hours."
_OPTIONS = (
    click.option("--stream", "address", metavar="DIR|redis://…", help=_ADDRESS),
    click.option("--hours", type=float, help="How long a stream lasts; 24 if not given."),
    setting("--swap", type=float, help="Stream: hour in which two upstream models are replaced."),
    setting("--start", metavar="TIME", help="Stream: when it begins; 2026-01-01 if not given."),
    setting(
        "--disorder", type=float, help="Stream: share of events that are late; some come twice."
    ),
    setting(
        "--rate", type=whole(1), help="Stream: events per second; as fast as possible if left out."
    ),
    setting(
        "--format",
        "form",
        type=click.Choice(["parquet", "jsonl"]),
        help="Stream: format of its files, parquet if not given.",
    ),
)


@dataclass(frozen=True)
class StreamPlan:
    """What was asked of a stream; None is what nobody asked for."""

    address: str | None
    hours: float | None
    swap: float | None
    start: str | None
    disorder: float | None
    rate: int | None
    form: str | None

    def refuse(self) -> None:
        """Refuse what only a stream has, where there is none."""
        for name, value in asdict(self).items():
            if value is not None:
                option = {"hours": "--hours", "form": "format"}.get(name, name)
                raise UsageError(f"{option} is for a stream; name one with --stream.")

    def changed(self, world: "World") -> "World":
        """Return the world whose upstream models are replaced at the hour that was asked for."""
        from harmonrank_lab.worlds import Swap

        if self.swap is None:
            return world
        hours = 24.0 if self.hours is None else self.hours
        if not 0 <= self.swap <= hours:
            raise UsageError(f"swap must lie in the {hours:g} hours. Got {self.swap:g}.")
        # A model that is bolder than the one before it, and one that was scaled down: both jump.
        names = world.objectives[:2]
        for name, a, b in zip(names, (0.7, 1.4), (1.0, -0.5), strict=False):
            world = world.drifting(swap=Swap(self.swap / hours, (name,), a, b))
        return world


stream_options = gathered("plan", StreamPlan, *_OPTIONS)
"""Adds --stream and what belongs to it; the verb gets a `plan`."""


def simulate_stream(
    world: "AnyWorld",
    rows: int,
    plan: StreamPlan,
    out: Path | None,
    show: "Show",
    *,
    seed: int,
    overwrite: bool,
    facts: Mapping[str, Any],
) -> None:
    """Write the events of a world, and schema.toml beside them or in `out`."""
    from harmonrank_lab.worlds.stream import SimulatedStream

    assert plan.address is not None
    hours = 24.0 if plan.hours is None else plan.hours
    begins = {} if plan.start is None else {"start": _start(plan.start)}
    stream = SimulatedStream(world, rows, hours, seed, disorder=plan.disorder or 0.0, **begins)
    _write_schema(stream, plan.address, out, overwrite=overwrite)
    counts = _sent(stream, plan, show)
    place = plan.address.rpartition("@")[2]  # without a password
    summary = {"world": world.name, "stream": place, "rows": rows, **counts, "hours": stream.hours}
    summary |= {"start": stream.start.isoformat(), "seed": seed, "swap": plan.swap}
    text = (
        f"Wrote {counts['exposures']:,} exposures and {counts['feedback']:,} feedback events of "
        f"{stream.hours:g} hours to {place}."
    )
    show.result(text, {**summary, "disorder": stream.disorder, **facts})


def _start(text: str) -> datetime:
    try:
        start = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(
            f"start must be a time such as 2026-01-01T00:00. Got {shown(text)}."
        ) from None
    return start if start.tzinfo is not None else start.replace(tzinfo=UTC)


def _write_schema(
    stream: "SimulatedStream", address: str, out: Path | None, *, overwrite: bool
) -> None:
    """Write schema.toml; a folder of events is a new one, or an old one of ours to be replaced."""
    from harmonrank.support.storage import check_output, new_file, remove
    from harmonrank.worlds import SCHEMA

    if "://" not in address:
        if out is not None:
            raise UsageError("-o is for the schema of a stream in Redis; --stream names a folder.")
        out = check_output(address, overwrite=overwrite, holds=SCHEMA)
        remove(out)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        with new_file(out / SCHEMA, overwrite=overwrite) as made:
            made.write_text(stream.schema.to_toml(), encoding="utf-8")


def _sent(stream: "SimulatedStream", plan: StreamPlan, show: "Show") -> dict[str, int]:
    """Send all events, at the rate that was asked for; return how many of each kind."""
    from harmonrank.streaming import open_sink

    counts, begun = {"exposures": 0, "feedback": 0}, time.monotonic()
    sink = open_sink(plan.address or "", form=plan.form or "parquet")
    try:
        for chunk in stream.chunks():
            for part in chunk.iter_slices(min(plan.rate or _FILE_EVENTS, _FILE_EVENTS)):
                _patiently(lambda part=part: sink.write(part), show)  # type: ignore[misc]
                exposures = int((part["event"] == "exposure").sum())
                counts["exposures"] += exposures
                counts["feedback"] += part.height - exposures
                show.advance("simulate ", counts["exposures"], stream.rows)
                if plan.rate is not None:
                    due = begun + sum(counts.values()) / plan.rate
                    time.sleep(max(0.0, due - time.monotonic()))
    finally:
        sink.close()
    return counts


def _patiently(write: Callable[[], None], show: "Show") -> None:
    """Write, and wait for a sink that is away."""
    pause, begun = _FIRST_PAUSE, time.monotonic()
    while True:
        try:
            return write()
        except SourceError as error:
            if time.monotonic() - begun > _PATIENCE:
                raise
            show.line(f"{error} It is tried again in {pause:g} s.")
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)
