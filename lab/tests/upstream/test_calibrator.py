import numpy as np
import pytest

from harmonrank_lab.upstream.calibrator import Calibrator, calibration_error, calibration_facts


def drawn(rows=20_000, seed=0):
    """Scores that claim too much: the true logit is half of theirs."""
    rng = np.random.default_rng(seed)
    z = rng.normal(-1, 2, (rows, 2))
    labels = (rng.random((rows, 2)) < 1 / (1 + np.exp(-z / 2))).astype(np.uint8)
    return (1 / (1 + np.exp(-z))).astype(np.float32), labels


def test_calibration_repairs_scores_on_rows_it_did_not_see():
    scores, labels = drawn()
    for facts in calibration_facts(scores, labels):
        assert facts.before > 0.1
        assert facts.after < 0.015
    fresh, answers = drawn(seed=1)
    after = Calibrator.fit(scores, labels)(fresh)
    assert calibration_error(after[:, 0], answers[:, 0]) < 0.015


def test_order_is_kept():
    scores, labels = drawn(3000)
    fitted = Calibrator.fit(scores, labels)
    grid = np.stack([np.linspace(0, 1, 101)] * 2, axis=1)
    assert (np.diff(fitted(grid), axis=0) >= 0).all()


def test_too_few_positives_leave_a_score_as_it_is():
    scores, labels = drawn(3000)
    labels[:, 1] = 0
    labels[:19, 1] = 1
    fitted = Calibrator.fit(scores, labels)
    np.testing.assert_allclose(fitted(scores)[:, 1], scores[:, 1], atol=1e-6)
    assert fitted.maps[0] is not None


def test_a_centred_map_keeps_its_slope_and_makes_the_mean_right():
    rng = np.random.default_rng(0)
    truth = rng.beta(1, 9, (20_000, 2))
    labels = (rng.random(truth.shape) < truth).astype(np.uint8)
    other = (rng.random(truth.shape) < truth / 3).astype(np.uint8)
    labels[:, 1] = 0
    before = Calibrator.fit(truth, labels)
    after = before.centred(truth, other)
    assert after.maps[0][0] == before.maps[0][0]
    assert after(truth)[:, 0].mean() == pytest.approx(other[:, 0].mean(), rel=1e-4)
    assert before.maps[1] is after.maps[1] is None


def test_calibration_error_is_the_mean_gap_of_equal_bins():
    rng = np.random.default_rng(0)
    p = rng.random(1000)
    labels = (rng.random(1000) < p**2).astype(np.uint8)
    order = np.argsort(p)
    gaps = [abs(p[i].mean() - labels[i].mean()) for i in np.split(order, 10)]
    assert calibration_error(p, labels, bins=10) == pytest.approx(np.mean(gaps))


def test_calibration_error_vanishes_for_true_probabilities_of_many_rows():
    rng = np.random.default_rng(1)
    p = rng.beta(1, 9, 200_000)
    labels = (rng.random(len(p)) < p).astype(np.uint8)
    assert calibration_error(p, labels) < 0.004 < calibration_error(p / 2, labels)
