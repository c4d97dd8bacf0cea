"""Whatever is read back or given is parsed: no internal error, crash or hang, bounded memory."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from fuzzing import KINDS, LOG_KINDS, prepare

SCRIPT = Path(__file__).parents[1] / "helpers" / "fuzzing.py"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fuzz")
    prepare(folder)
    return folder


def failures(kind, first, count, folder):
    """Return what went wrong in a batch of cases, run in a process of its own."""
    command = [sys.executable, SCRIPT, kind, str(first), str(count), folder]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60 + 5 * count)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    wrong = [f"{kind} {line['case']}: {line['wrong']}" for line in lines if "case" in line]
    if done.returncode:
        wrong.append(
            f"{kind} crashed ({done.returncode}) after {lines[-1:]}: {done.stderr[-2000:]}"
        )
    return wrong


@pytest.fixture(scope="module")
def log_folder(tmp_path_factory):
    import fuzzing_logs

    folder = tmp_path_factory.mktemp("fuzz")
    fuzzing_logs.prepare(folder)
    return folder


@pytest.mark.parametrize("kind", KINDS)
def test_a_few_altered_inputs_are_used_or_refused(kind, folder):
    assert failures(kind, 0, 20, folder) == []


@pytest.mark.slow
@pytest.mark.parametrize("first", range(20, 620, 200))
@pytest.mark.parametrize("kind", KINDS)
def test_3000_altered_inputs_are_used_or_refused(kind, first, folder, record_property):
    assert failures(kind, first, 200, folder) == []
    record_property("inputs", 200)


def test_a_few_altered_raw_files_are_imported_or_refused(tmp_path):
    assert failures("raw", 0, 20, tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", LOG_KINDS)
def test_800_altered_logs_and_predictors_are_used_or_refused(kind, log_folder, record_property):
    assert failures(kind, 0, 200, log_folder) == []
    record_property("inputs", 200)
