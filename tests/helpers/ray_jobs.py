"""What tests let workers do: a worker imports it, as it does not import tests."""

import os
import signal

from harmonrank.support import DataError


def double(x):
    return 2 * x


def fail(x):
    raise DataError(f"Row {x} is odd; repair it.")


def alone(block):
    """Return a block as its own sum."""
    return (block,)


def count_from(first):
    return {"first": first}


def count_on(state, step):
    return state["first"] + step


class Remembered:
    """A state that leaves a file when it is forgotten."""

    def __init__(self, marker):
        self.marker = marker

    def __del__(self):
        self.marker.touch()


def process_of(_state):
    """Return the process that a state is in."""
    return os.getpid()


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


def die_first(marker, function, *given):
    """Kill the worker, the first time; then do what was asked for."""
    die_once(None, marker)
    return function(*given)


def die_with_state(state, marker, function, *given):
    """As `die_first`, of a worker that keeps a state."""
    die_once(None, marker)
    return function(state, *given)
