import numpy as np
import pytest

from harmonrank.metrics import (
    auc,
    auc_intervals,
    auc_sum_interval,
)
from harmonrank.support import UsageError
from reference import delong_variance
from resampled import bootstrap_auc_sum


def _log(rng, n=400):
    """Two objectives that share a cause, and two scores of different worth."""
    cause = rng.normal(size=n)
    labels = cause[:, None] + rng.normal(size=(n, 2)) > [0.5, 1.0]
    return cause + rng.normal(size=n), cause + 2 * rng.normal(size=n), labels


def _width(interval):
    return interval.high - interval.low


def _covers(interval, truth):
    return interval.low <= truth <= interval.high


# The expectation of any log's AUC is its value on very many rows.
@pytest.fixture(scope="module")
def truth():
    a, b, labels = _log(np.random.default_rng(99), n=1_000_000)
    return auc(a, labels), auc(b, labels)


def test_ninety_five_percent_cover(truth):
    rng = np.random.default_rng(1)
    hits = {"one": 0, "sum": 0, "difference": 0}
    for _ in range(600):
        a, b, labels = _log(rng)
        hits["one"] += _covers(auc_intervals(a, labels)[0][1], truth[0][1])
        hits["sum"] += _covers(auc_sum_interval(a, labels), truth[0].sum())
        hits["difference"] += _covers(
            auc_sum_interval(a, labels, minus=b), (truth[0] - truth[1]).sum()
        )
    # Four standard errors of a share of 600, and a little for the finite log.
    for name, count in hits.items():
        assert 0.91 <= count / 600 <= 0.985, name


def test_bootstrap_covers(truth):
    rng = np.random.default_rng(2)
    hits = 0
    for seed in range(200):
        a, _, labels = _log(rng)
        hits += _covers(bootstrap_auc_sum(a, labels, seed=seed), truth[0].sum())
    assert 0.88 <= hits / 200 <= 0.995


def test_bootstrap_and_influence_agree_on_width():
    a, b, labels = _log(np.random.default_rng(3), n=3000)
    plain = {"replicates": 2000, "seed": 4}
    sums = bootstrap_auc_sum(a, labels, **plain)
    difference = bootstrap_auc_sum(a, labels, minus=b, **plain)
    assert _width(sums) == pytest.approx(_width(auc_sum_interval(a, labels)), rel=0.08)
    assert _width(difference) == pytest.approx(
        _width(auc_sum_interval(a, labels, minus=b)), rel=0.08
    )
    assert difference.estimate == pytest.approx(
        auc_sum_interval(a, labels, minus=b).estimate, abs=1e-12
    )


def test_requests_count_as_one_unit():
    rng = np.random.default_rng(5)
    a, b, labels = _log(rng, n=500)
    # Copies of the same row in one request add no information.
    requests = np.tile([f"r{i}" for i in range(500)], 4)
    a4, b4, labels4 = np.tile(a, 4), np.tile(b, 4), np.tile(labels, (4, 1))
    single, copied = auc_sum_interval(a, labels), auc_sum_interval(a4, labels4, groups=requests)
    assert _width(copied) == pytest.approx(_width(single), rel=1e-9)
    assert _width(auc_sum_interval(a4, labels4)) == pytest.approx(_width(single) / 2, rel=0.01)
    paired = auc_sum_interval(a4, labels4, minus=b4, groups=requests)
    assert _width(paired) == pytest.approx(_width(auc_sum_interval(a, labels, minus=b)), rel=1e-9)
    resampled = bootstrap_auc_sum(a4, labels4, groups=requests, replicates=1000)
    assert _width(resampled) == pytest.approx(_width(single), rel=0.1)
    (one,) = auc_intervals(a4, labels4[:, 0], groups=requests)[0]
    assert _width(one) == pytest.approx(_width(auc_intervals(a, labels[:, 0])[0][0]), rel=1e-9)


def test_single_objective_is_delongs_interval():
    a, _, labels = _log(np.random.default_rng(6), n=2000)
    (interval,) = auc_intervals(a, labels[:, 0])[0]
    expected = 2 * 1.959964 * np.sqrt(delong_variance(a, labels[:, 0]))
    assert _width(interval) == pytest.approx(expected, rel=0.005)


def test_correlated_objectives_widen_the_sum():
    a, _, labels = _log(np.random.default_rng(7))
    twice = auc_sum_interval(a, labels[:, [0, 0]])
    (once,) = auc_intervals(a, labels[:, 0])[0]
    assert _width(twice) == pytest.approx(2 * _width(once), rel=1e-9)


def test_objective_weights_enter_linearly():
    a, b, labels = _log(np.random.default_rng(8))
    (first, second) = auc(a, labels)
    weighted = auc_sum_interval(a, labels, objective_weights=[2, 0.5])
    assert weighted.estimate == pytest.approx(2 * first + 0.5 * second)
    assert bootstrap_auc_sum(a, labels, objective_weights=[2, 0.5]).estimate == pytest.approx(
        weighted.estimate
    )
    swapped = auc_sum_interval(b, labels, minus=a, objective_weights=[2, 0.5])
    direct = auc_sum_interval(a, labels, minus=b, objective_weights=[2, 0.5])
    assert (swapped.low, swapped.high) == pytest.approx((-direct.high, -direct.low))


def test_sample_weights_equal_repeated_rows_in_one_request():
    rng = np.random.default_rng(9)
    a, _, labels = _log(rng)
    times = rng.integers(1, 4, 400)
    repeated = auc_sum_interval(
        np.repeat(a, times),
        np.repeat(labels, times, axis=0),
        groups=np.repeat(np.arange(400), times),
    )
    weighted = auc_sum_interval(a, labels, sample_weight=times)
    assert (weighted.low, weighted.high) == pytest.approx((repeated.low, repeated.high), rel=1e-9)
    seeded = {"seed": 3, "replicates": 50}
    resampled = bootstrap_auc_sum(a, labels, sample_weight=times, **seeded)
    again = bootstrap_auc_sum(
        np.repeat(a, times),
        np.repeat(labels, times, axis=0),
        groups=np.repeat(np.arange(400), times),
        **seeded,
    )
    assert (resampled.low, resampled.high) == pytest.approx((again.low, again.high), rel=1e-12)


def test_bootstrap_replicates_are_the_weighted_auc():
    # Of two replicates the 0 % and 100 % quantiles are the replicates themselves.
    a, _, labels = _log(np.random.default_rng(10))
    a = np.round(a, 1)
    interval = bootstrap_auc_sum(a, labels, replicates=2, seed=11, level=1 - 1e-12)
    rng = np.random.default_rng(11)
    steps = np.cumsum(np.exp(-1) / np.cumprod(np.r_[1.0, np.arange(1, 12)]))
    sums = []
    for _ in range(2):
        uniform = rng.integers(2**32, size=400, dtype=np.uint32) / 2**32
        weights = np.searchsorted(steps, uniform, side="right")
        sums.append(auc(a, labels, sample_weight=weights).sum())
    assert (interval.low, interval.high) == pytest.approx((min(sums), max(sums)), rel=1e-10)


def test_seed_decides_the_bootstrap():
    a, b, labels = _log(np.random.default_rng(12))
    first = bootstrap_auc_sum(a, labels, minus=b, seed=1)
    assert first == bootstrap_auc_sum(a, labels, minus=b, seed=1)
    assert first != bootstrap_auc_sum(a, labels, minus=b, seed=2)


def test_single_auc_stays_in_the_unit_interval():
    (interval,) = auc_intervals([1, 2, 3, 4, 5, 3.5], [0, 0, 1, 1, 1, 0])[0]
    assert interval.high == 1.0


def test_higher_level_is_wider():
    a, _, labels = _log(np.random.default_rng(13))
    widths = [_width(auc_sum_interval(a, labels, level=level)) for level in (0.5, 0.9, 0.99)]
    assert widths == sorted(widths)


@pytest.mark.parametrize("interval", [auc_sum_interval, bootstrap_auc_sum])
def test_one_class_spoils_the_sum_unless_its_weight_is_zero(interval):
    a, _, labels = _log(np.random.default_rng(14))
    labels[:, 1] = False
    assert np.isnan(interval(a, labels).estimate)
    assert np.isnan(interval(a, labels).low)
    used = interval(a, labels, objective_weights=[1, 0])
    assert used == interval(a, labels[:, :1])


def test_replicates_without_a_positive_are_left_out():
    labels = np.zeros(50)
    labels[40] = 1
    interval = bootstrap_auc_sum(np.arange(50.0), labels)
    assert 0.5 < interval.low <= interval.estimate <= interval.high < 1


def test_one_unit_has_no_interval():
    a, _, labels = _log(np.random.default_rng(15), n=20)
    interval = auc_sum_interval(a, labels, groups=np.zeros(20, int))
    assert np.isfinite(interval.estimate)
    assert np.isnan(interval.low)


def test_wrong_options_are_named():
    a, _, labels = _log(np.random.default_rng(16), n=20)
    with pytest.raises(UsageError, match=r"`level` must lie strictly between 0 and 1.*Got 95"):
        auc_sum_interval(a, labels, level=95)
    with pytest.raises(
        UsageError, match=r"`objective_weights` must have shape \(2,\)\. Got \(3,\)"
    ):
        auc_sum_interval(a, labels, objective_weights=[1, 1, 1])
    with pytest.raises(UsageError, match=r"`replicates` must be at least 2.*Got 1"):
        bootstrap_auc_sum(a, labels, replicates=1)
    with pytest.raises(UsageError, match=r"`groups` must have one request id per score, \(20,\)"):
        auc_sum_interval(a, labels, groups=[1, 2])
    with pytest.raises(UsageError, match="`groups` must be integers or strings. Got dtype float64"):
        auc_sum_interval(a, labels, groups=np.zeros(20))
    with pytest.raises(UsageError, match=r"same rows\. Got shapes \(20,\) and \(19,\)"):
        auc_sum_interval(a, labels, minus=a[1:])
