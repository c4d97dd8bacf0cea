"""ValueAtK: what the first k of every request were worth."""

__all__ = ["ValueAtK", "ValueForm", "value_of"]

from dataclasses import dataclass, replace
from typing import Annotated, Any, Self

import msgspec
import numpy as np
from msgspec import Meta

from harmonrank.data import Log
from harmonrank.fusion.quality.areas import Ends
from harmonrank.fusion.quality.outcomes import outcomes_of, true_outcomes
from harmonrank.metrics import Interval, value_at_k, value_interval


@dataclass(frozen=True)
class ValueAtK:
    """The mean over requests of the worth of all events among the first k.

    Attributes:
        value: What an event of each objective is worth.
        ranked: Whether the fused score is the expected value, so that rows are ranked by it.
        mean: By labels, with a bootstrap interval over requests; None without requests.
        exact: In a world, its expectation by true probabilities, without label noise.
        best: The largest possible `exact` on these rows.
    """

    k: int
    value: dict[str, float]
    ranked: bool
    mean: Interval | None = None
    exact: float | None = None
    best: float | None = None

    def words(self) -> str:
        """Return the figure in one sentence."""
        if self.mean is None:
            return f"Value at {self.k} needs requests; name the request column in the schema."
        worth = ", ".join(f"{name} {v:g}" for name, v in self.value.items() if v)
        text = f"Value at {self.k}: {self.mean.estimate:.4f} per request ({self.mean}); {worth}."
        if self.exact is None or self.best is None:
            return text
        return f"{text} By true probabilities {self.exact:.4f} of at best {self.best:.4f}."

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as JSON parts."""
        return {
            "k": self.k,
            "value": self.value,
            "ranked": self.ranked,
            "mean": None if self.mean is None else self.mean.estimate,
            "ci": None if self.mean is None else [self.mean.low, self.mean.high],
            "exact": self.exact,
            "best": self.best,
        }

    @classmethod
    def of_form(cls, form: "ValueForm", level: float) -> Self:
        """Build what `to_dict` returned and decoding has checked."""
        mean = None if form.mean is None else Interval.of_parts(form.mean, form.ci, level)
        return cls(form.k, form.value, form.ranked, mean, form.exact, form.best)


class ValueForm(msgspec.Struct):
    """What `ValueAtK.to_dict` returns, as the type that reading decodes it to."""

    k: Annotated[int, Meta(ge=1)]
    value: Annotated[dict[str, float], Meta(min_length=1)]
    ranked: bool
    mean: float | None
    ci: Ends | None
    exact: float | None
    best: float | None


def value_of(fused: np.ndarray, log: Log, value: np.ndarray, k: int, *, ranked: bool) -> ValueAtK:
    """Measure the value at k of a fused score, for which there must be requests."""
    at_k = ValueAtK(k, dict(zip(log.schema.names, value.tolist(), strict=True)), ranked)
    if log.request is None:
        return at_k
    labels, counts = outcomes_of(log), log.inverse
    mean = value_interval(fused, labels, log.request, k, value=value, event_weight=counts)
    if log.truth is None:
        return replace(at_k, mean=mean)
    truth = true_outcomes(log)
    expected = log.truth if log.schema.plain else truth.events()
    exact = value_at_k(fused, truth, log.request, k, value=value)
    best = value_at_k(expected @ value, truth, log.request, k, value=value)
    return replace(at_k, mean=mean, exact=exact, best=best)
