"""What a process that only scores has to load."""

import subprocess
import sys

import pytest

import harmonrank as hr

SCORE = """
import sys
import harmonrank as hr
fused = hr.load(sys.argv[1]).score(sys.argv[2])
assert len(fused) == 600, len(fused)
heavy = ("torch", "harmonrank.losses", "harmonrank.training", "harmonrank.evaluation")
print(*[name for name in heavy if name in sys.modules])
"""


@pytest.mark.parametrize(
    "method",
    [hr.HarmonRank(), hr.HarmonRankPaper(epochs=1, buckets=8), hr.ClosedForm()],
    ids=lambda method: method.name,
)
def test_scoring_imports_neither_pytorch_nor_training_code(method, table, schema, tmp_path):
    method.fit(table, schema).save(tmp_path / "model")
    table.write_parquet(tmp_path / "rows.parquet")
    command = [sys.executable, "-c", SCORE, tmp_path / "model", tmp_path / "rows.parquet"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
