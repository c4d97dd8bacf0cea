"""Steps: work whose outcome is kept until its inputs change."""

__all__ = ["Steps"]

from collections.abc import Callable, Mapping
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from harmonrank import __version__
from harmonrank.support.events import StepEnded, StepStarted
from harmonrank.support.storage import Store, decode, digest, file_sums


class _Record(msgspec.Struct):
    """What a step left, as JSON parts."""

    seconds: Annotated[float, Meta(ge=0)]
    outputs: dict[str, str]
    facts: Any


class Steps:
    """Runs steps into one folder, each only if its key or its outcome is not what it was.

    The key is a digest of the step's name, its inputs and options and the package's version. An
    input that is itself an outcome is named by the digest of its files, so that a step which is
    done again with the same outcome makes no other step run.

    Args:
        folder: Holds the outcomes, and `steps/NAME.json` with the key and digest of each.
        names: Of all steps, in order.
        on_event: Called when a step begins and ends.
    """

    def __init__(
        self,
        folder: str | Path,
        names: tuple[str, ...],
        on_event: Callable[[Any], None] = lambda _: None,
    ) -> None:
        self.folder, self._names, self._on_event = Path(folder), names, on_event
        self._store = Store(self.folder / "steps")

    def run(
        self,
        name: str,
        inputs: Mapping[str, Any],
        outputs: list[str],
        work: Callable[[], Any],
        facts: Any = Any,
    ) -> tuple[str, Any]:
        """Return the digest of a step's outcome, and its facts, doing the work where needed.

        Args:
            name: One of the names.
            inputs: All that the outcome depends on, as JSON.
            outputs: Files and folders that the work leaves.
            work: Leaves them, replacing what is there, and returns facts as JSON.
            facts: Their type. A step whose record has others is done again.
        """
        index, steps = self._names.index(name), len(self._names)
        key = digest([name, __version__, inputs])
        record = self._store.find(name, key, lambda parts: self._unchanged(parts, outputs, facts))
        kept = record is not None
        if record is None:
            self._on_event(StepStarted(name, index, steps))
            started = perf_counter()
            found = work()
            seconds = perf_counter() - started
            record = _Record(seconds, file_sums(self.folder, outputs), found)
            self._store.put(name, key, msgspec.structs.asdict(record))
        self._on_event(StepEnded(name, index, steps, record.seconds, kept))
        return digest(record.outputs), record.facts

    def _unchanged(self, parts: Any, outputs: list[str], facts: Any) -> _Record | None:
        """Return a step's record if its files are as it left them."""
        record = decode(parts, _Record, "The record of a step")
        decode(record.facts, facts, "The facts of a step")
        sums = record.outputs
        # Each output is a file, or a folder of some.
        told = all(any(f == o or f.startswith(f"{o}/") for f in sums) for o in outputs)
        whole = told and all((self.folder / file).is_file() for file in sums)
        return record if whole and file_sums(self.folder, sums) == sums else None
