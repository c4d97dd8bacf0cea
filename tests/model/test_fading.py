"""How fast old rows fade, by what newer rows say."""

import numpy as np
import pytest

from harmonrank.model import fit_heads
from harmonrank.model.fit_rows import FitRows
from harmonrank.model.linear.fading import RATES, fading_of

ROWS = 24_000


def rows_of(drift, seed=0, base=(-1.0, -1.0)):
    """Return rows whose chances leave their scores, in each context by another slope over time."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 4, (ROWS, 1)).astype(np.int32)
    logits = rng.normal(size=(ROWS, 2)) + base
    time = np.linspace(0, 1, ROWS)
    moves = np.multiply(drift, np.array([1.0, -1.0, 0.5, -0.5])[codes] * time[:, None])
    labels = (rng.random(logits.shape) < 1 / (1 + np.exp(-logits - moves))).astype(float)
    return FitRows(0, logits, codes, labels, None, are_logits=True, age=1 - time)


def fading(rows):
    return fading_of(rows, (4,))


def test_rows_fade_where_chances_drift_and_nowhere_else():
    assert not fading(rows_of(0.0)).any()
    still, moving = fading(rows_of((0.0, 4.0)))
    assert still == 0
    assert 2 < moving < RATES[-1] + 1e-9


def test_a_rare_objective_does_not_fade_because_a_common_one_does():
    rare, common = fading(rows_of((0.5, 4.0), base=(-6.0, -1.0)))
    assert rare == 0
    assert common > 2


def test_rows_fade_by_their_ages_whatever_their_order():
    rows = rows_of((0.0, 4.0))
    mixed = rows.taken(np.random.default_rng(1).permutation(ROWS))
    np.testing.assert_array_equal(fading(mixed), fading(rows))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("drift", "change"), [(0.0, 0.0001), (0.5, -0.0002), (2.0, -0.005)])
def test_faded_rows_say_more_of_what_comes_next_and_never_less(drift, change, seed):
    rows = rows_of(drift, seed)
    known, test = rows.taken(slice(0, 20_000)), rows.taken(slice(20_000, ROWS))
    counts = 0.5 ** (np.linspace(1, 0, 20_000)[:, None] * fading(known))

    def loss(m, weight):
        given = known.logits(), known.codes, (4,), known.labels, weight
        h = fit_heads(*given).logits(test.logits(), test.codes)[:, m]
        return np.mean(np.logaddexp(0.0, h) - test.labels[:, m] * h)

    kept = np.mean([loss(m, None) for m in range(2)])
    assert np.mean([loss(m, counts[:, m]) for m in range(2)]) < kept + change
