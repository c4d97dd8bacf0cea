"""About: what a service tells of its model and of itself, for its page and its clients."""

__all__ = ["model_facts", "openapi", "status_facts"]

from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any

import msgspec

import harmonrank
from harmonrank.data.scales import bounds_of
from harmonrank.registry import Registry, Version
from harmonrank.serving.counters import BUCKETS, COUNTED, STATUSES, Counters
from harmonrank.serving.http import JSON
from harmonrank.serving.runtime import Runtime
from harmonrank.support.errors import HarmonRankError

if TYPE_CHECKING:
    from harmonrank.serving.routes import Route


_MOST_VALUES = 100
_MOST_VERSIONS = 50
_EXPLAINED = ("weight", "prevalence", "effective_weight")
_REF = "#/components/schemas/{name}"


def model_facts(runtime: Runtime, name: str, registry: Registry | None) -> dict[str, Any]:
    """Return what the model is: objectives, weights, context values, history of versions."""
    model = runtime.model
    explained, metrics = model.explain(), _metrics(runtime, registry)
    objectives = [
        {
            "name": objective,
            "score": column,
            "scale": scale,
            **{part: explained[part][objective] for part in _EXPLAINED},
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
    current, versions = registry.current(), []
    for number in registry.numbers()[::-1][:_MOST_VERSIONS]:
        try:
            versions.append(_told(registry.version(number), current))
        except HarmonRankError:  # pruned meanwhile, or damaged
            continue
    return versions


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


class Error(msgspec.Struct):
    """One sentence that says what is wrong."""

    error: str


def openapi(routes: "Iterable[Route]", runtime: Runtime, name: str) -> dict[str, Any]:
    """Return the document as JSON parts; a model with that name is served."""
    told = [route for route in routes if route.about]
    structs = [Error, *(each for route in told for each in (*route.bodies, *route.gives))]
    (error, *_), schemas = msgspec.json.schema_components(structs, ref_template=_REF)
    _name_columns(schemas, runtime)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "HarmonRank",
            "version": harmonrank.__version__,
            "description": f"Version {runtime.version} of {runtime.model.name}.",
        },
        "paths": {
            route.path.replace("{model}", name): {route.method.lower(): _operation(route, error)}
            for route in told
        },
        "components": {"schemas": schemas},
    }


def _operation(route: "Route", error: Mapping[str, Any]) -> dict[str, Any]:
    wrong = {"description": Error.__doc__, "content": {JSON: {"schema": error}}}
    content = {kind: {} for kind in route.answers} | _content(route.gives)
    answers = {"200": {"description": "As asked.", "content": content}, "4XX": wrong}
    operation = {"summary": route.about, "responses": answers}
    if route.bodies:
        operation["requestBody"] = {"required": True, "content": _content(route.bodies)}
    return operation


def _content(structs: Sequence[Any]) -> dict[str, Any]:
    """Return JSON of one of these structs."""
    forms = [{"$ref": _REF.format(name=struct.__name__)} for struct in structs]
    return {JSON: {"schema": {"oneOf": forms}}} if forms else {}


def _name_columns(schemas: Mapping[str, Any], runtime: Runtime) -> None:
    """Narrow what the structs allow to the columns, objectives and points of the model."""
    schema = runtime.model.schema
    rank, tensor = schemas["RankRequest"]["properties"], schemas["Tensor"]["properties"]
    kind: Any = ["number", "null"] if schema.missing == "allow" else "number"
    scores = {
        column: {"type": "array", "items": {"type": kind, **_bounds(scale)}}
        for column, scale in zip(schema.score_columns, schema.scales, strict=True)
    }
    value = rank["context"]["additionalProperties"]
    rank["scores"] = _object(scores, schema.score_columns)
    rank["context"] = _object(dict.fromkeys(schema.context, value), schema.context)
    for field in ("weights", "value"):
        rank[field] = _object({name: {"type": "number"} for name in schema.names})
    if runtime.points:
        rank["point"] = _one_of(runtime.points)
    tensor["name"] = _one_of([*schema.score_columns, *schema.context])
    schemas["Output"]["properties"]["name"] = _one_of(runtime.outputs)


def _object(properties: Mapping[str, Any], required: Iterable[str] = ()) -> dict[str, Any]:
    return {"type": "object", "properties": dict(properties), "required": list(required)}


def _one_of(names: Iterable[str]) -> dict[str, Any]:
    return {"type": "string", "enum": list(names)}


def _bounds(scale: str) -> dict[str, float]:
    low, high = bounds_of(scale)
    return {"minimum": low, "maximum": high} if isfinite(high) else {}
