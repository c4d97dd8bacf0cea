import numpy as np
import polars as pl
import pytest

import harmonrank as hr
from harmonrank.data.rows.log_blocks import FileBlocks
from harmonrank.fusion.quality.block_quality import sampled_requests

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
    request = rows["number"].to_numpy()[sampled.index]
    _, counts = np.unique(request, return_counts=True)
    assert (counts == 6).all()
    assert len(np.unique(sampled.log.request)) == len(counts)
    assert 600 < sampled.log.rows < 1_400
    np.testing.assert_array_equal(sampled.log.scores[:, 0], rows["p_a"].to_numpy()[sampled.index])
