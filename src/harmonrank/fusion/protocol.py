"""What a way to fuse is: options that can fit rows, what a fit has learned, how both are shown.

A method is a frozen dataclass of options with `traits` and `fit(rows)`, which returns a state. A
state turns scores and context codes into probabilities, or into fused scores; it is a frozen
dataclass whose annotated fields say how it is stored (`harmonrank.support.storage.stored`). All
else that a model can do stands around both once, in `harmonrank.fusion.method`.
"""

__all__ = ["Estimator", "MethodLearner", "State", "TrainingRows", "Traits"]

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, fields, is_dataclass
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Any, ClassVar, NoReturn, Protocol, Self, TypeAlias, get_type_hints

import numpy as np

from harmonrank.data import ContextEncoder, Schema
from harmonrank.data.rows.blocks import Blocks
from harmonrank.model.fit_rows import FitRows, drawn_from
from harmonrank.support.errors import UsageError
from harmonrank.support.options import checked_options


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


State: TypeAlias = Any
"""What a fit has learned. It has one of

    probabilities(scores, codes)           the probability of each objective, (rows, M)
    scores(scores, codes)                  the fused score of each row, (rows,)

of scores, (rows, M), and codes of the context, (rows, features), or (1, features) where all rows
share one. Where it has them, these are used too:

    fused(scores, codes, per_unit)         Σ_m per_unit_m p_m in one pass
    request_weights                        what a unit of p_m counts in a row, fitted for requests
    recalibrated(scores, codes, weight, share)
                                           the state for upstream scores that have changed so far
    facts()                                by name, a number for each objective
    fading                                 how often the count of an old row halved, by objective
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


@dataclass(frozen=True)
class TrainingRows:
    """Rows in blocks, and how to run. All rows count, and weights have mean 1.

    Attributes:
        schema: Which column is what.
        train: Rows to learn from, in the order of the log.
        valid: Rows for early stopping and selection; none where a method needs none.
        rows: How many there are to learn from.
        valid_rows: How many to select by.
        encoder: Of their context.
        prevalence: (M,) of the training rows.
        weights: (M,) what each objective's AUC counts.
        seed: Decides everything that is drawn.
        device: Where a network is trained.
        on_event: Called with every event of the fit.
        checkpoint: Where a fit that takes long keeps its state.
    """

    schema: Schema
    train: Blocks[FitRows]
    valid: Blocks[FitRows]
    rows: int
    valid_rows: int
    encoder: ContextEncoder
    prevalence: np.ndarray
    weights: np.ndarray
    seed: int
    device: str
    on_event: Callable[[Any], None]
    checkpoint: Path | None

    @property
    def slots(self) -> tuple[int, ...]:
        """How many codes each context feature has."""
        return self.encoder.slots

    def sample(self, most: int | None = None) -> FitRows:
        """Return training rows in memory: all, or so many drawn at random."""
        return drawn_from(self.train, self.rows, self.rows if most is None else most)

    def valid_sample(self, most: int | None = None) -> FitRows:
        """Return validation rows in memory: all, or so many drawn at random."""
        return drawn_from(self.valid, self.valid_rows, self.valid_rows if most is None else most)


class Estimator:
    """Takes the fields of its config as options, and prints those that differ from the default.

    A subclass shows its options to `help` and to completion. A copy has the same options and has
    learned the same.
    """

    Config: ClassVar[Any]
    """The frozen options, which can fit (`harmonrank.fusion.protocol.MethodLearner`)."""
    name: ClassVar[str]
    traits: ClassVar[Traits]

    def __init__(self, **options: Any) -> None:
        self.config = self.Config(**checked_options(self.name, self.Config, options))

    def __init_subclass__(cls, **rest: Any) -> None:
        super().__init_subclass__(**rest)
        if is_dataclass(getattr(cls, "Config", None)):
            cls.name, cls.traits = cls.Config.name, cls.Config.traits
            hints, options = get_type_hints(cls.Config), signature(cls.Config).parameters
            keywords = [
                option.replace(kind=Parameter.KEYWORD_ONLY, annotation=hints[name])
                for name, option in options.items()
            ]
            cls.__signature__ = Signature(keywords)  # type: ignore[attr-defined]

    def _unfitted(self) -> UsageError:
        """Return the error of whoever asks for what only a fit tells."""
        return UsageError(f"This {self.name} is not fitted; call fit or load a saved model.")

    def __repr__(self) -> str:
        usual = self.Config()
        given = {f.name: getattr(self.config, f.name) for f in fields(self.config)}
        changed = [f"{k}={v!r}" for k, v in given.items() if v != getattr(usual, k)]
        return f"{type(self).__name__}({', '.join(changed)})"

    def __copy__(self) -> Self:
        copied = type(self).__new__(type(self))
        copied.__dict__.update(self.__dict__)
        return copied

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        copied = type(self).__new__(type(self))
        memo[id(self)] = copied
        copied.__dict__.update(deepcopy(self.__dict__, memo))
        return copied

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise UsageError(
            "A model is not pickled, as loading a pickle executes it; use `model.save(folder)` and "
            "`harmonrank.load(folder)`."
        )
