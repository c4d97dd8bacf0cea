"""Tables of a benchmark: for a terminal of 80 columns, and as Markdown."""

__all__ = ["TITLE", "bench_markdown", "bench_table", "seconds_text"]

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any

from harmonrank.support.table import Column, Table
from harmonrank_lab.bench import Accuracy, Report, Result

TITLE = "# Speed"
"""What the page begins with, and a file that it may replace."""
_TITLES = {
    "rank": "Soft ranks, forward and backward, and the sort beneath",
    "metrics": "Metrics of five objectives",
    "train": "Training",
    "score": "Scoring",
    "growth": "Growth in rows and objectives",
    "serve": "Serving over loopback",
}


def bench_table(report: Report) -> Table:
    """Return one row per result: our time, and how many times as long each peer takes."""
    columns = (
        Column("what", widest=31),
        Column("rows"),
        Column("ours", align="right"),
        Column("peers take / note", widest=27),
    )
    rows = []
    for result in report.results:
        rest = [f"{name} {ratio}" for name, ratio in _ratios(result).items()]
        if result.memory_mb is not None:
            rest.append(f"peak {result.memory_mb:,.0f} MB")
        notes = [] if rest or result.note is None else [result.note]
        ours = seconds_text(result.ours_seconds)
        rows.append((result.name, result.rows, ours, "\n".join(rest + notes)))
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


def _ratios(result: Result) -> dict[str, str]:
    return {name: times_text(took / result.ours_seconds) for name, took in result.peers.items()}


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


def bench_markdown(report: Report, command: str) -> str:
    """Return the page that stores a benchmark, made by `command`."""
    parts = [TITLE, _preface(report.machine, command)]
    for group, results in groupby(report.results, key=lambda result: result.group):
        parts += [f"## {_TITLES[group]}", _section(list(results))]
    if report.errors:
        parts += ["## Largest error of soft ranks, in ranks", _errors(report.errors)]
    if report.failures:
        parts += ["## Not measured", *(f"- {f.name}: {f.error}" for f in report.failures)]
    return "\n\n".join(parts) + "\n"


def _preface(facts: Mapping[str, Any], command: str) -> str:
    versions = ", ".join(
        f"{name} {facts[name]}"
        for name in facts
        if name not in ("processor", "cores", "platform", "load")
    )
    return (
        f"Made by `{command}` on {facts['cores']} cores of {facts['processor']} "
        f"(load {facts.get('load', 'unknown')} when it began).\n"
        f"{versions}.\n\n"
        "Ours and the peers run in turn in one process, and medians are given; behind a peer's "
        "time stands how many times ours it is. A peer that is not installed, or that could not "
        "be built, is left out."
    )


def _section(results: list[Result]) -> str:
    peers = list(dict.fromkeys(name for result in results for name in result.peers))
    memory = any(result.memory_mb is not None for result in results)
    header = ["what", "rows", "ours", "rows/s", *peers, *["peak memory"] * memory, "note"]
    rows = []
    for result in results:
        ratios = _ratios(result)
        theirs = [
            f"{seconds_text(result.peers[name])} ({ratios[name]})" if name in ratios else ""
            for name in peers
        ]
        peak = "" if result.memory_mb is None else f"{result.memory_mb:,.0f} MB"
        speed = f"{result.rows / result.ours_seconds:,.0f}"
        ours = seconds_text(result.ours_seconds)
        note = result.note or ""
        rows.append((result.name, result.rows, ours, speed, *theirs, *[peak] * memory, note))
    return _right(header[:-1], rows, "note").to_markdown()


def _errors(errors: tuple[Accuracy, ...]) -> str:
    peers = list(dict.fromkeys(name for error in errors for name in error.peers))
    header = ["what", "rows", "ours", "rounding of the result alone", *peers]
    rows = []
    for error in errors:
        values = [error.ours_ranks, error.rounding_ranks, *(error.peers.get(n) for n in peers)]
        texts = ["" if value is None else f"{value:.2g}" for value in values]
        rows.append((error.name, error.rows, *texts))
    return _right(header, rows).to_markdown()


def _right(header: list[str], rows: list[tuple[Any, ...]], *last: str) -> Table:
    """Return a table whose columns all stand to the right, but for the first and last."""
    first, *numbers = header
    aligned = [Column(title, align="right") for title in numbers]
    return Table((Column(first), *aligned, *map(Column, last)), tuple(rows))
