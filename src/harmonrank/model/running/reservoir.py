"""Reservoir: a bounded sample of the rows learned so far, rows that tell much preferred.

Sequential Poisson sampling (priority sampling: Duffield, Lund and Thorup, 2007). Row i has a size
q_i, the largest probability of a positive among its heads, or 1 if it is one: of a row that is
surely negative the likelihood learns little. With u_i uniform its priority is q_i/u_i, those of the
largest priorities stay, and a row that stayed stands for 1/min(1, q_i/τ) rows, τ being the largest
priority that was ever turned away. Priorities are kept as logarithms, to which the time of the row
in half-lives is added, so that newer rows are preferred as old ones fade.
"""

__all__ = ["Reservoir"]

from dataclasses import dataclass, fields, replace
from typing import Annotated, Any

import numpy as np
from msgspec import Meta

from harmonrank.support.storage.arrays import Array


def _rows(*shape: str, **bounds: Any) -> Array:
    return Array(("kept", *shape), least=0, **bounds)


@dataclass(frozen=True)
class Reservoir:
    """Rows in the order in which they came.

    Attributes:
        most: How many are kept.
        places: (rows, M) coordinates of their scores, float32; NaN where one is missing.
        codes: (rows, features) of the context, int32.
        labels: (rows, M), uint8.
        weight: (rows,) what each counted when it came.
        time: (rows,) when that was, in hours.
        size: (rows,) log q, with its time in half-lives of the sample added.
        priority: (rows,) size − log u.
        threshold: The largest priority that was turned away; None if none was.
        seen: How many rows came in all.
    """

    most: Annotated[int, Meta(ge=1)]
    places: Annotated[np.ndarray, _rows("M", dtype="float32", low=-1e9, high=1e9, gaps=True)]
    codes: Annotated[np.ndarray, _rows("features", dtype="int32", low=0, high=1e6)]
    labels: Annotated[np.ndarray, _rows("M", dtype="uint8", low=0, high=1)]
    weight: Annotated[np.ndarray, _rows(low=0.0)]
    time: Annotated[np.ndarray, _rows()]
    size: Annotated[np.ndarray, _rows()]
    priority: Annotated[np.ndarray, _rows()]
    threshold: Annotated[float, Meta(ge=-1e12, le=1e12)] | None = None
    seen: Annotated[int, Meta(ge=0)] = 0

    @classmethod
    def empty(cls, most: int, M: int, features: int) -> "Reservoir":
        """Return a reservoir without rows."""
        return cls(
            most,
            np.empty((0, M), np.float32),
            np.empty((0, features), np.int32),
            np.empty((0, M), np.uint8),
            weight=np.empty(0),
            time=np.empty(0),
            size=np.empty(0),
            priority=np.empty(0),
        )

    @property
    def thinned(self) -> bool:
        """Whether some row had to leave."""
        return self.threshold is not None

    def with_rows(
        self,
        coordinates: np.ndarray,
        codes: np.ndarray,
        labels: np.ndarray,
        weight: np.ndarray | None,
        probabilities: np.ndarray,
        time: float,
        half_life: float | None,
    ) -> "Reservoir":
        """Return the sample after more rows came, all at one time.

        Args:
            coordinates: (rows, M) coordinates.
            codes: (rows, features).
            labels: (rows, M) of 0 and 1.
            weight: (rows,).
            probabilities: (rows, M) of the heads, which decide what a row tells.
            time: In hours.
            half_life: In hours, of the sample; None to prefer no row for its age.
        """
        rows = len(coordinates)
        likely = np.maximum(probabilities.max(axis=1), labels.max(axis=1))
        size = np.log(np.clip(likely, 1e-6, 1.0))
        if half_life is not None:
            size += time * np.log(2) / half_life
        # By the number of rows before, so that a replay of the batches draws the same.
        rng = np.random.default_rng([self.seen, rows])
        newer = replace(
            self,
            places=np.concatenate([self.places, coordinates.astype(np.float32)]),
            codes=np.concatenate([self.codes, codes.astype(np.int32)]),
            labels=np.concatenate([self.labels, labels.astype(np.uint8)]),
            weight=np.concatenate([self.weight, np.ones(rows) if weight is None else weight]),
            time=np.concatenate([self.time, np.full(rows, time)]),
            size=np.concatenate([self.size, size]),
            priority=np.concatenate([self.priority, size - np.log1p(-rng.random(rows))]),
            seen=self.seen + rows,
        )
        return newer._kept()

    def _kept(self) -> "Reservoir":
        if len(self.priority) <= self.most:
            return self
        order = np.argpartition(self.priority, -self.most - 1)
        gone, stay = order[: -self.most], np.sort(order[-self.most :])
        taken = {name: getattr(self, name)[stay] for name in _ROWS}
        highest = float(self.priority[gone].max())
        threshold = highest if self.threshold is None else max(self.threshold, highest)
        return replace(self, **taken, threshold=threshold)

    def weights(self, now: float, half_life: float | None) -> np.ndarray:
        """Return how many rows each row stands for, old ones faded."""
        weight = self.weight
        if half_life is not None:
            weight = weight * 2.0 ** ((self.time - now) / half_life)
        if self.threshold is None:
            return weight
        return weight / np.exp(np.minimum(self.size - self.threshold, 0.0))

    def recoded(self, codes: list[np.ndarray]) -> "Reservoir":
        """Return it with other context codes: `codes[f]` is the new one of each old one."""
        columns = [new[self.codes[:, f]] for f, new in enumerate(codes)]
        new = np.stack(columns, axis=1) if columns else self.codes
        return replace(self, codes=new.astype(np.int32))


_ROWS = tuple(
    field.name for field in fields(Reservoir) if field.name not in ("most", "threshold", "seen")
)
