"""What a way to fuse is: options that can fit rows, and what a fit has learned.

A method is a frozen dataclass of options with `traits` and `fit(rows)`, which returns a state. A
state turns scores and context codes into probabilities, or into fused scores; it is a frozen
dataclass whose annotated fields say how it is stored (`harmonrank.support.storage.stored`). All
else that a model can do stands around both once, in `harmonrank.fusion.method`.
"""

__all__ = ["MethodLearner", "Probabilities", "Scores", "State", "Traits"]

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias, runtime_checkable

import numpy as np

if TYPE_CHECKING:
    from harmonrank.fusion.fitting.rows import TrainingRows


@dataclass(frozen=True)
class Traits:
    """What a method can do.

    Attributes:
        probabilities: Whether its states give the probability of each objective, so that weights
            can change after the fit.
        kinds: Which kinds of objectives beside events it can learn: 'graded' and 'given'.
        needs: The optional package without which it cannot be fitted; a state needs it no more.
        missing: Whether its states take rows with missing scores; others are given imputed ones.
        validates: Whether the fit looks at validation rows; without them some requests are set
            aside.
        validation_rows: At most so many validation rows are looked at; None for all.
        requests: Whether the fit looks at requests, where a column names them.
        workers: Whether the fit is made of sums over blocks, which workers can find.
        whole: Whether the fit needs its rows in memory at once, so that of many some are drawn.
        values: How many values of each context column it tells apart.
    """

    probabilities: bool = True
    kinds: tuple[str, ...] = ("graded", "given")
    needs: str | None = None
    missing: bool = False
    validates: bool = True
    validation_rows: int | None = None
    requests: bool = False
    workers: bool = False
    whole: bool = False
    values: int = 1000


@runtime_checkable
class Probabilities(Protocol):
    """A state that knows the probability of each objective."""

    def probabilities(self, scores: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Return the probability of each objective, (rows, M).

        Args:
            scores: (rows, M).
            codes: (rows, features) of the context; (1, features) where all rows share one.
        """
        ...


@runtime_checkable
class Scores(Protocol):
    """A state that knows one fused score."""

    def scores(self, scores: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Return the fused score of each row, (rows,); arguments are those of `Probabilities`."""
        ...


State: TypeAlias = Any
"""`Probabilities` or `Scores`. Where it has them, these are used too:

    fused(scores, codes, per_unit)         Σ_m per_unit_m p_m in one pass
    request_weights                        what a unit of p_m counts in a row, fitted for requests
    recalibrated(scores, codes, weight)    the state for upstream scores that have changed
    facts()                                by name, a number for each objective
    sizes(M, slots)                        the named sizes of its arrays
    check()                                refuses stored arrays that do not fit together
"""


class MethodLearner(Protocol):
    """The options of a method."""

    name: ClassVar[str]
    traits: ClassVar[Traits]
    state: ClassVar[type]

    def fit(self, rows: "TrainingRows") -> State:
        """Learn from rows."""
        ...
