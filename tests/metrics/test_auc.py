import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from harmonrank.metrics import auc
from harmonrank.support import UsageError
from reference import auc_by_pairs


def _log(seed, n=60, objectives=3, ties=True):
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 12, n) / 4 if ties else rng.normal(size=n)
    return scores, rng.random((n, objectives)) < [0.2, 0.5, 0.9][:objectives], rng


def _by_pairs(scores, labels, weights=None):
    return [auc_by_pairs(scores, column, weights) for column in np.asarray(labels, float).T]


@pytest.mark.parametrize("ties", [True, False])
def test_equals_counting_pairs(ties):
    scores, labels, _ = _log(0, ties=ties)
    np.testing.assert_allclose(auc(scores, labels), _by_pairs(scores, labels), rtol=1e-14)


def test_equals_counting_pairs_under_weights_and_fractions():
    scores, _, rng = _log(1)
    labels, weights = rng.random((60, 3)), rng.exponential(size=60)
    expected = _by_pairs(scores, labels, weights)
    np.testing.assert_allclose(auc(scores, labels, sample_weight=weights), expected, rtol=1e-12)


def test_equals_sklearn_on_many_rows():
    scores, labels, rng = _log(2, n=20_000, ties=False)
    weights = rng.exponential(size=20_000)
    for w in (None, weights):
        expected = [roc_auc_score(y, scores, sample_weight=w) for y in labels.T]
        np.testing.assert_allclose(auc(scores, labels, sample_weight=w), expected, rtol=1e-12)


def test_fraction_equals_one_row_split_in_two():
    scores, _, rng = _log(3)
    p = rng.random(60)
    split = auc(
        np.r_[scores, scores], np.r_[np.ones(60), np.zeros(60)], sample_weight=np.r_[p, 1 - p]
    )
    assert auc(scores, p) == pytest.approx(split, rel=1e-12)


def test_whole_weights_equal_repeated_rows():
    scores, labels, rng = _log(4)
    times = rng.integers(0, 4, 60)
    repeated = auc(np.repeat(scores, times), np.repeat(labels, times, axis=0))
    np.testing.assert_array_equal(auc(scores, labels, sample_weight=times), repeated)


SCORES = st.lists(st.integers(-50, 50), min_size=2, max_size=40)


@settings(max_examples=60, deadline=None)
@given(SCORES, st.randoms(use_true_random=False))
def test_symmetries(values, random):
    scores = np.array(values, float)
    labels = np.array([[random.random() < 0.5, random.randint(0, 8) / 8] for _ in values], float)
    area = auc(scores, labels)
    shuffled = np.array(random.sample(range(len(values)), len(values)))
    np.testing.assert_array_equal(auc(3 * scores + 7, labels), area)
    np.testing.assert_array_equal(auc(scores**3, labels), area)
    np.testing.assert_allclose(auc(scores[shuffled], labels[shuffled]), area, rtol=1e-13)
    np.testing.assert_allclose(auc(-scores, labels), 1 - area, atol=1e-13)
    np.testing.assert_allclose(auc(scores, 1 - labels), 1 - area, atol=1e-13)


@pytest.mark.parametrize("dtype", [bool, "u1", "i1", "i4", "i8", "f2", "f4", "f8"])
@pytest.mark.parametrize("layout", ["C", "F", "strided"])
def test_any_label_type_and_layout_gives_the_same(dtype, layout):
    scores, labels, _ = _log(5)
    typed = np.array(labels, dtype=dtype, order="F" if layout == "F" else "C")
    if layout == "strided":
        typed = np.repeat(np.repeat(typed, 2, axis=0), 2, axis=1)[::2, ::2]
    typed.flags.writeable = False
    np.testing.assert_array_equal(auc(scores, typed), auc(scores, labels))


def test_scores_of_any_type_and_stride():
    scores, labels, _ = _log(6)
    expected = auc(scores, labels)
    for other in (np.repeat(scores, 2)[::2], scores.astype("f4"), scores.astype("f2"), scores * 4):
        np.testing.assert_array_equal(auc(other, labels), expected)
    np.testing.assert_array_equal(auc((scores * 4).astype(np.int64), labels), expected)
    np.testing.assert_array_equal(auc(torch.tensor(scores), torch.tensor(labels)), expected)


def test_input_is_untouched():
    scores, labels, _ = _log(7)
    before = scores.copy(), labels.copy()
    auc(scores, labels)
    np.testing.assert_array_equal(scores, before[0])
    np.testing.assert_array_equal(labels, before[1])


def test_one_class_has_no_auc():
    result = auc([1.0, 2.0, 3.0], [[0, 1, 0], [0, 1, 1], [0, 1, 0]])
    np.testing.assert_array_equal(result, [np.nan, np.nan, 0.5])


def test_one_class_is_seen_under_odd_weights():
    assert np.isnan(auc([1.0, 2.0, 3.0], [1, 1, 1], sample_weight=[0.1, 0.2, 0.3]))
    assert np.isnan(auc([1.0, 2.0], [1, 0], sample_weight=[0.1, 0]))


def test_few_rows():
    np.testing.assert_array_equal(auc(np.empty(0), np.empty((0, 2))), [np.nan, np.nan])
    np.testing.assert_array_equal(auc([1.0], [[1, 0]]), [np.nan, np.nan])
    assert auc([1.0, 2.0], [0, 1]) == 1.0
    assert auc([1.0, 2.0], np.empty((2, 0))).shape == (0,)


def test_one_column_gives_a_float():
    assert isinstance(auc([1.0, 2.0], [0, 1]), float)


def test_all_tied_is_one_half():
    assert auc(np.zeros(5), [1, 0, 0, 1, 0]) == 0.5
    assert auc([0.0, -0.0], [1, 0]) == 0.5


def test_extreme_scores_only_count_by_order():
    scores = np.array([-1.7e308, -1e300, -5e-324, 0.0, 5e-324, 1e300, 1.7e308])
    assert auc(scores, [0, 0, 0, 0, 1, 1, 1]) == 1.0


def test_rare_objective_keeps_its_digits():
    n = 200_000
    labels = np.zeros(n)
    labels[[10, n - 1]] = 1
    expected = (10 + n - 2) / (2 * (n - 2))
    assert auc(np.arange(n), labels) == pytest.approx(expected, rel=1e-15)
    assert auc(np.arange(n), 1 - labels) == pytest.approx(1 - expected, rel=1e-12)


@pytest.mark.parametrize(
    ("scores", "labels", "weights", "message"),
    [
        ([1.0, np.nan, np.inf], [0, 1, 0], None, r"Got 2 of 3 .* first at row 1"),
        ([[1.0, 2.0]], [0, 1], None, r"`scores` must have shape \(rows,\).*\(1, 2\)"),
        (["a", "b"], [0, 1], None, r"`scores` must be numbers"),
        ([1.0, 2.0], [[0, 1]], None, r"\(2, objectives\)\. Got \(1, 2\)"),
        ([1.0, 2.0], [0, 2], None, r"\[0, 1\]\. Got 1 outside, the first at \(1,\): 2"),
        ([1.0, 2.0], [[0, 1], [-1, 1]], None, r"first at \(1, 0\): -1"),
        ([1.0, 2.0], [0, np.nan], None, r"Got 1 outside, the first at \(1,\): nan"),
        ([1.0, 2.0], ["a", "b"], None, r"`labels` must be numbers"),
        ([1.0, 2.0], [0, 1], [1.0], r"`sample_weight` must have shape \(2,\)\. Got \(1,\)"),
        ([1.0, 2.0], [0, 1], [1.0, -1.0], r"not negative\. Got 1 others, the first at 1: -1"),
    ],
)
def test_wrong_input_is_named(scores, labels, weights, message):
    with pytest.raises(UsageError, match=message):
        auc(scores, labels, sample_weight=weights)
