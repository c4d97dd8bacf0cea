import os
from pathlib import Path

import pytest

from harmonrank.engine import open_engine


@pytest.fixture(scope="session")
def ray_engine():
    """Two workers on this machine; one start serves all tests of a process."""
    pytest.importorskip("ray")
    with pytest.MonkeyPatch.context() as patch:
        # Workers import `ray_jobs`, which lies beside the tests.
        known = os.environ.get("PYTHONPATH", "")
        patch.setenv("PYTHONPATH", f"{Path(__file__).parents[1] / 'helpers'}{os.pathsep}{known}")
        with open_engine("ray", workers=2) as engine:
            yield engine
