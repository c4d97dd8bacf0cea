"""ModelExplanation: what moves the fused score of a model on some rows, and for whom."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from harmonrank.data import Log
from harmonrank.fusion import Method
from harmonrank.fusion.influence import Influence, influence_of
from harmonrank.reports.model_facts import (
    Curve,
    pulls_by_context,
    pulls_of,
    response_of,
)

_MOST_ROWS = 50_000


@dataclass(frozen=True)
class ModelExplanation:
    """Measured on rows as they come; labels are not needed.

    Attributes:
        method: Its name.
        names: The objectives.
        rows: How many were looked at.
        effective: What a unit of each probability counts, w/(π(1−π)), as shares of 1; of a fit for
            requests, in a usual row.
        pulls: How much of the fused score's movement each score causes, as shares of 1: each moves
            from its 10th to its 90th percentile while the others stay at their medians.
        by_context: The same for the rows of each value of each context column.
        responses: A curve per objective: the fused score, in its standard deviations, as that
            score moves.
        optimises: Which AUC the fit is for, over "all" rows or within "requests".
        influence: How much each objective moves the order; None of methods without probabilities.
    """

    method: str
    names: tuple[str, ...]
    rows: int
    effective: Mapping[str, float]
    pulls: Mapping[str, float]
    by_context: Mapping[str, Mapping[str, tuple[float, ...]]]
    responses: tuple[Curve, ...]
    optimises: str = "all"
    influence: Influence | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return JSON parts."""

        def named(shares: tuple[float, ...]) -> dict[str, float]:
            return dict(zip(self.names, shares, strict=True))

        curves = zip(self.names, self.responses, strict=True)
        return {
            "rows": self.rows,
            "influence": None if self.influence is None else asdict(self.influence),
            "pulls": dict(self.pulls),
            "by_context": {
                column: {value: named(shares) for value, shares in values.items()}
                for column, values in self.by_context.items()
            },
            "responses": {name: {"score": c.x, "fused_sd": c.y} for name, c in curves},
        }


def explain_model(model: Method, log: Log) -> ModelExplanation:
    """Measure what moves the fused score, with the weights that the model has."""
    names, some = model.schema.names, log.sampled(_MOST_ROWS)
    return ModelExplanation(
        method=model.name,
        names=names,
        rows=some.rows,
        effective=model.effective_weights,
        pulls=dict(zip(names, pulls_of(model, some), strict=True)),
        by_context=pulls_by_context(model, some),
        responses=response_of(model, some),
        optimises=model.fuser.optimises,
        influence=influence_of(model, log),
    )
