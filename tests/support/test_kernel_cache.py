"""Kernels on disk: compiled again when anything they are made of changes."""

import os
import subprocess
import sys

import numba
import numpy as np
import pytest

from harmonrank.model.scorer import curve_kernels, heads_kernels
from harmonrank.support.kernel import _modules, record_kernel

_HELPER = """
from harmonrank.support.kernel import kernel
FACTOR = {factor}

@kernel
def scaled(x):
    return {body}
"""
_CALLER = """
from harmonrank.support.kernel import kernel
from helper import FACTOR, scaled

@kernel
def total(x):
    return scaled(x) + FACTOR
"""
_TELL = """
import caller
value = caller.total(1.0)
print(value, sum(caller.total.stats.cache_hits.values()), caller.total._cache.cache_path)
"""


_SUMS = """
import hashlib
import numpy as np
from harmonrank.model.linear.heads_sums_kernels import add_runs
rng = np.random.default_rng(0)
M, starts = 2, np.arange(0, 4001, 100)
away, y, weight, e = (rng.random((M, 4000), np.float32) for _ in range(4))
result = np.zeros((len(starts) - 1, M, (M + 1) * (M + 4) // 2), np.float32)
add_runs(away, y, weight, starts, 0, len(starts) - 1, e, result)
print(hashlib.sha256(result.tobytes()).hexdigest(), sum(add_runs.stats.cache_hits.values()))
"""


@pytest.fixture
def tell(tmp_path):
    """Return a function that runs the caller in a new process with a helper of these lines."""
    (tmp_path / "caller.py").write_text(_CALLER, encoding="utf-8")

    def run(factor, body, **environment):
        helper = _HELPER.format(factor=factor, body=body)
        (tmp_path / "helper.py").write_text(helper, encoding="utf-8")
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **environment}
        done = subprocess.run(
            [sys.executable, "-c", _TELL], cwd=tmp_path, env=environment, capture_output=True,
            text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        value, hits, path = done.stdout.split()
        return float(value), int(hits), path

    return run


def test_a_kernel_is_compiled_again_when_what_it_is_made_of_changes(tell, tmp_path):
    assert tell(0, "x * 2.0")[:2] == (2.0, 0)
    assert tell(0, "x * 2.0")[:2] == (2.0, 1)
    # Another kernel that it calls, then a constant that it imports.
    assert tell(0, "x * 3.0")[:2] == (3.0, 0)
    assert tell(5, "x * 3.0")[:2] == (8.0, 0)
    # A damaged cache is as good as none.
    for path in (tmp_path / "__pycache__").glob("*.nb[ic]"):
        path.write_bytes(path.read_bytes()[:40])
    assert tell(5, "x * 3.0")[:2] == (8.0, 0)


def test_intrinsics_and_records_count_as_what_a_kernel_is_made_of():
    made_of = _modules(vars(curve_kernels), {})
    assert {"harmonrank.support.simd", "harmonrank.support.simd_maths"} < set(made_of)
    made_of = _modules(vars(heads_kernels), {})
    assert {f"harmonrank.model.scorer.{name}" for name in ("curves", "head_room")} < set(made_of)


def test_no_references_are_counted_in_a_kernel_of_records(tmp_path, monkeypatch):
    # What an earlier run has compiled could not be looked into.
    monkeypatch.setattr("numba.config.CACHE_DIR", str(tmp_path))

    @record_kernel
    def total(given):
        added = 0.0
        for i in range(given[0].size):
            added += given[0][i]
        return added

    # Of code that is read from disk numba shows nothing, so it is compiled once more.
    fresh = numba.jit(**total.targetoptions)(total.py_func)
    assert fresh((np.arange(4.0),)) == total((np.arange(4.0),)) == 6.0
    (code,) = fresh.inspect_llvm().values()
    assert "NRT_" not in code


def test_kernels_work_where_nothing_can_be_written(tell, tmp_path):
    # A file where the folder should be: nobody, root included, can write into it.
    (tmp_path / "__pycache__").write_text("in the way", encoding="utf-8")
    (tmp_path / "home").write_text("in the way", encoding="utf-8")
    home = str(tmp_path / "home")
    assert tell(0, "x * 2.0", HOME=home, XDG_CACHE_HOME=home) == (2.0, 0, "None")


def test_warmed_kernels_are_found_where_nothing_can_be_written(tell, tmp_path, monkeypatch):
    home = str(tmp_path / "home")
    (tmp_path / "home").write_text("in the way", encoding="utf-8")
    assert tell(0, "x * 2.0", HOME=home, XDG_CACHE_HOME=home)[1] == 0
    # Numba asks whether it may write by making a file for a moment.
    refusal = "import numba.core.caching as c\n"
    refusal += "def refuse(self): raise OSError\n"
    # The second place of numba's is the one beside the file, whose name differs by version.
    refusal += "c.CacheImpl._locator_classes[1].ensure_cache_path = refuse\n"
    (tmp_path / "sitecustomize.py").write_text(refusal, encoding="utf-8")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    told = tell(0, "x * 2.0", HOME=home, XDG_CACHE_HOME=home, PYTHONPATH=path)
    assert told == (2.0, 1, str(tmp_path / "__pycache__"))


def test_a_kernel_adds_up_to_the_same_bits_when_compiled_and_when_loaded(tmp_path):
    def run():
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
        done = subprocess.run(
            [sys.executable, "-c", _SUMS], env=environment, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    compiled, loaded = run(), run()
    assert (compiled[1], loaded[1]) == ("0", "1")
    assert compiled[0] == loaded[0]
