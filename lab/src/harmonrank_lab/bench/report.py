"""The table of a benchmark, for a terminal of 80 columns."""

__all__ = ["TITLE", "bench_table", "seconds_text"]

from collections.abc import Iterator

from harmonrank.support.table import Column, Table
from harmonrank_lab.bench import Report, Result

TITLE = "# Speed"
"""What a page of speeds begins with, and a file that it may replace."""


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
