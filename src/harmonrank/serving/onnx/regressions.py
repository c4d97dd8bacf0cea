"""Regressions and calibrations in a graph: logistic, closed form, prevalence weights."""

__all__ = ["closed_form_probabilities", "logistic_probabilities", "score_probabilities"]

import numpy as np

from harmonrank.methods.closed_form import ClosedForm
from harmonrank.methods.logistic import FARTHEST, Logistic
from harmonrank.methods.prevalence_weights import PrevalenceWeights
from harmonrank.metrics import SMALLEST_PROBABILITY
from harmonrank.serving.onnx.graph import Value
from harmonrank.serving.onnx.inputs import Inputs, logits_of
from harmonrank.serving.onnx.lookups import interpolate


def logistic_probabilities(model: Logistic, inputs: Inputs) -> Value:
    """Return σ(θ₀ + Σ_k θ_k x_k + Σ_c θ_{c, value}), (rows, M)."""
    M = len(model.schema.names)
    x = (logits_of(inputs.scores, SMALLEST_PROBABILITY) - model._centre) / model._spread
    intercept, slopes, effects = np.split(model._theta, [1, 1 + M])
    logits = x.clip(-FARTHEST, FARTHEST) @ slopes + intercept
    codes = inputs.codes(model._encoder)
    return (logits + inputs.sum_of(codes, model._encoder, effects)).sigmoid()


def closed_form_probabilities(model: ClosedForm, inputs: Inputs) -> Value:
    """Return each score calibrated on its own, (rows, M)."""
    first, second = zip(*model._curves, strict=True)
    if model.config.calibration == "isotonic":
        return interpolate(inputs.scores, first, second)
    slope, intercept = np.concatenate(first), np.concatenate(second)
    return (logits_of(inputs.scores, SMALLEST_PROBABILITY) * slope + intercept).sigmoid()


def score_probabilities(model: PrevalenceWeights, inputs: Inputs) -> Value:
    """Return the scores as they come, (rows, M)."""
    del model
    return inputs.scores
