"""Options that say where a verb works: in this process, or on the workers of a Ray cluster."""

__all__ = ["EngineChoice", "engine_options"]

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import click

from harmonrank.cli.parts.options import gathered, whole
from harmonrank.cli.parts.verb import setting
from harmonrank.support.errors import UsageError

if TYPE_CHECKING:
    from harmonrank.engine import Engine


@dataclass(frozen=True)
class EngineChoice:
    """What --engine, --workers, --address and --engine-log say."""

    engine: Literal["local", "ray"]
    workers: int | None
    address: str | None
    engine_log: bool

    def __post_init__(self) -> None:
        others = (self.workers is not None, self.address is not None, self.engine_log)
        if self.engine == "local" and any(others):
            raise UsageError(
                "--workers, --address and --engine-log are about Ray; add --engine ray."
            )

    @property
    def is_cluster(self) -> bool:
        """Whether the work is to be done by workers."""
        return self.engine == "ray"

    def opened(self, *, for_states: bool = False) -> AbstractContextManager["Engine"]:
        """Open the engine that was chosen, whose workers may be told to keep states."""
        from harmonrank.engine import open_engine

        return open_engine(
            self.engine,
            workers=self.workers,
            address=self.address,
            verbose=self.engine_log,
            for_states=for_states,
        )


engine_options = gathered(
    "engine",
    EngineChoice,
    click.option(
        "--engine",
        type=click.Choice(["local", "ray"]),
        default="local",
        show_default=True,
        help="Where to work: in this process, or on Ray (docs/scale.md).",
    ),
    click.option("--workers", type=whole(1), help="Ray: how many; one per core if left out."),
    click.option(
        "--address",
        metavar="auto|HOST:PORT",
        help="Ray: a running cluster; if left out, workers are started on this machine.",
    ),
    setting("--engine-log", is_flag=True, help="Ray: also print what Ray and its workers log."),
)
"""Adds --engine, --workers, --address and --engine-log; the verb gets an `engine`."""
