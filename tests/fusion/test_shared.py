"""A fitted model in several threads, and after a fork."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from check_method import fitted, planted
from harmonrank.support import limited_threads

METHODS = ("harmonrank", "logistic", "lightgbm", "closed-form", "harmonrank-paper")
SHARED = Path(__file__).parents[1] / "helpers"

_FORK = """
import os, sys
sys.path.insert(0, {tests!r})
import numpy as np, polars as pl
from check_method import fitted, planted
from harmonrank.support.errors import UsageError
from harmonrank.support.threads import limited_threads

with limited_threads(2):
    model, test = fitted({name!r}), planted(20_000, seed=2)
    test = test.with_columns(hour=pl.when(pl.col("hour") > 0).then("hour"))  # with nulls
    test = test.with_columns(age=pl.when(pl.col("hour") != 3).then("age"))
    tables = test, test.to_arrow(), test.to_pandas()
    before = [model.score(table) for table in tables]
    scores, context = test.select("p_buy", "p_like").to_numpy(), dict(hour=3, age="old")
    request = model.score_request(scores, context)
    numbered, quality = test, model.evaluate(test)
    test = test.with_columns(request=pl.format("r{{}}", "request"))
    test.write_parquet({path!r})
    child = os.fork()
    if child == 0:
        try:
            for table, expected in zip(tables, before, strict=True):
                np.testing.assert_array_equal(model.score(table), expected)
            np.testing.assert_array_equal(model.score_request(scores, context), request)
            assert model.evaluate(numbered).auc == quality.auc
            for needs_threads in (
                lambda: model.score({path!r}),
                lambda: model.rank(test),
                lambda: model.evaluate(test),
                lambda: model.fit(test, model.schema),
            ):
                try:
                    needs_threads()
                except UsageError as error:
                    assert "which this process lost when it was forked" in str(error)
                else:
                    raise AssertionError("it did not need the threads of Polars")
        except BaseException as error:
            print(repr(error))
            os._exit(1)
        os._exit(0)
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""

_LATE = """
import sys, threading
sys.path.insert(0, {tests!r})
import numpy as np
from check_method import fitted, planted
from harmonrank.support.errors import UsageError
from harmonrank.fusion.scoring import score_file
from harmonrank.support.threads import limited_threads

def late():
    threading.main_thread().join()
    with limited_threads(2):
        for name, model in models.items():
            np.testing.assert_array_equal(model.score(test), before[name])
            np.testing.assert_array_equal(model.score({path!r}), before[name])
        try:
            score_file(model, {path!r}, {path!r} + ".out.parquet")
        except UsageError as error:
            assert "once the main thread has ended" in str(error)
            print("told", flush=True)

with limited_threads(2):
    models, test = {{name: fitted(name) for name in {names!r}}}, planted(6_000, seed=2)
    before = {{name: model.score(test) for name, model in models.items()}}
test.write_parquet({path!r})
threading.Thread(target=late).start()
"""


def run(*arguments):
    # A hang is a failure, not a test that never ends.
    command = [sys.executable, "-W", "ignore", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.mark.parametrize("name", METHODS)
def test_threads_share_a_model(name):
    with limited_threads(2):
        model, tables = fitted(name), [planted(6000, seed=seed) for seed in range(4)]
        expected = [model.score(table) for table in tables]

    def score(turn):
        with limited_threads(2):
            return model.score(tables[turn % 4])

    with ThreadPoolExecutor(4) as threads:
        for turn, fused in enumerate(threads.map(score, range(24))):
            np.testing.assert_array_equal(fused, expected[turn % 4])


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_50000_calls_of_four_threads_equal_those_of_one(name, record_property):
    model, rng = fitted(name), np.random.default_rng(3)
    cases = [
        (rng.random((rows, 2)), {"hour": hour, "age": age})
        for rows, hour, age in ((1, 3, "old"), (7, None, "young"), (200, 5, "x"), (1500, 9, "old"))
    ]
    expected = [model.score_request(*case) for case in cases]

    def calls(turn):
        return sum(
            not np.array_equal(model.score_request(*cases[k % 4]), expected[k % 4])
            for k in range(turn, turn + 100)
        )

    with ThreadPoolExecutor(4) as threads:
        assert sum(threads.map(calls, range(100))) == 0
    record_property("calls", 10_000)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("name", METHODS)
def test_a_forked_child_scores_as_its_parent(name, tmp_path):
    path = str(tmp_path / "test.parquet")
    run("-c", _FORK.format(name=name, tests=str(SHARED), path=path))


def test_a_model_scores_after_the_main_thread_has_ended(tmp_path):
    path, names = str(tmp_path / "test.parquet"), ("harmonrank", "logistic")
    done = run("-c", _LATE.format(names=names, tests=str(SHARED), path=path))
    assert (done.stdout, done.stderr) == ("told\n", "")
