"""The application behind an ASGI server: bounded bodies, a bounded queue, counted answers."""

__all__ = ["Asgi"]

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from time import perf_counter
from typing import Any

from harmonrank.serving.application import Application
from harmonrank.serving.counters import Slot
from harmonrank.serving.http import HttpError, Request, Response, json_response
from harmonrank.serving.routes import counted_as
from harmonrank.serving.settings import ServeConfig

_RETRY_SECONDS = "1"


class Asgi:
    """Takes requests from the server, one turn at a time, in the order in which they came.

    Scoring a request takes a part of a millisecond, so it is done in the event loop, which looks
    for other requests in between. More than `queue` of them do not wait: they are told to come
    again.
    """

    def __init__(
        self,
        application: Application,
        config: ServeConfig,
        slot: Slot,
        on_event: Callable[[str, Mapping[str, Any]], None],
    ) -> None:
        self._application, self._config, self._slot = application, config, slot
        self._on_event = on_event
        self._turn = asyncio.Lock()
        self._waiting = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        headers = {
            name.decode("latin-1"): text.decode("latin-1") for name, text in scope["headers"]
        }
        request = Request(scope["method"], scope["path"], headers)
        route, started = counted_as(request.path), perf_counter()
        try:
            body = await self._body(request, receive)
            started = perf_counter()
            answer = await self._queued(replace(request, body=body))
        except HttpError as error:
            # Whatever is left of the body is not read, so the connection ends.
            extra = {**error.headers, "connection": "close"}
            answer = json_response({"error": str(error)}, error.status, headers=extra)
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
        if self._waiting >= self._config.queue:
            raise _busy()
        self._waiting += 1
        self._slot.set("waiting", self._waiting)
        try:
            async with asyncio.timeout(self._config.timeout), self._turn:
                # Others that have come meanwhile queue up behind this one, and are counted.
                await asyncio.sleep(0)
                return self._application.answer(request)
        except TimeoutError:
            raise _busy() from None
        finally:
            self._waiting -= 1
            self._slot.set("waiting", self._waiting)


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
