"""Tables of a stream: its batches, its versions, its changes of upstream models."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

from harmonrank.reports.stream._history import StreamHistory
from harmonrank.reports.stream._marks import kind_of, shown_time
from harmonrank.support.table import Style, Table, table_of

if TYPE_CHECKING:
    from harmonrank.streaming.loop_events import BatchLearned, QualityFacts

_MOST_ROWS = 200
_MOST_LINES = 24
_STYLES: dict[str, Style] = {"published": "", "recalibrated": "green", "refused": "red"}

REASONS = {
    "late": "feedback, or an exposure, that came after its window had closed",
    "duplicate": "sent before, under the same names; the first one counts",
    "unmatched": "feedback whose exposure never came",
    "malformed": "could not be read as an event",
}
"""Why events are set aside."""


def newest_table(
    names: Sequence[str], rows: Sequence[Sequence[Any]], formats: Mapping[str, str] | None = None
) -> Table:
    """Return a table of the newest rows, the newest first, and a note if there are more."""
    shown = rows[: -_MOST_ROWS - 1 : -1]
    notes = (f"The newest {_MOST_ROWS} of {len(rows):,}.",) if len(rows) > _MOST_ROWS else ()
    return table_of(names, shown, formats, notes=notes)


def version_table(history: StreamHistory) -> Table:
    """Return what came of the versions, the newest first; neighbours of one outcome share a row."""
    offers = [(kind_of(v), v.refused or "", v.version, time) for time, v in history.offers()]
    runs = [list(run) for _, run in groupby(offers, key=lambda offer: offer[:2])]
    rows = [
        (
            _range([str(run[0][2]), str(run[-1][2])], "–"),
            len(run),
            run[0][0],
            _range([shown_time(run[0][3]), shown_time(run[-1][3])], " to "),
            run[0][1],
        )
        for run in runs
    ]
    table = newest_table(("version", "count", "outcome", "rows until (UTC)", "reason"), rows)
    emphasis = {i: _STYLES[row[2]] for i, row in enumerate(table.rows) if _STYLES[row[2]]}
    held = Counter(batch.held for batch in history.batches if batch.held)
    notes = [f"Batches without a version: {n:,}, {reason}." for reason, n in held.items()]
    return replace(table, emphasis=emphasis, notes=(*table.notes, *notes))


def _range(ends: Sequence[str], between: str) -> str:
    return between.join(dict.fromkeys(ends))


def change_table(history: StreamHistory) -> Table:
    """Return a row per interval at which upstream models were replaced, the newest first."""
    rows = [
        (
            shown_time(interval.end),
            ", ".join(interval.replaced),
            "–" if interval.version is None else f"version {interval.version.version}",
            " ".join(interval.evidence),
        )
        for interval in history.intervals
        if interval.replaced
    ]
    return newest_table(("until (UTC)", "replaced", "recalibrated as", "evidence"), rows)


def aside_table(batches: "Sequence[BatchLearned]") -> Table:
    """Return how many events were set aside, and why."""
    counts = batches[-1].aside if batches else {}
    rows = [(reason, count, REASONS.get(reason, "")) for reason, count in counts.items()]
    return table_of(("reason", "events", "what it is"), rows)


def stream_table(history: StreamHistory) -> Table:
    """Return the newest batches for a terminal: quality, versions, lag."""
    within = {batch.end: quality for batch, quality in history.within_requests().scored()}
    rows = [
        (
            shown_time(batch.end),
            batch.rows,
            *_sum_and_ends(within.get(batch.end) if within else batch.window),
            *[None if batch.window is None else batch.window.auc_sum] * bool(within),
            "" if batch.version is None else f"{batch.version.version} {kind_of(batch.version)}",
            batch.lag_seconds,
        )
        for batch in history.batches[-_MOST_LINES:]
    ]
    total, beside = "AUC-sum in requests" if within else "AUC-sum", ["all rows"] * bool(within)
    names = ("until (UTC)", "rows", total, "95 % interval", *beside, "version", "lag (s)")
    offers = [kind_of(version) for _, version in history.offers()]
    told = ", ".join(f"{offers.count(kind)} {kind}" for kind in _STYLES)
    learned = history.batches[-1].learned_rows if history.batches else 0
    notes = (
        f"{learned:,} rows learned; versions: {told}.",
        "AUCs are prequential: of rows that were scored before they were learned, over the window.",
    )
    formats = {total: ".4f", "all rows": ".4f", "lag (s)": ",.0f"}
    return table_of(names, rows, formats, notes=notes)


def _sum_and_ends(quality: "QualityFacts | None") -> tuple[float | None, str]:
    if quality is None or None in quality.ci:
        return None if quality is None else quality.auc_sum, "–"
    low, high = quality.ci
    return quality.auc_sum, f"{low:.4f} – {high:.4f}"
