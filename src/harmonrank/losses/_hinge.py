"""The squared hinge over all positive-negative pairs, after one sort."""

__all__ = ["squared_hinge_loss"]

from typing import Any

import numpy as np
import torch
from torch import Tensor

from harmonrank.kernel import kernel
from harmonrank.losses._classes import Classes, class_shares
from harmonrank.losses._gradient import with_gradient
from harmonrank.losses._inputs import check_inputs, check_positive


def squared_hinge_loss(
    scores: Tensor,
    labels: Tensor,
    *,
    margin: float = 1.0,
    objective_weights: Tensor | None = None,
    sample_weight: Tensor | None = None,
) -> Tensor:
    """Σ_m w_m · mean over pairs of max(0, margin − (s_i − s_j))², in O(n log n + n · objectives).

    Unlike the plain square it does not punish a pair for being ordered too well. One sort of the
    scores serves all objectives; two sweeps over it then carry, for each objective, the moments of
    the pairs inside the margin. The arithmetic is float64 on the CPU.

    An objective without a positive or a negative contributes nothing. Sample weights multiply: the
    pair (i, j) weighs v_i v_j.

    >>> scores = torch.tensor([2.0, 0.0, 1.5])
    >>> squared_hinge_loss(scores, torch.tensor([1, 0, 0])).item()  # (0 + (1 − 0.5)²)/2
    0.125
    """
    inputs = check_inputs(scores, labels, objective_weights, sample_weight)
    margin = check_positive("margin", margin)
    classes = class_shares(inputs.labels, inputs.sample_weight)
    loss, gradient = _hinge_sweep(inputs.scores, classes, inputs.objective_weights, margin)
    return with_gradient(inputs.scores, loss, gradient)


def _hinge_sweep(
    scores: Tensor, classes: Classes, objective_weights: Tensor, margin: float
) -> tuple[Tensor, Tensor]:
    s, order = scores.detach().cpu().sort(descending=True)
    loss, sorted_gradient = _hinge_kernel(
        s.numpy(),
        classes.positive.cpu()[order].T.contiguous().numpy(),
        classes.negative.cpu()[order].T.contiguous().numpy(),
        objective_weights.cpu().numpy(),
        margin,
    )
    gradient = torch.empty_like(s)
    gradient[order] = torch.from_numpy(sorted_gradient)
    return scores.new_tensor(loss), gradient.to(scores.device)


@kernel
def _hinge_kernel(s: Any, p: Any, q: Any, w: Any, margin: float) -> Any:
    """Return the loss and the gradient of scores sorted from high to low.

    The sums S_k = Σ q_j (s_j − t)^k over the negatives above a threshold t follow t downwards:
    S_2 += δ(2 S_1 + δ S_0), S_1 += δ S_0 for a step δ ≥ 0. Every term is non-negative, so nothing
    cancels, as Σ q s² − 2 t Σ q s + t² Σ q would for scores far apart.
    """
    loss = 0.0
    gradient = np.zeros(s.size)
    for m in range(w.size):
        # Downwards: a positive at s_i meets the negatives above its threshold s_i − margin.
        j, t, s0, s1, s2 = 0, np.inf, 0.0, 0.0, 0.0
        for i in range(s.size):
            if p[m, i] == 0.0:
                continue
            threshold = s[i] - margin
            while j < s.size and s[j] > threshold:
                if q[m, j] > 0.0:
                    if s0 > 0.0:
                        step = t - s[j]
                        s2 += step * (2.0 * s1 + step * s0)
                        s1 += step * s0
                    s0 += q[m, j]
                    t = s[j]
                j += 1
            if s0 > 0.0:
                step = t - threshold
                s2 += step * (2.0 * s1 + step * s0)
                s1 += step * s0
                t = threshold
                loss += w[m] * p[m, i] * s2
                gradient[i] -= 2.0 * w[m] * p[m, i] * s1
        # Upwards: a negative at s_j meets the positives whose threshold is below it.
        i, t, s0, s1 = s.size - 1, 0.0, 0.0, 0.0
        for j in range(s.size - 1, -1, -1):
            if q[m, j] == 0.0:
                continue
            while i >= 0 and s[i] - margin < s[j]:
                if p[m, i] > 0.0:
                    s1 += (s[i] - margin - t) * s0
                    s0 += p[m, i]
                    t = s[i] - margin
                i -= 1
            if s0 > 0.0:
                s1 += (s[j] - t) * s0
                t = s[j]
                gradient[j] += 2.0 * w[m] * q[m, j] * s1
    return loss, gradient
