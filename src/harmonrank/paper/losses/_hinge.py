"""The squared hinge over all positive-negative pairs, after one sort."""

__all__ = ["squared_hinge_loss"]

from typing import Any

import numpy as np
from torch import Tensor

from harmonrank.metrics import argsort
from harmonrank.paper.losses._classes import host_arrays
from harmonrank.paper.losses._gradient import with_gradient
from harmonrank.paper.losses._inputs import check_inputs, check_positive
from harmonrank.support.kernel import kernel


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

    >>> import torch
    >>> scores = torch.tensor([2.0, 0.0, 1.5])
    >>> squared_hinge_loss(scores, torch.tensor([1, 0, 0])).item()  # (0 + (1 − 0.5)²)/2
    0.125
    """
    inputs = check_inputs(scores, labels, objective_weights, sample_weight)
    margin = check_positive("margin", margin)
    s, y, v, scale = host_arrays(inputs)
    loss, gradient = _hinge_kernel(s, argsort(s), y, v, scale, margin)
    return with_gradient(inputs.scores, loss, gradient)


@kernel
def _hinge_kernel(s: Any, order: Any, y: Any, v: Any, scale: Any, margin: float) -> Any:
    """Return the loss and the gradient; `order` sorts the scores from low to high.

    The sums S_k = Σ q_j (s_j − t)^k over the negatives above a threshold t follow t downwards:
    S_2 += δ(2 S_1 + δ S_0), S_1 += δ S_0 for a step δ ≥ 0. Every term is non-negative, so nothing
    cancels, as Σ q s² − 2 t Σ q s + t² Σ q would for scores far apart.
    """
    loss, n = 0.0, s.size
    gradient = np.zeros(n)
    for m in range(scale.size):
        if scale[m] == 0.0:
            continue
        # Downwards: a positive at s_i meets the negatives above its threshold s_i − margin.
        below, t, s0, s1, s2 = n - 1, 0.0, 0.0, 0.0, 0.0
        for i in order[::-1]:
            p = v[i] * y[i, m]
            if p == 0.0:
                continue
            threshold = s[i] - margin
            while below >= 0 and s[order[below]] > threshold:
                j = order[below]
                step = t - s[j]
                s2 += step * (2.0 * s1 + step * s0)
                s1 += step * s0
                s0 += v[j] * (1.0 - y[j, m])
                t = s[j]
                below -= 1
            step = t - threshold
            s2 += step * (2.0 * s1 + step * s0)
            s1 += step * s0
            t = threshold
            loss += scale[m] * p * s2
            gradient[i] -= 2.0 * scale[m] * p * s1
        # Upwards: a negative at s_j meets the positives whose threshold is below it.
        above, t, s0, s1 = 0, 0.0, 0.0, 0.0
        for j in order:
            q = v[j] * (1.0 - y[j, m])
            if q == 0.0:
                continue
            while above < n and s[order[above]] - margin < s[j]:
                i = order[above]
                s1 += (s[i] - margin - t) * s0
                s0 += v[i] * y[i, m]
                t = s[i] - margin
                above += 1
            s1 += (s[j] - t) * s0
            t = s[j]
            gradient[j] += 2.0 * scale[m] * q * s1
    return loss, gradient
