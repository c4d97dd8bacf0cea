"""Alignment: a model whose scores fall as those of the running one do."""

__all__ = ["Alignment", "align"]

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from harmonrank.data import Source
from harmonrank.evaluation.baseline import Baseline
from harmonrank.fusion import Method
from harmonrank.fusion.method import changed
from harmonrank.support.table import Column, Table, Tabular

_LEVELS = (0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99)


@dataclass(frozen=True, repr=False)
class Alignment(Tabular):
    """A model with scores distributed like those of the running one.

    Attributes:
        model: The aligned model, with the weights that it had.
        scores: Of every row: before, aligned, and of what runs.
    """

    model: Method
    scores: Mapping[str, np.ndarray] = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return quantiles, and how far the distributions are from that of what runs."""
        quantiles = {
            name: dict(zip(map(str, _LEVELS), np.quantile(values, _LEVELS).tolist(), strict=True))
            for name, values in self.scores.items()
        }
        running = self.scores["running"]
        ks = {name: _distance(self.scores[name], running) for name in ("before", "aligned")}
        return {"rows": len(running), "quantiles": quantiles, "ks": ks}

    def to_table(self) -> Table:
        """Return a row per quantile."""
        told = self.to_dict()
        columns = (Column("quantile", ".0%"), *(Column(name, ".4g") for name in self.scores))
        rows = tuple(
            (level, *(told["quantiles"][name][str(level)] for name in self.scores))
            for level in _LEVELS
        )
        note = (
            f"Largest distance of the distributions (KS): {told['ks']['before']:.4f} before, "
            f"{told['ks']['aligned']:.4f} aligned. The ranking is the same."
        )
        return Table(columns, rows, notes=(note,))


def align(model: Method, table: Source, like: Method | str, *, at: str | None = None) -> Alignment:
    """Give a model scores distributed like those of what runs now; it ranks as before.

    Args:
        model: A fitted model.
        table: Rows as they come, at least 1,000; labels are not needed.
        like: The running model, or a column or formula of the table that holds its scores.
        at: The operating point of the model whose scores are to change; the weights it has if
            left out.
    """
    chosen = model if at is None else model.at(at)
    running = like.score(table) if isinstance(like, Method) else Baseline.read(table, like).scores
    new = chosen.aligned(running, table)
    scores = {
        "before": chosen.unaligned().score(table),
        "aligned": new.score(table),
        "running": running,
    }
    # Weights that a point has in the model stay the point's.
    kept = replace(model.fitted, maps=new.fitted.maps)
    return Alignment(changed(model, fitted=kept), scores)


def _distance(one: np.ndarray, other: np.ndarray) -> float:
    """Return the largest distance of two distribution functions (Kolmogorov and Smirnov)."""
    values = np.concatenate([one, other])
    below = [np.searchsorted(np.sort(each), values, "right") / len(each) for each in (one, other)]
    return float(np.abs(below[0] - below[1]).max())
