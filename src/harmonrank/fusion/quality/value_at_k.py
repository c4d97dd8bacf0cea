"""ValueAtK: what the first k of every request were worth."""

__all__ = ["ValueAtK", "value_of"]

from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
from msgspec import Meta

from harmonrank.data import Log
from harmonrank.fusion.quality.areas import LEVEL, Ends
from harmonrank.fusion.quality.outcomes import outcomes_of, true_outcomes
from harmonrank.metrics import Interval, bootstrap_values, percentiles, value_at_k


@dataclass(frozen=True)
class ValueAtK:
    """The mean over requests of the worth of all events among the first k.

    Attributes:
        value: What an event of each objective is worth.
        ranked: Whether the fused score is the expected value, so that rows are ranked by it.
        mean: By labels; None without requests.
        ci: Ends of its bootstrap interval over users, else requests.
        exact: In a world, its expectation by true probabilities, without label noise.
        best: The largest possible `exact` on these rows.
    """

    k: Annotated[int, Meta(ge=1)]
    value: Annotated[dict[str, float], Meta(min_length=1)]
    ranked: bool
    mean: float | None = None
    ci: Ends | None = None
    exact: float | None = None
    best: float | None = None

    @property
    def interval(self) -> Interval:
        """The mean with its interval."""
        return Interval.of_parts(self.mean, self.ci, LEVEL)

    def words(self) -> str:
        """Return the figure in one sentence."""
        if self.mean is None:
            return f"Value at {self.k} needs requests; name the request column in the schema."
        worth = ", ".join(f"{name} {v:g}" for name, v in self.value.items() if v)
        text = f"Value at {self.k}: {self.mean:.4f} per request ({self.interval}); {worth}."
        if self.exact is None or self.best is None:
            return text
        return f"{text} By true probabilities {self.exact:.4f} of at best {self.best:.4f}."

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form, from which decoding builds it again."""
        return {**vars(self), "ci": self.ci and list(self.ci)}


def value_of(fused: np.ndarray, log: Log, value: np.ndarray, k: int, *, ranked: bool) -> ValueAtK:
    """Measure the value at k of a fused score, for which there must be requests."""
    at_k = ValueAtK(k, dict(zip(log.schema.names, value.tolist(), strict=True)), ranked)
    if log.request is None:
        return at_k
    rows, counts = (fused, outcomes_of(log), log.request, k), log.inverse
    mean = value_at_k(*rows, value=value, event_weight=counts)
    drawn = bootstrap_values(*rows, value=value, event_weight=counts, units=log.user)
    estimate, (low, high) = percentiles(mean, drawn, LEVEL).parts
    at_k = replace(at_k, mean=estimate, ci=(low, high))
    if log.truth is None:
        return at_k
    truth = true_outcomes(log)
    expected = log.truth if log.schema.plain else truth.events()
    exact = value_at_k(fused, truth, log.request, k, value=value)
    best = value_at_k(expected @ value, truth, log.request, k, value=value)
    return replace(at_k, exact=exact, best=best)
