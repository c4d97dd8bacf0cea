"""Request and Response: HTTP as plain values, whatever the server."""

__all__ = ["HttpError", "Request", "Response", "json_response"]

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from harmonrank.support.errors import HarmonRankError

JSON = "application/json"


class HttpError(HarmonRankError):
    """A request that is answered with one sentence and a status."""

    def __init__(self, status: int, sentence: str, headers: Mapping[str, str] | None = None):
        super().__init__(sentence)
        self.status, self.headers = status, dict(headers or {})


@dataclass(frozen=True)
class Request:
    """A request whose body has come.

    Attributes:
        headers: By lower-case name.
    """

    method: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def content_type(self) -> str:
        """What the body is, without parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()


@dataclass(frozen=True)
class Response:
    """An answer.

    Attributes:
        candidates: How many were scored, for the metrics.
    """

    status: int = 200
    body: bytes = b""
    content_type: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)
    candidates: int = 0


def json_response(value: Any, status: int = 200, **rest: Any) -> Response:
    """Return an answer in JSON."""
    return Response(status, msgspec.json.encode(value), **rest)
