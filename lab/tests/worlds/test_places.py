"""Feedback on rows that were shown at places."""

import numpy as np
import pytest

from harmonrank.data import chances_at
from harmonrank.worlds import world
from harmonrank_lab.worlds import examination_curve
from harmonrank_lab.worlds.simulation import placed


def test_rows_that_are_not_looked_at_have_no_feedback():
    sample = world("conflict").sample(5000, seed=3)
    curve = examination_curve(1.0, 30)
    shown = placed(sample, sample.scores[:, 0], curve, seed=1)
    assert not shown.labels[~shown.seen].any()
    assert (shown.labels[shown.seen] == sample.labels[shown.seen]).all()
    first = sample.request == sample.request[0]
    best = np.argmax(np.where(first, sample.scores[:, 0], -1))
    assert shown.position[best] == 1
    assert sorted(shown.position[first]) == list(range(1, first.sum() + 1))
    for k in (1, 2, 5):
        assert shown.seen[shown.position == k].mean() == pytest.approx(curve[k], abs=0.08)
    assert chances_at(curve, np.array([2]))[0] == curve[2]
