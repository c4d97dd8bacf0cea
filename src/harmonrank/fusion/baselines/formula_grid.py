"""Formula by grid: a coarse grid over all weights, then finer lines through the best point."""

__all__ = ["FormulaGrid"]

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from harmonrank.fusion.baselines.formula import Form, Formula, FormulaConfig, SearchObjective
from harmonrank.fusion.method import Method

_STEPS = (2.0, 1.0, 0.5, 0.25)
_LEVELS = (-4.0, -2.0, 0.0, 2.0)
_OFFSETS = (-4.0, -2.0, 0.0)


@dataclass(frozen=True)
class FormulaGridConfig(FormulaConfig):
    """Half of the trials on a grid of log a, the others up and down one axis at a time.

    The lines through the best point get finer, from a factor of e² to e^¼, as long as trials are
    left.
    """

    name: ClassVar[str] = "formula-grid"

    def search(
        self, form: Form, objectives: int, evaluate: SearchObjective, rng: np.random.Generator
    ) -> Iterator[tuple[float, Formula]]:
        """Try formulas and yield them with their value."""
        coarse = max(self.trials // 2, 1)
        best: tuple[float, np.ndarray] | None = None
        points = _grid(form, objectives, coarse, rng)
        values = evaluate.each([_formula(form, point) for point in points])
        for value, point in zip(values, points, strict=True):
            yield value, _formula(form, point)
            if best is None or value > best[0]:
                best = value, point
        assert best is not None
        left = self.trials - coarse
        for step in _STEPS:
            moved = True
            while moved and left > 0:
                moved = False
                for axis in range(len(best[1]) * 2):
                    point = best[1].copy()
                    point[axis // 2] += step if axis % 2 else -step
                    value = evaluate(_formula(form, point))
                    left -= 1
                    yield value, _formula(form, point)
                    if value > best[0]:
                        best, moved = (value, point), True


class FormulaGrid(Method):
    """The formula with the best AUC-sum: see `FormulaGridConfig` for the search."""

    Config = FormulaGridConfig


def _grid(form: Form, objectives: int, points: int, rng: np.random.Generator) -> np.ndarray:
    """Return the grid, a point per row; where it has more points than may be tried, some of them.

    The axes are log a of each objective and, for a product, one log b for all.
    """
    axes = [_LEVELS] * objectives + ([_OFFSETS] if form == "product" else [])
    sizes = [len(axis) for axis in axes]
    total = float(np.prod(np.array(sizes, dtype=np.float64)))
    if total <= 2**22:
        which = np.arange(int(total))
        corner = np.stack(np.unravel_index(which, sizes), axis=1)
        # Only ratios count: a point whose largest a is not the top level is another one's twin.
        top = corner[:, :objectives].max(axis=1) == len(_LEVELS) - 1
        corner = corner[top]
        if len(corner) > points:
            corner = corner[np.sort(rng.choice(len(corner), points, replace=False))]
    else:
        corner = rng.integers(0, sizes, size=(points, len(sizes)))
    grid = np.stack([np.array(axis)[corner[:, i]] for i, axis in enumerate(axes)], axis=1)
    even = np.zeros((1, len(axes)))
    return np.concatenate([even, grid[: max(points - 1, 0)]])


def _formula(form: Form, point: np.ndarray) -> Formula:
    if form != "product":
        return Formula(form, point, np.zeros_like(point))
    return Formula(form, point[:-1], np.full(len(point) - 1, point[-1]))
