"""Facts: what a service tells about its model and about itself, for its page."""

__all__ = ["model_facts", "status_facts"]

from collections.abc import Mapping
from typing import Any

from harmonrank.registry import Registry, Version
from harmonrank.serving.counters import BUCKETS, COUNTED, STATUSES, Counters
from harmonrank.serving.runtime import Runtime
from harmonrank.support.errors import HarmonRankError

_MOST_VALUES = 100
_MOST_VERSIONS = 50


def model_facts(runtime: Runtime, name: str, registry: Registry | None) -> dict[str, Any]:
    """Return what the model is: objectives, weights, context values, history of versions."""
    model = runtime.model
    explained, metrics = model.explain(), _metrics(runtime, registry)
    objectives = [
        {
            "name": objective,
            "score": column,
            "scale": scale,
            "weight": explained["weight"][objective],
            "prevalence": explained["prevalence"][objective],
            "effective_weight": explained["effective_weight"][objective],
            "auc": None if metrics is None else metrics["auc"].get(objective),
        }
        for (objective, column), scale in zip(
            model.schema.objectives.items(), model.schema.scales, strict=True
        )
    ]
    context = [
        {"name": f.name, "kind": f.kind, "values": list(f.values[:_MOST_VALUES])}
        for f in model.fitted.encoder.features
    ]
    return {
        "name": name,
        "version": runtime.version,
        "method": model.name,
        "objectives": objectives,
        "auc_sum": None if metrics is None else metrics["auc_sum"],
        "context": context,
        "points": runtime.points,
        "probabilities": runtime.has_probabilities,
        "reweightable": runtime.has_probabilities,
        "history": [] if registry is None else _history(registry),
    }


def _metrics(runtime: Runtime, registry: Registry | None) -> dict[str, Any] | None:
    """Return the quality at publication, if a labelled table was given then."""
    if registry is None:
        return None
    try:
        return registry.version(int(runtime.version)).metrics
    except HarmonRankError:
        return None


def _history(registry: Registry) -> list[dict[str, Any]]:
    current, found = registry.current(), []
    for number in registry.numbers()[::-1][:_MOST_VERSIONS]:
        try:
            found.append(_told(registry.version(number), current))
        except HarmonRankError:  # pruned meanwhile, or damaged
            continue
    return found


def _told(version: Version, current: int | None) -> dict[str, Any]:
    state = "refused" if version.refused else "accepted"
    return {
        "version": str(version.number),
        "state": "current" if version.number == current else state,
        "created": version.created,
        "method": version.method,
        "auc_sum": None if version.metrics is None else version.metrics["auc_sum"],
        "window": version.window,
        "note": version.refused or version.note,
    }


def status_facts(
    counters: Counters, version: str, drift: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return how the service does: counts since its start, from which a page makes rates."""
    requests, latency = counters.total("requests"), counters.total("latency")
    scoring = [COUNTED.index(route) for route in ("infer", "rank")]
    counts = requests[scoring].sum(axis=0).tolist()
    return {
        "version": version,
        "requests": sum(counts),
        "errors": {
            str(status): count
            for status, count in zip(STATUSES, counts, strict=True)
            if count and status != STATUSES[0]
        },
        "candidates": int(counters.total("candidates")),
        "bucket_ends": list(BUCKETS),
        "latency": latency[scoring].sum(axis=0).tolist(),
        "waiting": int(counters.total("waiting")),
        "workers": int(counters.total("ready")),
        "drift": drift,
    }
