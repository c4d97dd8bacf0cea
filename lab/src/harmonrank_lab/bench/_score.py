"""Scoring by tables, against the same networks in PyTorch."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from torch import nn

from harmonrank.data import Log
from harmonrank.model import Residual
from harmonrank.paper.fused import Scorer
from harmonrank_lab.bench._child import first_score
from harmonrank_lab.bench._peers import TorchHeads, compiled, on_one_thread
from harmonrank_lab.bench._result import Case, Size, Timing, Work, fitted, measure, world_log

_NAMES = ("harmonrank", "harmonrank-paper")
_BENT = "harmonrank with residual"
# Of all worlds the one in which the default admits the most curves and surfaces.
_BENT_WORLD = "tails"
Score = Callable[[np.ndarray, np.ndarray], object]


def cases(size: Size) -> Iterator[Case]:
    """Batches, many rows, one request, and the first score of a new process."""
    for name in (*_NAMES, _BENT):
        yield Case(f"score, {name}", partial(_arrays, name, size.batch_rows, size))
        yield Case(f"score, {name}", partial(_arrays, name, size.score_rows, size))
        yield Case(f"score a request, {name}", partial(_request, name, size))
    for name in _NAMES:
        yield Case(f"cold start, {name}", partial(_cold_start, name, size))
        yield Case(f"first score ever, {name}", partial(_cold_start, name, size, compiling=True))


def _world(name: str) -> str:
    return _BENT_WORLD if name == _BENT else "elive"


class _Contest:
    """The same fitted model in every runtime; all take float32 scores and codes."""

    def __init__(self, name: str, size: Size) -> None:
        model: Any = fitted(name.partition(" ")[0], size.head_rows, _world(name))
        self.model, self.codes = model, model.fitted.encoder.encode
        self.ours, self.network = _both(model, bent=name == _BENT)

    def peers(self, size: Size, log: Log) -> dict[str, Score]:
        """Return the runtimes that there are; what our kernels alone can score has none."""
        if self.network is None:
            return {}
        example = torch.from_numpy(_single(log)), torch.from_numpy(self.codes(log.context))
        with torch.no_grad():
            fast = compiled(self.network, example) if size.compile else None
        runtimes: dict[str, Score] = {"torch-eager": partial(_run, self.network)}
        if fast is not None:
            runtimes["torch.compile"] = partial(_run, fast)
        return runtimes


@torch.no_grad()
def _run(network: Any, scores: np.ndarray, codes: np.ndarray) -> object:
    return network(torch.from_numpy(scores), torch.from_numpy(codes))


def _both(model: Any, *, bent: bool) -> tuple[Score, nn.Module | None]:
    """Return our scorer of a fitted method, and its PyTorch network."""
    if model.name == "harmonrank-paper":
        network = model.state.network
        return Scorer.of(network), network
    effective, state = np.array([*model.effective_weights.values()]), model.state
    if bent:
        return lambda scores, codes: state.fused(scores, codes, effective), None
    # The peer knows linear heads only, so both score without a residual.
    plain = Residual.none(len(effective), state.heads.slots)
    linear = type(state)(replace(state.heads, residual=plain))
    network = TorchHeads(linear.heads, effective).eval()
    return lambda scores, codes: linear.fused(scores, codes, effective), network


def _single(log: Log) -> np.ndarray:
    return np.ascontiguousarray(log.scores, dtype=np.float32)


def _arrays(name: str, rows: int, size: Size) -> Timing:
    """Score arrays that are ready; peers take many rows in batches, which is their fastest."""
    contest, batch = _Contest(name, size), size.batch_rows
    part, whole = world_log(batch, _world(name)), world_log(rows, _world(name))
    scores, codes = _single(whole), contest.codes(whole.context)
    cuts = [slice(start, start + batch) for start in range(0, rows - batch + 1, batch)]

    def in_batches(score: Score) -> Work:
        return lambda: [score(scores[cut], codes[cut]) for cut in cuts]

    work: dict[str, Work] = {"ours": lambda: contest.ours(scores, codes)}
    for peer, score in contest.peers(size, part).items():
        work[peer] = in_batches(score)
        if peer == "torch-eager":
            work["torch-eager, 1 thread"] = on_one_thread(work[peer])
    notes = [_told(name, contest.model)]
    notes += [] if rows == batch or len(work) == 1 else [f"Peers in batches of {batch:,}."]
    note = " ".join(filter(None, notes)) or None
    return measure(rows, work, size.seconds, note=note)


def _request(name: str, size: Size) -> Timing:
    """Score the candidates of one user, whose context is the same in all rows.

    Ours begins with the values of the context; the peers are spared to find their codes.
    """
    contest, rows = _Contest(name, size), size.request_rows
    log = world_log(max(size.batch_rows, rows), _world(name))
    scores, context = _single(log)[:rows], log.context.row(0, named=True)
    codes = np.repeat(contest.codes(log.context)[:1], rows, axis=0)
    work: dict[str, Work] = {"ours": lambda: contest.model.score_request(scores, context)}
    for peer, score in contest.peers(replace(size, compile=False), log).items():
        work[peer] = partial(score, scores, codes)
    note = _told(name, contest.model) if name == _BENT else None
    return measure(rows, work, size.seconds, note=note)


def _told(name: str, model: Any) -> str:
    if name != _BENT:
        return "Linear heads, as the peers have." if name == "harmonrank" else ""
    residual = model.state.heads.residual
    return (
        f"World '{_BENT_WORLD}': {len(residual.curved)} curves and {len(residual.joined)} "
        f"surfaces in {len(residual.linear)} heads."
    )


def _cold_start(name: str, size: Size, *, compiling: bool = False) -> Timing:
    """Start a process, load a model and score a request; kernels are in the cache, or compiled."""
    with TemporaryDirectory() as place:
        folder = Path(place)
        fitted(name.partition(" ")[0], size.head_rows, _world(name)).save(folder / "model")
        log = world_log(size.request_rows)
        columns = dict(zip(log.schema.score_columns, log.scores.T, strict=True))
        log.context.with_columns(**columns).write_parquet(folder / "request.parquet")
        paths = folder / "model", folder / "request.parquet"
        seconds = median([first_score(*paths, compiling=compiling) for _ in range(4)][1:])
    note = "From the first import to the first scores, in a new process."
    note += " No kernel has been kept." * compiling
    return Timing(size.request_rows, seconds, note=note)
