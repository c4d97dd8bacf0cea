"""Fit of the network with one head per objective, with PyTorch."""

__all__ = ["fit_heads"]

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from harmonrank.data.rows.blocks import Blocks
from harmonrank.fusion.baselines.closed_form import fit_calibrations
from harmonrank.fusion.baselines.logistic import logit_scale
from harmonrank.fusion.protocol import TrainingRows
from harmonrank.fusion.weights import weighted_sum
from harmonrank.metrics import logit, sigmoid
from harmonrank.model.fit_rows import FitRows, RowCounts
from harmonrank.paper.losses import rank_auc_loss
from harmonrank.paper.methods.harmonrank_network import HeadsFit, NetworkMethodConfig
from harmonrank.paper.methods.neural_fit import fingerprint, rows_of, run, validation
from harmonrank.paper.objective_network import ObjectiveNetwork
from harmonrank.paper.objective_scorer import ObjectiveScorer
from harmonrank.paper.training import Arrays, LossValue, TrainingConfig, train

_HALVINGS = 30


def fit_heads(config: NetworkMethodConfig, rows: TrainingRows) -> HeadsFit:
    """Train the heads on top of the closed form; warn of a path without effect."""
    sample, valid = rows.sample(), rows.valid_sample(config.traits.validation_rows)
    seen, size = rows_of(sample, rows.device), config.size(len(rows.weights), rows.slots)
    network = ObjectiveNetwork(size, torch.Generator().manual_seed(rows.seed))
    _set_prior(network, rows.train)
    network.to(rows.device)
    # The weights are noisy until the rate has fallen, so the last ones are kept.
    options = TrainingConfig(
        learning_rate=config.learning_rate,
        schedule="cosine",
        early_stopping=False,
        batch_rows=config.batch_rows or min(max(len(seen) // 160, 256), 4096),
        epochs=config.epochs,
    )
    training = train(
        network,
        seen,
        _loss(config, rows, network),
        validation(rows, valid, _fused(rows, valid)),
        options,
        seed=rows.seed,
        checkpoint=rows.checkpoint,
        fingerprint=fingerprint(config, rows, sample, valid),
    )
    remedy = "try more `epochs` or a smaller `ridge`"
    history, health = run(training, network, config.name, rows, seen, remedy=remedy)
    weights = {name: value.cpu().numpy() for name, value in network.state_dict().items()}
    fit = HeadsFit(size, weights, history, health)
    if config.loss == "likelihood":
        return replace(fit, weights={**weights, "share": _shares(fit, valid)})
    return fit


def _loss(
    config: NetworkMethodConfig, rows: TrainingRows, network: ObjectiveNetwork
) -> Callable[[Tensor, Arrays], LossValue]:
    """Return the loss of the heads on a batch, plus their ridge."""
    counts = RowCounts.of(rows.train)
    objective_weights = torch.from_numpy(rows.weights).float()
    per_unit = torch.from_numpy(_per_unit(rows.weights, counts.prevalence)).float()

    def misfit(z: Tensor, batch: Arrays) -> Tensor:
        if config.loss == "rank":
            return rank_auc_loss(
                z.sigmoid() @ per_unit.to(z),
                batch.labels,
                objective_weights=objective_weights.to(z),
                sample_weight=batch.sample_weight,
            )
        weight = None if batch.sample_weight is None else batch.sample_weight[:, None].to(z)
        # The sum over heads of the mean over rows.
        return binary_cross_entropy_with_logits(z, batch.labels, weight) * z.shape[1]

    def loss(z: Tensor, batch: Arrays) -> LossValue:
        energy = network.energy(config.slope_ridge / config.ridge)
        return LossValue(misfit(z, batch) + config.ridge / (2 * counts.mass) * energy)

    return loss


def _set_prior(network: ObjectiveNetwork, rows: Blocks[FitRows]) -> None:
    """Calibrate each score by itself, and measure its scale."""
    prior = network.prior
    centre, spread = logit_scale(rows)
    prior.centre.copy_(torch.from_numpy(centre))
    # A constant score carries no information, so any scale will do.
    prior.spread.copy_(torch.from_numpy(np.where(spread > 1e-6, spread, 1.0)))
    curves = torch.from_numpy(fit_calibrations(rows))
    prior.slope.copy_(curves[:, 0])
    prior.intercept.copy_(curves[:, 1])


def _per_unit(weights: np.ndarray, prevalence: np.ndarray) -> np.ndarray:
    """Return the weight of each head's probability, w/(π(1−π))."""
    counted: np.ndarray = weights / (prevalence * (1 - prevalence))
    return counted


def _fused(rows: TrainingRows, valid: FitRows) -> Callable[[ObjectiveNetwork], np.ndarray]:
    """Return the fused scores that a network gives to the validation rows."""
    per_unit = _per_unit(rows.weights, rows.prevalence)

    def fused(network: ObjectiveNetwork) -> np.ndarray:
        return weighted_sum(ObjectiveScorer.of(network)(valid.scores, valid.codes), per_unit)

    return fused


def _shares(fit: HeadsFit, valid: FitRows) -> np.ndarray:
    """Return the share t of each head's residual, in [0, 1], that fits the validation rows best.

    The log loss is convex in t, so the sign of its slope tells on which side the minimum is. A head
    whose objective lacks a class in these rows keeps all of its residual.
    """
    shares = np.ones(fit.config.objectives, np.float32)
    if not valid.rows:
        return shares
    slope, intercept = fit.weights["prior.slope"], fit.weights["prior.intercept"]
    before = slope * logit(valid.scores) + intercept
    added = logit(fit.probabilities(valid.scores, valid.codes)) - before
    weight = valid.weights()
    for m, labels in enumerate(valid.labels.T):
        if labels[weight > 0].min(initial=1) == labels[weight > 0].max(initial=0):
            continue
        shares[m] = _best_share(before[:, m], added[:, m], labels, weight)
    return shares


def _best_share(
    before: np.ndarray, added: np.ndarray, labels: np.ndarray, weight: np.ndarray
) -> float:
    def slope(t: float) -> float:
        return float((weight * added) @ (sigmoid(before + t * added) - labels))

    if slope(1.0) <= 0:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if slope(middle) > 0 else (middle, high)
    return low
