import numpy as np
import polars as pl
import pytest

import harmonrank as hr
from harmonrank.data.rows.log_blocks import FileBlocks
from harmonrank.fusion.quality.block_quality import sampled_requests
from harmonrank.metrics import RunningAuc, auc

ROWS = 3_000


def table(digits=None, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.beta(2, 5, (ROWS, 2))
    labels = rng.random((ROWS, 2)) < p
    p = p if digits is None else p.round(digits)
    columns = {"p_a": p[:, 0], "p_b": p[:, 1], "a": labels[:, 0], "b": labels[:, 1]}
    request = np.arange(ROWS) // 6
    text = pl.Series([f"r{n}" for n in request])
    return pl.DataFrame({**columns, "w": rng.integers(0, 3, ROWS), "number": request, "text": text})


@pytest.mark.parametrize("request_column", ["number", "text"])
def test_requests_are_drawn_whole_though_blocks_cut_them(tmp_path, request_column):
    rows = table()
    rows.write_parquet(tmp_path / "log.parquet")
    schema = hr.Schema({"a": "p_a", "b": "p_b"}, request=request_column)
    sampled = sampled_requests(FileBlocks(tmp_path / "log.parquet", schema, size=400), 1_000)
    request = rows["number"].to_numpy()[sampled.places]
    _, counts = np.unique(request, return_counts=True)
    assert (counts == 6).all()
    assert len(np.unique(sampled.log.request)) == len(counts)
    assert 600 < sampled.log.rows < 1_400
    np.testing.assert_array_equal(sampled.log.scores[:, 0], rows["p_a"].to_numpy()[sampled.places])


def test_a_running_auc_is_the_auc_of_all_rows():
    rng = np.random.default_rng(0)
    scores, labels = rng.integers(0, 50, 500) / 10.0, rng.integers(0, 2, (500, 3))
    weight = rng.random(500)
    running = RunningAuc(3)
    for low, high in ((0, 1), (1, 3), (3, 3.5), (3.5, 9)):
        part = (scores >= low) & (scores < high)
        running.add(scores[part], labels[part], weight[part])
    np.testing.assert_allclose(running.areas(), auc(scores, labels, sample_weight=weight))
