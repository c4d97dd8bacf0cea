"""RayEngine: calls are Ray tasks, states are Ray actors; lost work is repeated.

This module alone imports Ray, and is imported when `--engine ray` is asked for.
"""

__all__ = ["RayEngine"]

import weakref
from collections import deque
from collections.abc import Callable
from copy import deepcopy
from importlib import import_module
from itertools import count
from typing import Any, Literal

import ray
from ray.exceptions import RayActorError, RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from harmonrank.support.errors import EngineError, HarmonRankError
from harmonrank.support.threads import limited_threads

# A lost machine loses all its tasks, and others may fail meanwhile.
_RETRIES = 16
_LOADED = "harmonrank.fusion.fit"


class RayEngine:
    """The workers of a Ray cluster that this process is connected to.

    Each worker computes with one thread: more workers, not more threads, use more cores.

    States are kept in turn by as many processes as there are workers. These are started once, which
    can take longer than a pass over the rows.

    Args:
        workers: How many calls run at once; as many as the cluster has processors if left out.
        eager: Let workers load the package while this process still reads what it was given:
            those of 'calls' or those that keep 'states'. Not on a cluster of several machines,
            where those that are busy with it get no state.
    """

    name = "ray"

    def __init__(
        self, workers: int | None = None, *, eager: Literal["calls", "states"] | None = None
    ) -> None:
        resources: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]
        cores = int(resources.get("CPU", 1))
        self.workers = cores if workers is None else workers
        self._keepers: list[Any] = []
        self._machines = _machines()
        self._numbers = count()
        self._gone: deque[tuple[Any, int]] = deque()
        self._loading: list[Any] = []
        if eager == "calls":
            self._loading = [_task.remote(_load, _LOADED) for _ in range(self.workers)]
        elif eager == "states":
            self._loading = [self._keeper(k).load.remote(_LOADED) for k in range(self.workers)]

    def call(self, function: Callable[..., Any], *given: Any) -> Any:
        """Return the promise of a task."""
        return _task.remote(function, *given)

    def put(self, value: Any) -> Any:
        """Put a value where all workers of a machine read it without a copy."""
        return value if isinstance(value, ray.ObjectRef) else ray.put(value)

    def get(self, promise: Any) -> Any:
        """Wait for a promise."""
        self._forget()
        try:
            # Arrays come as views of memory that all share, which must not be written to.
            return deepcopy(ray.get(promise))
        except RayTaskError as error:
            cause = error.cause
            if isinstance(cause, HarmonRankError | MemoryError):
                raise cause from None
            raise
        except (RayActorError, RayError) as error:
            text = " ".join(str(error).split())[:200]
            raise EngineError(
                f"The Ray cluster lost work that it could not repeat ({text}); repeat the command, "
                "with fewer workers if memory was short."
            ) from error

    def keep(self, build: Callable[..., Any], *given: Any) -> "_Actor":
        """Let the next keeper build the state, when it is first needed."""
        self._forget()
        number = next(self._numbers)
        keeper = self._keeper(number % self.workers)
        state = _Actor(keeper, number, build, given)
        weakref.finalize(state, self._gone.append, (keeper, number)).atexit = False
        return state

    def _keeper(self, place: int) -> Any:
        """Return an actor, on a machine of its own as long as there are machines.

        It needs a processor to be placed, and none to stay: where a machine is lost, its actors
        find room on those that are left, which have as many already.
        """
        keeper: Any = _Keeper
        while len(self._keepers) <= place:
            machine = self._machines[len(self._keepers) % len(self._machines)]
            # By name, as Ray may place several that ask to be spread at once on one machine.
            where = NodeAffinitySchedulingStrategy(machine, soft=True)
            self._keepers.append(keeper.options(scheduling_strategy=where).remote())
        return self._keepers[place]

    def _forget(self) -> None:
        """Let keepers drop the states that nobody can ask for any more.

        Not when they are dropped here, which may be while Ray itself is at work.
        """
        while self._gone:
            keeper, number = self._gone.popleft()
            keeper.forget.remote(number)


class _Actor:
    """A state on a worker.

    What it is built from goes with every call, mostly as promises that cost nothing: so a worker
    that takes the place of a lost one has it at hand.
    """

    def __init__(
        self, handle: Any, number: int, build: Callable[..., Any], given: tuple[Any, ...]
    ) -> None:
        self._handle, self._number, self._build, self._given = handle, number, build, given

    def call(self, function: Callable[..., Any], *given: Any) -> Any:
        """Return the promise of a call of the actor."""
        built = self._number, self._build, len(self._given)
        return self._handle.call.remote(function, *built, *self._given, *given)


def _load(name: str) -> None:
    import_module(name)


def _run(function: Callable[..., Any], *given: Any) -> Any:
    with limited_threads(1):
        return function(*given)


def _machines() -> list[str]:
    """Return the machines of the cluster in turn, each as often as it has processors."""
    alive = [n for n in ray.nodes() if n["Alive"]]  # type: ignore[no-untyped-call]
    slots = [(k, n["NodeID"]) for n in alive for k in range(int(n["Resources"].get("CPU", 0)))]
    return [machine for _, machine in sorted(slots)] or [n["NodeID"] for n in alive]


_task = ray.remote(max_retries=_RETRIES, num_cpus=1)(_run)


@ray.remote(max_restarts=-1, max_task_retries=-1)
class _Keeper:
    """Builds states when they are first needed, and again where a lost worker is replaced."""

    def __init__(self) -> None:
        self._states: dict[int, Any] = {}

    def load(self, name: str) -> None:
        """Import a module that states will need."""
        _load(name)

    def call(
        self,
        function: Callable[..., Any],
        number: int,
        build: Callable[..., Any],
        count: int,
        *given: Any,
    ) -> Any:
        """Return `function(state, *given)`; the first `count` values are what the state is of."""
        with limited_threads(1):
            if number not in self._states:
                self._states[number] = build(*given[:count])
            return function(self._states[number], *given[count:])

    def forget(self, number: int) -> None:
        """Drop a state."""
        self._states.pop(number, None)
