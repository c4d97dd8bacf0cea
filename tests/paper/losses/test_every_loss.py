"""Claims that hold for every loss of one score and many objectives."""

import math
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from harmonrank.paper.losses import (
    Patterns,
    aucm_loss,
    bce_loss,
    label_aggregation_loss,
    pairwise_logistic_loss,
    pairwise_square_loss,
    rank_auc_loss,
)
from reference import mean_over_pairs, mean_over_rows


def softplus(x):
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


def square_by_pairs(s, y, v):
    return mean_over_pairs(s, y, v, lambda gap: (1 - gap) ** 2)


def logistic_by_pairs(s, y, v):
    return mean_over_pairs(s, y, v, lambda gap: softplus(-gap))


def one_minus_auc(s, y, v):
    return mean_over_pairs(s, y, v, lambda gap: 0.0 if gap > 0 else 0.5 if gap == 0 else 1.0)


def bce_by_rows(s, y, v):
    return mean_over_rows(s, y, v, lambda s, y: y * softplus(-s) + (1 - y) * softplus(s))


EXACT = partial(rank_auc_loss, strength=1e-7)
PAIR_LOSSES = {
    "square": (pairwise_square_loss, square_by_pairs),
    "logistic": (pairwise_logistic_loss, logistic_by_pairs),
    "rank, nearly exact": (EXACT, one_minus_auc),
}
REFERENCED = {**PAIR_LOSSES, "bce": (bce_loss, bce_by_rows)}


def aucm_at_ones(scores, labels, **options):
    ones = torch.ones(labels.shape[1], dtype=torch.float64)
    return aucm_loss(scores, labels, 0.5 * ones, -0.2 * ones, 0.7 * ones, **options)


SMOOTH = {
    "rank l2": rank_auc_loss,
    "rank kl": partial(rank_auc_loss, regularization="kl"),
    "square": pairwise_square_loss,
    "logistic": pairwise_logistic_loss,
    "aucm": aucm_at_ones,
    "bce": bce_loss,
}
PAIRWISE = {name: loss for name, loss in SMOOTH.items() if name != "bce"}


def by_name(losses):
    return pytest.mark.parametrize("loss", losses.values(), ids=losses.keys())


def batch(seed=0, rows=14, objectives=3, dtype=torch.float64):
    """Scores with ties and labels with both classes in every objective."""
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(rows, generator=generator, dtype=torch.float64)
    scores[5], scores[6] = scores[1], scores[2]
    labels = (torch.rand(rows, objectives, generator=generator) < 0.4).double()
    labels[0], labels[1] = 1.0, 0.0
    return scores.to(dtype), labels


def gradient_of(loss, scores, *args, **options):
    leaf = scores.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(loss(leaf, *args, **options), leaf)
    return gradient


@pytest.mark.parametrize("name", REFERENCED)
@pytest.mark.parametrize("fractional", [False, True])
def test_equals_the_double_loop(name, fractional):
    loss, reference = REFERENCED[name]
    scores, labels = batch()
    if fractional:
        labels = torch.rand(labels.shape, generator=torch.Generator().manual_seed(3))
        labels = labels.double()
    weight = torch.rand(14, generator=torch.Generator().manual_seed(4)).double() + 0.1
    objective_weights = torch.tensor([1.0, 0.3, 2.0])
    expected = sum(
        w * reference(scores.tolist(), labels[:, m].tolist(), weight.tolist())
        for m, w in enumerate(objective_weights.double().tolist())
    )
    got = loss(scores, labels, objective_weights=objective_weights, sample_weight=weight)
    assert got.item() == pytest.approx(expected, rel=1e-9)


@by_name(SMOOTH)
def test_gradient_is_the_derivative(loss):
    scores, labels = batch(seed=1)
    # Ties are a kink of the sorted order; a small jitter keeps finite differences on one side.
    scores = scores + torch.linspace(0, 0.01, len(scores), dtype=torch.float64)
    weight = torch.rand(14, generator=torch.Generator().manual_seed(4)).double() + 0.5
    options = {"objective_weights": torch.tensor([1.0, 0.5, 2.0]), "sample_weight": weight}
    for chosen in ({}, options):
        call = partial(loss, labels=labels, **chosen)
        assert torch.autograd.gradcheck(lambda s, call=call: call(s), scores.requires_grad_())


@by_name(SMOOTH)
def test_a_row_of_weight_k_equals_k_rows(loss):
    scores, labels = batch(seed=2)
    copies = torch.tensor([1, 3, 2, 0, 1, 1, 2, 5, 1, 1, 0, 2, 1, 4])
    repeated = loss(scores.repeat_interleave(copies), labels.repeat_interleave(copies, 0))
    weighted = loss(scores, labels, sample_weight=copies)
    assert weighted.item() == pytest.approx(repeated.item(), rel=1e-10)
    gradient = gradient_of(loss, scores, labels, sample_weight=copies)
    row = torch.arange(14).repeat_interleave(copies)
    of_copies = gradient_of(loss, scores[row], labels[row])
    summed = torch.zeros_like(scores).index_add_(0, row, of_copies)
    torch.testing.assert_close(gradient, summed, rtol=1e-8, atol=1e-10)


@by_name(SMOOTH)
def test_a_fractional_label_equals_a_tied_positive_and_negative(loss):
    scores, labels = batch(seed=3)
    fractions = 0.25 + 0.5 * labels[:, :1]
    split = torch.cat([torch.ones_like(fractions), torch.zeros_like(fractions)])
    weight = torch.cat([fractions[:, 0], 1 - fractions[:, 0]])
    whole = loss(scores, fractions)
    assert whole.item() == pytest.approx(
        loss(torch.cat([scores, scores]), split, sample_weight=weight).item(), rel=1e-10
    )


@by_name({name: loss for name, loss in SMOOTH.items() if name != "rank kl"})
def test_scaling_all_sample_weights_changes_nothing(loss):
    scores, labels = batch(seed=4)
    weight = torch.rand(14, generator=torch.Generator().manual_seed(4)).double() + 0.1
    once = loss(scores, labels, sample_weight=weight)
    assert loss(scores, labels, sample_weight=8 * weight).item() == pytest.approx(
        once.item(), rel=1e-9
    )


@by_name(PAIRWISE)
@pytest.mark.parametrize("label", [0.0, 1.0])
def test_an_objective_with_one_class_contributes_nothing(loss, label):
    scores, labels = batch(seed=5)
    with_absent = torch.cat([labels, torch.full((14, 1), label)], dim=1)
    assert loss(scores, with_absent).item() == pytest.approx(loss(scores, labels).item(), rel=1e-12)
    alone = with_absent[:, 3:]
    assert loss(scores, alone).item() == 0
    assert not gradient_of(loss, scores, alone).any()


@by_name(PAIRWISE)
def test_weights_can_make_an_objective_absent(loss):
    scores, labels = batch(seed=5)
    assert loss(scores, labels[:, :1], sample_weight=labels[:, 0]).item() == 0


@by_name(SMOOTH)
@pytest.mark.parametrize("rows", [0, 1])
def test_tiny_batches_are_finite(loss, rows):
    scores, labels = torch.zeros(rows), torch.ones(rows, 2)
    assert torch.isfinite(loss(scores, labels))
    assert torch.isfinite(gradient_of(loss, scores, labels)).all()
    assert rows or loss(scores, labels).item() == 0


@by_name(SMOOTH)
def test_weights_of_zero_leave_an_empty_batch(loss):
    scores, labels = batch()
    assert loss(scores, labels, sample_weight=torch.zeros(14)).item() == 0
    assert not gradient_of(loss, scores, labels, sample_weight=torch.zeros(14)).any()


@by_name(SMOOTH)
@pytest.mark.parametrize("size", [1e-30, 1e4, 1e30])
def test_extreme_scores_have_finite_gradients(loss, size):
    scores, labels = batch(dtype=torch.float32)
    outliers = scores.clone()
    outliers[3], outliers[4] = size, -size
    for chosen in (outliers, scores * size):
        assert torch.isfinite(loss(chosen, labels))
        assert torch.isfinite(gradient_of(loss, chosen, labels)).all()


@by_name(SMOOTH)
def test_scores_that_are_all_equal_have_finite_gradients(loss):
    _, labels = batch()
    scores = torch.full((14,), 3.0)
    assert torch.isfinite(loss(scores, labels))
    assert torch.isfinite(gradient_of(loss, scores, labels)).all()


@by_name(SMOOTH)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_low_precision_scores_lose_nothing_but_their_own_digits(loss, dtype):
    scores, labels = batch(dtype=dtype)
    got = loss(scores, labels)
    assert got.dtype == torch.float64
    assert got.item() == pytest.approx(loss(scores.double(), labels).item(), rel=1e-6)
    gradient = gradient_of(loss, scores, labels)
    assert gradient.dtype == dtype
    expected = gradient_of(loss, scores.double(), labels)
    torch.testing.assert_close(gradient, expected.to(dtype), rtol=0.01, atol=1e-6)


@by_name(SMOOTH)
@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000), order=st.permutations(range(14)))
def test_row_order_does_not_matter(loss, seed, order):
    scores, labels = batch(seed)
    assert loss(scores[order], labels[order]).item() == pytest.approx(
        loss(scores, labels).item(), rel=1e-10, abs=1e-12
    )
    torch.testing.assert_close(
        gradient_of(loss, scores[order], labels[order]), gradient_of(loss, scores, labels)[order]
    )


@by_name({name: loss for name, loss in PAIRWISE.items() if name != "aucm"})
@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000), shift=st.floats(-100, 100))
def test_only_score_differences_matter(loss, seed, shift):
    scores, labels = batch(seed)
    # A shift that rounds can split a tie or join a gap, so it is rounded away beforehand.
    scores, shift = (scores * 2**20).round() / 2**20, round(shift)
    assert loss(scores + shift, labels).item() == pytest.approx(
        loss(scores, labels).item(), rel=1e-8
    )


@by_name(SMOOTH)
def test_linear_in_the_objective_weights(loss):
    scores, labels = batch()
    alone = [loss(scores, labels[:, m]) if loss is not aucm_at_ones else None for m in range(3)]
    if loss is aucm_at_ones:
        alone = [loss(scores, labels[:, [m]]) for m in range(3)]
    weights = torch.tensor([0.5, 0.0, 3.0])
    expected = sum(w * part.item() for w, part in zip(weights.tolist(), alone, strict=True))
    assert loss(scores, labels, objective_weights=weights).item() == pytest.approx(expected)


@by_name(SMOOTH)
def test_inputs_are_left_untouched(loss):
    scores, labels = batch()
    weight = torch.arange(14.0)
    kept = scores.clone(), labels.clone(), weight.clone()
    gradient_of(loss, scores, labels, sample_weight=weight)
    assert torch.equal(scores, kept[0])
    assert torch.equal(labels, kept[1])
    assert torch.equal(weight, kept[2])


@by_name(SMOOTH)
def test_labels_of_any_kind_mean_the_same(loss):
    scores, labels = batch()
    expected = loss(scores, labels).item()
    for dtype in (torch.bool, torch.uint8, torch.int64, torch.float32):
        assert loss(scores, labels.to(dtype)).item() == expected


@by_name(SMOOTH)
@pytest.mark.parametrize("weighted", [False, True])
def test_patterns_and_labels_mean_the_same(loss, weighted):
    scores, labels = batch(rows=200)
    v = {"sample_weight": torch.rand(200).double()} if weighted else {}
    patterns = Patterns.of(labels.byte())
    torch.testing.assert_close(loss(scores, patterns, **v), loss(scores, labels, **v))
    gradients = [gradient_of(loss, scores, y, **v) for y in (patterns, labels)]
    torch.testing.assert_close(*gradients, rtol=1e-8, atol=1e-12)


def test_label_aggregation_equals_the_row_loop():
    scores, labels = batch()
    weight = torch.rand(14, generator=torch.Generator().manual_seed(4)).double()
    values = [3.0, 0.5, -1.0]
    expected = mean_over_rows(
        scores.tolist(),
        labels.tolist(),
        weight.tolist(),
        lambda s, y: (s - sum(v * y_m for v, y_m in zip(values, y, strict=True))) ** 2,
    )
    got = label_aggregation_loss(scores, labels, torch.tensor(values), sample_weight=weight)
    assert got.item() == pytest.approx(expected, rel=1e-12)
