"""Refits: how far one fit, re-weighted, is from another fit for these very weights."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from harmonrank.data import Source
from harmonrank.evaluation.frontier._sweep import Sweep


@dataclass(frozen=True, eq=False)
class Refit:
    """One point, reached by moving weights and by fitting for them.

    Attributes:
        number: Of the point.
        weights: (M,) of mean 1.
        swept: (M,) the AUCs of the one fit.
        fitted: (M,) the AUCs of the fit for these weights.
    """

    number: int
    weights: np.ndarray
    swept: np.ndarray
    fitted: np.ndarray

    @property
    def gap(self) -> float:
        """How much the refit is ahead, as the mean AUC by these weights."""
        return float(self.weights @ (self.fitted - self.swept) / np.abs(self.weights).sum())

    @property
    def largest(self) -> float:
        """The largest difference in the AUC of an objective, either way."""
        return float(np.abs(self.fitted - self.swept).max())

    def to_dict(self, names: tuple[str, ...]) -> dict[str, Any]:
        """Return JSON parts."""
        arrays = {"weights": self.weights, "swept": self.swept, "refitted": self.fitted}
        named = {key: dict(zip(names, a.tolist(), strict=True)) for key, a in arrays.items()}
        return {"number": self.number, **named, "gap": self.gap, "largest": self.largest}


def refits_of(
    sweep: Sweep,
    points: Mapping[int, np.ndarray],
    figures: np.ndarray,
    train: Source,
    *,
    seed: int = 0,
    on_refit: Callable[[int], None] = lambda _: None,
) -> tuple[Refit, ...]:
    """Fit the method again for the weights of some points, and measure it on the same rows.

    Args:
        sweep: The one fit on the rows.
        points: The weights of each point, by number.
        figures: (points, M) the AUCs of the one fit that decide.
        train: Training rows.
        seed: Of every fit.
        on_refit: Called with the number of every point that was fitted for.
    """
    model, refits = sweep.model, []
    for number, weights in points.items():
        named = dict(zip(sweep.names, weights.tolist(), strict=True))
        schema = replace(model.schema, weights=named, value={})
        again = type(model)(**asdict(model.config)).fit(train, schema, seed=seed)
        fitted = Sweep.of(again, sweep.log)
        areas = fitted.decisive(weights * fitted.signs)
        refits.append(Refit(number, weights, figures[number], areas))
        on_refit(number)
    return tuple(refits)
