import numpy as np
import pytest
from scipy.stats import spearmanr

from harmonrank.metrics import spearman
from harmonrank.support import UsageError


def test_equals_scipy_with_ties():
    values = np.random.default_rng(0).integers(0, 5, (200, 4)) * [1, -1, 2, 1]
    values[:, 3] += values[:, 0]
    np.testing.assert_allclose(spearman(values), spearmanr(values).statistic, rtol=1e-12)


def test_monotone_maps_change_nothing():
    values = np.random.default_rng(1).normal(size=(100, 3))
    np.testing.assert_array_equal(spearman(np.exp(values)), spearman(values))
    np.testing.assert_allclose(spearman(values * [1, 1, -1])[2, :2], -spearman(values)[2, :2])


def test_labels_of_bool():
    labels = np.array([[True, False], [False, True], [True, False]])
    np.testing.assert_allclose(spearman(labels), [[1, -1], [-1, 1]])


def test_column_without_spread_is_nan():
    result = spearman([[1, 5, 1], [2, 5, 3], [3, 5, 2]])
    assert np.isnan(result[1]).all()
    assert np.isnan(result[:, 1]).all()
    assert result[0, 2] == pytest.approx(0.5)


def test_no_rows():
    assert np.isnan(spearman(np.empty((0, 2)))).all()


def test_wrong_input_is_named():
    with pytest.raises(
        UsageError, match=r"`values` must have shape \(rows, columns\)\. Got \(3,\)"
    ):
        spearman([1, 2, 3])
    with pytest.raises(UsageError, match=r"`values\[:, 1\]` must be finite\. Got 1 of 2"):
        spearman([[1, 2], [3, np.inf]])


def test_missing_values_leave_out_their_rows_pair_by_pair():
    values = np.random.default_rng(2).normal(size=(60, 3))
    values[:20, 1] = np.nan
    values[40:, 2] = np.nan
    expected = spearman(values[:, [0, 2]][:40])[0, 1]
    assert spearman(values)[0, 2] == pytest.approx(expected)
    assert spearman(values)[1, 2] == pytest.approx(spearman(values[20:40])[1, 2])
    np.testing.assert_array_equal(np.diag(spearman(values)), 1)
