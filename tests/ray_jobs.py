"""What tests let workers do: a worker imports it, as it does not import tests."""

import os
import signal

import numpy as np

from harmonrank.errors import DataError


def double(x):
    return 2 * x


def fail(x):
    raise DataError(f"Row {x} is odd; repair it.")


def cut(values, count):
    return np.array_split(values, count)


def total(*parts):
    return float(sum(part.sum() for part in parts))


def count_from(first):
    return {"first": first}


def count_on(state, step):
    return state["first"] + step


def die_once(_state, marker):
    """Kill the worker, the first time."""
    if not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return "alive"


def die_in_task(x, marker):
    if x == 3:
        die_once(None, marker)
    return 2 * x


def place_of(_block):
    """Return the node that a call runs on."""
    import ray

    return ray.get_runtime_context().get_node_id()
