"""Rank: candidates in, the best K out."""

__all__ = ["ManyAnswer", "ManyRequests", "RankAnswer", "RankRequest", "best", "rank", "warm_up"]

from typing import Annotated, TypeAlias

import msgspec
import numpy as np
import polars as pl
from msgspec import UNSET, Meta, Raw, UnsetType

from harmonrank.data.clock import request_clock
from harmonrank.serving.http import JSON, HttpError, Request, Response, json_response, numbers
from harmonrank.serving.runtime import Candidates, Runtime, named_columns
from harmonrank.support.errors import DataError
from harmonrank.support.storage.decoding import decode_json

Value: TypeAlias = str | int | float | bool | None


class RankRequest(msgspec.Struct, forbid_unknown_fields=True):
    """One request: columns of its candidates.

    Attributes:
        scores: The score column of each objective, by name: a list of numbers, with
            null where one is missing.
        context: A value that all candidates share, or one for each, by column.
        ids: What the answer calls the candidates; their index if left out.
        k: How many of the best are returned; null for all.
        weights: Other objective weights.
        value: What an event of each objective is worth, in place of weights.
        point: The name of an operating point.
        shares: Whether each objective's probability and share are returned too.
    """

    scores: dict[str, Raw]
    context: dict[str, Value | list[Value]] = {}
    ids: list[str | int] | None = None
    k: Annotated[int, Meta(ge=1)] | None = 10
    weights: dict[str, float] | None = None
    value: dict[str, float] | None = None
    point: str | None = None
    shares: bool = False


class ManyRequests(msgspec.Struct, forbid_unknown_fields=True):
    """Several requests at once."""

    requests: Annotated[list[RankRequest], Meta(min_length=1, max_length=10_000)]


class Ranked(msgspec.Struct):
    """One of the best candidates; what was not asked for is left out."""

    index: int
    fused: float
    id: str | int | UnsetType = UNSET
    probabilities: dict[str, float] | UnsetType = UNSET
    shares: dict[str, float] | UnsetType = UNSET


class RankAnswer(msgspec.Struct):
    """The best candidates of a request, the best first."""

    version: str
    ranked: list[Ranked]


class Ranking(msgspec.Struct):
    """The best candidates of one of several requests."""

    ranked: list[Ranked]


class ManyAnswer(msgspec.Struct):
    """A ranking for each of several requests."""

    version: str
    results: list[Ranking]


class _Peek(msgspec.Struct):
    requests: Raw | UnsetType = UNSET


def rank(runtime: Runtime, request: Request, max_rows: int) -> tuple[Response, list[Candidates]]:
    """Answer one request or many at once; also return what was scored."""
    if request.content_type not in ("", JSON):
        raise HttpError(415, f"Send {JSON}; scores as binary tensors go to /v2/models/NAME/infer.")
    asked = _decoded(request.body)
    every = asked.requests if isinstance(asked, ManyRequests) else [asked]
    given = [_candidates(runtime, one) for one in every]
    rows = sum(candidates.rows for candidates in given)
    if rows > max_rows:
        raise HttpError(
            413, f"{rows:,} candidates came; at most {max_rows:,} are scored at once, so send less."
        )
    rankings = [_ranked(runtime, *pair) for pair in zip(every, given, strict=True)]
    answer: RankAnswer | ManyAnswer = RankAnswer(runtime.version, rankings[0])
    if isinstance(asked, ManyRequests):
        answer = ManyAnswer(runtime.version, list(map(Ranking, rankings)))
    return json_response(answer, candidates=rows), given


def _decoded(body: bytes) -> RankRequest | ManyRequests:
    """Return the request of a body, or the requests."""
    what = "The request"
    try:
        return decode_json(body, RankRequest, what)
    except DataError:
        if decode_json(body, _Peek, what).requests is UNSET:
            raise
        return decode_json(body, ManyRequests, what)


def warm_up(runtime: Runtime) -> None:
    """Score and rank a few candidates, so that no request waits for a kernel to be loaded."""
    runtime.warm_up()
    schema = runtime.model.schema
    body = {
        "scores": {name: [0.5, 0.25] for name in schema.score_columns},
        "context": dict.fromkeys(schema.context),
    }
    rank(runtime, Request("POST", "/v1/rank", body=msgspec.json.encode(body)), max_rows=2)


def _ranked(runtime: Runtime, one: RankRequest, candidates: Candidates) -> list[Ranked]:
    weights = runtime.weights(one.weights, one.point)
    scored = runtime.score(candidates, weights, value=one.value, probabilities=one.shares)
    if one.ids is not None and len(one.ids) != candidates.rows:
        raise DataError(
            f"`ids` must have one value for each of {candidates.rows:,} candidates. "
            f"Got {len(one.ids):,}."
        )
    order = best(scored.fused, one.k)
    listed = list(map(Ranked, order.tolist(), scored.fused[order].tolist()))
    if one.ids is not None:
        for row in listed:
            row.id = one.ids[row.index]
    if scored.probabilities is not None:
        p = scored.probabilities[order]
        shares = runtime.shares(p, weights, one.value)
        for row, chances, parts in zip(listed, p.tolist(), shares.tolist(), strict=True):
            row.probabilities = dict(zip(runtime.objectives, chances, strict=True))
            row.shares = dict(zip(runtime.objectives, parts, strict=True))
    return listed


def best(fused: np.ndarray, k: int | None) -> np.ndarray:
    """Return the indices of the best k, the best first; of equals the first stays first."""
    if k is not None and k < len(fused) // 8:
        # Of those that tie with the last one in, the first must stay in.
        least = np.partition(fused, len(fused) - k)[len(fused) - k]
        among = np.flatnonzero(fused >= least)
        return among[np.argsort(-fused[among], kind="stable")][:k]
    return np.argsort(-fused, kind="stable")[:k]


def _candidates(runtime: Runtime, one: RankRequest) -> Candidates:
    schema = runtime.model.schema
    raws, others = named_columns(one.scores, schema.score_columns, "Score")
    if others:
        raise DataError(f"The model has no score '{others[0][:100]}'; leave it out.")
    columns = [
        numbers(memoryview(raw), f"Score '{name}'")
        for name, raw in zip(schema.score_columns, raws, strict=True)
    ]
    rows = {len(column) for column in columns}
    if len(rows) > 1 or 0 in rows:
        raise DataError(f"All scores must have the same length from 1 up. Got {sorted(rows)}.")
    context = request_clock(one.context, schema.context)
    for name in context:
        if name not in schema.context:
            raise DataError(f"The model has no context column '{name[:100]}'; leave it out.")
    shared = {n: v for n, v in context.items() if not isinstance(v, list)}
    own = {n: _series(n, v, rows) for n, v in context.items() if isinstance(v, list)}
    return Candidates(np.stack(columns, axis=1), shared, own)


def _series(name: str, values: list[Value], rows: set[int]) -> pl.Series:
    if {len(values)} != rows:
        raise DataError(f"Context '{name}' must have one value for each candidate, or just one.")
    try:
        return pl.Series(name, values)
    except (TypeError, OverflowError, pl.exceptions.PolarsError):
        raise DataError(f"Context '{name}' must hold either text or numbers, not both.") from None
