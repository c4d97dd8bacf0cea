"""Fit of the network with one head per objective, with PyTorch."""

__all__ = ["learn"]

import logging
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from harmonrank.data import Log
from harmonrank.data.rows.blocks import Blocks
from harmonrank.fusion.baselines.calibrations import fit_calibrations
from harmonrank.fusion.fitting.fit import Fit
from harmonrank.fusion.fitting.row_blocks import RowsInBlocks, logit_scale, row_blocks
from harmonrank.fusion.probability import weighted_sum
from harmonrank.fusion.quality.outcomes import outcomes_of
from harmonrank.metrics import auc, logit, sigmoid
from harmonrank.model.fit_rows import FitRows, RowCounts
from harmonrank.paper.health import Health
from harmonrank.paper.losses import rank_auc_loss
from harmonrank.paper.methods.neural import History
from harmonrank.paper.methods.neural_fit import arrays_of, buffered_rows, fingerprint
from harmonrank.paper.objective_config import ObjectiveConfig
from harmonrank.paper.objective_network import HeadSum, ObjectiveNetwork
from harmonrank.paper.objective_scorer import ObjectiveScorer
from harmonrank.paper.training import Arrays, Finished, LossValue, TrainingConfig, health_of, train
from harmonrank.support.events import HealthMeasured

if TYPE_CHECKING:
    from harmonrank.paper.methods.harmonrank_network import HarmonRankNetwork

_HALVINGS = 30


class LearnedWeights(NamedTuple):
    """The arrays of a trained network, what each epoch gave, and whether each path is alive."""

    weights: dict[str, np.ndarray]
    history: History
    health: Health


def learn(
    method: "HarmonRankNetwork",
    fit: Fit,
    size: ObjectiveConfig,
    whole: RowsInBlocks | None = None,
) -> LearnedWeights:
    """Train the heads on top of the closed form; a path that does nothing is a warning.

    Args:
        method: Gives the options.
        fit: Rows, weights, seed.
        size: Of the network.
        whole: All rows, where those of the fit are some of them.
    """
    rows = arrays_of(method, fit.train, fit.device)
    network = ObjectiveNetwork(size, torch.Generator().manual_seed(fit.seed))
    blocks = row_blocks(fit.train, workers=False) if whole is None else whole.train
    _set_prior(network, blocks)
    network.to(fit.device)
    seen = len(rows) if whole is None else whole.rows
    options, counts = method.config, RowCounts.of(blocks)
    batch_rows = options.batch_rows or min(max(seen // 160, 256), 4096)
    buffered = None if whole is None else buffered_rows(whole, batch_rows)

    weights_of_auc = torch.from_numpy(fit.weights).float()
    per_unit = torch.from_numpy(_per_unit(fit.weights, counts.prevalence)).float()

    def misfit(z: Tensor, batch: Arrays) -> Tensor:
        if options.loss == "rank":
            return rank_auc_loss(
                z.sigmoid() @ per_unit.to(z),
                batch.labels,
                objective_weights=weights_of_auc.to(z),
                sample_weight=batch.sample_weight,
            )
        weight = None if batch.sample_weight is None else batch.sample_weight[:, None].to(z)
        # The sum over heads of the mean over rows.
        return binary_cross_entropy_with_logits(z, batch.labels, weight) * z.shape[1]

    def loss(z: Tensor, batch: Arrays) -> LossValue:
        energy = network.energy(options.slope_ridge / options.ridge)
        return LossValue(misfit(z, batch) + options.ridge / (2 * counts.mass) * energy)

    # On the way the weights are noisy, so those of the end are kept.
    config = TrainingConfig(
        learning_rate=options.learning_rate,
        schedule="cosine",
        early_stopping=False,
        batch_rows=batch_rows,
        epochs=options.epochs,
    )
    history: History = ()
    for event in train(
        network,
        buffered or rows,
        loss,
        _Exam(method, fit),
        config,
        seed=fit.seed,
        checkpoint=fit.checkpoint,
        fingerprint=fingerprint(method, fit, buffered) if fit.checkpoint else "",
    ):
        if isinstance(event, Finished):
            history = event.history
        fit.on_event(event)
    weights = {name: value.cpu().numpy() for name, value in network.state_dict().items()}
    if options.loss == "likelihood":
        weights["share"] = _shares(method, fit.valid, ObjectiveScorer(size, weights), weights)
    health = health_of(HeadSum(network), rows, fit.seed)
    if health.dead:
        remedy = "try more `epochs` or a smaller `ridge`"
        logging.getLogger("harmonrank").warning(
            f"The network of `{method.name}` is partly dead: {', '.join(health.dead)}; {remedy}."
        )
    fit.on_event(HealthMeasured(health))
    return LearnedWeights(weights, history, health)


def _set_prior(network: ObjectiveNetwork, rows: Blocks[FitRows]) -> None:
    """Calibrate each score on its own, and measure its scale."""
    prior = network.prior
    centre, spread = logit_scale(rows)
    prior.centre.copy_(torch.from_numpy(centre))
    # A score that never changes says nothing; any scale will do.
    prior.spread.copy_(torch.from_numpy(np.where(spread > 1e-6, spread, 1.0)))
    curves = torch.from_numpy(fit_calibrations(rows))
    prior.slope.copy_(curves[:, 0])
    prior.intercept.copy_(curves[:, 1])


def _per_unit(weights: np.ndarray, prevalence: np.ndarray) -> np.ndarray:
    """Return what a unit of each head's probability counts, w/(π(1−π))."""
    counted: np.ndarray = weights / (prevalence * (1 - prevalence))
    return counted


class _Exam:
    """The validation AUC-sum of a network; without rows a later network is a better one."""

    def __init__(self, method: "HarmonRankNetwork", fit: Fit) -> None:
        self._log, self._weights, self._later = fit.valid, fit.weights, count()
        self._effective = _per_unit(fit.weights, fit.train.prevalence())
        self._codes = fit.valid.codes(method.encoder)

    def __call__(self, network: ObjectiveNetwork) -> float:
        if not self._log.rows:
            return float(next(self._later))
        p = ObjectiveScorer.of(network)(self._log.scores, self._codes)
        labels, weight = outcomes_of(self._log), self._log.sample_weight
        areas = auc(weighted_sum(p, self._effective), labels, sample_weight=weight)
        # An objective that the validation rows do not show cannot vote.
        return float(np.nansum(self._weights * areas))


def _shares(
    method: "HarmonRankNetwork",
    valid: Log,
    scorer: ObjectiveScorer,
    weights: dict[str, np.ndarray],
) -> np.ndarray:
    """Return the share t of each head's residual, in [0, 1], of most likelihood on the valid rows.

    The log loss is convex in t, so its slope tells on which side the best one is. A head whose
    objective lacks a class there keeps all of its residual.
    """
    shares = np.ones(scorer.config.objectives, np.float32)
    if not valid.rows:
        return shares
    slope, intercept = weights["prior.slope"], weights["prior.intercept"]
    before = slope * logit(valid.scores) + intercept
    added = logit(scorer(valid.scores, valid.codes(method.encoder))) - before
    weight = np.ones(valid.rows) if valid.sample_weight is None else valid.sample_weight
    for m, labels in enumerate(valid.known_labels().T):
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
