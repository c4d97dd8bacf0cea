"""The training loop of a network that predicts: a function that yields what happens."""

__all__ = ["Average", "auc_of", "train_network"]

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from time import monotonic

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from harmonrank.metrics import auc
from harmonrank.paper.training import Checkpoint, Event, Finished, Progress
from harmonrank.support import BatchEnded, DivergenceError, EpochEnded, Resumed
from harmonrank_lab.upstream.embedding import Rows
from harmonrank_lab.upstream.experts import draw_from
from harmonrank_lab.upstream.network import Pieces, PredictorConfig, PredictorNetwork
from harmonrank_lab.upstream.stream import RowStream

_NOT_WEIGHTS = "embedding.squares"
_FADING = 3

_PIECE_ROWS = 2048
_AVERAGED = 16
"""How often an epoch's weights are taken into the average."""


class Average(nn.Module):
    """A network in training, and the moving average of its weights.

    ā ← ā + (w − ā)·max(share, 4/(n + 3)) at the n-th `update`: the first ones fade fast (Shamir
    and Zhang, 2013), then it is an exponential average. The steps of stochastic training circle
    around the optimum, most widely for the weights of rare objectives; the mean of where they
    were lies closer to it than where they end (Polyak and Juditsky, 1992).

    Both are part of the state, so that a checkpoint holds the average too.

    Args:
        network: To be trained.
        share: Weight of the newest in the average; 1 keeps the newest alone.

    >>> layer = nn.Linear(1, 1, bias=False)
    >>> average = Average(layer, share=0.5)
    >>> for value in (0.0, 1.0, 3.0):
    ...     _ = layer.weight.data.fill_(value)
    ...     average.update()
    >>> with average.used():
    ...     round(layer.weight.item(), 4)
    2.2667
    >>> layer.weight.item()
    3.0
    """

    updates: Tensor

    def __init__(self, network: nn.Module, share: float) -> None:
        super().__init__()
        self.network, self._share = network, share
        self.register_buffer("updates", torch.zeros(1, dtype=torch.int64))
        for number, weight in enumerate(self._present()):
            self.register_buffer(f"mean{number}", weight.clone())

    def _present(self) -> list[Tensor]:
        weights = self.network.state_dict()
        return [weight.detach() for name, weight in weights.items() if name != _NOT_WEIGHTS]

    def _pairs(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield the mean and the present value of every weight."""
        for number, weight in enumerate(self._present()):
            yield self.get_buffer(f"mean{number}"), weight

    @torch.no_grad()
    def update(self) -> None:
        """Take the present weights into the average."""
        self.updates += 1
        share = max(self._share, (1 + _FADING) / (int(self.updates) + _FADING))
        for mean, weight in self._pairs():
            mean.lerp_(weight, share)

    @contextmanager
    def used(self) -> Iterator[None]:
        """Give the network its average weights, and the present ones back at the end."""
        self.swap()
        try:
            yield
        finally:
            self.swap()

    @torch.no_grad()
    def swap(self) -> None:
        """Exchange average and present weights."""
        for mean, weight in self._pairs():
            held = mean.clone()
            mean.copy_(weight)
            weight.copy_(held)


def train_network(
    network: PredictorNetwork,
    stream: RowStream,
    valid: Rows | None,
    config: PredictorConfig,
    *,
    seed: int = 0,
    checkpoint: Path | None = None,
    fingerprint: str = "",
) -> Iterator[Event]:
    """Train by Σ_m BCE_m, yield what happens, and leave the average weights of the best epoch.

    Experts, gates and towers are moved by AdamW, the embedding by its own sparse steps; what is
    validated and kept is a moving average over about the last epoch. The validation figure is the
    sum of the objectives' AUCs, those without both classes left out. Without validation rows all
    epochs are taken and the last is kept. A step of the events is a pool; state is kept between
    pools, so that a run that was killed goes on to the same weights.

    Args:
        network: To be trained.
        stream: Rows to learn from.
        valid: Rows that decide which epoch is kept, if any.
        config: Rates, batches, epochs.
        seed: Decides the order of rows and what dropout leaves out.
        checkpoint: Where state is kept; if the file exists, training goes on from it.
        fingerprint: Of data and options; a checkpoint of another one is refused.
    """
    optimizer = torch.optim.AdamW(
        network.top.parameters(), lr=config.learning_rate, weight_decay=config.weight_decay
    )
    average = Average(network, 1 / _AVERAGED)
    steps = _Steps(network, average, optimizer, config)
    state, progress = Checkpoint(average, optimizer), Progress()
    if checkpoint is not None and checkpoint.exists():
        progress = state.load(checkpoint, fingerprint)
        yield Resumed(progress.epoch, progress.step)

    def save() -> float:
        if checkpoint is not None:
            state.save(checkpoint, progress, fingerprint)
        return monotonic()

    saved_at = monotonic()
    while progress.epoch < config.epochs and progress.since_best < config.patience:
        pools = len(stream.pools(seed, progress.epoch))
        for rows in stream.epoch(seed, progress.epoch, progress.step):
            draws = torch.Generator()
            draws.manual_seed(hash((seed, progress.epoch, progress.step)) & 0x7FFFFFFF)
            progress.add(steps.pool(rows, stream.rows, draws), None)
            if monotonic() - saved_at > config.checkpoint_seconds:
                saved_at = save()
            yield BatchEnded(progress.epoch, progress.step - 1, pools, config.epochs)
        score = float("nan")
        if valid is not None:
            with average.used():
                score = float(np.nansum(auc_of(network, valid)))
        if valid is None or score > progress.best_valid:
            state.keep_best()
            progress.best_valid, progress.best_epoch = score, progress.epoch
        about = progress.epoch, config.epochs, progress.mean_loss, score, progress.best_epoch
        progress.next_epoch()
        saved_at = save()
        yield EpochEnded(*about, None)
    state.restore_best()
    average.swap()
    network.embedding.forget_untouched()
    patient = progress.since_best < config.patience
    yield Finished(progress.best_epoch, progress.best_valid, "epochs" if patient else "patience")


def auc_of(network: PredictorNetwork, rows: Rows) -> np.ndarray:
    """Return the AUC of each objective; nan where there is one class only."""
    scores = network.score(rows)
    return np.array([auc(s, y) for s, y in zip(scores.T, rows.labels.T, strict=True)])


@dataclass(frozen=True)
class _Steps:
    """Takes the steps of pools of rows."""

    network: PredictorNetwork
    average: Average
    optimizer: torch.optim.Optimizer
    config: PredictorConfig

    def pool(self, rows: Rows, epoch_rows: int, draws: torch.Generator) -> float:
        """Take the steps of one pool; return the mean loss."""
        if len(rows) == 0:
            return 0.0
        self.network.train()
        steps = max(1, round(len(rows) / self.config.step_rows(epoch_rows)))
        edges = np.linspace(0, len(rows), steps + 1).astype(int)
        # The average covers an epoch however many pools it has, and each of them ends in it.
        every = max(1, round(epoch_rows / _AVERAGED / (len(rows) / steps)))
        total = 0.0
        with Pieces() as pieces:
            for step, (low, high) in enumerate(pairwise(edges), start=1):
                total += self._step(rows.take(slice(low, high)), pieces, draws)
                if step % every == 0 or step == steps:
                    self.average.update()
        mean = total / len(rows)
        if not np.isfinite(mean):
            raise DivergenceError(
                f"The training loss became {mean}; lower `learning_rate`, now "
                f"{self.config.learning_rate:g}, or `table_rate`, now {self.config.table_rate:g}."
            )
        return mean

    def _step(self, batch: Rows, pieces: Pieces, draws: torch.Generator) -> float:
        """Change all weights by one step; return the summed loss before it."""
        parameters = list(self.network.top.parameters())
        # Pieces are as large as the cache likes, not as there are threads: those change nothing.
        each = batch.pieces(_PIECE_ROWS)
        seeds = torch.randint(1 << 62, (len(each),), generator=draws).tolist()
        work = zip(each, seeds, strict=True)
        losses, slopes = zip(*pieces.map(lambda given: self._slopes(*given), work), strict=True)
        *top, pooled = (list(values) for values in zip(*slopes, strict=True))
        for parameter, values in zip(parameters, top, strict=True):
            parameter.grad = torch.stack(values).sum(dim=0) / len(batch)
        # Here PyTorch would wake its threads for every tiny root, and wait for them on a busy
        # machine.
        pieces.map(lambda _: self.optimizer.step(), [None])
        self.network.embedding.step(batch, torch.cat(pooled))
        return float(sum(losses))

    def _slopes(self, rows: Rows, seed: int) -> tuple[float, list[Tensor]]:
        """Return the summed loss of a piece, and its slopes by parameters and embedding."""
        draw_from(seed)
        pooled = self.network.embedding(rows).requires_grad_()
        labels = torch.from_numpy(rows.labels).to(torch.float32)
        logits = self.network.logits(pooled)
        loss = binary_cross_entropy_with_logits(logits, labels, reduction="sum")
        weights = [*self.network.top.parameters(), pooled]
        slopes = torch.autograd.grad(loss, weights, allow_unused=True, materialize_grads=True)
        return float(loss.detach()), list(slopes)
