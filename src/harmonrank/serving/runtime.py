"""Runtime: a loaded model that scores candidates, without HTTP."""

__all__ = ["FUSED", "Candidates", "Runtime", "Scored", "named_columns"]

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from harmonrank.data import Log
from harmonrank.fusion import Method
from harmonrank.fusion.request import checked_candidates
from harmonrank.fusion.weights import point_of
from harmonrank.support.errors import DataError, UsageError

FUSED = "fused"
Weights = Mapping[str, float] | None


@dataclass(frozen=True)
class Candidates:
    """What is to be scored.

    Attributes:
        scores: (n, objectives), in the order of the model's objectives.
        shared: The context values that all candidates share.
        own: Context columns in which they differ, of n values each.
    """

    scores: np.ndarray
    shared: Mapping[str, Any] = field(default_factory=dict)
    own: Mapping[str, pl.Series] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """How many candidates there are."""
        return len(self.scores)


@dataclass(frozen=True)
class Scored:
    """Fused scores, and the probability of each objective where it was asked for."""

    fused: np.ndarray
    probabilities: np.ndarray | None = None


class Runtime:
    """One version of a model, ready to score.

    Args:
        model: A fitted method.
        version: Its name in every answer.
        points: Operating points beside those of the model, objective weights by name. They and
            the weights of a call are for methods that can change weights after the fit.

    Attributes:
        objectives: Those whose probabilities the model knows; none for other methods.
        outputs: What can be asked for: the fused score and each objective's probability.
    """

    def __init__(
        self, model: Method, version: str, points: Mapping[str, Mapping[str, float]] | None = None
    ) -> None:
        self.model, self.version = model, version
        for weights in (points or {}).values():
            model.schema.weights_with(weights)
        self.points = {n: dict(w) for n, w in {**model.points, **(points or {})}.items()}
        self.has_probabilities = model.traits.probabilities
        self.objectives = model.schema.names if self.has_probabilities else ()
        self.outputs = (FUSED, *self.objectives)

    def warm_up(self) -> None:
        """Score a few rows each way, so that no request waits for a kernel to be loaded."""
        schema = self.model.schema
        scores = np.full((2, len(schema.names)), 0.5)
        if schema.missing == "allow":
            scores[1] = np.nan
        unknown = dict.fromkeys(schema.context)
        own = {n: pl.Series(n, [None, None]) for n in schema.context}
        for single in (scores, scores.astype(np.float32)):
            self.score(Candidates(single, unknown))
            self.score(Candidates(single, {}, own), probabilities=self.has_probabilities)

    def weights(self, weights: Weights, point: str | None) -> dict[str, float] | None:
        """Return the weights of a call: those of an operating point, then its own."""
        if point is None:
            return None if weights is None else dict(weights)
        return {**point_of(self.points, point), **(weights or {})}

    def score(
        self,
        candidates: Candidates,
        weights: Weights = None,
        *,
        value: Weights = None,
        probabilities: bool = False,
    ) -> Scored:
        """Score candidates as `model.score` scores a table of them, to the last bit."""
        model, raw = self.model, candidates.scores
        log = self._log(candidates) if candidates.own or probabilities else None
        if candidates.own:
            fused = model.score(log, weights=weights, value=value)
        else:
            fused = model.score_request(raw, candidates.shared, weights=weights, value=value)
        if not probabilities:
            return Scored(fused)
        if not self.has_probabilities:
            raise UsageError(
                f"{model.name} gives no probability of an objective; ask for '{FUSED}' only."
            )
        return Scored(fused, model.probabilities(log))

    def shares(self, p: np.ndarray, weights: Weights, value: Weights = None) -> np.ndarray:
        """Return what part of the fused score each objective contributes, (n, objectives).

        w_m p_m/(π_m(1−π_m)) over its sum, the rows of which are 1; a cost has a negative share, and
        sizes then add up to 1.
        """
        assert self.has_probabilities, "others have no probabilities"
        fuser = self.model.fuser
        parts = fuser.parts_of(p, fuser.weights(weights, value))
        total = np.abs(parts).sum(axis=1, keepdims=True)
        shares: np.ndarray = np.divide(parts, total, out=np.zeros_like(parts), where=total > 0)
        return shares

    def _log(self, candidates: Candidates) -> Log:
        schema, n = self.model.schema, candidates.rows
        columns = []
        for name in schema.context:
            if name in candidates.own:
                columns.append(candidates.own[name].alias(name))
            elif name in candidates.shared:
                columns.append(_repeated(name, candidates.shared[name], n))
            else:
                raise DataError(f"The context lacks '{name}'; set it to null if it is not known.")
        scores = checked_candidates(candidates.scores, schema)
        frame = pl.DataFrame(columns) if columns else pl.DataFrame({"": np.zeros(n)}).drop("")
        return Log(schema, scores, frame)


def _repeated(name: str, value: Any, n: int) -> pl.Series:
    try:
        return pl.Series(name, [value]).gather(np.zeros(n, np.int64))
    except (TypeError, OverflowError, pl.exceptions.PolarsError):
        raise DataError(
            f"Context value '{name}' must be text or a number. Got {str(value)[:40]!r}."
        ) from None


def named_columns(
    columns: Mapping[str, Any], wanted: Sequence[str], what: str
) -> tuple[list[Any], list[str]]:
    """Return the wanted columns in order, and the names of those that nobody wants."""
    for name in wanted:
        if name not in columns:
            came = ", ".join(map(repr, columns))[:200] or "none"
            raise DataError(f"{what} '{name}' is missing. Got {came}.")
    return [columns[name] for name in wanted], [name for name in columns if name not in wanted]
