"""Inference: the Open Inference Protocol v2 for one model."""

__all__ = ["infer", "model_metadata", "server_metadata"]

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

import harmonrank
from harmonrank.serving.http import Request, Response
from harmonrank.serving.runtime import FUSED, Candidates, Runtime, named_columns
from harmonrank.serving.tensors import Asked, decode_request, encode_answer, values_of
from harmonrank.support.errors import DataError, refuse_unknown
from harmonrank.support.storage.decoding import decode, decode_json

_KINDS = {"text": "BYTES", "integer": "INT64", "number": "FP64"}


def server_metadata() -> dict[str, Any]:
    """Return what the protocol asks of a server."""
    extensions = ["binary_tensor_data"]
    return {"name": "harmonrank", "version": harmonrank.__version__, "extensions": extensions}


def model_metadata(runtime: Runtime, name: str) -> dict[str, Any]:
    """Return inputs and outputs: a tensor per score and context column, named like it."""
    scores = [(column, "FP32") for column in runtime.model.schema.score_columns]
    features = runtime.model.fitted.encoder.features
    contexts = [(feature.name, _KINDS[feature.kind]) for feature in features]
    return {
        "name": name,
        "versions": [runtime.version],
        "platform": "harmonrank",
        "inputs": [_declared(*pair) for pair in scores + contexts],
        "outputs": [_declared(output, "FP64") for output in runtime.outputs],
    }


def _declared(name: str, datatype: str) -> dict[str, Any]:
    return {"name": name, "datatype": datatype, "shape": [-1]}


def infer(
    runtime: Runtime, name: str, request: Request, max_rows: int
) -> tuple[Response, Candidates]:
    """Answer a request for inference; also return what was scored."""
    asked = decode_request(request)
    body = asked.body
    candidates = _candidates(runtime, asked, max_rows)
    wanted = [tensor.name for tensor in body.outputs] or list(runtime.outputs)
    refuse_unknown(wanted, runtime.outputs, "There is no output '{}'.", DataError)
    weights = runtime.weights(_weights(body.parameters), _point(body.parameters))
    scored = runtime.score(candidates, weights, probabilities=any(o != FUSED for o in wanted))
    columns = {FUSED: scored.fused}
    if scored.probabilities is not None:
        columns |= dict(zip(runtime.objectives, scored.probabilities.T, strict=True))
    all_binary = body.parameters.get("binary_data_output") is True
    binary = [t.name for t in body.outputs if t.parameters.get("binary_data", all_binary) is True]
    head = {"model_name": name, "model_version": runtime.version}
    head |= {"id": body.id} if body.id else {}
    outputs = {output: columns[output] for output in wanted}
    return encode_answer(head, outputs, binary if body.outputs else wanted * all_binary), candidates


def _point(parameters: Mapping[str, Any]) -> str | None:
    return decode(parameters.get("point"), str | None, "Parameter `point`")  # type: ignore[arg-type]


def _weights(parameters: Mapping[str, Any]) -> dict[str, float] | None:
    """Return the weights of a call: an object, or the same as text, which some clients need."""
    given, what = parameters.get("weights"), "Parameter `weights`"
    if isinstance(given, str):
        return decode_json(given.encode(errors="replace"), dict[str, float], what)
    return None if given is None else decode(given, dict[str, float], what)


def _candidates(runtime: Runtime, asked: Asked, max_rows: int) -> Candidates:
    tensors = {tensor.name: tensor for tensor in asked.body.inputs}
    if len(tensors) < len(asked.body.inputs):
        raise DataError("Two inputs have the same name; each must be given once.")
    for tensor in asked.body.inputs:
        # Before anything is decoded or allocated.
        if tensor.shape and tensor.shape[0] > max_rows:
            raise DataError(
                f"Input '{tensor.name}' has {tensor.shape[0]:,} rows; at most {max_rows:,} are "
                "scored at once, so send several requests."
            )
    schema = runtime.model.schema
    wanted = [*schema.score_columns, *schema.context]
    _, others = named_columns(tensors, wanted, "Input")
    refuse_unknown(others, wanted, "There is no input '{}'.", DataError)
    values = {n: values_of(tensors[n], asked.binary.get(n)) for n in wanted}
    rows = {len(column) for column in values.values()}
    if len(rows) > 1 or 0 in rows:
        raise DataError(f"All inputs must have the same length from 1 up. Got {sorted(rows)}.")
    columns = [_scores(name, values[name]) for name in schema.score_columns]
    single = all(column.dtype == np.float32 for column in columns)
    scores = np.stack(columns, axis=1).astype(np.float32 if single else np.float64, copy=False)
    shared: dict[str, Any] = {}
    own: dict[str, pl.Series] = {}
    for name in schema.context:
        series = pl.Series(name, values[name])
        if bool((series == series[0]).all()):
            shared[name] = series[0]
        else:
            own[name] = series
    return Candidates(scores, shared, own)


def _scores(name: str, values: np.ndarray | pl.Series) -> np.ndarray:
    if isinstance(values, np.ndarray) and values.dtype.kind == "f":
        return values
    raise DataError(f"Input '{name}' holds scores and must be FP32 or FP64.")
