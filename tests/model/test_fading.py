"""How fast old rows fade, by what newer rows say."""

import numpy as np
import pytest

from harmonrank.model import fit_heads
from harmonrank.model.fit_rows import FitRows
from harmonrank.model.linear.fading import HALF_LIVES, faded_counts, fading_of
from harmonrank.model.linear.heads_fit import fit_blocks

ROWS = 24_000


def rows_of(drift, seed=0):
    """Return rows whose chances leave their scores, in each context by another slope over time."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 4, (ROWS, 1)).astype(np.int32)
    logits = rng.normal(size=(ROWS, 2)) - 1
    moves = drift * np.array([1.0, -1.0, 0.5, -0.5])[codes] * np.linspace(0, 1, ROWS)[:, None]
    labels = (rng.random(logits.shape) < 1 / (1 + np.exp(-logits - moves))).astype(float)
    request = np.arange(ROWS) // 10
    return FitRows(0, logits, codes, labels, None, are_logits=True, request=request)


def fading(rows):
    return fading_of(rows, lambda blocks: fit_blocks(blocks, (4,), residual=False))


def test_rows_fade_where_chances_drift():
    shares = [fading(rows_of(drift)) for drift in (0.0, 4.0)]
    stay, drift = (faded_counts(ROWS, share).mean() for share in shares)
    assert all(share.sum() == pytest.approx(1) for share in shares)
    assert np.argmax(shares[0]) == HALF_LIVES.index(np.inf)
    assert stay > 0.8
    assert drift < 0.3


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("drift", "change"), [(0.0, 0.0001), (0.5, -0.0002), (2.0, -0.005)])
def test_faded_rows_say_more_of_what_comes_next_and_never_less(drift, change, seed):
    rows = rows_of(drift, seed)
    known, test = rows.taken(slice(0, 20_000)), rows.taken(slice(20_000, ROWS))
    counts = faded_counts(known.rows, fading(known))

    def loss(weight):
        given = known.logits(), known.codes, (4,), known.labels, weight
        h = fit_heads(*given).logits(test.logits(), test.codes)
        return np.mean(np.logaddexp(0.0, h) - test.labels * h)

    assert loss(counts) < loss(None) + change
