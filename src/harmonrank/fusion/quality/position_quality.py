"""PositionCorrection: what the correction for places did to the rows of a measurement."""

__all__ = ["PlaceSums", "PositionCorrection"]

from dataclasses import dataclass
from typing import Annotated, Any, Self

import numpy as np
from msgspec import Meta

from harmonrank.data import Log, Schema
from harmonrank.data.values import chances_at
from harmonrank.fusion.position import MOST_WEIGHT

_FEW = 50
_Place = Annotated[str, Meta(pattern="^[0-9]{1,10}$")]


@dataclass(frozen=True)
class PositionCorrection:
    """Examination, clipping, and how many positives the weights leave.

    Attributes:
        examination: The chance that each listed place is looked at.
        largest_weight: Of a row.
        clipped_share: Share of rows whose place is looked at so rarely that its weight was clipped.
        positives: Of each objective, as counted.
        effective_positives: (Σu)²/Σu² over the positives of each objective: as many of equal weight
            would tell as much.
    """

    examination: Annotated[dict[_Place, float], Meta(min_length=1)]
    largest_weight: float
    clipped_share: float
    positives: dict[str, Annotated[int, Meta(ge=0)]]
    effective_positives: dict[str, float]

    @classmethod
    def of(cls, log: Log) -> Self | None:
        """Describe the correction of a log; None if it has none."""
        sums = PlaceSums.of(log)
        return None if sums is None else cls.of_sums(sums, log.schema)

    @classmethod
    def of_sums(cls, sums: "PlaceSums", schema: Schema) -> Self:
        """Describe the correction of rows that were added up."""
        total, square, names = sums.total, sums.square, schema.names
        effective = np.divide(total**2, square, out=np.zeros(len(total)), where=square > 0)
        return cls(
            {str(place): chance for place, chance in schema.examination.items()},
            sums.largest,
            sums.clipped / sums.rows if sums.rows else 0.0,
            dict(zip(names, sums.positives.tolist(), strict=True)),
            dict(zip(names, effective.tolist(), strict=True)),
        )

    def words(self) -> str:
        """Return the correction in one or two sentences."""
        first, *_, last = self.examination
        curve = f"place {first} is looked at with chance {self.examination[first]:.2f}, "
        curve += f"place {last} with {self.examination[last]:.2f}"
        share, effective = self.clipped_share, self.effective_positives
        clip = f", clipped in {share:.1%} of the rows" if share else ", none clipped"
        parts = [f"{n} {effective[n]:,.0f} of {count:,}" for n, count in self.positives.items()]
        text = f"Corrected for position: {curve}; weights up to {self.largest_weight:.1f}{clip}. "
        text += f"Effective positives: {', '.join(parts)}."
        thin = [n for n, count in self.effective_positives.items() if 0 < count < _FEW]
        return f"{text} Too few to trust: {', '.join(thin)}." if thin else text

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form, from which decoding builds it again."""
        return dict(vars(self))


@dataclass(frozen=True, eq=False)
class PlaceSums:
    """Sums over corrected rows, u being what undoes the place of each.

    Attributes:
        rows: How many there are.
        clipped: Of how many the weight was clipped.
        largest: The largest u.
        positives: (M,).
        total, square: (M,) Σu and Σu² of the positives.
        answered: Σu and Σu² of the rows with any feedback.
    """

    rows: int
    clipped: int
    largest: float
    positives: np.ndarray
    total: np.ndarray
    square: np.ndarray
    answered: np.ndarray

    @classmethod
    def of(cls, log: Log) -> "PlaceSums | None":
        """Add up the rows of a log; None if they are not corrected."""
        if log.inverse is None or log.position is None:
            return None
        labels, u, curve = log.known_labels(), log.inverse, dict(log.schema.examination)
        some = u[labels.any(axis=1)]
        return cls(
            log.rows,
            int((chances_at(curve, log.position) < 1 / MOST_WEIGHT).sum()),
            float(u.max(initial=1.0)),
            labels.sum(axis=0, dtype=np.int64),
            u @ labels,
            (u**2) @ labels,
            np.array([some.sum(), some @ some]),
        )

    def __add__(self, other: "PlaceSums") -> "PlaceSums":
        return PlaceSums(
            self.rows + other.rows,
            self.clipped + other.clipped,
            max(self.largest, other.largest),
            self.positives + other.positives,
            self.total + other.total,
            self.square + other.square,
            self.answered + other.answered,
        )
