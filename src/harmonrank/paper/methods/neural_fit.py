"""Neural fit: train a method's network, and look into it, with PyTorch."""

__all__ = [
    "Learned",
    "arrays_of",
    "buffered_rows",
    "fingerprint",
    "forward",
    "learn",
    "mean_attention",
]

import hashlib
import json
import logging
from dataclasses import asdict, replace
from itertools import count
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from harmonrank.data import ContextEncoder, Log
from harmonrank.data.rows import blocks as room
from harmonrank.data.rows.blocks import SpilledBlocks
from harmonrank.fusion.fitting.fit import Fit, require_requests
from harmonrank.fusion.fitting.row_blocks import RowsInBlocks
from harmonrank.fusion.quality.outcomes import outcomes_of
from harmonrank.metrics import auc, grouped_auc
from harmonrank.model.fit_rows import FitRows
from harmonrank.paper import Network
from harmonrank.paper.fused import Scorer, covers
from harmonrank.paper.health import Health
from harmonrank.paper.methods.network_losses import LOSSES
from harmonrank.paper.methods.neural import History, NeuralMethod
from harmonrank.paper.methods.weighting import Fixed, weighting_of
from harmonrank.paper.soft_rank import request_order
from harmonrank.paper.training import (
    HEALTH_ROWS,
    Arrays,
    BufferedRows,
    Finished,
    LossSlope,
    LossValue,
    health_of,
    train,
)
from harmonrank.support.events import HealthMeasured

_PIECE = 65_536
_MEMORY = "memory"
_UPDATE_HEALTH_ROWS = 4_000


class Encoding(Protocol):
    """A method whose network reads context codes."""

    name: ClassVar[str]
    config: Any
    encoder: ContextEncoder


class Learned(NamedTuple):
    """A trained network, what each epoch gave (`paper.training.Finished`), and health."""

    network: Network
    history: History
    health: Health


def learn(
    method: NeuralMethod,
    fit: Fit,
    network: Network,
    epochs: int | None,
    rows_seen: int | None = None,
    buffered: BufferedRows | None = None,
) -> Learned:
    """Train a network; return it as it was when it ranked the validation rows best, if any.

    A path that does nothing is logged as a warning.

    Args:
        method: Gives the loss and options.
        fit: Rows, weights, seed.
        network: On the device of the fit.
        epochs: In place of the method's own.
        rows_seen: See `harmonrank.paper.training.train`.
        buffered: All training rows, where those of the fit are some of them.
    """
    requests = None
    if method.optimises == "requests":
        fit, requests = _by_request(fit)
    rows, valid = (arrays_of(method, log, fit.device) for log in (fit.train, fit.valid))
    weighting = weighting_of(method.config.weighting, fit)
    chosen = LOSSES[method.loss](method.config, fit)
    first = chosen.memory | weighting.memory
    method._memory = {name: value.to(fit.device) for name, value in first.items()}
    chosen.memory = {name: method._memory[name] for name in chosen.memory}
    weighting.memory = {name: method._memory[name] for name in weighting.memory}
    _attach(network, method._memory)

    def loss(fused: Tensor, batch: Arrays) -> LossValue:
        weights = weighting.weights(fused, lambda s, w: chosen.value(s, batch, w).loss)
        value = chosen.value(fused, batch, weights)
        chosen.remember(fused.detach(), batch)
        return value

    def slope(fused: np.ndarray, batch: Arrays) -> LossSlope:
        scores = torch.from_numpy(fused)
        weights = weighting.weights(scores, lambda s, w: chosen.value(s, batch, w).loss)
        value = chosen.slope(fused, batch, weights)
        chosen.remember(scores, batch)
        return value

    history: History = ()
    for event in train(
        network,
        buffered or rows,
        loss,
        _Exam(fit, valid, weighting, within=requests is not None),
        replace(method.config, epochs=epochs),
        slope=slope if chosen.has_slope else None,
        seed=fit.seed,
        checkpoint=fit.checkpoint,
        fingerprint=fingerprint(method, fit, buffered) if fit.checkpoint else "",
        rows_seen=rows_seen,
        requests=requests,
    ):
        if isinstance(event, Finished):
            history = event.history
        fit.on_event(event)
    delattr(network, _MEMORY)
    # An update is followed by others soon; a fit is looked at more closely.
    looked, most = (valid, HEALTH_ROWS) if len(valid) else (rows, _UPDATE_HEALTH_ROWS)
    health = health_of(network, looked, fit.seed, most)
    warning = health.warning(f"The network of `{method.name}`")
    if warning:
        logging.getLogger("harmonrank").warning(warning)
    fit.on_event(HealthMeasured(health))
    return Learned(network, history, health)


def _by_request(fit: Fit) -> tuple[Fit, np.ndarray]:
    """Return the fit with training rows in the order of their requests, and where these begin."""
    require_requests("requests", fit.train)
    fit.train.schema.require_plain("A fit with optimise='requests'")
    assert fit.train.request is not None
    order, starts = request_order(fit.train.request, fit.train.rows)
    return replace(fit, train=fit.train.take(order)), starts


class _Exam:
    """The validation AUC-sum of a network; without rows a later network is a better one.

    It is the sum over all rows, or `within` requests.
    """

    def __init__(self, fit: Fit, rows: Arrays, weighting: Fixed, *, within: bool = False) -> None:
        self._fit, self._rows, self._weighting, self._later = fit, rows, weighting, count()
        self._within = within

    def __call__(self, network: Network) -> float:
        log = self._fit.valid
        if not log.rows:
            return float(next(self._later))
        fused = _scores_of(network, self._rows)
        labels, weight = outcomes_of(log), log.sample_weight
        if self._within and log.request is not None:
            areas = grouped_auc(fused, labels, log.request, sample_weight=weight).auc
        else:
            areas = auc(fused, labels, sample_weight=weight)
        self._weighting.epoch_ended(areas)
        # An objective that the validation rows do not show cannot vote.
        if self._fit.turned is not None:
            areas = np.where(self._fit.turned, 1 - areas, areas)
        return float(np.nansum(self._fit.signs * self._fit.weights * areas))


def forward(network: Network, scores: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Score by PyTorch, in pieces."""
    return _forward(network, _tensor(scores, "cpu"), _tensor(codes, "cpu"))


@torch.no_grad()
def mean_attention(network: Network, scores: np.ndarray) -> np.ndarray:
    """Return the mean over rows of A_r, (M, M)."""
    rows, M = scores.shape
    total = torch.zeros(M, M, dtype=torch.float64)
    for first in range(0, rows, _PIECE):
        x = network.scores(_tensor(scores[first : first + _PIECE], "cpu"))  # (rows, M, width)
        total += network.relation_aware.attend(x).double().sum(dim=0)
    mean: np.ndarray = (total / rows).numpy()
    return mean


def arrays_of(method: Encoding, log: Log, device: str) -> Arrays:
    """Return the rows of a log for the training loop."""
    weight = log.sample_weight
    return Arrays(
        _tensor(log.scores.astype(np.float32, copy=False), device),
        _tensor(log.codes(method.encoder), device),
        _tensor(log.known_labels(), device),
        None if weight is None else _tensor(weight, device),
        _requests_of(method, log, device),
    )


def _requests_of(method: Encoding, log: Log, device: str) -> Tensor | None:
    """Return the request of each row as a number, if the method looks at them."""
    if getattr(method.config, "optimise", "all") != "requests" or log.request is None:
        return None
    return _tensor(np.unique(log.request, return_inverse=True)[1].reshape(-1), device)


def _tensor(array: np.ndarray, device: str) -> Tensor:
    # A column may be a view of a table's own memory, which must not be written to.
    return torch.from_numpy(np.require(array, requirements="W")).to(device)


def _attach(network: Network, memory: dict[str, Tensor]) -> None:
    """Make the memory of a loss a part of the network's state, as long as it is trained."""
    module = torch.nn.Module()
    for name, value in memory.items():
        module.register_buffer(name, value)
    network.add_module(_MEMORY, module)


def buffered_rows(
    fit: RowsInBlocks, batch_rows: int, turned: np.ndarray | None = None
) -> BufferedRows | None:
    """Return the training rows of a fit in blocks; None where they all fit the buffer.

    Args:
        fit: The rows, and the device of the network.
        batch_rows: Rows of a step.
        turned: (objectives,) which labels become their absence.
    """
    if fit.rows <= room.BUFFER_ROWS:
        return None
    assert isinstance(fit.train, SpilledBlocks)

    def arrays(rows: FitRows) -> Arrays:
        labels = rows.labels
        if turned is not None:
            labels = np.where(turned, 1 - labels, labels).astype(labels.dtype)
        return Arrays(
            _tensor(rows.scores.astype(np.float32, copy=False), fit.device),
            _tensor(rows.codes.astype(np.int32, copy=False), fit.device),
            _tensor(labels, fit.device),
            None if rows.weight is None else _tensor(rows.weight, fit.device),
        )

    return BufferedRows(fit.train, arrays, batch_rows)


def fingerprint(method: Encoding, fit: Fit, buffered: BufferedRows | None = None) -> str:
    """Return a digest of all that decides the fit's result."""
    options = [method.name, asdict(method.config), fit.seed, fit.weights.tolist()]
    digest = hashlib.sha256(json.dumps(options).encode())
    for log in (fit.train, fit.valid):
        for array in (log.scores, log.known_labels(), log.codes(method.encoder)):
            digest.update(np.ascontiguousarray(array).data)
        if log.sample_weight is not None:
            digest.update(np.ascontiguousarray(log.sample_weight).data)
    if buffered is not None:
        digest.update(buffered.fingerprint().encode())
    return digest.hexdigest()


def _scores_of(network: Network, rows: Arrays) -> np.ndarray:
    """Score by the kernels on the CPU, where they cover the network, else by PyTorch."""
    if rows.scores.is_cpu and covers(network.config):
        return Scorer.of(network)(rows.scores.numpy(), rows.context.numpy())
    return _forward(network, rows.scores, rows.context)


@torch.no_grad()
def _forward(network: Network, scores: Tensor, context: Tensor) -> np.ndarray:
    network.eval()
    parts = [
        network(scores[i : i + _PIECE], context[i : i + _PIECE])
        for i in range(0, max(len(scores), 1), _PIECE)
    ]
    fused: np.ndarray = torch.cat(parts).double().cpu().numpy()
    return fused
