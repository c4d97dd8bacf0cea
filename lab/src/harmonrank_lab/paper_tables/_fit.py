"""FitCell: a method fitted on some rows and measured on others."""

from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any, NotRequired, TypedDict

import numpy as np
from msgspec import Meta

from harmonrank import __version__
from harmonrank.data import Log
from harmonrank.fusion import Method, ceiling_of, method_class
from harmonrank.metrics import auc, best_score, bootstrap_areas
from harmonrank.paper import NetworkOptions
from harmonrank.support import OnEvent
from harmonrank_lab.paper_tables._data import Data, Logs, StudyCell
from harmonrank_lab.paper_tables._table import Epoch

REPLICATES = 200
Count = Annotated[int, Meta(ge=0)]
_ATTENTION_ROWS = 50_000
# With fewer rows a fit is over before a checkpoint is worth its writing.
_LONG_ROWS = 200_000
# Options that name a variant where they differ from the method's own.
_NAMING = {field.name for field in fields(NetworkOptions)} | {"pairs"}


class _Fitted(TypedDict):
    """What a fit came to, as JSON parts."""

    fit_seconds: float
    auc: list[float]
    ceiling: float | None
    positives: list[Count]
    rows: dict[str, Count]
    attention: list[list[float]] | None
    history: list[Epoch]
    resampled: NotRequired[list[float | None]]
    points: NotRequired[list[list[float]]]
    best: NotRequired[list[list[float]]]


@dataclass(frozen=True)
class FitCell(StudyCell):
    """A method fitted on the rows of a seed and measured on its test rows.

    Attributes:
        options: Of the method, in a fixed order.
        weights: Of the objectives; 1 each if left out.
        odds: Rows with `skewed` are dropped from training until they are one in so many.
        sweep: Weights to score with after the fit, for methods that can.
    """

    result = _Fitted

    data: Data = field(compare=False)
    objectives: tuple[str, ...]
    method: str
    seed: int
    options: tuple[tuple[str, Any], ...] = ()
    weights: tuple[float, ...] | None = None
    skewed: str | None = None
    odds: int | None = None
    sweep: tuple[tuple[float, ...], ...] = ()

    @property
    def name(self) -> str:
        """Data, method, what is special, and the seed."""
        own = method_class(self.method).Config
        special = [f"{k}={v}" for k, v in self.options if k in _NAMING and v != getattr(own, k)]
        if self.weights is not None:
            pairs = zip(self.objectives, self.weights, strict=True)
            special += [f"{name}={w:g}" for name, w in pairs if w]
        special += [f"{self.skewed}=1:{self.odds}"] * (self.odds is not None)
        special += ["swept"] * bool(self.sweep)
        data = Path(self.data.name).name
        parts = [f"{data}-{len(self.objectives)}", self.method, *special, f"seed={self.seed}"]
        return " ".join(parts)

    @property
    def place(self) -> tuple[Any, ...]:
        """By seed, so that the first results are of all methods."""
        return (self.seed, self.data.name, len(self.objectives))

    def identity(self) -> dict[str, Any]:
        """Return data, method with every option, and all else."""
        names = ("objectives", "method", "seed", "weights", "sweep")
        own = {name: getattr(self, name) for name in names}
        own |= {"data": self.data.identity(), "options": asdict(self._built().config)}
        return {**own, "skew": [self.skewed, self.odds], "version": __version__}

    def _built(self) -> Method:
        return method_class(self.method)(**dict(self.options))

    def run(self, on_event: OnEvent, checkpoint: Path) -> dict[str, Any]:
        """Fit, score, measure."""
        logs = self.data.logs(self.seed, self.objectives)
        train = logs.train
        if self.odds is not None and self.skewed is not None:
            column = self.objectives.index(self.skewed)
            train = fewer_positives(train, column, self.odds, self.seed)
        schema = train.schema
        if self.weights is not None:
            weights = dict(zip(self.objectives, self.weights, strict=True))
            schema = replace(schema, weights=weights)
        model = self._built()
        started = perf_counter()
        model.fit(
            train, schema, valid=logs.valid, seed=self.seed, on_event=on_event,
            checkpoint=checkpoint if train.rows >= _LONG_ROWS else None,
        )  # fmt: skip
        seconds = perf_counter() - started
        return {"fit_seconds": seconds, **self._measured(model, train, logs)}

    def _measured(self, model: Method, train: Log, logs: Logs) -> dict[str, Any]:
        test = logs.test
        weights = np.ones(len(self.objectives)) if self.weights is None else np.array(self.weights)
        fused = model.score(test)
        measured: dict[str, Any] = {
            "auc": _areas(fused, test),
            "ceiling": ceiling_of(test, weights),
            "positives": train.known_labels().sum(axis=0).tolist(),
            "rows": {"train": train.rows, "test": test.rows},
        }
        if self.data.fixed_rows:
            areas = bootstrap_areas(
                fused, _answers(test), replicates=REPLICATES,
                groups=test.request, sample_weight=test.sample_weight,
            )  # fmt: skip
            measured["resampled"] = (areas[:, weights != 0] @ weights[weights != 0]).tolist()
        some = test.take(np.arange(min(test.rows, _ATTENTION_ROWS)))
        attention = getattr(model, "attention", lambda _: None)(some)
        measured["attention"] = None if attention is None else attention.tolist()
        measured["history"] = [list(epoch) for epoch in getattr(model, "history", ())]
        if self.sweep:
            measured |= self._swept(model, test)
        return measured

    def _swept(self, model: Method, test: Log) -> dict[str, Any]:
        """Return AUCs at other weights, and the best there are."""
        points, best = [], []
        for weights in self.sweep:
            named = dict(zip(self.objectives, weights, strict=True))
            points.append(_areas(model.score(test, weights=named), test))
            if test.truth is not None:
                best.append(_areas(best_score(test.truth, weights), test))
        return {"points": points, "best": best}


def _answers(test: Log) -> np.ndarray:
    """Return true probabilities, or labels where they are not known."""
    return test.known_labels() if test.truth is None else test.truth


def _areas(fused: np.ndarray, test: Log) -> list[float]:
    """Return the AUC of each objective."""
    areas: list[float] = auc(fused, _answers(test), sample_weight=test.sample_weight).tolist()
    return areas


def fewer_positives(log: Log, column: int, odds: int, seed: int) -> Log:
    """Drop rows where an objective is positive until it is so in one of `odds` others, at least 1.

    The rows to stay are the first of one random order: those of higher odds are among those of
    lower odds.
    """
    positive = np.flatnonzero(log.known_labels()[:, column])
    keep = max(1, round((log.rows - len(positive)) / odds))
    gone = np.random.default_rng([seed, column]).permutation(positive)[keep:]
    return log.take(np.setdiff1d(np.arange(log.rows), gone))
