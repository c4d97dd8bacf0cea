"""Application: from a request to its answer, whatever the server."""

__all__ = ["Application"]

import hmac
import traceback
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from harmonrank.serving.http import HttpError, Request, Response, json_response
from harmonrank.serving.routes import MODEL, ROUTES, Service
from harmonrank.support.errors import HarmonRankError

_ROUTES = {route.path: route for route in ROUTES}
_MODELS = MODEL.removesuffix("{model}")


class Application:
    """Answers requests; it is called by one thread.

    Args:
        service: What it answers from.
        key: The API key, if there is one.
        on_event: Called with the name of an event and its facts.
    """

    def __init__(
        self,
        service: Service,
        key: str | None,
        on_event: Callable[[str, Mapping[str, Any]], None],
    ) -> None:
        self._service, self._on_event = service, on_event
        self._key = None if key is None else sha256(key.encode()).digest()

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
        path = request.path.rstrip("/") or "/"
        route = _ROUTES.get(path)
        if route is None or not route.open:
            self._admit(request)
        if route is None:
            route = _ROUTES.get(self._without_version(path))
        if route is None:
            raise HttpError(404, "There is nothing here; /openapi.json says what there is.")
        if request.method not in (route.method, "HEAD" if route.method == "GET" else ""):
            sentence = f"Use {route.method} here. Got {request.method[:20]}."
            raise HttpError(405, sentence, {"allow": route.method})
        return route.answer(self._service, request)

    def _admit(self, request: Request) -> None:
        if self._key is None:
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
        name, version = self._service.config.name, self._service.live.runtime.version
        if model != name:
            raise HttpError(404, f"There is no model '{model[:100]}'; it is called '{name}'.")
        if rest[:1] == ["versions"]:
            if rest[1:2] != [version]:
                raise HttpError(404, f"Only version '{version}' is served now.")
            rest = rest[2:]
        return "/".join([MODEL, *rest])
