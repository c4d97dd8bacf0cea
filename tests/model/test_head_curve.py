import numpy as np
import pytest

from harmonrank.model import HeadColumns
from harmonrank.model.linear import head_curve
from harmonrank.model.linear.head_curve import HeadCurve
from harmonrank.support.newton import Likelihood, Prior


@pytest.mark.parametrize("M", [1, 3])
def test_axes_give_what_inverting_all_columns_does(monkeypatch, M):
    rng = np.random.default_rng(0)
    K = HeadColumns(M).width
    D = K + 150
    # Fewer rows than columns: some directions have no curvature.
    rows = rng.normal(size=(M, 120, D))
    curvature = np.einsum("mri,mrj->mij", rows, rows)
    there = Likelihood(np.zeros(M), rng.normal(size=(M, D)), curvature)
    curve = HeadCurve(rng.normal(size=(M, D)), there)
    group = np.tile(np.minimum(np.arange(D), K), (M, 1))
    prior = Prior(rng.normal(size=D), np.append(rng.uniform(1, 9, K), 2.5), group)
    theta, spread = curve.top(prior)
    monkeypatch.setattr(head_curve, "_MANY_VALUES", 10_000)
    expected = curve.top(prior)
    np.testing.assert_allclose(theta, expected[0], rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(spread, expected[1], rtol=1e-8)
