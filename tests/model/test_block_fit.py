"""A fit in blocks: the same bits wherever blocks are kept, and nearly those of one block."""

import numpy as np
import pytest

from harmonrank.data.rows.blocks import SpilledBlocks
from harmonrank.model.fit_rows import RowCounts, cut_rows, drawn_from
from harmonrank.model.linear.heads_fit import fit_blocks
from harmonrank.support import limited_threads
from harmonrank.support.storage.stored import stored

SLOTS = (7, 5, 40)
ROWS = 9_000


def rows(missing=0.0, M=3, seed=0):
    """Scores whose noise depends on the context, and labels that bend away from them."""
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(0, size, ROWS) for size in SLOTS], axis=1).astype(np.int32)
    z = rng.normal(-1, 1, (ROWS, M)) + 0.3 * (codes[:, :1] % 3)
    labels = (rng.random((ROWS, M)) < 1 / (1 + np.exp(-z - 0.8 * np.tanh(z + 1)))).astype(np.uint8)
    logits = z + rng.normal(0, 0.4, z.shape) * (1 + codes[:, 1:2] % 2)
    scores = (1 / (1 + np.exp(-logits))).astype(np.float32)
    scores[rng.random(scores.shape) < missing] = np.nan
    return scores, codes, labels, rng.uniform(0.5, 2, ROWS)


def same(block):
    return block


def largest_difference(a, b):
    mine, theirs = stored(a)[1], stored(b)[1]
    assert mine.keys() == theirs.keys()
    return max(np.abs(mine[name] - theirs[name]).max(initial=0) for name in mine)


@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_blocks_in_a_file_give_the_bits_of_blocks_in_memory(missing, tmp_path):
    given = rows(missing)
    held = cut_rows(*given, size=2_000)
    spilled = SpilledBlocks(held.each(same), tmp_path)
    assert len(held) == len(spilled) == 5
    expected = fit_blocks(held, SLOTS)
    assert largest_difference(fit_blocks(spilled, SLOTS), expected) == 0.0
    with limited_threads(1):
        assert largest_difference(fit_blocks(spilled, SLOTS), expected) == 0.0
    assert not list(tmp_path.iterdir())  # its files have no name


def test_one_block_and_many_differ_by_the_rows_that_curvature_is_drawn_from():
    scores, codes, labels, weight = rows()
    one = fit_blocks(cut_rows(scores, codes, labels, weight), SLOTS)
    many = fit_blocks(cut_rows(scores, codes, labels, weight, size=1_000), SLOTS)
    # Sums differ by rounding alone.
    np.testing.assert_allclose(many.density.covariance, one.density.covariance, rtol=1e-9)
    np.testing.assert_allclose(many.theta, one.theta, atol=1e-4)
    logits = np.log(scores) - np.log1p(-scores)
    difference = np.abs(many.logits(logits, codes) - one.logits(logits, codes))
    assert difference.max() < 0.05
    assert difference.mean() < 0.003


def test_rows_are_drawn_from_all_blocks_as_from_one():
    given = rows()
    for most, stride in ((500, 1), (None, 7), (ROWS, 1)):
        one = drawn_from(cut_rows(*given), ROWS, most, stride)
        many = drawn_from(cut_rows(*given, size=1_300), ROWS, most, stride)
        for name in ("scores", "codes", "labels", "weight"):
            np.testing.assert_array_equal(getattr(many, name), getattr(one, name))


def test_counts_are_those_of_all_rows():
    scores, codes, labels, weight = rows(0.1)
    counts = RowCounts.of(cut_rows(scores, codes, labels, weight, size=1_000))
    assert counts.rows == ROWS
    assert counts.incomplete == np.isnan(scores).any(axis=1).sum()
    np.testing.assert_allclose(counts.prevalence, np.average(labels, axis=0, weights=weight))
