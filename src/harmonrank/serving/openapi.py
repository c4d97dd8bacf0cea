"""The OpenAPI document of a service: its routes, with the columns of the model that it serves."""

__all__ = ["openapi"]

from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any

import msgspec

import harmonrank
from harmonrank.data.scales import bounds_of
from harmonrank.serving.http import JSON
from harmonrank.serving.runtime import Runtime

if TYPE_CHECKING:
    from harmonrank.serving.routes import Route

_REF = "#/components/schemas/{name}"


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
