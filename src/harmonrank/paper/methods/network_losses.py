"""Network losses: what a method asks of the network's fused scores, with what it remembers."""

__all__ = ["LOSSES", "NetworkLoss", "auc_sums"]

from typing import Any
from zlib import crc32

import numpy as np
import torch
from torch import Tensor

from harmonrank.fusion.fitting.fit import Fit
from harmonrank.metrics import argsort
from harmonrank.paper.losses import (
    AucmSlope,
    aucm_loss,
    aucm_slope,
    bce_loss,
    label_aggregation_loss,
    optimal_label_values,
    pairwise_logistic_loss,
    pairwise_square_loss,
    policy_gradient_loss,
    rank_auc_loss,
    rank_auc_slope,
)
from harmonrank.paper.training import Arrays, LossSlope, LossValue
from harmonrank.support.errors import UsageError


class NetworkLoss:
    """A loss of a batch's fused scores, given the objectives' weights.

    Args:
        config: The options of the method.
        fit: Its rows.

    Attributes:
        memory: What the loss must know from step to step, changed in place: it is part of every
            checkpoint.
    """

    def __init__(self, config: Any, fit: Fit) -> None:  # noqa: ARG002
        self.config = config
        self.memory: dict[str, Tensor] = {}

    def value(self, fused: Tensor, batch: Arrays, weights: Tensor) -> LossValue:
        """Return the loss, with its graph."""
        raise NotImplementedError

    def slope(self, fused: np.ndarray, batch: Arrays, weights: Tensor) -> LossSlope:
        """Return the loss and its slope at once, where that is faster than a graph."""
        raise NotImplementedError

    @property
    def has_slope(self) -> bool:
        """Whether `slope` is there; otherwise autograd finds it."""
        return type(self).slope is not NetworkLoss.slope

    def remember(self, fused: Tensor, batch: Arrays) -> None:
        """Change the memory after the loss of a step."""


class RankAucLoss(NetworkLoss):
    """Σ_m w_m (1 − soft AUC_m), one soft rank for all objectives: the paper's own."""

    def value(self, fused: Tensor, batch: Arrays, weights: Tensor) -> LossValue:
        parts = rank_auc_loss(
            fused,
            batch.patterns,
            objective_weights=weights,
            sample_weight=batch.sample_weight,
            requests=batch.request,
            return_parts=True,
            **self._options,
        )
        return LossValue(parts.loss, parts.gradient_share)

    def slope(self, fused: np.ndarray, batch: Arrays, weights: Tensor) -> LossSlope:
        found = rank_auc_slope(
            fused,
            batch.patterns,
            weights.numpy(),
            sample_weight=batch.sample_weight,
            requests=None if batch.request is None else batch.request.numpy(),
            **self._options,
        )
        return LossSlope(*found)

    @property
    def _options(self) -> dict[str, Any]:
        return {
            name: getattr(self.config, name) for name in ("strength", "regularization", "pairs")
        }


class BceLoss(NetworkLoss):
    """Σ_m w_m BCE(σ(s), y_m)."""

    def value(self, fused: Tensor, batch: Arrays, weights: Tensor) -> LossValue:
        return LossValue(bce_loss(fused, batch.labels, **_weighted(batch, weights)))


class PairwiseSquareLoss(NetworkLoss):
    """Σ_m w_m mean (margin − (s_i − s_j))² over pairs, without pairs."""

    def value(self, fused: Tensor, batch: Arrays, weights: Tensor) -> LossValue:
        options = {"margin": self.config.margin, **_weighted(batch, weights)}
        return LossValue(pairwise_square_loss(fused, batch.labels, **options))


class PairwiseLogisticLoss(NetworkLoss):
    """Σ_m w_m mean log(1 + exp(−(s_i − s_j))) over pairs."""

    def value(self, fused: Tensor, batch: Arrays, weights: Tensor) -> LossValue:
        return LossValue(pairwise_logistic_loss(fused, batch.labels, **_weighted(batch, weights)))


class LabelAggregationLoss(NetworkLoss):
    """(s − Σ_m v_m y_m)², the aggregated label divided by its standard deviation.

    So one learning rate serves all values; the order of scores does not depend on it.
    """

    def __init__(self, config: Any, fit: Fit) -> None:
        super().__init__(config, fit)
        # Few rows, of an update say, may not show an objective: half an event stands for it.
        least = 0.5 / max(fit.train.rows, 1)
        pi = torch.from_numpy(fit.train.prevalence().clip(least, 1 - least))
        values = optimal_label_values(pi) if config.values == "optimal" else torch.ones_like(pi)
        label = fit.train.known_labels() @ (fit.weights * values.numpy())
        self.values = (values / (float(label.std()) or 1.0)).to(fit.device)

    def value(self, fused: Tensor, batch: Arrays, weights: Tensor) -> LossValue:
        values = weights * self.values
        return LossValue(
            label_aggregation_loss(fused, batch.labels, values, sample_weight=batch.sample_weight)
        )


class AucmLoss(NetworkLoss):
    """AUCM, minimised over the network, a and b, and maximised over α ≥ 0, step by step.

    Each step is one of the network, then one of gradient descent in a and b and of ascent in α
    with their own rate: a ← a + 2·rate·(μ⁺ − a), b likewise, α ← [α + 2·rate·(margin − Δμ − α)]₊
    with the class means of the batch. An objective that a batch does not show keeps its own.
    """

    def __init__(self, config: Any, fit: Fit) -> None:
        super().__init__(config, fit)
        zeros = torch.zeros(len(fit.weights), dtype=torch.float64)
        self.memory = {name: zeros.clone() for name in ("a", "b", "alpha")}
        self._seen: AucmSlope | None = None  # of this step, if it had no graph

    def value(self, fused: Tensor, batch: Arrays, weights: Tensor) -> LossValue:
        inner = (self.memory[name] for name in ("a", "b", "alpha"))
        options = {"margin": self.config.margin, **_weighted(batch, weights)}
        return LossValue(aucm_loss(fused, batch.labels, *inner, **options))

    def slope(self, fused: np.ndarray, batch: Arrays, weights: Tensor) -> LossSlope:
        self._seen = found = self._found(fused, batch, weights.numpy())
        return LossSlope(found.loss, found.slope)

    def remember(self, fused: Tensor, batch: Arrays) -> None:
        found, self._seen = self._seen, None
        if found is None:
            found = self._found(fused.float().cpu().numpy(), batch, np.ones(len(self.memory["a"])))
        a, b, alpha = (self.memory[name] for name in ("a", "b", "alpha"))
        targets = found.mean_positive, found.mean_negative, self.config.margin - found.mean_gap
        for value, target in zip((a, b, alpha), targets, strict=True):
            step = 2 * self.config.inner_rate * (torch.from_numpy(target).to(value) - value)
            value += torch.where(torch.from_numpy(found.present).to(value.device), step, 0.0)
        alpha.clamp_(min=0)

    def _found(self, fused: np.ndarray, batch: Arrays, weights: np.ndarray) -> AucmSlope:
        inner = {name: value.cpu().numpy() for name, value in self.memory.items()}
        return aucm_slope(
            fused, batch.patterns, weights, **inner, margin=self.config.margin,
            sample_weight=batch.sample_weight,
        )  # fmt: skip


class PolicyGradientLoss(NetworkLoss):
    """A Gaussian policy around the scores, rewarded for the AUC-sum of the scores it draws."""

    def value(self, fused: Tensor, batch: Arrays, weights: Tensor) -> LossValue:
        noise, advantage, sigma = self._drawn(fused.detach().cpu().numpy(), batch, weights)
        loss = policy_gradient_loss(
            fused, torch.from_numpy(noise), torch.from_numpy(advantage), sigma=sigma
        )
        return LossValue(loss)

    def slope(self, fused: np.ndarray, batch: Arrays, weights: Tensor) -> LossSlope:
        noise, advantage, sigma = self._drawn(fused, batch, weights)
        # The loss is linear in the scores, so its slope is what they are multiplied by.
        slope = -(advantage @ noise) / (sigma * len(advantage))
        return LossSlope(float(slope @ fused), slope.astype(np.float32))

    def _drawn(
        self, fused: np.ndarray, batch: Arrays, weights: Tensor
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """Return the noise of each draw, its reward less the mean of the others', and σ."""
        mean = fused.astype(np.float64)
        # Drawn from the scores themselves: a fit that was interrupted draws the same again.
        rng = np.random.default_rng(crc32(mean.tobytes()))
        noise = rng.standard_normal((self.config.draws, len(mean)))
        sigma = self.config.sigma * float(mean.std()) or self.config.sigma
        rewards = auc_sums(
            mean + sigma * noise,
            batch.labels.cpu().numpy(),
            weights.cpu().numpy(),
            None if batch.sample_weight is None else batch.sample_weight.cpu().numpy(),
        )
        if not np.isfinite(rewards).all():  # One nan would poison the network without a word.
            raise UsageError("The network's scores must be finite. Got nan or infinity.")
        others = (rewards.sum() - rewards) / (len(rewards) - 1)
        return noise, rewards - others, sigma


LOSSES: dict[str, type[NetworkLoss]] = {
    "rank-auc": RankAucLoss,
    "bce": BceLoss,
    "pairwise-square": PairwiseSquareLoss,
    "pairwise-logistic": PairwiseLogisticLoss,
    "label-aggregation": LabelAggregationLoss,
    "aucm": AucmLoss,
    "policy-gradient": PolicyGradientLoss,
}


def _weighted(batch: Arrays, weights: Tensor) -> dict[str, Any]:
    return {"objective_weights": weights, "sample_weight": batch.sample_weight}


def auc_sums(
    actions: np.ndarray, labels: np.ndarray, weights: np.ndarray, sample_weight: np.ndarray | None
) -> np.ndarray:
    """Return Σ_m w_m (AUC_m − ½) of each draw of scores; no two scores of a draw are equal.

    The sum is linear in the ranks, so a draw costs one sort whatever the objectives. An objective
    that the rows do not show earns nothing.

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
