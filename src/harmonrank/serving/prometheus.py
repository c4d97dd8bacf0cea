"""The metrics of a service in the text format of Prometheus."""

__all__ = ["CONTENT_TYPE", "metrics_text"]

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from harmonrank.serving.shared import BUCKETS, ROUTES, STATUSES, Counters

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_PLAIN = {
    "candidates": ("counter", "candidates_total", "Candidates that were scored."),
    "reloads": ("counter", "reloads_total", "Versions that workers moved to."),
    "refused_reloads": ("counter", "refused_reloads_total", "Versions that workers refused."),
    "waiting": ("gauge", "waiting_requests", "Requests that wait for their turn."),
    "ready": ("gauge", "ready_workers", "Workers that answer."),
}


def metrics_text(counters: Counters, version: str, drift: Mapping[str, Any] | None) -> str:
    """Return all metrics, summed over the workers."""
    return "\n".join([*_requests(counters), *_latency(counters), *_rest(counters, version, drift)])


def _head(kind: str, name: str, text: str) -> list[str]:
    return [f"# HELP harmonrank_{name} {text}", f"# TYPE harmonrank_{name} {kind}"]


def _requests(counters: Counters) -> Iterator[str]:
    yield from _head("counter", "requests_total", "Answers by route and status.")
    table = counters.total("requests")
    for route, row in zip(ROUTES, table, strict=True):
        for status, count in zip(STATUSES, row.tolist(), strict=True):
            if count or status == STATUSES[0]:
                labels = f'route="{route}",status="{status}"'
                yield f"harmonrank_requests_total{{{labels}}} {count}"


def _latency(counters: Counters) -> Iterator[str]:
    name = "request_seconds"
    yield from _head("histogram", name, "Time from the end of a request to its answer.")
    buckets, sums = counters.total("latency"), counters.total("seconds")
    for route, row, seconds in zip(ROUTES, buckets, sums, strict=True):
        counts = np.cumsum(row).tolist()
        for end, count in zip([*map(str, BUCKETS), "+Inf"], counts, strict=True):
            yield f'harmonrank_{name}_bucket{{route="{route}",le="{end}"}} {count}'
        yield f'harmonrank_{name}_sum{{route="{route}"}} {float(seconds):.6f}'
        yield f'harmonrank_{name}_count{{route="{route}"}} {counts[-1]}'


def _rest(counters: Counters, version: str, drift: Mapping[str, Any] | None) -> Iterator[str]:
    for field, (kind, name, text) in _PLAIN.items():
        yield from _head(kind, name, text)
        yield f"harmonrank_{name} {int(counters.total(field))}"
    yield from _head("gauge", "version_info", "The version that answered this.")
    yield f'harmonrank_version_info{{version="{_escaped(version)}"}} 1'
    columns = [] if drift is None else drift["columns"]
    for name, text in (
        ("drift_offset", "Change of a score's median since the fit, in standard deviations."),
        ("drift_scale", "Spread of a score over that of the fit."),
    ):
        yield from _head("gauge", name, text)
        for column in columns:
            label = _escaped(column["column"])
            yield f'harmonrank_{name}{{score="{label}"}} {column[name.removeprefix("drift_")]:.6g}'
    yield from _head("gauge", "upstream_replaced", "Scores whose upstream model was replaced.")
    yield f"harmonrank_upstream_replaced {0 if drift is None else len(drift['replaced'])}"
    yield ""


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
