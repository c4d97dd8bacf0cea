"""Tables of real logs, from the numbers that a run stores."""

from statistics import mean
from typing import Any

from harmonrank.support import Column, Table
from harmonrank_lab.real._judge import MEASURES


def differences_table(logs: list[dict[str, Any]]) -> Table:
    """Return a row per log and other method: how far the first is ahead, with its interval."""
    head = (Column("log"), Column("minus"), *(Column(m, align="right") for m in MEASURES.values()))
    rows = [
        (_title(log), other["method"], *(_cell(other[measure]) for measure in MEASURES))
        for log in logs
        for other in log["differences"]
    ]
    return Table(head, tuple(rows), notes=tuple(_notes(logs)))


def tally_table(logs: list[dict[str, Any]]) -> Table:
    """Return a row per other method: wins, ties and losses by each measure, and the mean."""
    head = [Column("minus")]
    for measure in MEASURES.values():
        head += [Column(f"{measure}: wins, ties, losses"), Column("mean", align="right")]
    names = dict.fromkeys(d["method"] for log in logs for d in log["differences"])
    rows = []
    for name in names:
        row: list[str] = [name]
        for measure in MEASURES:
            known = [d[measure] for log in logs for d in log["differences"] if d["method"] == name]
            known = [d for d in known if d is not None]
            wins, losses = sum(d["low"] > 0 for d in known), sum(d["high"] < 0 for d in known)
            row += [f"{wins} · {len(known) - wins - losses} · {losses}"]
            row += [_signed(mean(d["estimate"] for d in known)) if known else "–"]
        rows.append(tuple(row))
    return Table(tuple(head), tuple(rows))


def _title(log: dict[str, Any]) -> str:
    return f"{log['title']}, items" if log["items"] else str(log["title"])


def _cell(interval: dict[str, float] | None) -> str:
    """Return a difference and its interval, marked where the interval leaves zero out."""
    if interval is None:
        return "–"
    estimate, low, high = (interval[key] for key in ("estimate", "low", "high"))
    mark = " ▲" if low > 0 else " ▼" if high < 0 else ""
    return f"{_signed(estimate)} [{_signed(low)}, {_signed(high)}]{mark}"


def _signed(value: float) -> str:
    """Return a number with its sign and without a leading zero.

    >>> _signed(0.0123), _signed(-0.5)
    ('+.0123', '−.5000')
    """
    return f"{value:+.4f}".replace("0.", ".", 1).replace("-", "−")


def _notes(logs: list[dict[str, Any]]) -> list[str]:
    lines = [
        f"{_title(log)}: {log['rows']['train']:,} training and {log['rows']['test']:,} test rows, "
        f"{len(log['positives'])} objectives."
        for log in logs
    ]
    failed = [f"{_title(g)}: {m} failed: {e}" for g in logs for m, e in g["errors"].items()]
    return [*lines, *failed]
