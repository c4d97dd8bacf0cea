"""The OpenAPI document of a service, with the columns of the model that it serves."""

__all__ = ["openapi"]

from math import isfinite
from typing import Any

import harmonrank
from harmonrank.data.scales import bounds_of
from harmonrank.serving.rank import ARROW
from harmonrank.serving.runtime import Runtime

_TEXT = {"type": "string"}
_NUMBER = {"type": "number"}
_VALUE = {"type": ["string", "number", "boolean", "null"]}


def openapi(runtime: Runtime, name: str) -> dict[str, Any]:
    """Return the document as JSON parts."""
    model = f"/v2/models/{name}"
    paths: dict[str, Any] = {
        "/v2/health/live": _get("Whether the service runs."),
        "/v2/health/ready": _get("Whether it answers requests."),
        "/v2": _get("Facts of the server."),
        model: _get("Inputs and outputs of the model."),
        f"{model}/ready": _get("Whether the model answers requests."),
        f"{model}/infer": _post(
            "Score candidates: a tensor per score and context column (Open Inference Protocol v2).",
            {"application/json": {"schema": _inference(runtime)}},
            {"application/json": {}, "application/octet-stream": {}},
        ),
        "/v1/rank": _post(
            "Return the best candidates of one request, or of many.",
            {
                "application/json": {"schema": _rank(runtime)},
                ARROW: {"schema": {"type": "string", "format": "binary"}},
            },
            {"application/json": {}, ARROW: {}},
        ),
        "/v1/model": _get("What the model is: objectives, weights, context values, versions."),
        "/v1/status": _get("How the service does: counts, latency, drift."),
        "/metrics": _get("Metrics for Prometheus.", "text/plain"),
        "/openapi.json": _get("This document."),
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "HarmonRank",
            "version": harmonrank.__version__,
            "description": f"Version {runtime.version} of {runtime.model.name}.",
        },
        "paths": paths,
        "components": {
            "schemas": {
                "Error": {
                    "type": "object",
                    "properties": {"error": _TEXT},
                    "required": ["error"],
                }
            }
        },
    }


def _errors() -> dict[str, Any]:
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    return {"4XX": {"description": "One sentence that says what is wrong.", "content": content}}


def _get(text: str, kind: str = "application/json") -> dict[str, Any]:
    found = {"description": "As asked.", "content": {kind: {}}}
    return {"get": {"summary": text, "responses": {"200": found, **_errors()}}}


def _post(text: str, bodies: dict[str, Any], answers: dict[str, Any]) -> dict[str, Any]:
    found = {"description": "As asked.", "content": answers}
    body = {"required": True, "content": bodies}
    return {
        "post": {"summary": text, "requestBody": body, "responses": {"200": found, **_errors()}}
    }


def _object(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


def _inference(runtime: Runtime) -> dict[str, Any]:
    schema = runtime.model.schema
    tensor = _object(
        {
            "name": {"type": "string", "enum": [*schema.score_columns, *schema.context]},
            "datatype": {"type": "string", "enum": ["FP32", "FP64", "INT64", "BYTES"]},
            "shape": {"type": "array", "items": {"type": "integer"}},
            "data": {"type": "array"},
            "parameters": {"type": "object"},
        },
        *("name", "datatype", "shape"),
    )
    output = _object({"name": {"type": "string", "enum": list(runtime.outputs)}}, "name")
    return _object(
        {
            "id": _TEXT,
            "inputs": {"type": "array", "items": tensor},
            "outputs": {"type": "array", "items": output},
            "parameters": {"type": "object"},
        },
        "inputs",
    )


def _rank(runtime: Runtime) -> dict[str, Any]:
    schema = runtime.model.schema
    kind: Any = ["number", "null"] if schema.missing == "allow" else "number"
    scores = {
        name: {"type": "array", "items": {"type": kind, **_bounds(scale)}}
        for name, scale in zip(schema.score_columns, schema.scales, strict=True)
    }
    each = {"oneOf": [_VALUE, {"type": "array", "items": _VALUE}]}
    one = _object(
        {
            "scores": _object(scores, *schema.score_columns),
            "context": _object(dict.fromkeys(schema.context, each), *schema.context),
            "ids": {"type": "array", "items": {"type": ["string", "integer"]}},
            "k": {"type": ["integer", "null"], "minimum": 1},
            "weights": {"type": "object", "properties": dict.fromkeys(schema.names, _NUMBER)},
            "value": {"type": "object", "properties": dict.fromkeys(schema.names, _NUMBER)},
            "point": {"type": "string", "enum": list(runtime.points)} if runtime.points else _TEXT,
            "shares": {"type": "boolean"},
        },
        "scores",
    )
    many = _object({"requests": {"type": "array", "items": one, "minItems": 1}}, "requests")
    return {"oneOf": [one, many]}


def _bounds(scale: str) -> dict[str, float]:
    low, high = bounds_of(scale)
    return {"minimum": low, "maximum": high} if isfinite(high) else {}
