"""Network losses: the loss of each method on a network's fused scores, and its state."""

__all__ = ["NetworkLoss", "Wanted", "auc_sums", "loss_of"]

from dataclasses import replace
from typing import Any, NamedTuple, Self
from zlib import crc32

import numpy as np
import torch
from torch import Tensor

from harmonrank.fusion.protocol import TrainingRows
from harmonrank.metrics import argsort
from harmonrank.model.fit_rows import FitRows
from harmonrank.paper.losses import (
    LossInputs,
    aucm_parts,
    bce_loss,
    label_aggregation_loss,
    optimal_label_values,
    pairwise_logistic_loss,
    pairwise_square_loss,
    policy_gradient_loss,
    rank_auc_parts,
)
from harmonrank.paper.methods.neural import NeuralConfig
from harmonrank.paper.training import Arrays, LossValue
from harmonrank.support.errors import UsageError


class Wanted(NamedTuple):
    """Rows with positive objective weights only: labels of unwanted objectives are inverted.

    The AUC of 1−y is 1 − AUC of y. So Σ_m w_m AUC_m with some w_m < 0 equals, up to a constant, the
    sum with |w_m| and the AUC of 1−y_m: eq. 2 of docs/objectives.md, which every loss can optimise.
    """

    rows: FitRows
    weights: np.ndarray
    prevalence: np.ndarray

    @classmethod
    def of(cls, rows: TrainingRows, sample: FitRows) -> Self:
        """Invert the labels of unwanted objectives."""
        turned, pi = rows.weights < 0, rows.prevalence
        if not turned.any():
            return cls(sample, rows.weights, pi)
        labels = np.where(turned, 1 - sample.labels, sample.labels).astype(sample.labels.dtype)
        prevalence = np.where(turned, 1 - pi, pi)
        return cls(replace(sample, labels=labels), np.abs(rows.weights), prevalence)


class NetworkLoss:
    """A loss of a batch's fused scores.

    Args:
        config: The options of the method.
        wanted: Its rows.
        device: Where they are.

    Attributes:
        weights: Of the objectives.
        memory: State that the loss keeps from step to step, changed in place. It is part of every
            checkpoint.
    """

    def __init__(self, config: Any, wanted: Wanted, device: str) -> None:
        self.config, self.memory = config, dict[str, Tensor]()
        self.weights = torch.from_numpy(wanted.weights.copy()).to(device)

    def __call__(self, fused: Tensor, batch: Arrays) -> LossValue:
        """Return the loss, with its graph."""
        return LossValue(self.value(fused, batch, self._counts(batch)))

    def value(self, fused: Tensor, batch: Arrays, counts: dict[str, Any]) -> Tensor:
        """Return the loss alone, given the weights of objectives and rows."""
        raise NotImplementedError

    def _counts(self, batch: Arrays) -> dict[str, Any]:
        return {"objective_weights": self.weights, "sample_weight": batch.sample_weight}

    def _inputs(self, fused: Tensor, batch: Arrays) -> LossInputs:
        """Return the arguments of a loss, which were checked when the fit began."""
        return LossInputs.of(fused, batch.patterns, self.weights, batch.sample_weight)


class RankAucLoss(NetworkLoss):
    """Σ_m w_m (1 − soft AUC_m), one soft rank for all objectives: the paper's own."""

    def __call__(self, fused: Tensor, batch: Arrays) -> LossValue:
        parts = rank_auc_parts(
            self._inputs(fused, batch),
            strength=self.config.strength,
            regularization=self.config.regularization,
            pairs=self.config.pairs,
            requests=batch.request,
        )
        return LossValue(parts.loss, parts.gradient_share, parts.slope)


class BceLoss(NetworkLoss):
    """Σ_m w_m BCE(σ(s), y_m)."""

    def value(self, fused: Tensor, batch: Arrays, counts: dict[str, Any]) -> Tensor:
        return bce_loss(fused, batch.labels, **counts)


class PairwiseSquareLoss(NetworkLoss):
    """Σ_m w_m mean (margin − (s_i − s_j))² over pairs, without pairs."""

    def value(self, fused: Tensor, batch: Arrays, counts: dict[str, Any]) -> Tensor:
        return pairwise_square_loss(fused, batch.patterns, margin=self.config.margin, **counts)


class PairwiseLogisticLoss(NetworkLoss):
    """Σ_m w_m mean log(1 + exp(−(s_i − s_j))) over pairs."""

    def value(self, fused: Tensor, batch: Arrays, counts: dict[str, Any]) -> Tensor:
        return pairwise_logistic_loss(fused, batch.patterns, **counts)


class LabelAggregationLoss(NetworkLoss):
    """(s − Σ_m v_m y_m)², the aggregated label divided by its standard deviation.

    So one learning rate serves all values; the order of scores does not depend on it.
    """

    def __init__(self, config: Any, wanted: Wanted, device: str) -> None:
        super().__init__(config, wanted, device)
        # The few rows of an update may lack an objective; count half an event for it.
        least = 0.5 / max(wanted.rows.rows, 1)
        pi = torch.from_numpy(wanted.prevalence.clip(least, 1 - least))
        values = optimal_label_values(pi) if config.values == "optimal" else torch.ones_like(pi)
        label = wanted.rows.labels @ (wanted.weights * values.numpy())
        self.values = self.weights * (values / (float(label.std()) or 1.0)).to(device)

    def value(self, fused: Tensor, batch: Arrays, counts: dict[str, Any]) -> Tensor:
        weight = counts["sample_weight"]
        return label_aggregation_loss(fused, batch.labels, self.values, sample_weight=weight)


class AucmLoss(NetworkLoss):
    """AUCM, minimised over the network, a and b, and maximised over α ≥ 0, step by step.

    Each step is one of the network, then one of gradient descent in a and b and of ascent in α
    with their own rate: a ← a + 2·rate·(μ⁺ − a), b likewise, α ← [α + 2·rate·(margin − Δμ − α)]₊
    with the class means of the batch. An objective that is absent from a batch keeps its values.
    """

    def __init__(self, config: Any, wanted: Wanted, device: str) -> None:
        super().__init__(config, wanted, device)
        zeros = torch.zeros(len(wanted.weights), dtype=torch.float64, device=device)
        self.memory = {name: zeros.clone() for name in ("a", "b", "alpha")}

    def __call__(self, fused: Tensor, batch: Arrays) -> LossValue:
        inputs = self._inputs(fused, batch)
        parts = aucm_parts(inputs, **self.memory, margin=self.config.margin)
        above, below = parts.mean_positive, parts.mean_negative
        targets = {"a": above, "b": below, "alpha": self.config.margin - above + below}
        present = torch.from_numpy(parts.present).to(fused.device)
        for name, value in self.memory.items():
            step = 2 * self.config.inner_rate * (torch.from_numpy(targets[name]).to(value) - value)
            value += torch.where(present, step, 0.0)
        self.memory["alpha"].clamp_(min=0)
        return LossValue(parts.loss, slope=parts.slope)


class PolicyGradientLoss(NetworkLoss):
    """A Gaussian policy around the scores; the reward is the AUC-sum of the drawn scores."""

    def value(self, fused: Tensor, batch: Arrays, counts: dict[str, Any]) -> Tensor:  # noqa: ARG002
        noise, advantage, sigma = self._drawn(fused.detach().cpu().numpy(), batch)
        drawn = torch.from_numpy(noise), torch.from_numpy(advantage)
        return policy_gradient_loss(fused, *drawn, sigma=sigma)

    def _drawn(self, fused: np.ndarray, batch: Arrays) -> tuple[np.ndarray, np.ndarray, float]:
        """Return the noise of each draw, its reward less the mean of the others', and σ."""
        mean = fused.astype(np.float64)
        # Seeded by the scores themselves, so that a continued fit draws the same again.
        rng = np.random.default_rng(crc32(mean.tobytes()))
        noise = rng.standard_normal((self.config.draws, len(mean)))
        sigma = self.config.sigma * float(mean.std()) or self.config.sigma
        rewards = auc_sums(
            mean + sigma * noise,
            batch.labels.cpu().numpy(),
            self.weights.cpu().numpy(),
            None if batch.sample_weight is None else batch.sample_weight.cpu().numpy(),
        )
        if not np.isfinite(rewards).all():  # One nan would poison the network without a word.
            raise UsageError("The network's scores must be finite. Got nan or infinity.")
        others = (rewards.sum() - rewards) / (len(rewards) - 1)
        return noise, rewards - others, sigma


_LOSSES: dict[str, type[NetworkLoss]] = {
    "harmonrank-paper": RankAucLoss,
    "mbce": BceLoss,
    "pairwise-square": PairwiseSquareLoss,
    "pairwise-logistic": PairwiseLogisticLoss,
    "label-aggregation": LabelAggregationLoss,
    "label-aggregation-optimal": LabelAggregationLoss,
    "aucm": AucmLoss,
    "reinforce": PolicyGradientLoss,
}


def loss_of(config: NeuralConfig, wanted: Wanted, device: str) -> NetworkLoss:
    """Return the loss of a method."""
    return _LOSSES[config.name](config, wanted, device)


def auc_sums(
    actions: np.ndarray, labels: np.ndarray, weights: np.ndarray, sample_weight: np.ndarray | None
) -> np.ndarray:
    """Return Σ_m w_m (AUC_m − ½) of each draw of scores; no two scores of a draw are equal.

    The sum is linear in the ranks, so a draw costs one sort for all objectives. An absent objective
    adds nothing.

    >>> draws = np.array([[0.1, 0.2, 0.3], [0.3, 0.2, 0.1]])
    >>> auc_sums(draws, np.array([[0], [0], [1]]), np.ones(1), None)
    array([ 0.5, -0.5])
    """
    v = np.ones(len(labels)) if sample_weight is None else sample_weight
    positive, negative = v @ labels, v @ (1.0 - labels)
    pairs = positive * negative
    share = np.divide(weights, pairs, out=np.zeros(len(pairs)), where=pairs > 0)
    gain = v * (labels @ share)
    order = argsort(actions)  # Five times as fast as NumPy's.
    sorted_weight = np.ones(len(v)) if sample_weight is None else v[order]
    ranks = sorted_weight.cumsum(axis=-1) - sorted_weight / 2 - v.sum() / 2
    return np.asarray((gain[order] * ranks).sum(axis=1))
