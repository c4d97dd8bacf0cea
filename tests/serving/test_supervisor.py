"""Which workers are started again, and when a service gives up."""

import signal
import socket

import pytest

from harmonrank.serving import ServeConfig, supervisor
from harmonrank.serving.counters import Counters
from harmonrank.support import HarmonRankError


@pytest.fixture
def started(monkeypatch):
    """Return the numbers of workers as they are started; the processes are not real."""
    numbers = []

    class Process:
        """One that has ended at once, but for that of worker 1 in a service of three."""

        returncode = 1

        def __init__(self, command, **_):
            self.pid = self.number = int(command[4])
            numbers.append(self.number)
            if numbers.count(0) > 12:
                signal.raise_signal(signal.SIGTERM)

        def poll(self):
            return None if self.number == 1 else 1

        def terminate(self):
            pass

        def wait(self, _):
            pass

    monkeypatch.setattr(supervisor.subprocess, "Popen", Process)
    monkeypatch.setattr(supervisor, "_PAUSE", 1e-4)
    monkeypatch.setattr(supervisor, "_TICK", 1e-3)
    return numbers


def run(folder, workers):
    counters = Counters(folder / "counters", workers)
    config = ServeConfig("target", workers=workers)
    with socket.socket() as listener, supervisor._Workers(folder, listener, config, None) as each:
        each.run(lambda: None, counters, None)


def test_a_service_gives_up_when_no_worker_comes_up(started, tmp_path):
    with pytest.raises(HarmonRankError, match="Workers end as soon as they start"):
        run(tmp_path, 1)
    assert 5 <= len(started) <= 6


def test_workers_that_never_come_up_do_not_end_one_that_runs(started, tmp_path):
    run(tmp_path, 3)
    assert started.count(0) == 13
    assert started.count(2) >= 12
    assert started.count(1) == 1
