"""Very many contexts: computed in blocks, with the same result, in bounded memory."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import harmonrank.model.density.density as density_module
from harmonrank.model import fit_heads
from harmonrank.model.scorer.heads_score import HeadScorer

SLOTS = (30, 20, 10)


def rows(count, M=3, seed=0, slots=SLOTS):
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(0, size, count) for size in slots], axis=1).astype(np.int32)
    z = rng.normal(-1, 1, (count, M))
    labels = (rng.random((count, M)) < 1 / (1 + np.exp(-z))).astype(np.uint8)
    logits = z + rng.normal(0, 0.5, z.shape)
    return 1 / (1 + np.exp(-logits)), codes, labels


@pytest.fixture
def small_blocks(monkeypatch):
    """Return a function that lets blocks hold few numbers, and scorers keep no records."""

    def shrink():
        monkeypatch.setattr(density_module, "_BLOCK_NUMBERS", 5_000)
        monkeypatch.setattr("harmonrank.model.scorer.heads_score._KEPT_NUMBERS", 0)

    return shrink


def test_blocks_change_no_coefficient_and_no_score(small_blocks):
    scores, codes, labels = rows(4_000)
    logits = np.log(scores) - np.log1p(-scores)
    whole = fit_heads(logits.copy(), codes, SLOTS, labels)
    expected = HeadScorer(whole).probabilities(scores, codes)
    effective = np.array([1.0, 2.0, 0.5])
    fused = HeadScorer(whole).fuse(scores, codes, effective)
    small_blocks()
    assert len(list(density_module.blocks_of(3_000, 9))) > 1
    blocks = fit_heads(logits.copy(), codes, SLOTS, labels)
    np.testing.assert_array_equal(blocks.theta, whole.theta)
    np.testing.assert_array_equal(HeadScorer(blocks).probabilities(scores, codes), expected)
    np.testing.assert_array_equal(HeadScorer(blocks).fuse(scores, codes, effective), fused)


_MANY = """
import resource, sys
sys.path.insert(0, sys.argv[1])
import numpy as np
from model.test_many_contexts import rows
from harmonrank.model.linear.heads_fit import fit_heads
from harmonrank.model.scorer.heads_score import HeadScorer

slots = (100, 100, 100, 100)
scores, codes, labels = rows(20_000, M=20, slots=slots)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
heads = fit_heads(np.log(scores) - np.log1p(-scores), codes, slots, labels, residual=False)
HeadScorer(heads).probabilities(scores, codes)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.slow
def test_memory_is_bounded_where_every_row_has_a_context_of_its_own(record_property):
    # 20 heads of 20,000 contexts: sums of all of them at once would take 1.8 GB.
    tests = str(Path(__file__).parents[1] / "helpers")
    command = [sys.executable, "-c", _MANY, tests]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 900 << 10
    record_property("megabytes", int(done.stdout) >> 10)
