import numpy as np
import pytest
import torch
from scipy.optimize import isotonic_regression

from harmonrank.paper.soft_rank import soft_rank

ROWS = 1_024_000


def exact_soft_rank(scores, strength):
    """Solve in extended precision, with the blocks that scipy finds."""
    s = np.sort(scores).astype(np.longdouble)
    z = (s - s.mean()) / s.std() * (ROWS / np.longdouble(strength))
    y = z - np.arange(1, ROWS + 1)
    starts = isotonic_regression(y.astype(float)).blocks
    mean = np.add.reduceat(y, starts[:-1]) / np.diff(starts)
    ranks = np.empty(ROWS, np.longdouble)
    ranks[np.argsort(scores, kind="stable")] = z - np.repeat(mean, np.diff(starts))
    return ranks


@pytest.mark.parametrize("strength", [0.1, 1.0, 3.0, 30.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_million_ranks_lose_nothing_but_the_rounding_of_the_result(dtype, strength):
    scores = np.random.default_rng(0).normal(size=ROWS).astype(dtype)
    soft = soft_rank(torch.from_numpy(scores), strength=strength).numpy()
    exact = exact_soft_rank(scores, strength)
    half_ulp = np.spacing(np.abs(exact).astype(dtype)) / 2
    assert float((np.abs(soft - exact) - half_ulp).max()) < 1e-6
