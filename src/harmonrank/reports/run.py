"""Run: how a result came about, so that it can be had again."""

__all__ = ["Run", "run_of"]

import os
import platform
import shlex
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata

from harmonrank import __version__
from harmonrank.support.storage.urls import without_secrets

_PACKAGES = ("numpy", "numba", "torch", "polars", "plotly")


@dataclass(frozen=True)
class Run:
    """How a result came about, so that it can be had again."""

    command: str
    seed: int | str | None
    made: str
    versions: dict[str, str]

    @property
    def facts(self) -> dict[str, str]:
        """What is told of it beside the command."""
        seed = "–" if self.seed is None else str(self.seed)
        return {"seed": seed, "made": self.made, **self.versions}


def run_of(command: str | None = None, seed: int | str | None = None) -> Run:
    """Describe the present process: when, with which versions, on what machine.

    The command is that which this process was started with, if left out.
    """
    if command is None:
        # A page is passed on; the password or the signature of a table's URL is not.
        command = f"harmonrank {shlex.join(map(without_secrets, sys.argv[1:]))}"
    versions = {"harmonrank": __version__, "Python": platform.python_version()}
    for package in _PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    versions["machine"] = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    made = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return Run(command, seed, made, versions)
