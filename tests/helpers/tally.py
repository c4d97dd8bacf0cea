"""Tally: what tests that disturb the program have tried, kept in a JSON file.

A test tells how often it did what with `record_property`. `pytest --tally FILE` keeps that, with
the outcome and the seconds of each such test. Tests that did not run keep what the file says.

    python tests/helpers/tally.py benchmarks/results/torture.json

prints the rows of the table in docs/security.md.
"""

import json
import re
import sys
from collections import Counter
from pathlib import Path

ROWS = {
    "test_200_kills": "kills at random moments, then the same command again",
    "test_300_deaths": "deaths before changes of files, then the same command again",
    "test_100_killed_publishers": "publishers of a registry, killed",
    "test_50_kills_of_a_stream_end": "kills of a stream at random moments, until it has ended",
    "test_50_kills_of_a_stream_and": "moments at which a stream, its Redis or both were killed",
    "test_a_stream_that_dies_before_changes": "deaths of a stream before changes of files",
    "test_100_pairs": "two processes that write one output",
    "test_3000_altered": "altered models, records, settings, schemas and tables",
    "test_800_altered": "altered predictors, logs, raw files and resumed imports",
    "test_50000_calls": "calls by four threads",
    "test_a_full_disk": "a disk of 1 MB with 0 to 100 pages left",
    "test_another_user": "starts of a read-only install by another user without a home",
    "test_200_000_wrong": "wrong requests to a service",
    "test_schemathesis": "requests that schemathesis made of the OpenAPI document",
    "test_50_reloads": "hot reloads of a service under load",
    "test_memory_is_bounded": "megabytes that 20 objectives and 20,000 contexts take",
}
told = {}


def pytest_addoption(parser):
    parser.addoption("--tally", type=Path, help="keep what tests have counted in this JSON file")


def pytest_runtest_logreport(report):
    # Of tests in other processes too: reports come to the one that was started.
    if report.when == "call" and report.user_properties:
        name, count = report.user_properties[0]
        seconds = round(report.duration, 1)
        told[report.nodeid] = {"outcome": report.outcome, "seconds": seconds, name: count}


def pytest_sessionfinish(session):
    from harmonrank.support.storage import new_file, write_json
    from harmonrank_lab.made import made_by

    path = session.config.getoption("tally")
    helper = hasattr(session.config, "workerinput")  # of pytest-xdist, whose reports are sent on
    if path is None or not told or helper:
        return
    before = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    with new_file(path, overwrite=True) as partial:
        write_json(partial, dict(sorted((before | told).items())) | {"code": made_by()})


def table_rows(tests):
    """Return the rows of the table: what was tried, where, how often, and in how many seconds."""
    for start, what in ROWS.items():
        mine = {name: test for name, test in tests.items() if f"::{start}" in name}
        if not mine:
            continue
        assert all(test["outcome"] == "passed" for test in mine.values()), what
        counts = Counter()
        for name, test in mine.items():
            of = re.sub(r"-?\d*\]$", "", name.partition("[")[2])  # without its number
            counts[of] += [*test.values()][2]
        parts = ", ".join(f"{of} {count:,}" for of, count in counts.items() if of)
        seconds = sum(test["seconds"] for test in mine.values())
        file = next(iter(mine)).partition("::")[0]
        each = f" ({parts})" if parts else ""
        yield f"| {what} (`{file}`) | {counts.total():,}{each} | {seconds:,.0f} |"


if __name__ == "__main__":
    rows = table_rows(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
    sys.stdout.write("\n".join(rows) + "\n")
