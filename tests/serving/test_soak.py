"""A service at half load for an hour: no error, no growth. Run once, on purpose."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

MINUTES = os.environ.get("HARMONRANK_SOAK_MINUTES", "2")
SCRIPT = Path(__file__).parents[2] / "benchmarks" / "soak.py"


@pytest.mark.slow
def test_memory_stays_flat_and_nothing_fails(tmp_path):
    """`HARMONRANK_SOAK_MINUTES=60` makes it the hour; two minutes are the default."""
    command = [sys.executable, str(SCRIPT), "--minutes", MINUTES, "--json", str(tmp_path / "j")]
    done = subprocess.run([*command, "--each", "5"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    numbers = json.loads((tmp_path / "j").read_text())
    assert numbers["answered"] > 0.9 * 60 * float(MINUTES) * numbers["rate"]
    assert numbers["worker_growth_mb"] < 20
    assert numbers["first_process_growth_mb"] < 20
