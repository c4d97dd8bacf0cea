"""The examples run as they are."""

import json
import runpy
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harmonrank.registry import Registry
from harmonrank.reports import DOCTYPE

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_the_network_and_the_loss_work_in_a_plain_pytorch_loop(capsys):
    names = runpy.run_path(str(EXAMPLES / "plain_pytorch.py"))
    assert names["loss"].item() < 0.6  # 2 − Σ AUC, which is 1 for a random order
    assert capsys.readouterr().out.startswith("AUC [0.")


def live_loop(folder, *options):
    """Return the command of a small closed loop."""
    return [sys.executable, str(EXAMPLES / "live_loop.py"), "-o", str(folder), *options]


def processes_of(folder):
    """Return the processes that have the folder in their command."""
    processes = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if str(folder).encode() in path.read_bytes():
                processes.append(int(path.parent.name))
        except OSError:  # It has ended meanwhile.
            continue
    return processes


def test_the_closed_loop_serves_what_it_learned_from_what_it_served(tmp_path):
    folder = tmp_path / "live"
    options = ["--hours", "3", "--swap", "2", "--requests", "400", "--seconds-per-hour", "0"]
    done = subprocess.run(live_loop(folder, *options), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    published = [v.number for v in Registry(folder / "registry").versions() if v.refused is None]
    steps = json.loads((folder / "loop.json").read_text("utf-8"))["steps"]
    answered = list(dict.fromkeys(name for step in steps for name in step["versions"]))
    assert answered == ["random", *map(str, published)]
    assert len(published) == 2
    # Random order is worth a half per objective; what was learned comes close to the best.
    assert steps[0]["served"] < 2.7
    assert all(s["ceiling"] - s["served"] < 0.2 for s in steps if s["hour"] in (1.75, 2.5))
    assert (folder / "stream.html").read_text("utf-8").startswith(DOCTYPE)
    assert f"The page of the stream: {folder / 'stream.html'}" in done.stdout
    assert len(done.stdout.splitlines()) == 1 + 3 + 2
    assert processes_of(folder) == []


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="there is no /proc")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_closed_loop_leaves_no_process_when_it_is_ended(number, tmp_path):
    folder = tmp_path / "live"
    options = ["--hours", "9", "--requests", "8", "--seconds-per-hour", "600"]
    with subprocess.Popen(live_loop(folder, *options), stderr=subprocess.PIPE) as loop:
        try:
            end = time.monotonic() + 120
            # Kernels are loaded by then: what is raised while they are may be lost.
            while not ((folder / "stream.jsonl").exists() and any(folder.glob("events/*.parquet"))):
                assert time.monotonic() < end
                assert loop.poll() is None
                time.sleep(0.05)
            assert len(processes_of(folder)) == 2
            loop.send_signal(number)
            assert loop.wait(120) != 0
        finally:
            loop.kill()
    assert processes_of(folder) == []
