"""The history of a stream as one HTML page."""

from typing import TYPE_CHECKING

from harmonrank.reports.html import Card, Section, page, section
from harmonrank.reports.plots import styles
from harmonrank.reports.run import Run
from harmonrank.reports.stream._charts import (
    LINES,
    drift_plots,
    learner_plots,
    pace_plots,
    quality_plots,
)
from harmonrank.reports.stream._history import StreamHistory
from harmonrank.reports.stream._marks import KINDS, kind_of, shown_time
from harmonrank.reports.stream._tables import aside_table, change_table, version_table

if TYPE_CHECKING:
    from harmonrank.streaming.loop_events import QualityFacts

_MOST = 2_000  # of each kind of record: more would not be told apart on a screen


def stream_page(title: str, history: StreamHistory, run: Run) -> str:
    """Return one HTML page with the charts of a stream over time.

    Args:
        title: Names the stream.
        history: Its records; of very many, the newest are shown.
        run: How the page was made.
    """
    shown = history.newest(_MOST)
    parts = [
        _quality(shown),
        section("versions", tables=[version_table(shown)]),
        _drift(shown),
        section("pace", pace_plots(shown), [aside_table(shown.batches)]),
        section("learner", learner_plots(shown)),
    ]
    return page(title, run, _cards(history), parts, _verdict(history))


def _verdict(history: StreamHistory) -> str:
    """Return how the stream does, in a sentence."""
    last = next(reversed(list(history.scored())), None)
    if last is None:
        return "No batch has been scored by a model yet."
    batch, quality = last
    within, exact = quality.requests, ""
    if quality.exact_auc_sum is not None and quality.ceiling is not None:
        exact = f"; exact, it is {quality.exact_auc_sum:.4f} of at most {quality.ceiling:.4f}"
    whole = f"{_total(quality)}{exact}"
    if within is not None:
        whole = f"{_total(within)} within requests, and over all rows {whole}"
    return f"Until {shown_time(batch.end)} the AUC-sum of the window is {whole}."


def _total(quality: "QualityFacts") -> str:
    """Return the AUC-sum with its interval."""
    total = "not known" if quality.auc_sum is None else f"{quality.auc_sum:.4f}"
    return total if None in quality.ci else f"{total} ({quality.ci[0]:.4f} to {quality.ci[1]:.4f})"


def _cards(history: StreamHistory) -> list[Card]:
    offers = [version for _, version in history.offers()]
    kinds = [kind_of(version) for version in offers]
    current = next((v for v in reversed(offers) if v.refused is None), None)
    changes = sum(bool(interval.replaced) for interval in history.intervals)
    batch = history.batches[-1] if history.batches else None
    rows = 0 if batch is None else batch.learned_rows
    aside = {} if batch is None else batch.aside
    made = kinds.count("published") + kinds.count("recalibrated")
    return [
        ("Current version", "–" if current is None else str(current.version), f"{made} published"),
        ("Refused", str(kinds.count("refused")), "by the guardrails"),
        ("Upstream changes", str(changes), f"recalibrated {_times(kinds.count('recalibrated'))}"),
        ("Rows learned", f"{rows:,}", f"in {len(history.batches):,} batches"),
        ("Set aside", f"{sum(aside.values()):,}", "events, see below"),
    ]


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def _quality(history: StreamHistory) -> Section:
    plots = quality_plots(history)
    drawn = {trace.get("meta") for each in plots for trace in each.data}
    legend = [(n, color, dash, on) for n, (color, dash, on) in LINES.items()]
    legend += [(kind, color, sign, True) for kind, (color, _, _, sign) in KINDS.items()]
    return section("quality", plots, legend=[entry for entry in legend if entry[0] in drawn])


def _drift(history: StreamHistory) -> Section:
    plots = drift_plots(history)
    looks = styles(history.intervals[-1].moves if plots else ())
    legend = [(name, look["color"], look["dash"], True) for name, look in looks.items()]
    return section("score-moves", plots, [change_table(history)], legend=legend)
