"""Rank: candidates in, the best K out."""

__all__ = ["ARROW", "best", "check_rows", "rank", "warm_up"]

from typing import Annotated, Any

import msgspec
import numpy as np
import polars as pl
from msgspec import UNSET, Meta, UnsetType

from harmonrank.data.clock import request_clock
from harmonrank.serving.http import HttpError, Request, Response, json_response
from harmonrank.serving.json_numbers import numbers
from harmonrank.serving.runtime import Candidates, Runtime, named_columns
from harmonrank.support.errors import DataError
from harmonrank.support.kernel import kernel
from harmonrank.support.storage.decoding import decode_json

ARROW = "application/vnd.apache.arrow.stream"
_FEW = 64  # Up to so many, one pass with a short list beats a partition.
Value = str | int | float | bool | None
K = Annotated[int, Meta(ge=1)]


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

    scores: dict[str, msgspec.Raw]
    context: dict[str, Value | list[Value]] = {}
    ids: list[str | int] | None = None
    k: K | None = 10
    weights: dict[str, float] | None = None
    value: dict[str, float] | None = None
    point: str | None = None
    shares: bool = False


class _Many(msgspec.Struct, forbid_unknown_fields=True):
    requests: Annotated[list[RankRequest], Meta(min_length=1, max_length=10_000)]


class _Peek(msgspec.Struct):
    requests: msgspec.Raw | UnsetType = UNSET


def rank(runtime: Runtime, request: Request, max_rows: int) -> tuple[Response, list[Candidates]]:
    """Answer one request or many at once; also return what was scored."""
    if request.content_type == ARROW:
        from harmonrank.serving.rank_table import rank_table

        return rank_table(runtime, request, max_rows)
    if request.content_type not in ("", "application/json"):
        raise HttpError(415, f"Send application/json or {ARROW}.")
    asked, single = _decoded(request.body)
    given = [_candidates(runtime, one) for one in asked]
    rows = sum(candidates.rows for candidates in given)
    check_rows(rows, max_rows)
    listed = [_ranked(runtime, *pair) for pair in zip(asked, given, strict=True)]
    answer: dict[str, Any] = {"version": runtime.version}
    if single:
        answer["ranked"] = listed[0]
    else:
        answer["results"] = [{"ranked": ranked} for ranked in listed]
    return json_response(answer, candidates=rows), given


def _decoded(body: bytes) -> tuple[list[RankRequest], bool]:
    """Return the requests of a body, and whether it is a single one."""
    what = "The request"
    try:
        return [decode_json(body, RankRequest, what)], True
    except DataError:
        if decode_json(body, _Peek, what).requests is UNSET:
            raise
    return decode_json(body, _Many, what).requests, False


def warm_up(runtime: Runtime) -> None:
    """Rank a few candidates, so that no request waits for a kernel to be loaded."""
    schema = runtime.model.schema
    body = {
        "scores": {name: [0.5, 0.25] for name in schema.score_columns},
        "context": dict.fromkeys(schema.context),
        "k": 1,
    }
    rank(runtime, Request("POST", "/v1/rank", body=msgspec.json.encode(body)), max_rows=2)


def check_rows(rows: int, most: int) -> None:
    """Refuse more candidates than a request may have."""
    if rows > most:
        raise HttpError(
            413, f"{rows:,} candidates came; at most {most:,} are scored at once, so send less."
        )


def _ranked(runtime: Runtime, one: RankRequest, candidates: Candidates) -> list[dict[str, Any]]:
    weights = runtime.weights(one.weights, one.point)
    scored = runtime.score(candidates, weights, value=one.value, probabilities=one.shares)
    if one.ids is not None and len(one.ids) != candidates.rows:
        raise DataError(
            f"`ids` must have one value for each of {candidates.rows:,} candidates. "
            f"Got {len(one.ids):,}."
        )
    order = best(scored.fused, one.k)
    listed: list[dict[str, Any]] = [
        {"index": index, "fused": fused}
        for index, fused in zip(order.tolist(), scored.fused[order].tolist(), strict=True)
    ]
    if one.ids is not None:
        for row in listed:
            row["id"] = one.ids[row["index"]]
    if scored.probabilities is not None:
        p = scored.probabilities[order]
        parts = zip(listed, p.tolist(), runtime.shares(p, weights, one.value).tolist(), strict=True)
        for row, chances, shares in parts:
            row["probabilities"] = dict(zip(runtime.objectives, chances, strict=True))
            row["shares"] = dict(zip(runtime.objectives, shares, strict=True))
    return listed


def best(fused: np.ndarray, k: int | None) -> np.ndarray:
    """Return the places of the best k, the best first; of equals the first stays first."""
    if k is not None and k <= min(_FEW, len(fused)):
        return _best_few(fused, k)
    if k is not None and k < len(fused) // 8:
        # Of those that tie with the last one in, the first must stay in.
        least = np.partition(fused, len(fused) - k)[len(fused) - k]
        among = np.flatnonzero(fused >= least)
        return among[np.argsort(-fused[among], kind="stable")][:k]
    return np.argsort(-fused, kind="stable")[:k]


@kernel
def _best_few(fused: np.ndarray, k: int) -> np.ndarray:
    """Keep the best k in order while all pass by once."""
    found, count = np.empty(k, np.int64), 0
    for i in range(len(fused)):
        if count == k and not fused[i] > fused[found[k - 1]]:
            continue
        place = min(count, k - 1)
        while place > 0 and fused[i] > fused[found[place - 1]]:
            found[place] = found[place - 1]
            place -= 1
        found[place] = i
        count += count < k
    return found


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
    scores = np.empty((len(columns[0]), len(columns)))
    for m, column in enumerate(columns):
        scores[:, m] = column
    return Candidates(scores, shared, own)


def _series(name: str, values: list[Value], rows: set[int]) -> pl.Series:
    if {len(values)} != rows:
        raise DataError(f"Context '{name}' must have one value for each candidate, or just one.")
    try:
        return pl.Series(name, values)
    except (TypeError, OverflowError, pl.exceptions.PolarsError):
        raise DataError(f"Context '{name}' must hold either text or numbers, not both.") from None
