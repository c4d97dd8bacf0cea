"""Tensors of the Open Inference Protocol v2, as JSON and as binary data behind it."""

__all__ = [
    "TENSORS",
    "Asked",
    "InferRequest",
    "Tensor",
    "decode_request",
    "encode_answer",
    "values_of",
]

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
import numpy as np
import polars as pl
from msgspec import UNSET, Meta, Raw, UnsetType

from harmonrank.serving.http import Request, Response, json_response
from harmonrank.support.errors import DataError
from harmonrank.support.storage.decoding import decode_json

TENSORS = "application/octet-stream"
"""The content type of JSON with binary data behind it."""

HEADER_LENGTH = "inference-header-content-length"
_DIGITS = 20  # More are no length, and of thousands Python makes no number.
_FLOATS: dict[str, np.dtype[Any]] = {"FP32": np.dtype(np.float32), "FP64": np.dtype(np.float64)}
_WHOLE = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32")
_TYPES: dict[str, np.dtype[Any]] = {**{name.upper(): np.dtype(name) for name in _WHOLE}, **_FLOATS}


class Tensor(msgspec.Struct):
    """One input; what it says beyond this is passed over."""

    name: str
    datatype: str = ""
    shape: list[Annotated[int, Meta(ge=0, le=2**40)]] = []
    parameters: dict[str, Any] = {}
    data: Raw | UnsetType = UNSET


class Output(msgspec.Struct):
    """An output that is asked for."""

    name: str
    parameters: dict[str, Any] = {}


class InferRequest(msgspec.Struct):
    """A request for inference; without outputs all are asked for."""

    inputs: Annotated[list[Tensor], Meta(max_length=10_000)]
    outputs: Annotated[list[Output], Meta(max_length=10_000)] = []
    id: str = ""
    parameters: dict[str, Any] = {}


@dataclass(frozen=True)
class Asked:
    """A request for inference, and the binary data of its inputs by name."""

    body: InferRequest
    binary: Mapping[str, memoryview]


def decode_request(request: Request) -> Asked:
    """Decode the JSON part, and give each input its part of the binary data behind it."""
    body = memoryview(request.body)
    size = _header_length(request, len(body))
    inference = decode_json(bytes(body[:size]), InferRequest, "The request")
    rest, offset, binary = body[size:], 0, {}
    for tensor in inference.inputs:
        length = tensor.parameters.get("binary_data_size")
        if length is None:
            continue
        if not isinstance(length, int) or isinstance(length, bool) or length < 0:
            raise DataError(f"Input '{tensor.name}': binary_data_size must be a number of bytes.")
        if offset + length > len(rest):
            raise DataError(
                f"Input '{tensor.name}' announces {length:,} bytes of binary data; "
                f"{max(len(rest) - offset, 0):,} are left in the body."
            )
        binary[tensor.name] = rest[offset : offset + length]
        offset += length
    if offset < len(rest):
        raise DataError(f"{len(rest) - offset:,} bytes follow the data of all inputs.")
    return Asked(inference, binary)


def _header_length(request: Request, length: int) -> int:
    given = request.headers.get(HEADER_LENGTH)
    if given is None:
        return length
    number = given.isascii() and given.isdigit() and len(given) < _DIGITS
    if not number or int(given) > length:
        raise DataError(
            f"Inference-Header-Content-Length must be a number up to the body's {length:,} bytes."
        )
    return int(given)


def values_of(tensor: Tensor, binary: memoryview | None) -> np.ndarray | pl.Series:
    """Return the values of an input: numbers as an array, BYTES as a series of text."""
    if len(tensor.shape) != 1:
        raise DataError(f"Input '{tensor.name}' must have shape [n]. Got {tensor.shape}.")
    rows = tensor.shape[0]
    if tensor.datatype == "BYTES":
        values: np.ndarray | pl.Series = pl.Series(
            tensor.name, _texts(tensor, binary, rows), pl.String
        )
    elif tensor.datatype in _TYPES:
        values = _numbers(tensor, binary)
    else:
        known = ", ".join([*_TYPES, "BYTES"])
        raise DataError(
            f"Input '{tensor.name}' has the datatype {tensor.datatype[:20]!r}; known: {known}."
        )
    if len(values) != rows:
        raise DataError(f"Input '{tensor.name}' has shape [{rows}] but {len(values)} values.")
    return values


def _numbers(tensor: Tensor, binary: memoryview | None) -> np.ndarray:
    kind = _TYPES[tensor.datatype]
    if binary is not None:
        if len(binary) % kind.itemsize:
            raise DataError(
                f"Input '{tensor.name}' has {len(binary)} bytes, which are no whole number "
                f"of {tensor.datatype} values."
            )
        return np.frombuffer(binary, kind.newbyteorder("<"))
    element: Any = bool if kind == np.bool_ else int
    if tensor.datatype in _FLOATS:
        element = float | None  # JSON has no other word for NaN.
    data = _json_data(tensor, element)
    try:
        return np.array(data, dtype=kind)
    except OverflowError:
        raise DataError(
            f"Input '{tensor.name}' has a value that is no {tensor.datatype}."
        ) from None


def _json_data(tensor: Tensor, element: Any) -> list[Any]:
    if tensor.data is UNSET:
        raise DataError(f"Input '{tensor.name}' has neither `data` nor binary data.")
    assert isinstance(tensor.data, Raw)
    kind: Any = list[element]
    values: list[Any] = decode_json(bytes(tensor.data), kind, f"Input '{tensor.name}'")
    return values


def _texts(tensor: Tensor, binary: memoryview | None, rows: int) -> list[str]:
    if binary is None:
        return _json_data(tensor, str)
    raw = bytes(binary)
    first = raw[: 4 + int.from_bytes(raw[:4], "little")]
    # Candidates of one request share their context: then all elements are the first one.
    if len(first) * rows == len(raw) and raw == first * rows:
        return _texts_of(tensor, first) * rows
    return _texts_of(tensor, raw)


def _texts_of(tensor: Tensor, raw: bytes) -> list[str]:
    offset, texts = 0, []
    while offset < len(raw):
        length = int.from_bytes(raw[offset : offset + 4], "little")
        end = offset + 4 + length
        if offset + 4 > len(raw) or end > len(raw):
            raise DataError(f"Input '{tensor.name}' has BYTES that end in the middle of a value.")
        try:
            texts.append(raw[offset + 4 : end].decode())
        except UnicodeDecodeError:
            raise DataError(f"Input '{tensor.name}' has BYTES that are no UTF-8 text.") from None
        offset = end
    return texts


def encode_answer(
    head: Mapping[str, Any], outputs: Mapping[str, np.ndarray], binary: Sequence[str]
) -> Response:
    """Return outputs as JSON, and those that are named in `binary` behind it.

    Args:
        head: What the answer says besides its outputs.
        outputs: Values by name, FP64.
        binary: The outputs that were asked for as binary data.
    """
    listed, blobs = [], []
    rows = 0
    for name, values in outputs.items():
        rows = len(values)
        part: dict[str, Any] = {"name": name, "datatype": "FP64", "shape": [rows]}
        if name in binary:
            blob = np.ascontiguousarray(values, "<f8").tobytes()
            part["parameters"] = {"binary_data_size": len(blob)}
            blobs.append(blob)
        else:
            part["data"] = values.tolist()
        listed.append(part)
    answer = json_response({**head, "outputs": listed}, candidates=rows)
    if not blobs:
        return answer
    headers = {HEADER_LENGTH: str(len(answer.body))}
    body = b"".join([answer.body, *blobs])
    return Response(200, body, TENSORS, headers, rows)
