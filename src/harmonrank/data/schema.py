"""Schema: which column of a table is what."""

__all__ = ["Schema"]

import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from math import isfinite
from pathlib import Path
from typing import Any, Self

import numpy as np

from harmonrank.errors import DataError, UsageError, did_you_mean


@dataclass(frozen=True)
class Schema:
    """Names the columns of a log.

    >>> schema = Schema({"buy": "p_buy", "like": "p_like"}, context=["hour"], weights={"buy": 2})
    >>> schema.score_columns, schema.weight_vector
    (('p_buy', 'p_like'), array([2., 1.]))

    Args:
        objectives: Label column of each objective, which also names it, and its score column.
        context: User and context features; text and whole numbers are categories, other
            numbers are cut into quantiles.
        request: Candidates that were shown together share its value.
        weights: What an objective's AUC counts in the sum; 1 where not given.
        sample_weight: How much a row counts.
        truth: Column of each objective's true probability, which only a world knows.
    """

    objectives: Mapping[str, str]
    context: Sequence[str] = ()
    request: str | None = None
    weights: Mapping[str, float] = field(default_factory=dict)
    sample_weight: str | None = None
    truth: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if isinstance(self.context, str):
            object.__setattr__(self, "context", (self.context,))
        object.__setattr__(self, "objectives", dict(self.objectives))
        object.__setattr__(self, "context", tuple(self.context))
        object.__setattr__(self, "weights", {k: float(v) for k, v in self.weights.items()})
        object.__setattr__(self, "truth", dict(self.truth))
        self._check()

    def _check(self) -> None:
        if not self.objectives:
            raise UsageError("`objectives` must name at least one label and its score column.")
        _refuse_repeats("score column", self.objectives.values())
        _refuse_repeats("context column", self.context)
        both = set(self.objectives) & set(self.objectives.values())
        if both:
            raise UsageError(f"Column '{min(both)}' cannot be both a label and a score column.")
        for role, mapping in (("weights", self.weights), ("truth", self.truth)):
            for name in mapping:
                if name not in self.objectives:
                    hint = did_you_mean(name, self.objectives)
                    raise UsageError(f"`{role}` names an unknown objective '{name}'. {hint}")
        for name, weight in self.weights.items():
            if not (isfinite(weight) and weight >= 0):
                raise UsageError(f"The weight of '{name}' must be 0 or more. Got {weight:g}.")
        if not any(self.weight_vector > 0):
            raise UsageError("At least one objective needs a weight above 0.")

    @property
    def names(self) -> tuple[str, ...]:
        """The objectives, which are also the label columns."""
        return tuple(self.objectives)

    @property
    def score_columns(self) -> tuple[str, ...]:
        """The score column of each objective."""
        return tuple(self.objectives.values())

    @property
    def weight_vector(self) -> np.ndarray:
        """The weight of each objective, in order."""
        return self.weights_with({})

    def weights_with(self, changes: Mapping[str, float] | None) -> np.ndarray:
        """Return the weight of each objective after some are changed."""
        for name in changes or {}:
            if name not in self.objectives:
                hint = did_you_mean(name, self.objectives)
                raise UsageError(f"`weights` names an unknown objective '{name}'. {hint}")
        merged = {**self.weights, **(changes or {})}
        return np.array([float(merged.get(name, 1.0)) for name in self.objectives])

    def subset(self, names: Iterable[str]) -> Self:
        """Return the schema of some objectives only."""
        names = list(names)
        for name in names:
            if name not in self.objectives:
                hint = did_you_mean(name, self.objectives)
                raise UsageError(f"There is no objective '{name}'. {hint}")
        return type(self)(
            {k: self.objectives[k] for k in names},
            self.context,
            self.request,
            {k: v for k, v in self.weights.items() if k in names},
            self.sample_weight,
            {k: v for k, v in self.truth.items() if k in names},
        )

    def to_dict(self) -> dict[str, Any]:
        """Return what `from_dict` reads, with empty parts left out."""
        parts: dict[str, Any] = {
            "objectives": dict(self.objectives),
            "context": list(self.context),
            "request": self.request,
            "sample_weight": self.sample_weight,
            "weights": dict(self.weights),
            "truth": dict(self.truth),
        }
        return {key: value for key, value in parts.items() if value}

    @classmethod
    def from_dict(cls, parts: Mapping[str, Any]) -> Self:
        """Build a schema from the parts that a TOML or JSON file holds."""
        known = [f.name for f in fields(cls)]
        for key in parts:
            if key not in known:
                raise DataError(f"A schema has no part '{key}'. {did_you_mean(key, known)}")
        if not isinstance(parts.get("objectives"), Mapping):
            raise DataError('A schema needs [objectives] with lines such as buy = "p_buy".')
        return cls(**parts)

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read a schema from a TOML file."""
        path = Path(path)
        try:
            parts = tomllib.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise DataError(f"There is no schema file '{path}'.") from None
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise DataError(f"'{path}' cannot be read as a TOML schema: {error}.") from None
        try:
            return cls.from_dict(parts)
        except (TypeError, ValueError) as error:
            raise DataError(f"'{path}': {error}") from None

    def to_toml(self) -> str:
        """Return the schema as TOML text."""
        plain, tables = [], []
        for key, value in self.to_dict().items():
            if isinstance(value, dict):
                rows = [f"{json.dumps(k)} = {json.dumps(v)}" for k, v in value.items()]
                tables.append("\n".join([f"[{key}]", *rows]))
            else:
                plain.append(f"{key} = {json.dumps(value)}")
        return "\n\n".join(["\n".join(plain)] * bool(plain) + tables) + "\n"


def _refuse_repeats(role: str, columns: Iterable[str]) -> None:
    seen: set[str] = set()
    for column in columns:
        if column in seen:
            raise UsageError(f"The {role} '{column}' is named twice; each must be named once.")
        seen.add(column)
