"""Weighed: the part of a method that knows what each objective counts."""

__all__ = ["Weighed", "fit_weights"]

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from harmonrank.data import Log, Schema
from harmonrank.data.values import either
from harmonrank.errors import UsageError
from harmonrank.methods.quality import Quality, quality_of
from harmonrank.methods.recalibrating import Recalibrating
from harmonrank.methods.value_quality import value_of


class Weighed(Recalibrating):
    """Counts objectives by weights on their AUC, or by what an event of each is worth."""

    gives_probabilities: ClassVar[bool] = False
    """Whether it estimates each objective's probability, so that it can rank by value."""

    prevalence: np.ndarray
    """The share of positives of each objective at the fit."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.prevalence = np.empty(0)

    @property
    def effective_weights(self) -> dict[str, float]:
        """What a unit of probability counts: w/(π(1−π)) per objective, as shares of 1."""
        return self._effective(self.objective_weights())

    def _effective(self, weights: np.ndarray) -> dict[str, float]:
        effective = weights / (self.prevalence * (1 - self.prevalence))
        shares = effective / np.abs(effective).sum()
        return dict(zip(self.schema.names, shares.tolist(), strict=True))

    def objective_weights(
        self,
        weights: Mapping[str, float] | None = None,
        value: Mapping[str, float] | None = None,
    ) -> np.ndarray:
        """Return w_m, what each objective's AUC counts; those of the schema where none are given.

        A value v_m per event is the weight v_m π_m(1−π_m), since the fused score of weights w_m is
        Σ_m w_m p_m/(π_m(1−π_m)).
        """
        either(weights, value)
        worth = self.schema.values_with(value) if weights is None else None
        if worth is None:
            return self.schema.weights_with(weights)
        self._require_probabilities()
        counted: np.ndarray = worth * self.prevalence * (1 - self.prevalence)
        return counted

    def _require_probabilities(self) -> None:
        if not self.gives_probabilities:
            raise UsageError(
                f"{self.name} gives no probability of an objective, so it cannot rank by value; "
                "use weights, or another method such as harmonrank."
            )

    def explain(
        self,
        weights: Mapping[str, float] | None = None,
        value: Mapping[str, float] | None = None,
    ) -> dict[str, dict[str, float]]:
        """Return facts of each objective: weights, and what the method makes of its score."""
        names, merged = self.schema.names, self.objective_weights(weights, value)
        worth = self.schema.values_with(value) if weights is None else None
        counts = {} if worth is None else {"value": worth}
        facts = {**counts, "weight": merged, "prevalence": self.prevalence}
        named = {k: dict(zip(names, v.tolist(), strict=True)) for k, v in facts.items()}
        return {**named, "effective_weight": self._effective(merged)}

    def measured(
        self,
        fused: np.ndarray,
        log: Log,
        weights: Mapping[str, float] | None = None,
        value: Mapping[str, float] | None = None,
        *,
        k: int = 10,
    ) -> Quality:
        """Return the quality of fused scores that were made with these weights or values."""
        quality = quality_of(fused, log, self.schema.weights_with(weights), self.prevalence)
        worth = self.schema.values_with(value)
        if worth is None:
            return quality
        return replace(
            quality,
            effective_weights=self._effective(self.objective_weights(weights, value)),
            value=value_of(fused, log, worth, k, ranked=weights is None),
        )

    def _asked(
        self, weights: Mapping[str, float] | None, value: Mapping[str, float] | None
    ) -> np.ndarray | None:
        """Return the weights that a call asks for, None for those of the fit."""
        asked = weights is not None or value is not None
        return self.objective_weights(weights, value) if asked else None


def fit_weights(schema: Schema, train: Log) -> np.ndarray:
    """Return what each objective's AUC counts in the fit."""
    value, pi = schema.values_with(None), train.prevalence()
    return schema.weight_vector if value is None else value * pi * (1 - pi)
