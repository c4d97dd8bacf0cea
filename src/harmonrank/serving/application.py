"""Application: from a request to its answer, whatever the server."""

__all__ = ["Application", "route_of"]

import hmac
import traceback
from collections.abc import Callable, Mapping
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from harmonrank.serving.facts import model_facts, status_facts
from harmonrank.serving.http import HttpError, Request, Response, json_response
from harmonrank.serving.inference import infer, model_metadata, server_metadata
from harmonrank.serving.live import Live, registry_of
from harmonrank.serving.openapi import openapi
from harmonrank.serving.page import PAGE, page_file
from harmonrank.serving.prometheus import metrics_text
from harmonrank.serving.rank import rank
from harmonrank.serving.runtime import Candidates
from harmonrank.serving.sample import RecentRows
from harmonrank.serving.settings import ServeConfig
from harmonrank.serving.shared import Counters
from harmonrank.support.errors import DataError, HarmonRankError
from harmonrank.support.prometheus import CONTENT_TYPE
from harmonrank.support.storage.files import read_json

DRIFT = "drift.json"
"""The file in which the service's first process tells its workers about drift."""

# Whoever checks that a service is up needs no key, nor does the page, which asks for it.
_OPEN = ("/v2/health/live", "/v2/health/ready", *PAGE)


class Application:
    """Answers requests; it is called by one thread.

    Args:
        config: Of the service.
        live: The version that is served.
        folder: What the processes of the service share.
        worker: Which of them this is.
        key: The API key, if there is one.
        on_event: Called with the name of an event and its facts.
    """

    def __init__(
        self,
        config: ServeConfig,
        live: Live,
        counters: Counters,
        sample: RecentRows | None,
        folder: Path,
        worker: int,
        key: str | None,
        on_event: Callable[[str, Mapping[str, Any]], None],
    ) -> None:
        self._config, self._live, self._counters = config, live, counters
        self._sample, self._folder, self._worker = sample, folder, worker
        self._key = None if key is None else sha256(key.encode()).digest()
        self._on_event = on_event
        self._get: dict[str, Callable[[], Response]] = {
            **{path: partial(page_file, path) for path in PAGE},
            "/v1/model": self._facts,
            "/v1/status": self._status,
            "/metrics": self._metrics,
            "/openapi.json": self._openapi,
            "/v2": lambda: json_response(server_metadata()),
            "/v2/health/live": lambda: json_response({"live": True}),
            "/v2/health/ready": lambda: json_response({"ready": True}),
        }

    def answer(self, request: Request) -> Response:
        """Return the answer; a request that is wrong gets a sentence and a status of 4xx."""
        try:
            self._admit(request)
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

    def _admit(self, request: Request) -> None:
        if self._key is None or request.path in _OPEN:
            return
        given = request.headers.get("x-api-key")
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if given is None and scheme.lower() == "bearer":
            given = token.strip()
        # Digests have one length, so that the time to compare tells nothing.
        found = sha256((given or "").encode(errors="replace")).digest()
        if not hmac.compare_digest(found, self._key):
            sentence = "Send the API key as 'Authorization: Bearer KEY' or 'X-API-Key: KEY'."
            raise HttpError(401, sentence, {"www-authenticate": "Bearer"})

    def _routed(self, request: Request) -> Response:
        path = request.path.rstrip("/") or "/"
        if path in self._get:
            _allow(request, "GET")
            return self._get[path]()
        if path == "/v1/rank":
            _allow(request, "POST")
            answer, candidates = rank(self._live.runtime, request, self._config.max_rows)
            self._keep(*candidates)
            return answer
        if path.startswith("/v2/models/"):
            return self._model(request, path.removeprefix("/v2/models/").split("/"))
        raise HttpError(404, "There is nothing here; /openapi.json says what there is.")

    def _model(self, request: Request, parts: list[str]) -> Response:
        runtime, name = self._live.runtime, self._config.name
        if parts[0] != name:
            raise HttpError(404, f"There is no model '{parts[0][:100]}'; it is called '{name}'.")
        rest = parts[1:]
        if rest[:1] == ["versions"]:
            if rest[1:2] != [runtime.version]:
                raise HttpError(404, f"Only version '{runtime.version}' is served now.")
            rest = rest[2:]
        if rest == ["infer"]:
            _allow(request, "POST")
            answer, candidates = infer(runtime, name, request, self._config.max_rows)
            self._keep(candidates)
            return answer
        if rest not in ([], ["ready"]):
            raise HttpError(404, "There is nothing here; /openapi.json says what there is.")
        _allow(request, "GET")
        return json_response({"ready": True} if rest else model_metadata(runtime, name))

    def _keep(self, *scored: Candidates) -> None:
        if self._sample is not None:
            for candidates in scored[:8]:
                self._sample.add(self._worker, candidates)

    def drift(self) -> dict[str, Any] | None:
        """Return the last report on drift; None before the first."""
        try:
            found: dict[str, Any] = read_json(self._folder / DRIFT, dict[str, Any])
            return found
        except DataError:
            return None

    def _metrics(self) -> Response:
        text = metrics_text(self._counters, self._live.runtime.version, self.drift())
        return Response(200, text.encode(), CONTENT_TYPE)

    def _facts(self) -> Response:
        registry = registry_of(self._config.target)
        return json_response(model_facts(self._live.runtime, self._config.name, registry))

    def _status(self) -> Response:
        version = self._live.runtime.version
        return json_response(status_facts(self._counters, version, self.drift()))

    def _openapi(self) -> Response:
        return json_response(openapi(self._live.runtime, self._config.name))


def route_of(path: str) -> str:
    """Return under which name a path is counted.

    >>> route_of("/v2/models/harmonrank/infer"), route_of("/v1/rank"), route_of("/metrics")
    ('infer', 'rank', 'other')
    """
    if path.endswith("/infer"):
        return "infer"
    return "rank" if path.rstrip("/") == "/v1/rank" else "other"


def _allow(request: Request, method: str) -> None:
    if request.method != method and not (method == "GET" and request.method == "HEAD"):
        raise HttpError(405, f"Use {method} here. Got {request.method[:20]}.", {"allow": method})
