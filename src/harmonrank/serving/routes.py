"""Routes: every path of a service once, with what answers, counts and documents it."""

__all__ = ["MODEL", "ROUTES", "Route", "Service", "counted_as"]

from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, TypeAlias

from harmonrank.registry.target import registry_of
from harmonrank.serving.about import model_facts, openapi, status_facts
from harmonrank.serving.counters import Counters, metrics_text
from harmonrank.serving.drift import RecentRows
from harmonrank.serving.http import JSON, Request, Response, json_response
from harmonrank.serving.inference import infer, model_metadata, server_metadata
from harmonrank.serving.live import Live
from harmonrank.serving.rank import ManyAnswer, ManyRequests, RankAnswer, RankRequest, rank
from harmonrank.serving.runtime import Candidates
from harmonrank.serving.settings import DRIFT, ServeConfig
from harmonrank.serving.tensors import TENSORS, InferRequest
from harmonrank.support.errors import DataError
from harmonrank.support.prometheus import CONTENT_TYPE
from harmonrank.support.storage.files import read_json

MODEL = "/v2/models/{model}"
"""The path of the model, whose name stands for {model}; behind it a version may be named."""

_KEPT = 8
_PAGE_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; frame-ancestors 'none'",
    "cache-control": "no-cache",
    "referrer-policy": "no-referrer",
}


@dataclass(frozen=True)
class Service:
    """What a worker answers from.

    Attributes:
        live: The version that is served.
        sample: Of what was scored, to measure drift on; None if that is off.
        folder: What the processes of the service share.
        worker: Which of them this is.
    """

    config: ServeConfig
    live: Live
    counters: Counters
    sample: RecentRows | None
    folder: Path
    worker: int

    def drift(self) -> dict[str, Any] | None:
        """Return the last report on drift; None before the first."""
        try:
            report: dict[str, Any] = read_json(self.folder / DRIFT, dict[str, Any])
            return report
        except DataError:
            return None

    def keep(self, *scored: Candidates) -> None:
        """Keep a few of the candidates that were scored."""
        if self.sample is not None:
            for candidates in scored[:_KEPT]:
                self.sample.add(self.worker, candidates)


Answer: TypeAlias = Callable[[Service, Request], Response]


@dataclass(frozen=True)
class Route:
    """A path and what it is for.

    Attributes:
        answer: What is called.
        about: What the OpenAPI document says of it; empty for files of the page.
        method: GET also answers HEAD.
        bodies: What is sent: one of these structs, as JSON.
        gives: What comes back, as far as structs say it: one of these.
        answers: The content types of answers.
        counted: The name under which answers are counted.
        open: Whether it needs no key: who checks that a service is up has none, and neither has
            the page, which asks for it.
    """

    path: str
    answer: Answer
    about: str = ""
    method: Literal["GET", "POST"] = "GET"
    bodies: tuple[Any, ...] = ()
    gives: tuple[Any, ...] = ()
    answers: tuple[str, ...] = (JSON,)
    counted: Literal["infer", "rank", "other"] = "other"
    open: bool = False


@cache
def _file(name: str, kind: str) -> Response:
    """Return a file of the page, which needs no network but the service."""
    text = (files("harmonrank.serving") / "assets" / name).read_bytes()
    return Response(200, text, f"{kind}; charset=utf-8", _PAGE_HEADERS)


def _page(name: str, kind: str) -> Answer:
    return lambda *_: _file(name, kind)


def _says(**facts: bool) -> Answer:
    return lambda *_: json_response(facts)


def _infer(service: Service, request: Request) -> Response:
    config = service.config
    answer, scored = infer(service.live.runtime, config.name, request, config.max_rows)
    service.keep(scored)
    return answer


def _rank(service: Service, request: Request) -> Response:
    answer, scored = rank(service.live.runtime, request, service.config.max_rows)
    service.keep(*scored)
    return answer


def _metadata(service: Service, _: Request) -> Response:
    return json_response(model_metadata(service.live.runtime, service.config.name))


def _facts(service: Service, _: Request) -> Response:
    config = service.config
    return json_response(model_facts(service.live.runtime, config.name, registry_of(config.target)))


def _status(service: Service, _: Request) -> Response:
    version = service.live.runtime.version
    return json_response(status_facts(service.counters, version, service.drift()))


def _metrics(service: Service, _: Request) -> Response:
    text = metrics_text(service.counters, service.live.runtime.version, service.drift())
    return Response(200, text.encode(), CONTENT_TYPE)


def _openapi(service: Service, _: Request) -> Response:
    return json_response(openapi(ROUTES, service.live.runtime, service.config.name))


ROUTES = (
    Route("/", _page("index.html", "text/html"), open=True),
    Route("/page.css", _page("page.css", "text/css"), open=True),
    Route("/page.js", _page("page.js", "text/javascript"), open=True),
    Route("/v2/health/live", _says(live=True), "Whether the service runs.", open=True),
    Route("/v2/health/ready", _says(ready=True), "Whether it answers requests.", open=True),
    Route("/v2", lambda *_: json_response(server_metadata()), "Facts of the server."),
    Route(MODEL, _metadata, "Inputs and outputs of the model."),
    Route(f"{MODEL}/ready", _says(ready=True), "Whether the model answers requests."),
    Route(
        f"{MODEL}/infer",
        _infer,
        "Score candidates: a tensor per score and context column (Open Inference Protocol v2).",
        "POST",
        (InferRequest,),
        answers=(JSON, TENSORS),
        counted="infer",
    ),
    Route(
        "/v1/rank",
        _rank,
        "Return the best candidates of one request, or of many.",
        "POST",
        (RankRequest, ManyRequests),
        (RankAnswer, ManyAnswer),
        counted="rank",
    ),
    Route("/v1/model", _facts, "What the model is: objectives, weights, context values, versions."),
    Route("/v1/status", _status, "How the service does: counts, latency, drift."),
    Route("/metrics", _metrics, "Metrics for Prometheus.", answers=("text/plain",)),
    Route("/openapi.json", _openapi, "This document."),
)

_COUNTED = {r.path.replace("{model}", "*"): r.counted for r in ROUTES if r.counted != "other"}


@lru_cache(maxsize=64)
def counted_as(path: str) -> str:
    """Return under which name a path is counted.

    >>> counted_as("/v2/models/harmonrank/infer"), counted_as("/v1/rank"), counted_as("/metrics")
    ('infer', 'rank', 'other')
    """
    plain = path.rstrip("/")
    return next((name for form, name in _COUNTED.items() if fnmatchcase(plain, form)), "other")
