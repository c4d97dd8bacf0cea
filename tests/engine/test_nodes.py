import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.parametrize(
    "verb",
    ["fit", *(pytest.param(v, marks=pytest.mark.slow) for v in ("score", "evaluate"))],
)
def test_a_node_that_dies_in_the_midst_of_the_work_changes_no_bit(verb):
    pytest.importorskip("ray")
    paths = [str(HERE.parent / "helpers"), os.environ.get("PYTHONPATH", "")]
    given = {
        "PYTHONPATH": os.pathsep.join(paths),
        # Nodes on the loopback interface, which reach each other and nobody else.
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
        "RAY_USAGE_STATS_ENABLED": "0",
        # A node counts as dead after seconds, not after half a minute.
        "RAY_health_check_period_ms": "500",
        "RAY_health_check_failure_threshold": "4",
    }
    done = subprocess.run(
        [sys.executable, HERE / "two_nodes.py", verb],
        env=os.environ | given,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "the same result" in done.stdout
