"""Threads that share the parts of a batch."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from harmonrank.support import each_part, limited_threads, thread_count
from harmonrank.support.parallel import _pool, edges_of, in_turn, map_parts


@pytest.mark.parametrize("threads", [1, 2, 3, 5])
@pytest.mark.parametrize("parts", [0, 1, 2, 7, 100])
def test_every_part_is_done_once(parts, threads):
    done = []
    each_part(done.append, parts, threads)
    assert sorted(done) == list(range(parts))


def test_nobody_waits_for_a_thread_that_has_not_begun():
    blocked, done = threading.Event(), []
    stuck = _pool(1).submit(blocked.wait)
    each_part(done.append, 4, 2)
    blocked.set()
    stuck.result()
    assert sorted(done) == [0, 1, 2, 3]


def test_an_error_of_another_thread_is_raised():
    begun = threading.Event()

    def fail(part):
        if part:
            begun.set()
            raise ValueError(part)
        begun.wait()

    with pytest.raises(ValueError, match="1"):
        each_part(fail, 2, 2)


def test_an_error_waits_for_the_parts_that_others_work_on():
    begun, done = threading.Event(), []

    def work(part):
        if part:
            begun.set()
            done.append(sum(range(100_000)))
        else:
            begun.wait()
            raise ValueError(part)

    with pytest.raises(ValueError, match="0"):
        each_part(work, 2, 2)
    assert len(done) == 1


def test_a_part_may_itself_be_a_job():
    def inner(n):
        return sum(map_parts(lambda k: k * n, range(20), threads=3))

    for _ in range(50):
        assert map_parts(inner, range(8), threads=3) == [190 * n for n in range(8)]


def test_jobs_of_several_threads_do_not_mix():
    with ThreadPoolExecutor(4) as callers, limited_threads(3):
        sums = callers.map(lambda n: map_parts(lambda k: k + n, range(30), threads=3), range(40))
        assert list(sums) == [[k + n for k in range(30)] for n in range(40)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_has_threads_of_its_own():
    each_part(lambda part: None, 4, 2)
    child = os.fork()
    if child == 0:
        done = []
        each_part(done.append, 4, 2)
        os._exit(len(done))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 4


def test_edges_of_no_blocks_make_no_parts():
    assert len(edges_of(0, 8)) == 1


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("parts", [0, 1, 2, 7])
def test_large_parts_come_in_order_and_two_at_once(parts, threads):
    lock, begun, most = threading.Lock(), [], []

    def work(part):
        with lock:
            begun.append(part)
            most.append(len(begun))
        assert thread_count() == threads  # the limit holds there, too
        total = np.arange(1000).sum() + part
        with lock:
            begun.remove(part)
        return total

    with limited_threads(threads):
        totals = list(in_turn(work, parts))
    assert totals == [499_500 + part for part in range(parts)]
    assert max(most, default=0) <= min(threads, 2)


def test_an_error_in_a_large_part_comes_in_its_turn():
    def work(part):
        if part == 2:
            raise ValueError("of part 2")
        return part

    with limited_threads(2):
        turns = in_turn(work, 5)
        assert [next(turns), next(turns)] == [0, 1]
        with pytest.raises(ValueError, match="of part 2"):
            next(turns)


def test_parts_that_nobody_asks_for_any_more_are_not_begun():
    begun = []
    with limited_threads(2):
        turns = in_turn(begun.append, 100)
        next(turns)
        turns.close()
    assert len(begun) < 10
