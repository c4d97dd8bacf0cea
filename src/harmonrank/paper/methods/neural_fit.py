"""Neural fit: train a method's network and inspect it, with PyTorch."""

__all__ = [
    "fingerprint",
    "fit_network",
    "mean_attention",
    "rows_of",
    "run",
    "update_network",
    "validation",
]

import hashlib
import json
import logging
import sys
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import asdict, replace
from itertools import count
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from harmonrank.fusion.protocol import TrainingRows
from harmonrank.fusion.quality.outcomes import outcomes_of_rows
from harmonrank.metrics import auc, grouped_auc
from harmonrank.model.fit_rows import FitRows
from harmonrank.paper.fused import Scorer, covers
from harmonrank.paper.health import Health
from harmonrank.paper.methods.network_losses import Wanted, loss_of
from harmonrank.paper.methods.neural import History, NetworkFit, NeuralConfig
from harmonrank.paper.network import Network
from harmonrank.paper.soft_rank import request_order
from harmonrank.paper.training import HEALTH_ROWS, Arrays, Event, Finished, health_of, train
from harmonrank.support.events import HealthMeasured

N = TypeVar("N", bound=nn.Module)

_PIECE = 65_536
_MEMORY = "memory"
_UPDATE_HEALTH_ROWS = 4_000


def fit_network(config: NeuralConfig, rows: TrainingRows) -> NetworkFit:
    """Train a network and keep the weights that ranked the validation rows best."""
    train, M = rows.sample(), len(rows.weights)
    generator = torch.Generator().manual_seed(rows.seed)
    network = Network(config.network(M, rows.slots), generator, scores=train.scores)
    return _trained(config, rows, train, network.to(rows.device))


def update_network(
    config: NeuralConfig, state: NetworkFit, rows: TrainingRows, passes: int
) -> NetworkFit:
    """Train a network further by some passes over rows."""
    config, network = replace(config, epochs=passes), deepcopy(state.network)
    # Updates are repeated, so kernels are worth compiling.
    newer = _trained(config, rows, rows.sample(), network, rows_seen=sys.maxsize)
    return replace(newer, history=state.history)


def _trained(
    config: NeuralConfig,
    rows: TrainingRows,
    sample: FitRows,
    network: Network,
    rows_seen: int | None = None,
) -> NetworkFit:
    """Train a network on rows in memory; a path without effect is logged as a warning.

    Args:
        config: Gives the loss and options.
        rows: Weights, validation rows, and settings of the fit.
        sample: The training rows.
        network: On the device of the fit.
        rows_seen: See `harmonrank.paper.training.train`.
    """
    requests = None
    if config.optimise == "requests":
        rows.schema.require_plain("A fit with optimise='requests'")
        assert sample.request is not None
        order, requests = request_order(sample.request, sample.rows)
        sample = sample.taken(order)
    wanted = Wanted.of(rows, sample)
    valid = rows.valid_sample(config.traits.validation_rows)
    seen, looked = (rows_of(part, rows.device) for part in (wanted.rows, valid))
    loss = loss_of(config, wanted, rows.device)
    _attach(network, loss.memory)
    within = config.optimise == "requests"
    training = train(
        network,
        seen,
        loss,
        validation(rows, valid, lambda network: _scores_of(network, looked), within=within),
        config,
        seed=rows.seed,
        checkpoint=rows.checkpoint,
        fingerprint=fingerprint(config, rows, wanted.rows, valid),
        rows_seen=rows_seen,
        requests=requests,
    )
    # Updates are frequent, so they are measured on fewer rows than a fit.
    some, most = (looked, HEALTH_ROWS) if len(looked) else (seen, _UPDATE_HEALTH_ROWS)
    history, health = run(training, network, config.name, rows, some, most)
    delattr(network, _MEMORY)
    weights = {name: value.cpu().numpy() for name, value in network.state_dict().items()}
    return NetworkFit(network.config, weights, history, health)


def run(
    training: Iterator[Event],
    network: Network,
    name: str,
    rows: TrainingRows,
    looked: Arrays,
    most: int = HEALTH_ROWS,
    **remedy: str,
) -> tuple[History, Health]:
    """Train a network; return its history and its health, and warn of a path without effect.

    Args:
        training: The events of the training, which are passed on.
        network: The network that it trains.
        name: Of the method, for the warning.
        rows: Give the listener and the seed.
        looked: The rows on which the health is measured.
        most: How many of them at most.
        **remedy: Of `Health.warning`.
    """
    history: History = ()
    for event in training:
        if isinstance(event, Finished):
            history = event.history
        rows.on_event(event)
    health = health_of(network, looked, rows.seed, most)
    if warning := health.warning(f"The network of `{name}`", **remedy):
        logging.getLogger("harmonrank").warning(warning)
    rows.on_event(HealthMeasured(health))
    return history, health


def validation(
    rows: TrainingRows, valid: FitRows, fused: Callable[[N], np.ndarray], *, within: bool = False
) -> Callable[[N], float]:
    """Return the validation AUC-sum of a network, over all rows or within requests.

    Without validation rows the last network counts as the best.

    Args:
        rows: Give the weights.
        valid: The validation rows.
        fused: Returns a network's scores of these rows.
        within: Whether rows are ranked within their requests.
    """
    later, labels = count(), outcomes_of_rows(valid, rows.schema)

    def auc_sum(network: N) -> float:
        if not valid.rows:
            return float(next(later))
        given = fused(network), labels
        if within and valid.request is not None:
            areas = grouped_auc(*given, valid.request, sample_weight=valid.weight)
        else:
            areas = auc(*given, sample_weight=valid.weight)
        # An objective that is absent from the validation rows does not count.
        return float(np.nansum(rows.weights * areas))

    return auc_sum


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


def rows_of(rows: FitRows, device: str) -> Arrays:
    """Return rows for the training loop."""

    def optional(array: np.ndarray | None) -> Tensor | None:
        return None if array is None else _tensor(array, device)

    request = rows.request
    return Arrays(
        _tensor(rows.scores.astype(np.float32, copy=False), device),
        _tensor(rows.codes.astype(np.int32, copy=False), device),
        _tensor(rows.labels, device),
        optional(rows.weight),
        optional(None if request is None else np.unique(request, return_inverse=True)[1].ravel()),
    )


def _tensor(array: np.ndarray, device: str) -> Tensor:
    # A column may be a view of a table's own memory, which must not be written to.
    return torch.from_numpy(np.require(array, requirements="W")).to(device)


def _attach(network: Network, memory: dict[str, Tensor]) -> None:
    """Make the memory of a loss part of the network's state during training."""
    module = torch.nn.Module()
    for name, value in memory.items():
        module.register_buffer(name, value)
    network.add_module(_MEMORY, module)


def fingerprint(config: Any, rows: TrainingRows, *parts: FitRows) -> str:
    """Return a digest of everything that decides a fit's result; empty without a checkpoint."""
    if rows.checkpoint is None:
        return ""
    options = [config.name, asdict(config), rows.seed, rows.weights.tolist()]
    digest = hashlib.sha256(json.dumps(options).encode())
    for part in parts:
        for array in (part.scores, part.labels, part.codes, part.weight):
            if array is not None:
                digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


@torch.no_grad()
def _scores_of(network: Network, rows: Arrays) -> np.ndarray:
    """Score with the kernels if they cover the network, on the CPU, else with PyTorch in pieces."""
    scores, context = rows.scores, rows.context
    if scores.is_cpu and covers(network.config):
        return Scorer.of(network)(scores.numpy(), context.numpy())
    network.eval()
    parts = [
        network(scores[i : i + _PIECE], context[i : i + _PIECE])
        for i in range(0, max(len(scores), 1), _PIECE)
    ]
    fused: np.ndarray = torch.cat(parts).double().cpu().numpy()
    return fused
