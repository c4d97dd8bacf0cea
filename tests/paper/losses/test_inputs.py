"""Every wrong argument is refused by a sentence that names it and the remedy."""

import pytest
import torch

from harmonrank.paper.losses import (
    aucm_loss,
    pairwise_square_loss,
)
from harmonrank.support import UsageError

SCORES = torch.zeros(4)
LABELS = torch.zeros(4, 2)


@pytest.mark.parametrize(
    ("scores", "labels", "message"),
    [
        (SCORES, LABELS[:3], r"`labels` must have one row per score row, \(4, 2\)\. Got \(3, 2\)"),
        (SCORES, LABELS[:3, 0], r"one row per score row, \(4,\)\. Got \(3,\)"),
        (SCORES, LABELS[None], r"`labels` must be \(rows, objectives\)\. Got \(1, 4, 2\)"),
        (SCORES, LABELS + 2, r"`labels` must lie in \[0, 1\]\. Got values from 2 to 2"),
        (SCORES, LABELS - 1, r"`labels` must lie in \[0, 1\]\. Got values from -1 to -1"),
        (SCORES, LABELS + torch.nan, r"`labels` must lie in \[0, 1\]"),
        (SCORES[:, None], LABELS, r"`scores` must be \(rows,\)\. Got \(4, 1\)"),
        (SCORES.long(), LABELS, r"`scores` must be floating point\. Got torch.int64"),
        (SCORES + torch.inf, LABELS, r"`scores` must be finite"),
        (SCORES * torch.nan, LABELS, r"`scores` must be finite"),
        ([0.0] * 4, LABELS, r"`scores` must be a torch tensor\. Got list"),
        (SCORES, LABELS.numpy(), r"`labels` must be a torch tensor\. Got ndarray"),
        (SCORES, LABELS.to(torch.complex64), r"`labels` must be real"),
    ],
)
def test_wrong_scores_or_labels_are_named(scores, labels, message):
    with pytest.raises(UsageError, match=message):
        pairwise_square_loss(scores, labels)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"objective_weights": torch.ones(3)}, r"`objective_weights` must have one .* \(2,\)"),
        ({"objective_weights": torch.tensor([1.0, -1])}, r"must not be negative\. Got -1; .*1 - y"),
        ({"sample_weight": torch.ones(3)}, r"`sample_weight` must have one value per row, \(4,\)"),
        ({"sample_weight": torch.full((4,), torch.nan)}, r"`sample_weight` must be finite"),
        ({"margin": 0.0}, r"`margin` must be a finite number above 0\. Got 0"),
        ({"margin": float("nan")}, r"`margin` must be a finite number above 0\. Got nan"),
    ],
)
def test_wrong_options_are_named(options, message):
    with pytest.raises(UsageError, match=message):
        pairwise_square_loss(SCORES, LABELS, **options)


def test_the_dual_variable_must_not_be_negative():
    zero = torch.zeros(2)
    with pytest.raises(UsageError, match=r"`alpha` must not be negative\. Got -1; clamp it"):
        aucm_loss(SCORES, LABELS, zero, zero, zero - 1)
    with pytest.raises(UsageError, match=r"`a` must have one value per objective, \(2,\)"):
        aucm_loss(SCORES, LABELS, zero[:1], zero, zero)
