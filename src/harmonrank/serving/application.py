"""Application: from what an ASGI server hands over to its answer."""

__all__ = ["Application"]

import asyncio
import hmac
import traceback
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from time import perf_counter
from typing import Any

from harmonrank.serving.counters import Slot
from harmonrank.serving.http import HttpError, Request, Response, json_response
from harmonrank.serving.routes import MODEL, ROUTES, Service, counted_as
from harmonrank.serving.settings import OnEvent
from harmonrank.support.errors import HarmonRankError

_ROUTES = {route.path: route for route in ROUTES}
_MODELS = MODEL.removesuffix("{model}")
_RETRY_SECONDS = "1"


class Application:
    """Answers requests, one at a time, in the order in which they came.

    Scoring a request takes a part of a millisecond, so it is done in the event loop, which looks
    for other requests in between. At most `queue` of them wait; others are told to come again.

    Args:
        service: What it answers from.
        key: The API key, if there is one.
        on_event: Called with the name of an event and its facts.
    """

    def __init__(self, service: Service, key: str | None, on_event: OnEvent) -> None:
        self._service, self._config, self._on_event = service, service.config, on_event
        self._key = None if key is None else sha256(key.encode()).digest()
        self._slot = Slot(service.counters, service.worker)
        self._turn = asyncio.Lock()
        self._waiting = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request that comes from an ASGI server."""
        if scope["type"] != "http":
            return
        sent = {name.decode("latin-1"): text.decode("latin-1") for name, text in scope["headers"]}
        request = Request(scope["method"], scope["path"], sent)
        route, started = counted_as(request.path), perf_counter()
        body: bytes | None = None
        try:
            self._admit(request)  # before any of its body is kept
            body = await self._body(request, receive)
            started = perf_counter()
            answer = await self._queued(replace(request, body=body))
        except HttpError as error:
            # Whatever is left of a body is not read, so the connection ends.
            headers = error.headers | ({"connection": "close"} if body is None else {})
            answer = json_response({"error": str(error)}, error.status, headers=headers)
        except _Gone:
            return
        seconds = perf_counter() - started
        self._slot.answered(route, answer.status, seconds, answer.candidates)
        if self._config.access_log or answer.status >= 500:
            facts = {"route": route, "status": answer.status, "seconds": round(seconds, 6)}
            self._on_event("request", facts)
        await _send(send, answer, body=request.method != "HEAD")

    async def _body(self, request: Request, receive: Any) -> bytes:
        most = self._config.max_bytes
        declared = request.headers.get("content-length", "0")
        if not declared.isdigit() or int(declared) > most:
            raise HttpError(413, f"A body may have {most:,} bytes; send less at once.")
        if request.headers.get("content-encoding", "identity") != "identity":
            raise HttpError(415, "Send the body as it is, without a content encoding.")
        pieces, size = [], 0
        try:
            async with asyncio.timeout(self._config.timeout):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise _Gone
                    piece = message.get("body", b"")
                    size += len(piece)
                    if size > most:
                        raise HttpError(413, f"A body may have {most:,} bytes; send less at once.")
                    pieces.append(piece)
                    if not message.get("more_body", False):
                        return pieces[0] if len(pieces) == 1 else b"".join(pieces)
        except TimeoutError:
            seconds = f"{self._config.timeout:g}"
            raise HttpError(408, f"The body did not come within {seconds} seconds.") from None

    async def _queued(self, request: Request) -> Response:
        if _is_open(request.path):
            # Who asks whether the service runs must hear so above all when it is busy.
            return self.answer(request)
        if self._waiting >= self._config.queue:
            raise _busy()
        self._waiting += 1
        self._slot.set("waiting", self._waiting)
        try:
            async with asyncio.timeout(self._config.timeout), self._turn:
                # Others that have come meanwhile queue up behind this one, and are counted.
                await asyncio.sleep(0)
                return self.answer(request)
        except TimeoutError:
            raise _busy() from None
        finally:
            self._waiting -= 1
            self._slot.set("waiting", self._waiting)

    def answer(self, request: Request) -> Response:
        """Return the answer; a request that is wrong gets a sentence and a status of 4xx."""
        try:
            return self._routed(request)
        except HttpError as error:
            return json_response({"error": str(error)}, error.status, headers=error.headers)
        except HarmonRankError as error:
            return json_response({"error": str(error)}, 400)
        except Exception as error:
            # Where, but not with what: logs hold no payloads.
            frame = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{Path(frame.filename).name}:{frame.lineno}"
            self._on_event("internal error", {"kind": type(error).__name__, "place": place})
            sentence = "The service made a mistake; its log says where."
            return json_response({"error": sentence}, 500)

    def _routed(self, request: Request) -> Response:
        self._admit(request)
        path = request.path.rstrip("/") or "/"
        route = _ROUTES.get(path) or _ROUTES.get(self._without_version(path))
        if route is None:
            raise HttpError(404, "There is nothing here; /openapi.json says what there is.")
        if request.method not in (route.method, "HEAD" if route.method == "GET" else ""):
            sentence = f"Use {route.method} here. Got {request.method[:20]}."
            raise HttpError(405, sentence, {"allow": route.method})
        return route.answer(self._service, request)

    def _admit(self, request: Request) -> None:
        """Refuse a request without the key, unless its route is open."""
        if self._key is None or _is_open(request.path):
            return
        given = request.headers.get("x-api-key")
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if given is None and scheme.lower() == "bearer":
            given = token.strip()
        # Digests have one length, so that the time to compare tells nothing.
        digest = sha256((given or "").encode(errors="replace")).digest()
        if not hmac.compare_digest(digest, self._key):
            sentence = "Send the API key as 'Authorization: Bearer KEY' or 'X-API-Key: KEY'."
            raise HttpError(401, sentence, {"www-authenticate": "Bearer"})

    def _without_version(self, path: str) -> str:
        """Return the path of the route that asks for the model, of the version if one is named."""
        if not path.startswith(_MODELS):
            return path
        model, *rest = path.removeprefix(_MODELS).split("/")
        name, version = self._config.name, self._service.live.runtime.version
        if model != name:
            raise HttpError(404, f"There is no model '{model[:100]}'; it is called '{name}'.")
        if rest[:1] == ["versions"]:
            if rest[1:2] != [version]:
                raise HttpError(404, f"Only version '{version}' is served now.")
            rest = rest[2:]
        return "/".join([MODEL, *rest])


def _is_open(path: str) -> bool:
    route = _ROUTES.get(path.rstrip("/") or "/")
    return route is not None and route.open


class _Gone(Exception):  # noqa: N818
    """The client went away."""


def _busy() -> HttpError:
    sentence = "Too many requests wait already; come again in a second."
    return HttpError(429, sentence, {"retry-after": _RETRY_SECONDS})


async def _send(send: Any, answer: Response, *, body: bool) -> None:
    headers = {
        "content-type": answer.content_type,
        "content-length": str(len(answer.body)),
        "x-content-type-options": "nosniff",
        **answer.headers,
    }
    raw = [(name.encode("latin-1"), text.encode("latin-1")) for name, text in headers.items()]
    await send({"type": "http.response.start", "status": answer.status, "headers": raw})
    await send({"type": "http.response.body", "body": answer.body if body else b""})
