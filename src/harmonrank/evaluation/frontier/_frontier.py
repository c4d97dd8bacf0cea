"""Frontier: which AUCs one fit can reach as its weights move, and which of them are unbeaten."""

__all__ = ["Front", "Frontier", "frontier_of"]

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from harmonrank.evaluation.frontier._sweep import Sweep, weights_to_try
from harmonrank.metrics import hypervolume, knee, pareto_front
from harmonrank.support.errors import UsageError

MOST_POINTS = 300
_MOST_DIMENSIONS = 5  # of an exact hypervolume
_OTHERS = 8
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
    """

    figures: np.ndarray
    unbeaten: np.ndarray
    volume: float | None
    reference: np.ndarray
    knee: int

    def to_dict(self) -> dict[str, Any]:
        """Return what the JSON says of the whole front."""
        return {
            "points": int(self.unbeaten.sum()),
            "hypervolume": self.volume,
            "reference": self.reference.tolist(),
            "knee": self.knee,
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
        request_auc: Per-request AUC; None without requests.
        events: Events of each objective among the first k of a request; None without requests.
        best: The front of the true probabilities, in a world; its points are their own.
        value: What an event is worth, where the model says so.
        named: Numbers of the model's operating points and of further ones, by name.
        unwanted: Objectives of which less is better.
    """

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

    @property
    def sums(self) -> np.ndarray:
        """The weighted AUC-sum of each point, by what each AUC counts now."""
        found: np.ndarray = self.auc.figures @ self.count
        return found

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

    def listed(self) -> dict[int, str]:
        """Return the points that a reader looks at first, and what each is."""
        found: dict[int, list[str]] = {CURRENT: ["current"]}
        found.setdefault(self.auc.knee, []).append("knee")
        for name, number in self.named.items():
            # One that has the current weights is no other point.
            same = np.allclose(self.weights[number], self.weights[CURRENT], rtol=1e-9)
            found.setdefault(CURRENT if same else number, []).append(name)
        good = np.where(self.auc.unbeaten[:, None], self.auc.figures * self.signs, -np.inf)
        for name, number in zip(self.names, good.argmax(axis=0).tolist(), strict=True):
            most = "least" if name in self.unwanted else "most"
            found.setdefault(number, []).append(f"{most} {name}")
        for number in self._spread(list(found)):
            found[number] = []
        return {number: ", ".join(words) for number, words in found.items()}

    def _spread(self, taken: list[int]) -> list[int]:
        """Return some more unbeaten points, each as far as can be from those before it."""
        front = np.flatnonzero(self.auc.unbeaten)
        span = np.ptp(self.auc.figures[front], axis=0)
        scaled = self.auc.figures / np.where(span > 0, span, 1.0)
        more: list[int] = []
        while len(more) < _OTHERS:
            near = np.linalg.norm(scaled[front][:, None] - scaled[taken + more], axis=2).min(axis=1)
            if near.max() < 0.1:
                break
            more.append(int(front[near.argmax()]))
        return sorted(more, key=lambda number: -self.auc.figures[number, 0])

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
                "auc_sum": float(self.sums[number]),
                **{name: by_name(front.figures[number]) for name, front in known.items()},
                "unbeaten": {name: bool(f.unbeaten[number]) for name, f in known.items()},
            }
            for number, weights in enumerate(self.weights)
        ]
        return {
            "objectives": list(self.names),
            "unwanted": list(self.unwanted),
            "rows": self.rows,
            "k": self.k,
            "exact": self.exact,
            "count": by_name(self.count),
            "value": self.value,
            "named": dict(self.named),
            "knee": self.auc.knee,
            "fronts": {name: front.to_dict() for name, front in known.items()},
            "best_possible": None if self.best is None else self.best.to_dict(),
            "points": points,
        }


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
    for number, each in enumerate(weights):
        areas.append(sweep.areas(each))
        if sweep.log.request is not None:
            within.append(sweep.request_areas(each))
            events.append(sweep.events(each, k))
        if sweep.best is not None:
            best.append(sweep.best.areas(each))
        on_step(number + 1, len(weights))
    random = sweep.random_events(k)
    worth = model.schema.values_with(None)
    chance = np.full(M, 0.5)
    return Frontier(
        names=sweep.names,
        rows=sweep.log.rows,
        k=k,
        weights=weights * signs,
        count=sweep.count * signs,
        auc=_front(areas, chance, sweep.shown),
        request_auc=_front(within, chance, sweep.shown) if within else None,
        events=None if random is None else _front(events, random, lambda found: found * signs),
        best=_front(best, chance, sweep.shown) if best else None,
        value=None if worth is None else dict(zip(sweep.names, worth.tolist(), strict=True)),
        named={name: number for number, name in enumerate(named, 1 + len(grid))},
        exact=sweep.exact,
        unwanted=sweep.unwanted,
    )


def _front(
    rows: list[Any], reference: np.ndarray, shown: Callable[[np.ndarray], np.ndarray]
) -> Front:
    """Compare the points by the objectives that have a figure, of which more is better.

    What is kept is as people read it: less of an unwanted objective is better.
    """
    figures = np.stack(rows)
    known = np.isfinite(figures).all(axis=0)
    better = figures[:, known]
    volume = None
    if 1 <= known.sum() <= _MOST_DIMENSIONS:
        volume = hypervolume(better, reference[known])
    return Front(shown(figures), pareto_front(better), volume, shown(reference), knee(better))
