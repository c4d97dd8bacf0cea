"""What each objective adds to a fused score: exactly the score."""

from math import fsum

import numpy as np
import polars as pl
import pytest

from check_method import planted, quick
from harmonrank.fusion import METHODS, method_class

WITH = [name for name in METHODS if method_class(name).traits.probabilities]


@pytest.mark.parametrize("name", WITH)
@pytest.mark.parametrize(
    "asked",
    [{}, {"weights": {"buy": 0, "like": 3}}, {"value": {"buy": 100, "like": -0.1}}],
    ids=["as fitted", "weights", "values"],
)
def test_contributions_add_up_to_the_score_to_the_last_bit(name, asked):
    model, table = quick(name), planted(3000, seed=4)
    lost = pl.int_range(pl.len()) % 7 == 0
    table = table.with_columns(p_like=pl.when(~lost).then("p_like"))
    parts, fused = model.contributions(table, **asked), model.score(table, **asked)
    sums = np.array([fsum(row) for row in parts.tolist()])
    if "value" not in asked:
        np.testing.assert_array_equal(sums, fused)
    # What a cost takes away again leaves finer digits than a part has.
    assert (np.abs(sums - fused) <= np.spacing(np.abs(parts).max(axis=1))).all()
    same_sign = (parts >= 0).all(axis=1)
    np.testing.assert_array_equal(sums[same_sign], fused[same_sign])
    merged = model.fuser.weights(**asked).counted / (model.prevalence * (1 - model.prevalence))
    np.testing.assert_allclose(parts, model.probabilities(table) * merged, rtol=1e-9, atol=1e-12)
    assert model.contributions(table[:0], **asked).shape == (0, 2)
