"""The metrics of a stream in the text format of Prometheus."""

__all__ = ["stream_metrics"]

from collections.abc import Iterator, Mapping

from harmonrank.streaming.totals import StreamTotals
from harmonrank.support.prometheus import Kind, family

_COUNTERS = {
    "events": ("events_total", "Events that were read."),
    "learned_rows": ("learned_rows_total", "Labelled rows that were learned."),
    "batches": ("batches_total", "Batches that were learned since the process started."),
}
_GAUGES = {
    "commit": ("commit", "The newest commit of the state."),
    "guard_rows": ("guard_rows", "Rows that wait to be learned until they have judged a model."),
    "waiting": ("waiting", "Events, or files, that wait in the source."),
    "lag_seconds": ("lag_seconds", "From the newest event to now."),
    "rows_per_second": ("rows_per_second", "Of the last batch: joined, scored and learned."),
}
_MOVES = {
    "psi": ("psi", "Population stability index of a score against the last learned batch."),
    "offset": ("drift_offset", "Change of a score's median, in standard deviations."),
    "scale": ("drift_scale", "Spread of a score over that of the fit."),
}


def stream_metrics(totals: StreamTotals) -> str:
    """Return all metrics; what is not known yet is left out."""
    return "\n".join([*_plain(totals), *_labelled(totals), ""])


def _one(kind: Kind, name: str, text: str, value: float | None) -> Iterator[str]:
    yield from family(kind, f"stream_{name}", text, [] if value is None else [({}, value)])


def _each(
    kind: Kind, name: str, text: str, label: str, values: Mapping[str, float | None]
) -> Iterator[str]:
    known = [({label: of}, value) for of, value in values.items() if value is not None]
    yield from family(kind, f"stream_{name}", text, known)


def _plain(totals: StreamTotals) -> Iterator[str]:
    for part, (name, text) in _COUNTERS.items():
        yield from _one("counter", name, text, getattr(totals, part))
    for part, (name, text) in _GAUGES.items():
        yield from _one("gauge", name, text, getattr(totals, part))
    watermark = None if totals.watermark is None else totals.watermark.timestamp()
    yield from _one("gauge", "watermark_seconds", "The watermark, since 1970.", watermark)
    total = None if totals.window is None else totals.window.auc_sum
    yield from _one("gauge", "auc_sum", "Weighted sum of the prequential AUCs.", total)
    replaced = "Scores whose upstream model was replaced in the last interval."
    yield from _one("gauge", "upstream_replaced", replaced, len(totals.replaced))


def _labelled(totals: StreamTotals) -> Iterator[str]:
    outcomes = {"published": totals.published, "refused": totals.refused}
    text = "Versions that were offered to the registry."
    yield from _each("counter", "versions_total", text, "outcome", outcomes)
    yield from _each("counter", "aside_total", "Events set aside.", "reason", totals.aside)
    yield from _each("counter", "retries_total", "What was tried again.", "what", totals.retries)
    areas = {} if totals.window is None else totals.window.auc
    text = "Prequential AUC over the sliding window."
    yield from _each("gauge", "auc", text, "objective", areas)
    for part, (name, about) in _MOVES.items():
        moves = {score: getattr(move, part) for score, move in totals.moves.items()}
        yield from _each("gauge", name, about, "score", moves)
