"""Training: losses and whole fits against those of peers."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import cycle
from time import perf_counter
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from harmonrank.data import ContextEncoder
from harmonrank.model import Heads, fit_heads
from harmonrank.paper import Network, NetworkConfig, training
from harmonrank.paper.losses import Patterns, aucm_loss, bce_loss, rank_auc_loss
from harmonrank.support import score_logit
from harmonrank_lab.bench._peers import TorchHeads, compiled, on_one_thread, peer
from harmonrank_lab.bench._result import Case, Size, Timing, Work, measure, world_log

# How close to our penalised log-likelihood a peer must come, in nats per row, and its patience.
_CLOSE = 1e-4
_MOST_PASSES = 200

Loss = Callable[[Tensor, Tensor], Tensor]


def _head_fit(size: Size) -> Timing:
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
    taken, gap = _lbfgs(heads, log.scores, codes, labels)
    note = "To the same likelihood; only ours also finds coordinates, density and precisions."
    if gap > _CLOSE:
        note += f" The peer is still {gap:.1g} nats per row short."
    return Timing(log.rows, seconds, {"torch-eager L-BFGS": taken}, note=note)


def _lbfgs(
    heads: Heads, scores: np.ndarray, codes: np.ndarray, labels: np.ndarray
) -> tuple[float, float]:
    """Minimise −log-likelihood + ½ Σ λ(θ − prior)² as the heads do; return seconds and gap.

    The peer begins, as ours do, with the prevalences and a plain calibration.
    """
    network = TorchHeads(heads, np.ones(scores.shape[1]))
    precision = torch.tensor(heads.precision, dtype=torch.float32)
    prior = torch.tensor(heads.shared, dtype=torch.float32)[:, None]
    c, y = torch.from_numpy(codes), torch.from_numpy(labels).float()
    numbers = network.numbers(torch.from_numpy(scores.astype(np.float32)), c)

    def loss() -> Tensor:
        groups = (precision[:, :4].T * (network.groups - prior) ** 2).sum()
        others = (precision[:, 4:5] * network.others**2).sum()
        penalty = 0.5 * (groups + others + (precision[:, 5] * network.effects**2).sum())
        logits = network.logits(*numbers, c)
        nats = nn.functional.binary_cross_entropy_with_logits(logits, y, reduction="sum")
        whole: Tensor = (nats + penalty) / len(y)
        return whole

    def closure() -> Tensor:
        optimizer.zero_grad()
        value = loss()
        value.backward()  # type: ignore[no-untyped-call]
        return value

    with torch.no_grad():
        target, rate = float(loss()), y.mean(dim=0)
        for parameter in network.parameters():
            parameter.zero_()
        network.intercept.copy_(torch.log(rate / (1 - rate)))
        network.groups[0] = 1.0
    optimizer = torch.optim.LBFGS(network.parameters(), max_iter=10, line_search_fn="strong_wolfe")
    started, gap = perf_counter(), float("inf")
    for _ in range(_MOST_PASSES // 10):
        optimizer.step(closure)  # type: ignore[no-untyped-call]
        gap = float(loss().detach()) - target
        if gap < _CLOSE:
            break
    return perf_counter() - started, gap


def cases(size: Size) -> Iterator[Case]:
    """Steps with three losses, and the default's own fit."""
    yield Case("training step, rank loss", partial(_rank_step, size))
    yield Case("training step, rank loss against BCE", partial(_rank_against_bce, size))
    yield Case("training step, BCE", partial(_bce_step, size))
    yield Case("training step, AUCM", partial(_aucm_step, size))
    yield Case("fit of the default's linear heads", partial(_head_fit, size))


class _Steps:
    """The rows, and learners that each own a network with the same first weights."""

    def __init__(self, size: Size) -> None:
        log = world_log(size.train_rows)
        encoder = ContextEncoder.fit(log.context)
        arrays = log.scores.astype(np.float32), log.codes(encoder), log.known_labels()
        self._rows = training.Arrays(*map(torch.from_numpy, arrays))
        self._config = NetworkConfig(objectives=log.scores.shape[1], context_slots=encoder.slots)
        steps = log.rows // size.batch_rows
        order = np.random.default_rng(0).permutation(log.rows)[: steps * size.batch_rows]
        self._batches = np.sort(order.reshape(steps, size.batch_rows), axis=1)

    @property
    def rows(self) -> int:
        return int(self._batches.shape[1])

    def network(self) -> Network:
        return Network(self._config, torch.Generator().manual_seed(0))

    def example(self) -> tuple[Tensor, Tensor]:
        batch = self._rows.batch(torch.from_numpy(self._batches[0]))
        return batch.scores, batch.context

    def fused(self, loss: training.LossFunction) -> Work:
        return self._stepping(
            training.FusedLearner(self.network(), self._rows, training.TrainingConfig()), loss
        )

    def torch(self, loss: Loss, network: Any = None) -> Work:
        network = self.network() if network is None else network
        learner = training.TorchLearner(network, self._rows, training.TrainingConfig())
        return self._stepping(learner, lambda s, b: training.LossValue(loss(s, b.labels)))

    def _stepping(self, learner: training.NetworkLearner, value: training.LossFunction) -> Work:
        """Return a function that takes the next step of an epoch that never ends."""
        coming = cycle(self._batches)
        return lambda: learner.step(next(coming), value)


def _rank_step(size: Size) -> Timing:
    steps = _Steps(size)
    eager = steps.torch(rank_auc_loss)
    work = {"ours": steps.fused(_rank_loss), "torch-eager": eager}
    work["torch-eager, 1 thread"] = on_one_thread(eager)
    if (torchsort := peer("torchsort")) is not None:
        work["torch-eager with torchsort"] = steps.torch(partial(_torchsort_loss, torchsort))
    fast = compiled(steps.network(), steps.example()) if size.compile else None
    if fast is not None:
        work["torch.compile"] = steps.torch(rank_auc_loss, fast)
    note = "torch-eager and torch.compile use our soft rank."
    return measure(steps.rows, work, size.seconds, note=note)


def _rank_loss(fused: Tensor, batch: training.Arrays) -> training.LossValue:
    parts = rank_auc_loss(fused, batch.patterns, return_parts=True)
    return training.LossValue(parts.loss, parts.gradient_share, parts.slope)


def _bce_loss(fused: Tensor, batch: training.Arrays) -> training.LossValue:
    return training.LossValue(bce_loss(fused, batch.labels))


def _torchsort_loss(torchsort: Any, fused: Tensor, labels: Tensor) -> Tensor:
    """Return our loss with torchsort's ranks: M − Σ_m (⟨r,y_m⟩ − n⁺(n⁺+1)/2)/(n⁺n⁻)."""
    n = len(fused)
    z = (fused - fused.mean()) / fused.std()
    ranks = torchsort.soft_rank(z[None], regularization_strength=1.0 / n)[0]
    positives = labels.sum(dim=0)
    pairs = (positives * (n - positives)).clamp(min=1)
    areas = (ranks @ labels - positives * (positives + 1) / 2) / pairs
    loss: Tensor = labels.shape[1] - areas.sum()
    return loss


def _rank_against_bce(size: Size) -> Timing:
    steps = _Steps(size)
    work = {"ours": steps.fused(_rank_loss), "our BCE": steps.fused(_bce_loss)}
    note = "Both by our kernels: what the soft rank costs."
    return measure(steps.rows, work, size.seconds, note=note)


def _bce_step(size: Size) -> Timing:
    steps = _Steps(size)
    work = {"ours": steps.fused(_bce_loss), "torch-eager": steps.torch(bce_loss)}
    return measure(steps.rows, work, size.seconds)


def _aucm_step(size: Size) -> Timing:
    steps = _Steps(size)
    objectives = steps.example()[0].shape[1]
    a, b, alpha = (torch.zeros(objectives) for _ in range(3))

    def loss(fused: Tensor, labels: Tensor | Patterns) -> Tensor:
        return aucm_loss(fused, labels, a, b, alpha)

    ours = steps.fused(lambda s, b: training.LossValue(loss(s, b.patterns)))
    work = {"ours": ours, "torch-eager": steps.torch(loss)}
    libauc = peer("libauc.losses")
    if libauc is not None:
        terms = [libauc.AUCMLoss(device="cpu") for _ in range(objectives)]

        def theirs(fused: Tensor, labels: Tensor) -> Tensor:
            each = [term(fused, y) for term, y in zip(terms, labels.T, strict=True)]
            return torch.stack(each).sum()

        work["libauc"] = steps.torch(theirs)
    note = "a, b and α stay as they are; LibAUC's loss runs once per objective."
    return measure(steps.rows, work, size.seconds, note=note)
