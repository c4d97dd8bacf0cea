"""Weighed: the part of a method that knows what each objective counts."""

__all__ = ["Weighed", "fit_weights"]

from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np

from harmonrank.data import Log, Schema
from harmonrank.data.values import either
from harmonrank.fusion.drift.recalibrating import Recalibrating
from harmonrank.fusion.kinds import Kinds, ValueWeights, kinds_of
from harmonrank.fusion.points import checked_point, point_of
from harmonrank.fusion.quality.quality import Quality, quality_of
from harmonrank.fusion.quality.value_quality import value_of
from harmonrank.support.errors import UsageError


class Weighed(Recalibrating):
    """Counts objectives by weights on their AUC, or by what an event of each is worth."""

    gives_probabilities: ClassVar[bool] = False
    """Whether it estimates each objective's probability, so that it can rank by value."""

    prevalence: np.ndarray
    """The share of positives of each objective at the fit."""

    takes: ClassVar[tuple[str, ...]] = ()
    """Which kinds of objectives beside events it can learn: 'graded' and 'given'."""
    _kinds: Kinds | None = None

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._schema: Schema | None = None
        self._keep_prevalence(np.empty(0))

    def _keep_prevalence(self, prevalence: np.ndarray) -> None:
        """Begin with what a fit has found; operating points were those of another one."""
        self.prevalence = prevalence
        self._points: dict[str, dict[str, float]] = {}

    @property
    def points(self) -> dict[str, dict[str, float]]:
        """The operating points kept with the model: the weight of every objective, by name."""
        return {name: dict(weights) for name, weights in self._points.items()}

    def with_point(self, name: str, weights: Mapping[str, float]) -> Self:
        """Return this model with a named operating point, in place of one of that name.

        Args:
            name: What `at`, `--at` and a service call it.
            weights: Of objectives; one that is not named has its weight of the fit.
        """
        self._require_points()
        name, whole = checked_point(self.schema, name, weights)
        changed = copy(self)
        changed._points = {**self._points, name: whole}
        return changed

    def with_points_of(self, other: "Weighed") -> Self:
        """Return this model with the operating points of one of the same objectives as well.

        Its own points win. A method that has none, or other objectives, stays as it is.
        """
        if not self.gives_probabilities or self.schema.names != other.schema.names:
            return self
        changed = copy(self)
        changed._points = {**other._points, **self._points}
        return changed

    def at(self, point: str) -> Self:
        """Return this model with the weights of an operating point in place of those of its fit."""
        return self.reweighted(point_of(self._points, point))

    def reweighted(self, weights: Mapping[str, float]) -> Self:
        """Return this model with other weights in place of those of its fit; others stay."""
        self._require_points()
        vector = self.schema.weights_with(weights)
        whole = dict(zip(self.schema.names, vector.tolist(), strict=True))
        changed = copy(self)
        changed._schema = replace(self.schema, weights=whole, value={})
        return changed

    def _require_points(self) -> None:
        if not self.gives_probabilities:
            raise UsageError(
                f"{self.name} gives no probability of an objective, so its weights cannot change "
                "after the fit and it has no operating points; use a method such as harmonrank."
            )

    @property
    def effective_weights(self) -> dict[str, float]:
        """What a unit of probability counts: w/(π(1−π)) per objective, as shares of 1."""
        return self._effective(self.objective_weights())

    @property
    def optimises(self) -> str:
        """Which AUC the fit is for: over "all" rows, or within "requests"."""
        return str(getattr(self.config, "optimise", "all"))

    def _per_unit(self, weights: np.ndarray) -> np.ndarray:
        """Return what a unit of each objective's probability counts under these weights, (M,)."""
        counted: np.ndarray = weights / (self.prevalence * (1 - self.prevalence))
        return counted

    def _effective(self, weights: np.ndarray) -> dict[str, float]:
        effective = self._per_unit(weights)
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
        return counted if self._kinds is None else counted.view(ValueWeights)

    def _keep_kinds(self, train: Log, targets: Log) -> None:
        """Remember how common objectives are, and what scoring must know of their kinds."""
        self._keep_prevalence(train.prevalence())
        self._learn_kinds(train, targets)

    def _learn_kinds(
        self,
        train: Log,
        targets: Log,  # noqa: ARG002
        shown: np.ndarray | None = None,
    ) -> None:
        """Remember what scoring must know of the kinds of objectives.

        Args:
            train: Training rows, or some of them.
            targets: The same with what heads learn as labels.
            shown: (M,) the share of all rows that show each objective, where `train` are some.
        """
        self._kinds = kinds_of(train, None, shown)

    def _require_kinds(self, schema: Schema) -> None:
        """Refuse objectives that it cannot learn, and values where it has no probabilities."""
        for name in schema.names:
            graded, given = name in schema.graded, schema.given.get(name)
            if (graded and "graded" not in self.takes) or (given and "given" not in self.takes):
                what = "that are graded" if graded else f"that are shown only given '{given}'"
                raise UsageError(
                    f"{self.name} cannot learn objectives {what}, such as '{name}'; leave it out, "
                    "or use a method such as harmonrank."
                )
        if schema.value:
            self._require_probabilities()

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
        counts = self.schema.weights_with(weights)
        quality = quality_of(fused, log, counts, self.prevalence)
        if self.optimises != "all":
            effective = self._effective(counts)
            quality = replace(quality, effective_weights=effective, optimises=self.optimises)
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


def fit_weights(schema: Schema, pi: np.ndarray) -> np.ndarray:
    """Return what each objective's AUC counts in the fit, given how common objectives are."""
    value = schema.values_with(None)
    return schema.weight_vector if value is None else value * pi * (1 - pi)
