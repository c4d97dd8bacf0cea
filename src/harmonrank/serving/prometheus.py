"""The metrics of a service in the text format of Prometheus."""

__all__ = ["metrics_text"]

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from harmonrank.serving.shared import BUCKETS, ROUTES, STATUSES, Counters
from harmonrank.support.prometheus import Kind, family, sample

_PLAIN: dict[str, tuple[Kind, str, str]] = {
    "candidates": ("counter", "candidates_total", "Candidates that were scored."),
    "reloads": ("counter", "reloads_total", "Versions that workers moved to."),
    "refused_reloads": ("counter", "refused_reloads_total", "Versions that workers refused."),
    "waiting": ("gauge", "waiting_requests", "Requests that wait for their turn."),
    "ready": ("gauge", "ready_workers", "Workers that answer."),
}


def metrics_text(counters: Counters, version: str, drift: Mapping[str, Any] | None) -> str:
    """Return all metrics, summed over the workers."""
    return "\n".join([*_requests(counters), *_latency(counters), *_rest(counters, version, drift)])


def _requests(counters: Counters) -> Iterator[str]:
    yield from family("counter", "requests_total", "Answers by route and status.")
    table = counters.total("requests")
    for route, row in zip(ROUTES, table, strict=True):
        for status, count in zip(STATUSES, row.tolist(), strict=True):
            if count or status == STATUSES[0]:
                yield sample("requests_total", count, route=route, status=str(status))


def _latency(counters: Counters) -> Iterator[str]:
    name = "request_seconds"
    yield from family("histogram", name, "Time from the end of a request to its answer.")
    buckets, sums = counters.total("latency"), counters.total("seconds")
    for route, row, seconds in zip(ROUTES, buckets, sums, strict=True):
        counts = np.cumsum(row).tolist()
        for end, count in zip([*map(str, BUCKETS), "+Inf"], counts, strict=True):
            yield sample(f"{name}_bucket", count, route=route, le=end)
        yield sample(f"{name}_sum", f"{float(seconds):.6f}", route=route)
        yield sample(f"{name}_count", counts[-1], route=route)


def _rest(counters: Counters, version: str, drift: Mapping[str, Any] | None) -> Iterator[str]:
    for field, (kind, name, text) in _PLAIN.items():
        yield from family(kind, name, text, [({}, int(counters.total(field)))])
    about = "The version that answered this."
    yield from family("gauge", "version_info", about, [({"version": version}, 1)])
    columns = [] if drift is None else drift["columns"]
    for name, text in (
        ("drift_offset", "Change of a score's median since the fit, in standard deviations."),
        ("drift_scale", "Spread of a score over that of the fit."),
    ):
        part = name.removeprefix("drift_")
        moves = [({"score": column["column"]}, f"{column[part]:.6g}") for column in columns]
        yield from family("gauge", name, text, moves)
    replaced = 0 if drift is None else len(drift["replaced"])
    about = "Scores whose upstream model was replaced."
    yield from family("gauge", "upstream_replaced", about, [({}, replaced)])
    yield ""
