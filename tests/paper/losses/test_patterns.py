"""Patterns: labels as one small number per row."""

import pytest
import torch

from harmonrank.paper.losses import Patterns, rank_auc_loss
from harmonrank.support import UsageError


def test_patterns_are_the_labels():
    labels = torch.randint(2, (50, 7))
    patterns = Patterns.of(labels)
    assert torch.equal(patterns.labels, labels.float())
    index = torch.tensor([3, 3, 0])
    assert torch.equal(patterns.take(index).labels, labels[index].float())
    assert patterns.shape == (50, 7)


def test_patterns_refuse_more_objectives_than_they_have_bits_for():
    with pytest.raises(UsageError, match="pass the labels themselves"):
        Patterns(torch.zeros(3), objectives=13)


def test_patterns_of_another_length_are_refused():
    with pytest.raises(UsageError, match=r"one row per score row, \(3, 2\)\. Got \(2, 2\)"):
        rank_auc_loss(torch.zeros(3), Patterns.of(torch.eye(2).int()))
