"""Run: the cases of a benchmark one after another, and what they found as a table."""

import os
import platform
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from harmonrank.support import Column, OnEvent, Part, Table, UsageError, did_you_mean
from harmonrank_lab.bench._result import FULL, Accuracy, Case, Result, Size
from harmonrank_lab.made import made_by

PARTS = ("rank", "metrics", "train", "score", "growth", "serve")
"""What can be measured on its own; 'all' is everything."""
_PACKAGES = (
    "harmonrank", "numpy", "numba", "torch", "polars",
    "torchsort", "scikit-learn", "libauc", "uvicorn", "fastapi",
)  # fmt: skip

TITLE = "# Speed"
"""What a page of speeds begins with, and a file that it may replace."""


@dataclass(frozen=True)
class CaseStarted(Part):
    """A case begins."""


@dataclass(frozen=True)
class Failure:
    """A case that could not be measured, and why."""

    name: str
    error: str


@dataclass(frozen=True)
class CaseEnded(Part):
    """A case has its result."""

    result: Result | Accuracy | Failure


@dataclass(frozen=True)
class Report:
    """What was found, and on which machine."""

    machine: dict[str, Any]
    results: tuple[Result, ...]
    errors: tuple[Accuracy, ...]
    failures: tuple[Failure, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form that other programs read."""
        return {
            "machine": self.machine,
            "code": made_by(),
            "results": [result.to_dict() for result in self.results],
            "errors": [asdict(error) for error in self.errors],
            "failures": [asdict(failure) for failure in self.failures],
        }


def run(what: str, size: Size = FULL, *, on_event: OnEvent = lambda _: None) -> Report:
    """Measure one part, or 'all' of them; a case that fails is reported, and the others go on.

    Args:
        what: One of PARTS, or 'all'.
        size: How much to do.
        on_event: Called when a case starts and when it ends.
    """
    if what not in (*PARTS, "all"):
        raise UsageError(f"There is no benchmark '{what}'. {did_you_mean(what, [*PARTS, 'all'])}")
    facts = machine()
    parts = PARTS if what == "all" else (what,)
    # A part loads what it measures, which the others do without.
    modules = {part: import_module(f"harmonrank_lab.bench._{part}") for part in parts}
    cases = [(part, case) for part, module in modules.items() for case in module.cases(size)]
    kept: dict[type, list[Any]] = {Result: [], Accuracy: [], Failure: []}
    for index, (part, case) in enumerate(cases):
        on_event(CaseStarted(case.name, index, len(cases)))
        result = _measured(part, case)
        kept[type(result)].append(result)
        on_event(CaseEnded(case.name, index, len(cases), result))
    return Report(facts, *map(tuple, kept.values()))


def _measured(part: str, case: Case) -> Result | Accuracy | Failure:
    try:
        measured = case.run()
    except Exception as error:
        return Failure(case.name, f"{type(error).__name__}: {error}")
    return measured if isinstance(measured, Accuracy) else Result(part, case.name, *measured)


def machine() -> dict[str, Any]:
    """Return processor, cores, versions of packages, and how busy the machine is.

    >>> machine()["cores"] >= 1
    True
    """
    facts: dict[str, Any] = {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "platform": platform.platform(),
        "python": platform.python_version(),
    }
    if hasattr(os, "getloadavg"):
        facts["load"] = round(os.getloadavg()[0], 2)
    return facts | {name: number for name in _PACKAGES if (number := _version(name))}


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text(encoding="utf-8").splitlines() if cpuinfo.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "") or platform.processor() or platform.machine()


def bench_table(report: Report) -> Table:
    """Return one row per result: our time, and how many times as long each peer takes."""
    first, last = Column("what", widest=31), Column("peers take / note", widest=27)
    columns = (first, Column("rows"), Column("ours", align="right"), last)
    rows = []
    for result in report.results:
        ours = result.ours_seconds
        rest = [f"{name} {times_text(took / ours)}" for name, took in result.peers.items()]
        if result.memory_mb is not None:
            rest.append(f"peak {result.memory_mb:,.0f} MB")
        notes = [] if rest or result.note is None else [result.note]
        rows.append((result.name, result.rows, seconds_text(ours), "\n".join(rest + notes)))
    return Table(columns, tuple(rows), notes=tuple(_lines(report)))


def _lines(report: Report) -> Iterator[str]:
    for error in report.errors:
        peers = "".join(f", {name} {value:.2g}" for name, value in error.peers.items())
        what = f"{error.name}, {error.rows:,} rows"
        yield f"{what}: at most {error.ours_ranks:.2g} ranks{peers}"
    for failure in report.failures:
        yield f"{failure.name} failed: {failure.error}"
    facts = report.machine
    yield f"{facts['processor']}, {facts['cores']} cores, load {facts.get('load', '–')}."


def seconds_text(seconds: float) -> str:
    """Return a time in the unit that suits it.

    >>> seconds_text(0.00012), seconds_text(0.0123), seconds_text(1.5), seconds_text(150)
    ('0.120 ms', '12.3 ms', '1.50 s', '150 s')
    """
    if seconds < 1:
        value = 1e3 * seconds
        return f"{value:.3f} ms" if value < 1 else f"{value:#.3g} ms".replace(". ", " ")
    return f"{seconds:.2f} s" if seconds < 100 else f"{seconds:.0f} s"


def times_text(ratio: float) -> str:
    """Return a ratio with two or three digits.

    >>> times_text(0.834), times_text(12.34), times_text(345.6)
    ('0.83×', '12.3×', '346×')
    """
    digits = 2 if ratio < 10 else 1 if ratio < 100 else 0
    return f"{ratio:.{digits}f}×"
