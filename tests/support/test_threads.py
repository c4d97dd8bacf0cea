"""How many threads a process may use."""

import os
import subprocess
import sys

import pytest

from harmonrank.support import UsageError, limited_threads, thread_count


@pytest.fixture
def cores(monkeypatch):
    monkeypatch.setattr("harmonrank.support.threads._cores", lambda: 8)


@pytest.mark.parametrize(
    ("asked", "threads"), [("3", 3), ("1", 1), ("64", 8), ("4,2", 4), ("0", 8), ("", 8), ("x", 8)]
)
def test_no_more_threads_than_asked_for_nor_than_cores(monkeypatch, cores, asked, threads):
    monkeypatch.setenv("OMP_NUM_THREADS", asked)
    assert thread_count() == threads


def test_a_limit_overrules_the_environment_and_ends_with_its_block(monkeypatch, cores):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    with limited_threads(5):
        assert thread_count() == 5
        with limited_threads(2):
            assert thread_count() == 2
        assert thread_count() == 5
    assert thread_count() == 1


@pytest.mark.parametrize("count", [0, -1, 1.5, True, "2", None])
def test_a_limit_is_a_whole_number_from_one_up(count):
    with pytest.raises(UsageError, match="`count` must be a whole number from 1 up. Got"):
        limited_threads(count).__enter__()


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs CPU affinity")
def test_a_process_kept_to_one_core_uses_one_thread():
    code = """
import os
os.environ.pop("OMP_NUM_THREADS", None)
os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
from harmonrank.support.threads import thread_count
print(thread_count())
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "1"
