"""Tally: what tests that disturb the program have tried, kept in a JSON file.

A test tells how often it did what with `record_property`. `pytest --tally FILE` keeps that, with
the outcome and the seconds of each such test. Tests that did not run keep what the file says.
"""

import json
from pathlib import Path

from harmonrank.data.files import new_file, write_json

told = {}


def pytest_addoption(parser):
    parser.addoption("--tally", type=Path, help="keep what tests have counted in this JSON file")


def pytest_runtest_logreport(report):
    # Of tests in other processes too: reports come to the one that was started.
    if report.when == "call" and report.user_properties:
        seconds = round(report.duration, 1)
        counts = dict(report.user_properties)
        told[report.nodeid] = {"outcome": report.outcome, "seconds": seconds, **counts}


def pytest_sessionfinish(session):
    path = session.config.getoption("tally")
    helper = hasattr(session.config, "workerinput")  # of pytest-xdist, whose reports are sent on
    if path is None or not told or helper:
        return
    before = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    with new_file(path, overwrite=True) as partial:
        write_json(partial, dict(sorted((before | told).items())))
