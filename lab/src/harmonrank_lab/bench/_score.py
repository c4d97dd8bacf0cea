"""Scoring by tables, against the same networks in PyTorch and ONNX Runtime."""

__all__ = ["cases"]

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from torch import nn

from harmonrank.data import Log
from harmonrank.fusion import Method, method_class
from harmonrank.model.scorer.heads_score import HeadScorer
from harmonrank.model.terms.residual import Residual
from harmonrank.paper.fused import Scorer
from harmonrank_lab.bench._child import first_score
from harmonrank_lab.bench._peers import compiled, on_one_thread, onnx_runtime
from harmonrank_lab.bench._result import Case, Result, Work, measure
from harmonrank_lab.bench._rows import world_log
from harmonrank_lab.bench._size import Size
from harmonrank_lab.bench._torch_heads import TorchHeads

_NAMES = ("harmonrank", "harmonrank-paper")
_BENT = "harmonrank with residual"
# Of all worlds the one in which the default admits the most curves and surfaces.
_BENT_WORLD = "tails"
Score = Callable[[np.ndarray, np.ndarray], object]


def cases(size: Size) -> list[Case]:
    """Batches, many rows, one request, and the first score of a new process."""
    found = []
    for name in _NAMES:
        found += [
            Case(f"score, {name}", partial(_arrays, name, size.batch_rows, size)),
            Case(f"score, {name}", partial(_arrays, name, size.score_rows, size)),
            Case(f"score a request, {name}", partial(_request, name, size)),
            Case(f"cold start, {name}", partial(_cold_start, name, size)),
            Case(f"first score ever, {name}", partial(_cold_start, name, size, compiling=True)),
        ]
    bent = [
        Case(f"score, {_BENT}", partial(_bent_arrays, size.batch_rows, size)),
        Case(f"score, {_BENT}", partial(_bent_arrays, size.score_rows, size)),
        Case(f"score a request, {_BENT}", partial(_bent_request, size)),
    ]
    return found + bent


@cache
def _fitted(name: str, rows: int, world: str = "elive") -> Method:
    options = {"epochs": 1} if name == "harmonrank-paper" else {}
    log = world_log(rows, world)
    return method_class(name)(**options).fit(log, log.schema, valid=log)


class _Contest:
    """The same fitted model in every runtime; all take float32 scores and codes."""

    def __init__(self, name: str, size: Size) -> None:
        method: Any = _fitted(name, size.head_rows)
        self.ours, self.network = _both(method)
        self.codes = method.fitted.encoder.encode

    def eager(self, scores: np.ndarray, codes: np.ndarray) -> object:
        return self._run(self.network, scores, codes)

    def compiled(self, size: Size, log: Log) -> Score | None:
        example = torch.from_numpy(_single(log)), torch.from_numpy(self.codes(log.context))
        with torch.no_grad():
            fast = compiled(self.network, example) if size.compile else None
        return None if fast is None else partial(self._run, fast)

    def onnx(self, log: Log) -> Score | None:
        example = torch.from_numpy(_single(log)), torch.from_numpy(self.codes(log.context))
        run = onnx_runtime(self.network, example)
        return None if run is None else lambda scores, codes: run((scores, codes))

    @staticmethod
    @torch.no_grad()
    def _run(network: Any, scores: np.ndarray, codes: np.ndarray) -> object:
        return network(torch.from_numpy(scores), torch.from_numpy(codes))


def _both(method: Any) -> tuple[Score, nn.Module]:
    """Return our scorer of a fitted method, and its PyTorch network."""
    if method.name == "harmonrank-paper":
        return Scorer.of(method.network), method.network
    effective = np.array([*method.effective_weights.values()])
    # The peer knows linear heads only, so both score without a residual.
    heads = replace(method._heads, residual=Residual.none(len(effective), method._heads.slots))
    return partial(HeadScorer(heads).fuse, effective=effective), TorchHeads(heads, effective).eval()


def _single(log: Log) -> np.ndarray:
    return np.ascontiguousarray(log.scores, dtype=np.float32)


def _arrays(name: str, rows: int, size: Size) -> Result:
    """Score arrays that are ready; peers take many rows in batches, which is their fastest."""
    contest, batch = _Contest(name, size), size.batch_rows
    part, whole = world_log(batch), world_log(rows)
    scores, codes = _single(whole), contest.codes(whole.context)
    cuts = [slice(start, start + batch) for start in range(0, rows - batch + 1, batch)]

    def in_batches(score: Score) -> Work:
        return lambda: [score(scores[cut], codes[cut]) for cut in cuts]

    work: dict[str, Work] = {
        "ours": lambda: contest.ours(scores, codes),
        "torch-eager": in_batches(contest.eager),
        "torch-eager, 1 thread": on_one_thread(in_batches(contest.eager)),
    }
    for peer, score in {
        "torch.compile": contest.compiled(size, part),
        "onnxruntime": contest.onnx(part),
    }.items():
        if score is not None:
            work[peer] = in_batches(score)
    notes = ["Linear heads, as the peers have."] if name == "harmonrank" else []
    notes += [] if rows == batch else [f"Peers in batches of {batch:,}."]
    note = " ".join(notes) or None
    return measure("score", f"score, {name}", rows, work, size.seconds, note=note)


def _request(name: str, size: Size) -> Result:
    """Score the candidates of one user, whose context is the same in all rows.

    Ours begins with the values of the context; the peers are spared to find their codes.
    """
    contest, rows = _Contest(name, size), size.request_rows
    log = world_log(max(size.batch_rows, rows))
    scores, context = _single(log)[:rows], log.context.row(0, named=True)
    codes = np.repeat(contest.codes(log.context)[:1], rows, axis=0)
    model = _fitted(name, size.head_rows)
    work: dict[str, Work] = {
        "ours": lambda: model.score_request(scores, context),
        "torch-eager": lambda: contest.eager(scores, codes),
    }
    if (onnx := contest.onnx(log)) is not None:
        work["onnxruntime"] = lambda: onnx(scores, codes)
    return measure("score", f"score a request, {name}", rows, work, size.seconds)


def _bent_arrays(rows: int, size: Size) -> Result:
    """Score arrays that are ready with the default as it was fitted, where it found most."""
    model: Any = _fitted("harmonrank", size.head_rows, _BENT_WORLD)
    log = world_log(rows, _BENT_WORLD)
    scores, codes = _single(log), log.codes(model.fitted.encoder)
    effective = np.array([*model.effective_weights.values()])
    work: dict[str, Work] = {"ours": lambda: model._scorer.fuse(scores, codes, effective)}
    return measure("score", f"score, {_BENT}", rows, work, size.seconds, note=_found(model))


def _bent_request(size: Size) -> Result:
    """Score the candidates of one user with the default as it was fitted."""
    rows, model = size.request_rows, _fitted("harmonrank", size.head_rows, _BENT_WORLD)
    log = world_log(max(size.batch_rows, rows), _BENT_WORLD)
    scores, context = _single(log)[:rows], log.context.row(0, named=True)
    work: dict[str, Work] = {"ours": lambda: model.score_request(scores, context)}
    note = _found(model)
    return measure("score", f"score a request, {_BENT}", rows, work, size.seconds, note=note)


def _found(model: Any) -> str:
    residual = model._heads.residual
    return (
        f"World '{_BENT_WORLD}': {len(residual.curved)} curves and {len(residual.joined)} "
        f"surfaces in {len(residual.linear)} heads."
    )


def _cold_start(name: str, size: Size, *, compiling: bool = False) -> Result:
    """Start a process, load a model and score a request; kernels are in the cache, or compiled."""
    with TemporaryDirectory() as place:
        folder = Path(place)
        _fitted(name, size.head_rows).save(folder / "model")
        log = world_log(size.request_rows)
        frame = log.context.with_columns(
            **dict(zip(log.schema.score_columns, log.scores.T, strict=True))
        )
        frame.write_parquet(folder / "request.parquet")
        paths = folder / "model", folder / "request.parquet"
        seconds = median([first_score(*paths, compiling=compiling) for _ in range(4)][1:])
    note = "From the first import to the first scores, in a new process."
    if compiling:
        note += " No kernel has been kept."
    name = f"{'first score ever' if compiling else 'cold start'}, {name}"
    return Result("score", name, size.request_rows, seconds, note=note)
