"""A fit of harmonrank-paper taken apart: its steps, and everything around them."""

__all__ = ["profile"]

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from harmonrank.fusion import method_class
from harmonrank.fusion.fitting import fit as fit_module
from harmonrank.paper.methods import neural_fit
from harmonrank.paper.training import learner
from harmonrank_lab.bench._result import Case, Result
from harmonrank_lab.bench._rows import schema_of, write_repeated
from harmonrank_lab.bench._size import Size

_NAME = "fit of harmonrank-paper"
_PARTS = ("steps", "reading", "validation scores", "metrics", "shuffling and the rest")


def profile(size: Size) -> list[Case]:
    """One case per part; the fit runs when the first of them is asked for."""
    return [Case(f"{_NAME}: {part}", partial(_part, size, part)) for part in _PARTS]


def _part(size: Size, part: str) -> Result:
    seconds = _fit(size.train_rows, size.epochs, size.batch_rows)
    note = f"{size.epochs} epochs, half as many validation rows"
    if part != "steps":
        note = f"{seconds[part] / seconds['steps']:.0%} of the steps"
    return Result("train", f"{_NAME}: {part}", size.train_rows, seconds[part], note=note)


@cache
def _fit(rows: int, epochs: int, batch_rows: int) -> dict[str, float]:
    """Fit from a file and return the seconds of each part; steps gather their own batches."""
    with TemporaryDirectory() as scratch:
        train, valid = Path(scratch) / "train.parquet", Path(scratch) / "valid.parquet"
        write_repeated(train, rows)
        write_repeated(valid, rows // 2)

        def fit(epochs: int) -> float:
            method = method_class("harmonrank-paper")(
                epochs=epochs, patience=epochs, batch_rows=batch_rows
            )
            started = perf_counter()
            method.fit(train, schema_of(5), valid=valid)
            return perf_counter() - started

        fit(1)  # Compiles what is not in the cache yet.
        with ExitStack() as stack:
            steps, eager, reading, encoding, scoring, areas = (
                stack.enter_context(_clock(owner, name))
                for owner, name in (
                    (learner.FusedLearner, "step"),
                    (learner.TorchLearner, "step"),
                    (fit_module, "read_log"),
                    (neural_fit, "arrays_of"),
                    (neural_fit, "_scores_of"),
                    (neural_fit, "auc"),
                )
            )
            total = fit(epochs)
    parts = {
        "steps": sum(steps) + sum(eager),
        "reading": sum(reading) + sum(encoding),
        "validation scores": sum(scoring),
        "metrics": sum(areas),
    }
    return parts | {"shuffling and the rest": total - sum(parts.values())}


@contextmanager
def _clock(owner: Any, name: str) -> Iterator[list[float]]:
    """Collect the seconds that each call of a function takes."""
    function: Callable[..., Any] = getattr(owner, name)
    seconds: list[float] = []

    def timed(*arguments: Any, **options: Any) -> Any:
        started = perf_counter()
        try:
            return function(*arguments, **options)
        finally:
            seconds.append(perf_counter() - started)

    setattr(owner, name, timed)
    try:
        yield seconds
    finally:
        setattr(owner, name, function)
