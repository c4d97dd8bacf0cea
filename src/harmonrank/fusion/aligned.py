"""Aligned: the part of a method that gives its scores the distribution of another model's."""

__all__ = ["Aligned", "MapsForm"]

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from copy import copy
from typing import Annotated, Any, Self

import numpy as np
from msgspec import Meta
from numpy.typing import ArrayLike

from harmonrank.data import Source, read_log
from harmonrank.fusion.fitting.row_blocks import FitsBlocks
from harmonrank.fusion.score_map import ScoreMap, score_map_arrays
from harmonrank.fusion.weighed import Weighed
from harmonrank.support.errors import DataError
from harmonrank.support.storage.arrays import Array

_MOST_MAPS = 1000
_Weight = Annotated[float, Meta(ge=-1e100, le=1e100)]
MapsForm = Annotated[list[dict[str, _Weight]], Meta(max_length=_MOST_MAPS)]
"""What a saved model holds beside the arrays: the objective weights that each map is for."""


class Aligned(Weighed, FitsBlocks):
    """Keeps a map of its fused score for each weighting that was aligned.

    A map belongs to the weights that it was made with: with others, scores come as they are.
    """

    _maps: tuple[tuple[np.ndarray, ScoreMap], ...] = ()

    def _keep_prevalence(self, prevalence: np.ndarray) -> None:
        super()._keep_prevalence(prevalence)
        self._maps = ()

    @abstractmethod
    def score(
        self,
        table: Source,
        *,
        weights: Mapping[str, float] | None = None,
        value: Mapping[str, float] | None = None,
    ) -> np.ndarray:
        """Return the fused score of each row."""

    @property
    def is_aligned(self) -> bool:
        """Whether scores with the present weights are mapped."""
        return self._map_of(None) is not None

    def aligned(self, running: "Aligned | ArrayLike", table: Source) -> Self:
        """Return this model with scores distributed like those of another; it ranks as before.

        Only scores with the weights that it has now change. The map is kept with the model.

        Args:
            running: A fitted model, at the weights that it runs with, or its score of each row.
            table: Rows as they come, at least 1,000 that count; labels are not needed.
        """
        plain = self.unaligned()
        log = read_log(table, self.schema, labels=False, sample_weight=True)
        own = plain.score(log)
        if isinstance(running, Aligned):
            theirs = running.score(log if running.schema == self.schema else table)
        else:
            theirs = np.asarray(running, dtype=np.float64)
        if theirs.shape != own.shape:
            raise DataError(
                f"`running` must have one score for each of {len(own):,} rows. Got {theirs.shape}."
            )
        counts = np.ones(len(own), bool) if log.sample_weight is None else log.sample_weight > 0
        found = ScoreMap.between(own[counts], theirs[counts])
        changed = copy(self)
        changed._maps = (*plain._maps, (self.objective_weights(), found))
        return changed

    def unaligned(self) -> Self:
        """Return this model with scores as its method makes them, at the weights that it has."""
        now, changed = self.objective_weights(), copy(self)
        changed._maps = tuple(each for each in self._maps if not np.array_equal(each[0], now))
        return changed

    def with_maps_of(self, other: Self) -> Self:
        """Return this model with the maps of itself at other weights, which `at` gives."""
        changed = copy(self)
        changed._maps = other._maps
        return changed

    def _map_of(self, weights: np.ndarray | None) -> ScoreMap | None:
        if not self._maps:
            return None
        now = self.objective_weights() if weights is None else weights
        return next((found for own, found in self._maps if np.array_equal(own, now)), None)

    def _given(self, fused: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
        """Return fused scores as they are given out."""
        found = self._map_of(weights)
        return fused if found is None else found(fused)

    def _map_state(self) -> tuple[list[dict[str, float]], dict[str, np.ndarray]]:
        """Return the weights of each map as JSON parts, and its arrays."""
        names = self.schema.names
        parts = [dict(zip(names, own.tolist(), strict=True)) for own, _ in self._maps]
        arrays: dict[str, np.ndarray] = {}
        for place, (_, found) in enumerate(self._maps):
            arrays |= {f"map/{place}/x": found.x, f"map/{place}/y": found.y}
        return parts, arrays

    def _declare_maps(self, parts: Sequence[Mapping[str, float]]) -> dict[str, Array]:
        """Return what each array of `_map_state` must be."""
        names = set(self.schema.names)
        if any(set(part) != names for part in parts):
            raise DataError(f"`maps` must have a weight for each of {', '.join(sorted(names))}")
        declared: dict[str, Array] = {}
        for place in range(len(parts)):
            declared |= score_map_arrays(f"map/{place}")
        return declared

    def _restore_maps(self, parts: Sequence[Mapping[str, float]], arrays: dict[str, Any]) -> None:
        """Take what `_map_state` returned out of the arrays of a saved model."""
        names, found = self.schema.names, []
        for place, part in enumerate(parts):
            weights = np.array([part[name] for name in names])
            x, y = (arrays.pop(f"map/{place}/{axis}") for axis in "xy")
            found.append((weights, ScoreMap(x, y)))
        self._maps = tuple(found)
