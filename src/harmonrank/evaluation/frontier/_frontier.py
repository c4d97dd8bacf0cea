"""Frontier: which AUCs one fit can reach as its weights move, and which of them are unbeaten."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from harmonrank.data import Source
from harmonrank.evaluation.baseline import Baseline
from harmonrank.evaluation.frontier._floors import Floor
from harmonrank.evaluation.frontier._guarded import Guarded, guarded_by
from harmonrank.evaluation.frontier._refit import Refit, refits_of
from harmonrank.evaluation.frontier._sweep import Sweep, weights_to_try
from harmonrank.fusion import Method
from harmonrank.metrics import hypervolume, knee, pareto_front
from harmonrank.support.errors import UsageError

MOST_POINTS = 300
_MOST_DIMENSIONS = 5  # of an exact hypervolume
_OTHERS = 8
_REFITS = 5
CURRENT = 0
"""The number of the point with the weights of the model."""


@dataclass(frozen=True, eq=False)
class Front:
    """One kind of figure at every point: AUC, per-request AUC or events at K.

    Attributes:
        figures: (points, M).
        unbeaten: (points,) which no other point beats.
        volume: Hypervolume above the reference; None beyond five objectives.
        reference: (M,) what a random order has.
        knee: The number of the point where the front bends most.
        today: (M,) of what ranks today, if it was named.
    """

    figures: np.ndarray
    unbeaten: np.ndarray
    volume: float | None
    reference: np.ndarray
    knee: int
    today: np.ndarray | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return what the JSON says of the whole front."""
        return {
            "points": int(self.unbeaten.sum()),
            "hypervolume": self.volume,
            "reference": self.reference.tolist(),
            "knee": self.knee,
            "today": None if self.today is None else self.today.tolist(),
        }


@dataclass(frozen=True, eq=False)
class Frontier:
    """Points that one fit reaches, numbered; 0 has the weights of the model.

    Attributes:
        names: The objectives.
        rows: How many were measured.
        k: Of the events at K.
        weights: (points, M) of mean size 1; below 0 for unwanted objectives.
        count: (M,) what each AUC counts in the sum.
        auc: AUC over all rows.
        request_auc: AUC within requests; None without requests.
        within: Whether it decides: sums, knee, named points and floors are by it then.
        events: Events of each objective among the first k of a request; None without requests.
        best: What decides of the true probabilities, in a world; its points are their own.
        value: What an event is worth, where the model says so.
        named: Numbers of the model's operating points and of further ones, by name.
        unwanted: Objectives of which less is better.
        guarded: What the search for weights that keep floors found, if there were any.
        refits: Some of the points, fitted for.
        baseline: The column or formula that ranks today, if it was named.
    """

    method: str
    names: tuple[str, ...]
    rows: int
    k: int
    weights: np.ndarray
    count: np.ndarray
    auc: Front
    request_auc: Front | None = None
    events: Front | None = None
    best: Front | None = None
    value: dict[str, float] | None = None
    named: Mapping[str, int] = field(default_factory=dict)
    exact: bool = False
    unwanted: tuple[str, ...] = ()
    guarded: Guarded | None = None
    refits: tuple[Refit, ...] = ()
    within: bool = False
    baseline: str | None = None

    @property
    def decisive(self) -> Front:
        """The front that decides: AUC within requests where rows have it, else over all rows."""
        return self.request_auc if self.within and self.request_auc is not None else self.auc

    @property
    def where(self) -> str:
        """The same as an adverb."""
        return "within requests" if self.within else "over all rows"

    @property
    def sums(self) -> np.ndarray:
        """The weighted sum of each point's AUCs that decide, by what each counts now."""
        sums: np.ndarray = self.decisive.figures @ self.count
        return sums

    @property
    def today(self) -> float | None:
        """The same sum of what ranks today; None if it was not named."""
        areas = self.decisive.today
        return None if areas is None else float(areas @ self.count)

    @property
    def signs(self) -> np.ndarray:
        """What more of each objective is: 1 is good, −1 is bad."""
        return np.where(np.isin(self.names, self.unwanted), -1.0, 1.0)

    def title(self, name: str) -> str:
        """Return an objective's name, with a word where less of it is better."""
        return f"{name} (unwanted)" if name in self.unwanted else name

    def point(self, number: int) -> dict[str, float]:
        """Return the weights of a point."""
        if not 0 <= number < len(self.weights):
            raise UsageError(
                f"Points are numbered from 0 to {len(self.weights) - 1}. Got {number}."
            )
        return dict(zip(self.names, self.weights[number].tolist(), strict=True))

    @property
    def usual(self) -> str:
        """The name of the point that is meant where none is chosen."""
        if self.guarded is None:
            return "knee"
        return "kept" if self.guarded.feasible else "nearest"

    def chosen(self, text: str) -> tuple[int | None, dict[str, float]]:
        """Return the number of the point that a name or number means, and its weights."""
        known = {**self.named, "knee": self.decisive.knee, "current": CURRENT}
        if text in known:
            return known[text], self.point(known[text])
        if text.isdecimal():
            return int(text), self.point(int(text))
        raise UsageError(
            f"--choose takes {', '.join(known)}, the number of a point or weights such as "
            f"buy=2,like=1. Got '{text}'."
        )

    def report(self, path: str | Path, **about: Any) -> None:
        """Write one HTML page with charts; `about` is a title and the number chosen."""
        import harmonrank  # by its public name: pages are made of results, and stand above them

        harmonrank.write_report(self, path, **about)

    def listed(self) -> dict[int, str]:
        """Return the points that a reader looks at first, and what each is."""
        words: dict[int, list[str]] = {CURRENT: ["current"]}
        words.setdefault(self.decisive.knee, []).append("knee")
        for name, number in self.named.items():
            # One that has the current weights is no other point.
            same = np.allclose(self.weights[number], self.weights[CURRENT], rtol=1e-9)
            words.setdefault(CURRENT if same else number, []).append(name)
        good = np.where(
            self.decisive.unbeaten[:, None], self.decisive.figures * self.signs, -np.inf
        )
        for name, number in zip(self.names, good.argmax(axis=0).tolist(), strict=True):
            most = "least" if name in self.unwanted else "most"
            words.setdefault(number, []).append(f"{most} {name}")
        for number in self._spread(list(words)):
            words[number] = []
        return {number: ", ".join(each) for number, each in words.items()}

    def _spread(self, taken: list[int]) -> list[int]:
        """Return some more unbeaten points, each as far as can be from those before it."""
        front = np.flatnonzero(self.decisive.unbeaten)
        span = np.ptp(self.decisive.figures[front], axis=0)
        scaled = self.decisive.figures / np.where(span > 0, span, 1.0)
        more: list[int] = []
        while len(more) < _OTHERS:
            near = np.linalg.norm(scaled[front][:, None] - scaled[taken + more], axis=2).min(axis=1)
            if near.max() < 0.1:
                break
            more.append(int(front[near.argmax()]))
        return sorted(more, key=lambda number: -self.decisive.figures[number, 0])

    def to_dict(self) -> dict[str, Any]:
        """Return all points and fronts as JSON parts."""
        fronts = {"auc": self.auc, "request_auc": self.request_auc, "events_at_k": self.events}
        known = {name: front for name, front in fronts.items() if front is not None}

        def by_name(row: np.ndarray) -> dict[str, float]:
            return dict(zip(self.names, row.tolist(), strict=True))

        points = [
            {
                "number": number,
                "weights": by_name(weights),
                "auc_sum": float(self.auc.figures[number] @ self.count),
                **({"request_auc_sum": float(self.sums[number])} if self.within else {}),
                **{name: by_name(front.figures[number]) for name, front in known.items()},
                "unbeaten": {name: bool(f.unbeaten[number]) for name, f in known.items()},
            }
            for number, weights in enumerate(self.weights)
        ]
        return {
            "method": self.method,
            "objectives": list(self.names),
            "unwanted": list(self.unwanted),
            "rows": self.rows,
            "k": self.k,
            "exact": self.exact,
            "count": by_name(self.count),
            "value": self.value,
            "named": dict(self.named),
            "criterion": self.where.removeprefix("over "),
            "baseline": self.baseline,
            "knee": self.decisive.knee,
            "fronts": {name: front.to_dict() for name, front in known.items()},
            "best_possible": None if self.best is None else self.best.to_dict(),
            "points": points,
            "guarded": self.guarded and self.guarded.to_dict(),
            "refits": [one.to_dict(self.names) for one in self.refits],
        }


def frontier(
    model: Method,
    table: Source,
    *,
    weights: Mapping[str, float] | None = None,
    k: int = 10,
    points: int = MOST_POINTS,
    keep: Sequence[str] = (),
    level: float = 0.95,
    refit: Source | None = None,
    baseline: str | Baseline | None = None,
    on_step: Callable[[int, int], None] = lambda *_: None,
    on_refit: Callable[[int], None] = lambda _: None,
) -> Frontier:
    """Show what a fitted model can trade between objectives, without another fit.

    Args:
        model: A fitted method with probabilities.
        table: Rows with labels, none of which it was fitted on.
        weights: What the AUC of each objective counts in the sum; those of the model if left out.
        k: Of the events among the first k of a request.
        points: Weights to try, at most.
        keep: Floors, such as 'buy>=0.75' or 'like>=current-0.002': the weights of the best AUC-sum
            are searched for which all hold. 'click>=today' needs a baseline; 'click@10>=today' is
            of the events among the first 10 of a request.
        level: Of the interval whose lower end must hold a floor; 0 asks for no margin.
        refit: Training rows: also fit for the weights of a few points.
        baseline: What ranks today, as a column of the table or a formula over its columns.
        on_step: Called with the points done and the points in all.
        on_refit: Called with the number of every point that was fitted for.
    """
    sweep = Sweep.of(model, table, count=weights, baseline=baseline)
    floors = [Floor.parse(text, sweep.names, sweep.unwanted) for text in keep]
    guarded = guarded_by(sweep, floors, level=level) if floors else None
    more = {}
    if guarded is not None:
        more = {"kept" if guarded.feasible else "nearest": guarded.point.weights}
    reached = frontier_of(sweep, k=k, points=points, more=more, on_step=on_step)
    reached = replace(reached, guarded=guarded)
    if refit is None:
        return reached
    at = {number: reached.weights[number] for number in list(reached.listed())[:_REFITS]}
    swept = reached.decisive.figures
    return replace(reached, refits=refits_of(sweep, at, swept, refit, on_refit=on_refit))


def frontier_of(
    sweep: Sweep,
    *,
    k: int = 10,
    points: int = MOST_POINTS,
    more: Mapping[str, np.ndarray] | None = None,
    on_step: Callable[[int, int], None] = lambda *_: None,
) -> Frontier:
    """Measure one fit at the weights of a grid over all trade-offs.

    Args:
        sweep: A model's heads on labelled rows.
        k: Of the events among the first k of a request.
        points: At most so many, beside the model's own weights and operating points.
        more: Weights of further points, by name.
        on_step: Called with the points done and the points in all.
    """
    model, M = sweep.model, len(sweep.names)
    signs = sweep.signs
    named = {name: model.schema.weights_with(each) for name, each in model.points.items()}
    named |= more or {}
    grid = weights_to_try(M, points)
    # Those with a name come last, so that one more changes no number.
    last = np.reshape(list(named.values()), (-1, M)) * signs
    weights = np.concatenate([sweep.weights[None], grid, last])
    weights = weights * (M / np.abs(weights).sum(axis=1, keepdims=True))
    areas, within, events, best = [], [], [], []
    # Last comes what ranks today, which is no point of the fit.
    tried = [*weights, *([] if sweep.today is None else [None])]
    for number, each in enumerate(tried):
        areas.append(sweep.areas(each))
        if sweep.log.request is not None:
            within.append(sweep.request_areas(each))
            events.append(sweep.events(sweep.fused(each), k))
        if sweep.best is not None and each is not None:
            best.append(sweep.best.decisive(each))
        on_step(number + 1, len(tried))
    random = sweep.events(np.zeros(sweep.log.rows), k)
    worth = model.schema.values_with(None)
    chance = np.full(M, 0.5)
    return Frontier(
        method=model.name,
        names=sweep.names,
        rows=sweep.log.rows,
        k=k,
        weights=weights * signs,
        count=sweep.count * signs,
        auc=_front(areas, chance, signs, points=len(weights)),
        request_auc=_front(within, chance, signs, points=len(weights)) if within else None,
        events=None if random is None else _front(events, random, signs, points=len(weights)),
        best=_front(best, chance, signs, points=len(weights)) if best else None,
        value=None if worth is None else dict(zip(sweep.names, worth.tolist(), strict=True)),
        named={name: number for number, name in enumerate(named, 1 + len(grid))},
        exact=sweep.exact,
        unwanted=sweep.unwanted,
        within=sweep.within,
        baseline=None if sweep.today is None else sweep.today.text,
    )


def _front(rows: list[Any], reference: np.ndarray, signs: np.ndarray, *, points: int) -> Front:
    """Compare the points by the objectives that have a figure.

    What comes after the points is the figures of what ranks today.
    """
    figures = np.stack(rows[:points])
    known = np.isfinite(figures).all(axis=0)
    better, volume = (figures * signs)[:, known], None
    if 1 <= known.sum() <= _MOST_DIMENSIONS:
        volume = hypervolume(better, (reference * signs)[known])
    today = rows[points] if len(rows) > points else None
    return Front(figures, pareto_front(better), volume, reference, knee(better), today)
