"""Steps: work whose outcome is kept until its inputs change."""

__all__ = ["StepEnded", "StepStarted", "Steps"]

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from harmonrank import __version__
from harmonrank.data.files import new_file, read_json, sha256, write_json
from harmonrank.errors import DataError


@dataclass(frozen=True)
class StepStarted:
    """A step's work begins; `index` counts from 0."""

    name: str
    index: int
    steps: int


@dataclass(frozen=True)
class StepEnded:
    """A step has its outcome; `kept` if an earlier run had it already, from the same inputs.

    Attributes:
        seconds: What the work took, whenever it was done.
    """

    name: str
    index: int
    steps: int
    seconds: float
    kept: bool


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

    def run(
        self, name: str, inputs: Mapping[str, Any], outputs: list[str], work: Callable[[], Any]
    ) -> tuple[str, Any]:
        """Return the digest of a step's outcome, and its facts, doing the work where needed.

        Args:
            name: One of the names.
            inputs: All that the outcome depends on, as JSON.
            outputs: Files and folders that the work leaves.
            work: Leaves them, replacing what is there, and returns facts as JSON.
        """
        index, steps = self._names.index(name), len(self._names)
        key = _digest([name, __version__, inputs])
        kept = self._find(name, key)
        if kept is None:
            self._on_event(StepStarted(name, index, steps))
            started = perf_counter()
            facts = work()
            kept = {
                "key": key,
                "seconds": perf_counter() - started,
                "outputs": self._sums(outputs),
                "facts": facts,
            }
            with new_file(self._record(name), overwrite=True) as partial:
                write_json(partial, kept)
            self._on_event(StepEnded(name, index, steps, kept["seconds"], kept=False))
        else:
            self._on_event(StepEnded(name, index, steps, kept["seconds"], kept=True))
        return _digest(kept["outputs"]), kept["facts"]

    def _record(self, name: str) -> Path:
        return self.folder / "steps" / f"{name}.json"

    def _find(self, name: str, key: str) -> dict[str, Any] | None:
        """Return a step's record if its key is the same and its files are as it left them."""
        if not self._record(name).is_file():
            return None
        try:
            record: dict[str, Any] = read_json(self._record(name))
            sums = record["outputs"]
            whole = record["key"] == key and all((self.folder / f).is_file() for f in sums)
            return record if whole and self._sums(list(sums)) == sums else None
        except (DataError, KeyError, TypeError, OSError):
            # A record that cannot be read is made again.
            return None

    def _sums(self, outputs: list[str]) -> dict[str, str]:
        found: dict[str, str] = {}
        for output in outputs:
            path = self.folder / output
            files = sorted(f for f in path.rglob("*") if f.is_file()) if path.is_dir() else [path]
            found |= {f.relative_to(self.folder).as_posix(): sha256(f) for f in files}
        return found


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
