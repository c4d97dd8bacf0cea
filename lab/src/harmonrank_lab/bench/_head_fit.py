"""The default's fit against PyTorch: the same heads to the same likelihood."""

__all__ = ["head_fit"]

from copy import deepcopy
from time import perf_counter

import numpy as np
import torch
from torch import Tensor, nn

from harmonrank.data import ContextEncoder
from harmonrank.model import Heads, fit_heads
from harmonrank.support.logistic import score_logit
from harmonrank_lab.bench._result import Result
from harmonrank_lab.bench._rows import world_log
from harmonrank_lab.bench._size import Size
from harmonrank_lab.bench._torch_heads import TorchHeads

# How close to our penalised log-likelihood a peer must come, in nats per row, and its patience.
_CLOSE = 1e-4
_MOST_PASSES = 200


def head_fit(size: Size) -> Result:
    """Time both; the peer is given coordinates, density and precisions, which we had to find."""
    log = world_log(size.head_rows)
    encoder = ContextEncoder.fit(log.context)
    codes, labels = log.codes(encoder), log.known_labels()
    logits = score_logit(log.scores)

    def ours() -> Heads:
        return fit_heads(logits, codes, encoder.slots, labels, residual=False)

    heads = ours()
    started = perf_counter()
    ours()
    seconds = perf_counter() - started
    task = _Task(heads, log.scores, codes, labels)
    started = perf_counter()
    gap = task.lbfgs()
    peers = {"torch-eager L-BFGS": perf_counter() - started - task.checking}
    note = "To the same likelihood; only ours also finds coordinates, density and precisions."
    if gap > _CLOSE:
        note += f" The peer is still {gap:.1g} nats per row short."
    return Result("train", "fit of the default's linear heads", log.rows, seconds, peers, note=note)


class _Task:
    """Minimises −log-likelihood + ½ Σ λ(θ − prior)² over the rows, as the heads do."""

    def __init__(
        self, heads: Heads, scores: np.ndarray, codes: np.ndarray, labels: np.ndarray
    ) -> None:
        self._scores = torch.from_numpy(scores.astype(np.float32))
        self._codes = torch.from_numpy(codes)
        self._labels = torch.from_numpy(labels).float()
        self._fitted = TorchHeads(heads, np.ones(scores.shape[1]))
        self._precision = torch.tensor(heads.precision, dtype=torch.float32)
        self._prior = torch.tensor(heads.shared, dtype=torch.float32)[:, None]
        self._target = self._measure(self._fitted)
        self.checking = 0.0

    def lbfgs(self) -> float:
        """Fit by all rows at once, their numbers computed once."""
        network = self._start()
        numbers = network.numbers(self._scores, self._codes)
        gap = float("inf")
        optimizer = torch.optim.LBFGS(
            network.parameters(), max_iter=10, line_search_fn="strong_wolfe"
        )

        def closure() -> Tensor:
            optimizer.zero_grad()
            loss = self._loss(network, numbers, self._codes, self._labels)
            loss.backward()  # type: ignore[no-untyped-call]
            return loss

        for _step in range(_MOST_PASSES // 10):
            optimizer.step(closure)  # type: ignore[no-untyped-call]
            gap = self._gap(network)
            if gap < _CLOSE:
                break
        return gap

    def _start(self) -> TorchHeads:
        """Return heads that know prevalences and a plain calibration, as ours do at first."""
        self.checking = 0.0
        network = deepcopy(self._fitted)
        rate = self._labels.mean(dim=0)
        with torch.no_grad():
            for parameter in network.parameters():
                parameter.zero_()
            network.intercept.copy_(torch.log(rate / (1 - rate)))
            network.groups[0] = 1.0
        return network

    def _loss(
        self, network: TorchHeads, numbers: tuple[Tensor, Tensor], codes: Tensor, labels: Tensor
    ) -> Tensor:
        logits = network.logits(*numbers, codes)
        losses = nn.functional.binary_cross_entropy_with_logits(logits, labels, reduction="none")
        return losses.sum() / len(labels) + self._penalty(network) / len(self._labels)

    def _penalty(self, network: TorchHeads) -> Tensor:
        groups = self._precision[:4, None] * (network.groups - self._prior) ** 2
        others = self._precision[4] * (network.others**2).sum()
        effects = self._precision[5] * (network.effects**2).sum()
        penalty: Tensor = 0.5 * (groups.sum() + others + effects)
        return penalty

    @torch.no_grad()
    def _measure(self, network: TorchHeads) -> float:
        numbers = network.numbers(self._scores, self._codes)
        return float(self._loss(network, numbers, self._codes, self._labels))

    def _gap(self, network: TorchHeads) -> float:
        started = perf_counter()
        gap = self._measure(network) - self._target
        self.checking += perf_counter() - started
        return gap
