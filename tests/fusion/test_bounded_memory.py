"""A fit in blocks takes as much memory for many rows as for few."""

import subprocess
import sys

import pytest

_SCRIPT = """
import resource, sys
from pathlib import Path
import numpy as np, polars as pl
from harmonrank.data import Schema
from harmonrank.data.rows.log_blocks import FileBlocks
from harmonrank.fusion import method_class

name, folder, rows = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
for part in range(rows // 100_000):
    rng = np.random.default_rng(part)
    p = rng.beta(2, 5, (100_000, 4)).astype(np.float32)
    columns = {f"p_{m}": p[:, m] for m in range(4)}
    columns |= {str(m): (rng.random(100_000) < p[:, m]).astype(np.int8) for m in range(4)}
    columns["hour"] = rng.integers(0, 24, 100_000)
    pl.DataFrame(columns).write_parquet(folder / f"{part:02d}.parquet")
schema = Schema({str(m): f"p_{m}" for m in range(4)}, context=["hour"])
blocks = FileBlocks(folder, schema, size=50_000)
model = method_class(name)()
model.fit(blocks, schema)
assert model.training.rows > 0.85 * rows
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10)
"""


@pytest.mark.slow
@pytest.mark.parametrize("method", ["closed-form", "logistic", "formula-cem"])
def test_five_times_the_rows_take_hardly_more_memory(method, tmp_path):
    peaks = []
    for rows in (400_000, 2_000_000):
        folder = tmp_path / str(rows)
        folder.mkdir()
        given = [sys.executable, "-c", _SCRIPT, method, str(folder), str(rows)]
        done = subprocess.run(given, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        peaks.append(int(done.stdout))
    # In memory, 1.6 million rows more are some 300 MB of scores, labels and codes.
    assert peaks[1] < peaks[0] + 80, peaks
    assert peaks[1] < 1_000, peaks
