"""The workers of a Ray cluster for tests."""

import os
from pathlib import Path

import pytest

from harmonrank.engine import open_engine


@pytest.fixture(scope="session")
def ray_engine():
    """Two workers on this machine; one start serves all tests of a process."""
    pytest.importorskip("ray")
    with pytest.MonkeyPatch.context() as patch:
        # Workers import `ray_jobs`, which lies here.
        known = os.environ.get("PYTHONPATH", "")
        patch.setenv("PYTHONPATH", f"{Path(__file__).parent}{os.pathsep}{known}")
        with open_engine("ray", workers=2) as engine:
            yield engine
