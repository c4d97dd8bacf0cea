"""A package that cannot be written and no home: scoring starts, from warmed kernels if there."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import harmonrank
from check_method import fitted, planted

# The rights of a user who owns nothing, but may read where the interpreter lies.
NOBODY = (
    *("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=+dac_read_search"),
    *("--ambient-caps=+dac_read_search", "--bounding-set=-all,+dac_read_search"),
)
_SCORE = """
import sys
import numpy as np
from numba.core.dispatcher import Dispatcher
import harmonrank as hr

np.save(sys.stdout.buffer, hr.load(sys.argv[1]).score(sys.argv[2]))
ours = [vars(module) for name, module in sys.modules.items() if name.startswith("harmonrank")]
kernels = {value for names in ours for value in names.values() if isinstance(value, Dispatcher)}
hits = sum(sum(kernel.stats.cache_hits.values()) for kernel in kernels)
misses = sum(sum(kernel.stats.cache_misses.values()) for kernel in kernels)
print(hits, misses, file=sys.stderr)
"""


@pytest.fixture
def installed(tmp_path):
    """Return a folder with the package in it, a model and a table, which others may read."""
    source = Path(harmonrank.__file__).parent
    shutil.copytree(source, tmp_path / "harmonrank", ignore=shutil.ignore_patterns("__pycache__"))
    fitted("logistic").save(tmp_path / "model")
    planted(300, seed=2).write_parquet(tmp_path / "table.parquet")
    for folder in (tmp_path, *list(tmp_path.parents)[:-2]):
        folder.chmod(0o755)
    return tmp_path


def run(installed, *command, user=()):
    environment = {**os.environ, "PYTHONPATH": str(installed), "HOME": "/nonexistent"}
    environment |= {"PYTHONDONTWRITEBYTECODE": "1"}
    for name in ("XDG_CACHE_HOME", "NUMBA_CACHE_DIR"):
        environment.pop(name, None)
    return subprocess.run(
        [*user, sys.executable, *command], env=environment, capture_output=True, cwd=installed
    )


def scored(installed):
    """Return scores by another user, and how many kernels came from disk and how many did not."""
    arguments = ("-c", _SCORE, installed / "model", installed / "table.parquet")
    done = run(installed, *map(str, arguments), user=NOBODY)
    assert done.returncode == 0, done.stderr.decode()
    (installed / "fused.npy").write_bytes(done.stdout)
    hits, misses = map(int, done.stderr.split()[-2:])
    return np.load(installed / "fused.npy"), hits, misses


@pytest.mark.slow
@pytest.mark.skipif(
    os.name != "posix" or os.geteuid() != 0 or shutil.which("setpriv") is None,
    reason="only root can be another user",
)
def test_another_user_scores_with_a_read_only_install_and_no_home(installed, record_property):
    expected = harmonrank.load(installed / "model").score(installed / "table.parquet")
    before = sorted(path for path in installed.rglob("*") if path.name != "fused.npy")
    cold, hits, _ = scored(installed)
    np.testing.assert_array_equal(cold, expected)
    assert hits == 0
    assert sorted(path for path in installed.rglob("*") if path.name != "fused.npy") == before
    # At build time, by a user who may write.
    done = run(installed, "-m", "harmonrank", "serve", str(installed / "model"), "--warm")
    assert done.returncode == 0, done.stderr.decode()
    warm, hits, misses = scored(installed)
    np.testing.assert_array_equal(warm, expected)
    assert hits >= 1
    assert misses == 0
    record_property("starts", 2)  # cold and warmed
